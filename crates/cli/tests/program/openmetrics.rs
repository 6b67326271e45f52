//! A strict reader of OpenMetrics text (<https://prometheus.io/docs/specs/om/open_metrics_spec/>).
#![allow(clippy::expect_used, reason = "the line at fault is shown")]
#![allow(clippy::float_cmp, reason = "these are counts")]

use std::collections::{BTreeMap, BTreeSet};

/// The samples of one text.
#[derive(Debug, Default)]
pub(crate) struct Exposition {
    /// The type of each metric, by the name for queries.
    pub(crate) types: BTreeMap<String, String>,
    /// Values by name and labels, as written.
    samples: BTreeMap<(String, String), f64>,
}

impl Exposition {
    pub(crate) fn parse(text: &str) -> Self {
        let body = text.strip_suffix("# EOF\n").expect("the text ends with # EOF");
        let (mut all, mut family) = (Self::default(), Family::default());
        let mut families = BTreeSet::new();
        for line in body.lines() {
            if let Some(rest) = line.strip_prefix("# ") {
                let (kind, rest) = rest.split_once(' ').expect(line);
                let (name, value) = rest.split_once(' ').expect(line);
                if kind == "HELP" {
                    family.end();
                    assert!(families.insert(name.to_owned()), "twice: {line}");
                    family = Family { name: name.to_owned(), ..Family::default() };
                }
                assert_eq!(name, family.name, "{line}");
                assert!(family.buckets.is_empty() && family.samples == 0, "late: {line}");
                family.describe(kind, value);
            } else {
                family.take(line, &mut all);
            }
        }
        family.end();
        all
    }

    /// Returns the only value under `name` whose labels contain `labels`.
    pub(crate) fn value(&self, name: &str, labels: &str) -> f64 {
        let found: Vec<f64> = self.values(name, labels).collect();
        assert_eq!(found.len(), 1, "{name} {labels}: {:?}", self.samples.keys());
        found[0]
    }

    /// Returns the values under `name` whose labels contain `labels`.
    pub(crate) fn values(&self, name: &str, labels: &str) -> impl Iterator<Item = f64> {
        let is_it = move |key: &(String, String)| key.0 == name && key.1.contains(labels);
        self.samples.iter().filter(move |(key, _)| is_it(key)).map(|(_, value)| *value)
    }

    /// Returns the counters with their labels.
    pub(crate) fn counters(&self) -> impl Iterator<Item = (&(String, String), f64)> {
        let is_counter = |name: &str| self.types.get(name).is_some_and(|kind| kind == "counter");
        let counters = self.samples.iter().filter(move |(key, _)| is_counter(&key.0));
        counters.map(|(key, value)| (key, *value))
    }
}

#[derive(Default)]
struct Family {
    name: String,
    kind: String,
    samples: usize,
    /// The buckets of a histogram read so far, as bound and count.
    buckets: Vec<(f64, f64)>,
    count: Option<f64>,
}

impl Family {
    fn describe(&mut self, kind: &str, value: &str) {
        match kind {
            "HELP" => assert!(!value.is_empty(), "{}: no help", self.name),
            "TYPE" => {
                assert!(["counter", "gauge", "histogram"].contains(&value), "{value}");
                value.clone_into(&mut self.kind);
            }
            "UNIT" => assert!(self.name.ends_with(&format!("_{value}")), "{}: {value}", self.name),
            _ => panic!("{}: unknown line {kind}", self.name),
        }
    }

    fn take(&mut self, line: &str, all: &mut Exposition) {
        let (series, value) = line.rsplit_once(' ').expect(line);
        let (name, labels) = series.strip_suffix('}').expect(line).split_once('{').expect(line);
        let labels_read = labels_of(labels);
        let value: f64 = value.parse().expect(line);
        let suffix = name.strip_prefix(self.name.as_str()).expect(line);
        assert!(value.is_finite(), "{line}");
        match (self.kind.as_str(), suffix) {
            ("counter", "_total") | ("histogram", "_sum") => assert!(value >= 0.0, "{line}"),
            ("gauge", "") => {}
            ("histogram", "_bucket") => {
                let bound = labels_read["le"].replace("+Inf", "inf").parse().expect(line);
                let last = self.buckets.last().copied();
                assert!(last.is_none_or(|(le, count)| le < bound && count <= value), "{line}");
                self.buckets.push((bound, value));
                if bound.is_infinite() {
                    assert_eq!(self.count.take(), Some(value), "{line}");
                    self.buckets.clear();
                }
            }
            ("histogram", "_count") => self.count = Some(value),
            _ => panic!("{}: not of type {:?}: {line}", self.name, self.kind),
        }
        self.samples += 1;
        let listed = if self.kind == "histogram" { self.name.as_str() } else { name };
        all.types.insert(listed.to_owned(), self.kind.clone());
        let before = all.samples.insert((name.to_owned(), labels.to_owned()), value);
        assert!(before.is_none(), "twice: {line}");
    }

    fn end(&self) {
        assert!(self.name.is_empty() || self.samples > 0, "{}: no sample", self.name);
        assert!(self.buckets.is_empty() && self.count.is_none(), "{}: no last bucket", self.name);
    }
}

/// Returns labels by name. Their values must not contain characters that need escapes; ours do not.
fn labels_of(text: &str) -> BTreeMap<&str, &str> {
    let mut labels = BTreeMap::new();
    for label in text.split(',') {
        let (name, value) = label.split_once("=\"").expect(text);
        let value = value.strip_suffix('"').expect(text);
        assert!(!value.contains(['"', '\\']), "{text}");
        let is_plain = |c: char| c.is_ascii_lowercase() || c == '_';
        assert!(name.chars().all(is_plain), "{text}");
        assert!(labels.insert(name, value).is_none(), "twice: {text}");
    }
    labels
}

#[test]
fn the_reader_refuses_what_is_not_openmetrics() {
    let good = "# HELP a_bytes b\n# TYPE a_bytes counter\n# UNIT a_bytes bytes\n\
                a_bytes_total{c=\"d\"} 1\n# EOF\n";
    assert_eq!(Exposition::parse(good).value("a_bytes_total", "c=\"d\""), 1.0);
    let histogram = "# HELP a b\n# TYPE a histogram\na_sum{c=\"d\"} 1\na_count{c=\"d\"} 2\n\
                     a_bucket{le=\"1.0\",c=\"d\"} 1\na_bucket{le=\"+Inf\",c=\"d\"} 2\n# EOF\n";
    assert_eq!(Exposition::parse(histogram).value("a_count", ""), 2.0);
    let bad = [
        good.replace("# EOF\n", ""),
        good.replace("_total", ""),
        good.replace("UNIT a_bytes bytes", "UNIT a_bytes seconds"),
        good.replace(" counter", " count"),
        good.replace("} 1", "} x"),
        good.replace("\"d\"", "\"d"),
        good.replace("# EOF", &good.replace("# EOF\n", "# EOF")),
        histogram.replace("+Inf\",c=\"d\"} 2", "+Inf\",c=\"d\"} 3"),
        histogram.replace("le=\"1.0\",c=\"d\"} 1", "le=\"1.0\",c=\"d\"} 3"),
        histogram.replace("a_bucket{le=\"+Inf\",c=\"d\"} 2\n", ""),
    ];
    for text in bad {
        let read = std::panic::catch_unwind(|| Exposition::parse(&text));
        assert!(read.is_err(), "{text}");
    }
}
