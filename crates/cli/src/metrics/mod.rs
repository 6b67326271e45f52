//! `--metrics`: the counters of a running command, for Prometheus (`docs/observing.md`).
//!
//! The counters of RTP streams are read when they are requested, at most ten times a second:
//! `statistics()` takes the same locks as for a report. Values that only a command knows, such as
//! its outages, are atomic numbers that it sets when they change. Values of texture video are set
//! at the command's own poll interval, because server and client belong to the thread that polls
//! them.

mod histogram;
mod row;
mod samples;
mod server;
mod stream;
mod texture;

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use clap::Args;
use rushes::net::resolve;

use self::samples::Samples;
use self::server::Server;
use crate::endpoint::{Endpoint, parse_metrics};

pub(crate) use self::histogram::Histogram;
pub(crate) use self::row::object;
pub(crate) use self::stream::{RECEIVED, RTCP, Receiving, SENT, SOCKET, Sending, Written, rate_of};
pub(crate) use self::texture::{SERVED, Served, VIEWED, Viewed, ViewedCounts};

/// Metrics of the program itself.
static BUILD: samples::Metric =
    samples::Metric::gauge("build_info", "1; the label is the program's version");

/// Options of metrics.
#[derive(Args, Clone, Debug)]
pub(crate) struct MetricsArgs {
    /// Serve metrics for Prometheus while it runs, at http://ADDRESS:PORT/metrics. The address is
    /// 127.0.0.1 by default; port 0 selects a free one
    #[arg(long, value_parser = parse_metrics, value_name = "[ADDRESS:]PORT",
        help_heading = "Output")]
    pub(crate) metrics: Option<Endpoint>,
}

/// A part of a command whose values can be read at any time.
pub(crate) trait Observed: Send + Sync {
    /// Adds the current values.
    fn sample(&self, into: &mut Samples);
}

/// The observed parts, shared with the server's thread.
type Parts = Arc<Mutex<Vec<Box<dyn Observed>>>>;

/// The metrics of a command, served until this is dropped.
pub(crate) struct Metrics {
    parts: Parts,
    server: Option<Server>,
}

impl Metrics {
    /// Serves metrics if `args` give an address, and prints it unless `quiet`.
    ///
    /// # Errors
    /// If the server cannot listen on the address.
    pub(crate) fn start(args: &MetricsArgs, quiet: bool) -> anyhow::Result<Self> {
        let parts = Parts::default();
        let Some(Endpoint { host, port }) = &args.metrics else {
            return Ok(Self { parts, server: None });
        };
        let local = resolve(host.as_deref().unwrap_or("127.0.0.1"), *port)?;
        let observed = parts.clone();
        let server = Server::start(local, move || render(&observed)).with_context(|| {
            format!("cannot serve metrics at {local} (--metrics 0 selects a free port)")
        })?;
        if !quiet {
            eprintln!("metrics at http://{}/metrics", server.local_address());
        }
        Ok(Self { parts, server: Some(server) })
    }

    /// Removes all parts, and with them their streams' handles.
    pub(crate) fn clear(&self) {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Adds a part; `observe` is called only if metrics are served.
    pub(crate) fn observe<O: Observed + 'static>(&self, observe: impl FnOnce() -> O) {
        if self.server.is_some() {
            let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
            parts.push(Box::new(observe()));
        }
    }
}

/// Returns all current values as OpenMetrics text.
fn render(parts: &Parts) -> String {
    let mut samples = Samples::default();
    samples.label("version", env!("CARGO_PKG_VERSION"));
    samples.gauge(&BUILD, 1.0);
    for part in parts.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        part.sample(&mut samples);
    }
    samples.text()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use super::*;

    /// Returns the table of `docs/observing.md`: each metric with the commands that have it.
    fn table() -> Vec<String> {
        let commands: [(&str, Vec<&'static samples::Metric>); 4] = [
            ("send", stream::of_send()),
            ("recv", stream::of_recv()),
            ("serve", texture::of_serve()),
            ("view", texture::of_view()),
        ];
        let mut rows: BTreeMap<String, (&'static samples::Metric, Vec<&str>)> = BTreeMap::new();
        for (command, metrics) in commands {
            for metric in metrics.into_iter().chain([&BUILD]) {
                let row = rows.entry(metric.series()).or_insert_with(|| (metric, Vec::new()));
                assert!(!row.1.contains(&command), "{command} has {} twice", metric.series());
                assert_eq!(row.0.help, metric.help, "two meanings of {}", metric.series());
                row.1.push(command);
            }
        }
        let row = |(name, (metric, commands)): (String, (&samples::Metric, Vec<&str>))| {
            let (kind, help) = (metric.kind.name(), metric.help);
            format!("| `{name}` | {kind} | {} | {help} |", commands.join(", "))
        };
        rows.into_iter().map(row).collect()
    }

    #[test]
    fn the_table_of_the_page_is_that_of_the_program() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/observing.md");
        let page = std::fs::read_to_string(page).unwrap_or_default();
        let is_row = |line: &&str| line.starts_with("| `rushes_") && !line.contains("::");
        let rows = page.lines().filter(is_row);
        let found: Vec<&str> = rows.collect();
        assert!(found == table(), "docs/observing.md should contain\n{}", table().join("\n"));
    }

    #[test]
    fn names_are_those_of_prometheus() {
        let all = [stream::of_send(), stream::of_recv(), texture::of_serve(), texture::of_view()];
        for metric in all.iter().flatten() {
            let name = metric.series();
            let is_plain = |c: char| c.is_ascii_lowercase() || c == '_';
            assert!(name.starts_with("rushes_") && name.chars().all(is_plain), "{name}");
            let is_counter = metric.kind == samples::Kind::Counter;
            assert_eq!(name.ends_with("_total"), is_counter, "{name}");
            for scaled in ["_ms", "milli", "micro", "nano", "kilo", "octets", "percent"] {
                assert!(!name.contains(scaled), "{name} is not in a base unit");
            }
            assert!(!metric.help.contains(['\\', '\n', '|']), "{name}");
        }
    }
}
