//! Values with their names and labels, and their text.

use std::collections::BTreeMap;
use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use super::histogram::Histogram;

/// The kind of a metric.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

impl Kind {
    #[cfg(test)]
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }

    fn of_exposition(self) -> MetricType {
        match self {
            Self::Counter => MetricType::Counter,
            Self::Gauge => MetricType::Gauge,
            Self::Histogram => MetricType::Histogram,
        }
    }
}

/// The description of a metric.
#[derive(Debug)]
pub(crate) struct Metric {
    /// Its name without `rushes_`, its unit and `_total`.
    name: &'static str,
    unit: Option<&'static str>,
    pub(super) kind: Kind,
    pub(super) help: &'static str,
}

impl Metric {
    pub(super) const fn counter(name: &'static str, help: &'static str) -> Self {
        Self { name, unit: None, kind: Kind::Counter, help }
    }

    pub(super) const fn gauge(name: &'static str, help: &'static str) -> Self {
        Self { name, unit: None, kind: Kind::Gauge, help }
    }

    pub(super) const fn histogram(name: &'static str, help: &'static str) -> Self {
        Self { name, unit: None, kind: Kind::Histogram, help }
    }

    /// Sets the unit, which becomes a part of the metric's name.
    pub(super) const fn unit(self, unit: &'static str) -> Self {
        Self { unit: Some(unit), ..self }
    }

    /// Returns the name to use in queries; for a histogram, `_bucket` follows it.
    #[cfg(test)]
    pub(super) fn series(&self) -> String {
        let unit = self.unit.map_or_else(String::new, |unit| format!("_{unit}"));
        let end = if self.kind == Kind::Counter { "_total" } else { "" };
        format!("rushes_{}{unit}{end}", self.name)
    }
}

/// A sample's labels, escaped for the text.
type Labels = Vec<(&'static str, String)>;

#[derive(Debug)]
enum Number {
    Count(u64),
    Real(f64),
    Buckets(Vec<(f64, u64)>, f64),
}

/// The samples of one metric.
#[derive(Debug)]
struct Family {
    metric: &'static Metric,
    samples: Vec<(Labels, Number)>,
}

/// All values of one moment.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    /// Labels of the samples that follow.
    labels: Labels,
    families: BTreeMap<&'static str, Family>,
}

impl Samples {
    /// Clears the labels, for the samples of another stream or part of the program.
    pub(super) fn begin(&mut self) {
        self.labels.clear();
    }

    /// Sets a label of the samples that follow, until [`begin`](Self::begin).
    pub(super) fn label(&mut self, name: &'static str, value: &str) {
        // The encoder writes values as they are.
        let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        self.labels.retain(|(label, _)| *label != name);
        self.labels.push((name, value));
    }

    /// Removes a label from the samples that follow.
    pub(super) fn without(&mut self, name: &'static str) {
        self.labels.retain(|(label, _)| *label != name);
    }

    pub(super) fn count(&mut self, metric: &'static Metric, count: u64) {
        self.add(metric, Number::Count(count));
    }

    /// Adds a counter that is not a whole number.
    pub(super) fn real(&mut self, metric: &'static Metric, number: f64) {
        self.add(metric, Number::Real(number));
    }

    pub(super) fn gauge(&mut self, metric: &'static Metric, number: f64) {
        self.add(metric, Number::Real(number));
    }

    pub(super) fn histogram(&mut self, metric: &'static Metric, histogram: &Histogram) {
        let (buckets, sum) = histogram.read();
        self.add(metric, Number::Buckets(buckets, sum));
    }

    fn add(&mut self, metric: &'static Metric, number: Number) {
        let new = || Family { metric, samples: Vec::new() };
        let family = self.families.entry(metric.name).or_insert_with(new);
        family.samples.push((self.labels.clone(), number));
    }

    /// Returns the samples as OpenMetrics text.
    pub(super) fn text(self) -> String {
        let (mut registry, mut text) = (Registry::default(), String::new());
        registry.register_collector(Box::new(self));
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &registry);
        text
    }
}

impl Collector for Samples {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for Family { metric, samples } in self.families.values() {
            let unit = metric.unit.map(|unit| Unit::Other(unit.to_owned()));
            let name = format!("rushes_{}", metric.name);
            let kind = metric.kind.of_exposition();
            let mut family = encoder.encode_descriptor(&name, metric.help, unit.as_ref(), kind)?;
            for (labels, number) in samples {
                write(family.encode_family(labels)?, metric.kind, number)?;
            }
        }
        Ok(())
    }
}

fn write(mut encoder: MetricEncoder<'_>, kind: Kind, number: &Number) -> fmt::Result {
    match (kind, number) {
        (_, Number::Buckets(buckets, sum)) => {
            let count = buckets.iter().map(|(_, count)| count).sum();
            encoder.encode_histogram::<NoLabelSet>(*sum, count, buckets, None)
        }
        (Kind::Counter, Number::Count(count)) => {
            encoder.encode_counter::<NoLabelSet, _, f64>(count, None)
        }
        (Kind::Counter, Number::Real(real)) => {
            encoder.encode_counter::<NoLabelSet, _, f64>(real, None)
        }
        (_, Number::Count(count)) => encoder.encode_gauge(count),
        (_, Number::Real(real)) => encoder.encode_gauge(real),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    static SEEN: Metric = Metric::counter("seen", "Octets seen").unit("bytes");
    static DEPTH: Metric = Metric::gauge("depth", "Depth");
    static TIME: Metric = Metric::histogram("time", "Time").unit("seconds");

    #[test]
    fn the_text_is_that_of_openmetrics() {
        let mut samples = Samples::default();
        samples.label("codec", "a\"b\\c\nd");
        samples.count(&SEEN, 7);
        samples.begin();
        samples.label("stream", "1");
        samples.count(&SEEN, 8);
        samples.gauge(&DEPTH, 0.5);
        let histogram = Histogram::default();
        histogram.count(Duration::from_secs(11));
        samples.histogram(&TIME, &histogram);
        let text = samples.text();
        let lines: Vec<&str> = text.lines().filter(|line| !line.contains("_bucket")).collect();
        assert_eq!(
            lines,
            [
                "# HELP rushes_depth Depth",
                "# TYPE rushes_depth gauge",
                "rushes_depth{stream=\"1\"} 0.5",
                "# HELP rushes_seen_bytes Octets seen",
                "# TYPE rushes_seen_bytes counter",
                "# UNIT rushes_seen_bytes bytes",
                "rushes_seen_bytes_total{codec=\"a\\\"b\\\\c\\nd\"} 7",
                "rushes_seen_bytes_total{stream=\"1\"} 8",
                "# HELP rushes_time_seconds Time",
                "# TYPE rushes_time_seconds histogram",
                "# UNIT rushes_time_seconds seconds",
                "rushes_time_seconds_sum{stream=\"1\"} 11.0",
                "rushes_time_seconds_count{stream=\"1\"} 1",
                "# EOF",
            ]
        );
        assert!(
            text.contains("rushes_time_seconds_bucket{le=\"10.0\",stream=\"1\"} 0\n"),
            "{text}"
        );
        assert!(
            text.contains("rushes_time_seconds_bucket{le=\"+Inf\",stream=\"1\"} 1\n"),
            "{text}"
        );
    }
}
