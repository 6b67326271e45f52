//! The final report: text on the error output, JSON on the standard output.

use std::fmt::Display;
use std::io::{ErrorKind, Write, stdout};
use std::time::Duration;

use rushes::{Codec, Statistics};
use serde_json::{Value, json};

use crate::metrics;
use crate::metrics::{RECEIVED, SENT, SOCKET};

/// Prints a line on the standard output. A broken pipe is not an error.
pub(crate) fn print_line(line: impl Display) -> std::io::Result<()> {
    match writeln!(stdout(), "{line}") {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Returns the mean rate of `octets` in `time`, in Mbit/s.
pub(crate) fn megabits(octets: u64, time: Duration) -> f64 {
    octets as f64 * 8e-6 / time.as_secs_f64().max(1e-9)
}

/// Returns the statistics of sending, as JSON.
pub(crate) fn sent(statistics: &Statistics) -> Value {
    let mut object = metrics::object(&SENT, statistics);
    object.extend(metrics::object(&SOCKET, statistics));
    object.into()
}

/// Returns the statistics of receiving, as JSON.
pub(crate) fn received(statistics: &Statistics) -> Value {
    let receive = &statistics.receive;
    let discards: serde_json::Map<String, Value> = receive
        .discards
        .iter()
        .map(|(reason, count)| (reason.name().to_owned(), count.into()))
        .collect();
    let source = receive.sources.first().or_else(|| receive.ended.last());
    let mut object = metrics::object(&RECEIVED, statistics);
    object.extend(metrics::object(&SOCKET, statistics));
    let mut add = |key: &str, value| object.insert(key.to_owned(), value);
    add("jitter_ticks", json!(source.map(|source| source.jitter)));
    add("jitter_ms", json!(source.map(|source| source.jitter_time.as_secs_f64() * 1e3)));
    add("ssrc", json!(source.map(|source| source.ssrc.to_string())));
    add("discards", discards.into());
    object.into()
}

/// Returns one line of statistics of a running command, as JSON. Where several streams run,
/// `stream` is the number and the codec of this one.
pub(crate) fn interval(
    time: f64,
    stream: Option<(usize, Codec)>,
    statistics: &Statistics,
) -> Value {
    let mut line =
        json!({ "time": time, "sent": sent(statistics), "received": received(statistics) });
    if let Some((number, codec)) = stream {
        line["stream"] = number.into();
        line["codec"] = codec.name.into();
    }
    line
}

/// Formats the discards as text; empty if there are none.
pub(crate) fn discards(statistics: &Statistics) -> String {
    let rows: Vec<String> = statistics
        .receive
        .discards
        .iter()
        .map(|(reason, count)| format!("{count} {}", reason.name()))
        .collect();
    rows.join(", ")
}

/// Formats a count with its noun, in singular or plural.
pub(crate) fn counted(count: u64, one: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") }
}
