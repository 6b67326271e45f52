//! The final report: text on the error output, JSON on the standard output.

use std::fmt::Display;
use std::io::{ErrorKind, Write, stdout};
use std::time::Duration;

use rushes::Statistics;
use serde_json::{Value, json};

/// Prints a line on the standard output. A broken pipe is not an error.
pub(crate) fn print_line(line: impl Display) -> std::io::Result<()> {
    match writeln!(stdout(), "{line}") {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Mean rate of `octets` in `time`, in Mbit/s.
pub(crate) fn megabits(octets: u64, time: Duration) -> f64 {
    octets as f64 * 8e-6 / time.as_secs_f64().max(1e-9)
}

/// The statistics of sending, as JSON.
pub(crate) fn sent(statistics: &Statistics) -> Value {
    let send = &statistics.send;
    json!({
        "frames": send.frames,
        "packets": send.packets,
        "payload_octets": send.payload_octets,
        "frame_octets": send.frame_octets,
        "frames_cut": send.frames_cut,
        "units_left_out": send.units_left_out,
        "retransmitted": send.retransmitted,
        "system_calls": statistics.socket.calls(),
        "buffer_full": statistics.socket.buffer_full_waits,
        "refused": statistics.socket.refused,
    })
}

/// The statistics of receiving, as JSON.
pub(crate) fn received(statistics: &Statistics) -> Value {
    let receive = &statistics.receive;
    let discards: serde_json::Map<String, Value> = receive
        .discards
        .iter()
        .map(|(reason, count)| (reason.name().to_owned(), count.into()))
        .collect();
    let source = receive.sources.first().or_else(|| receive.ended.last());
    json!({
        "frames": receive.frames,
        "frames_dropped": receive.frames_dropped,
        "frames_unsure": receive.frames_unsure,
        "packets": receive.packets,
        "packets_lost": receive.packets_lost,
        "reordered": receive.reordered,
        "requested": receive.requested,
        "recovered": receive.recovered,
        "unanswered": receive.unanswered,
        "not_requested": receive.not_requested,
        "payload_octets": receive.payload_octets,
        "jitter_ticks": source.map(|source| source.jitter),
        "jitter_ms": source.map(|source| source.jitter_time.as_secs_f64() * 1e3),
        "ssrc": source.map(|source| source.ssrc.to_string()),
        "discards": discards,
        "foreign": statistics.foreign,
        "kernel_drops": statistics.socket.kernel_drops,
        "system_calls": statistics.socket.calls(),
    })
}

/// One line of statistics while a command runs.
pub(crate) fn interval(time: f64, statistics: &Statistics) -> Value {
    json!({ "time": time, "sent": sent(statistics), "received": received(statistics) })
}

/// Discards in words; empty without any.
pub(crate) fn discards(statistics: &Statistics) -> String {
    let rows: Vec<String> = statistics
        .receive
        .discards
        .iter()
        .map(|(reason, count)| format!("{count} {}", reason.name()))
        .collect();
    rows.join(", ")
}
