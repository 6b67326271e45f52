//! The report of what was sent, and the exit code.

use rushes::{DestinationStatistics, Statistics};
use serde_json::{Value, json};

use super::sending::Sending;
use super::thinning::Thinning;
use crate::args::SendArgs;
use crate::report::counted;
use crate::{Outcome, report, zrtp};

/// Prints the report.
pub(super) fn print(args: &SendArgs, sendings: &[Sending<'_>]) -> anyhow::Result<()> {
    if args.output.json {
        let mut objects: Vec<_> = sendings.iter().map(object).collect();
        let only = if objects.len() == 1 { objects.pop() } else { None };
        report::print_line(only.unwrap_or_else(|| json!({ "streams": objects })))?;
        return Ok(());
    }
    if !args.output.quiet {
        sendings.iter().for_each(print_text);
    }
    Ok(())
}

fn object(sending: &Sending<'_>) -> Value {
    let Sending { args, source, stream, .. } = sending;
    let statistics = stream.statistics();
    json!({
        "source": source.name(),
        "codec": source.codec.name,
        "ssrc": stream.ssrc().to_string(),
        "security": args.security.name(),
        "zrtp": sending.agreed.as_ref().map(zrtp::Agreed::object),
        "seconds": sending.time.as_secs_f64(),
        "megabits_per_second": report::megabits(statistics.send.frame_octets, sending.time),
        "destinations": destinations(sending),
        "sent": report::sent(&statistics),
        "unsent": sending.outage.report(),
        "rate": rate(sending, &statistics),
        "rtcp": sending.rtcp.report(stream),
    })
}

/// Returns the destinations and the datagrams that could not be sent to each, though to others they
/// could. A packet counts once in all other values.
fn destinations(sending: &Sending<'_>) -> Value {
    let all = sending.stream.handle().destinations();
    let object = |it: &DestinationStatistics| json!({ "to": it.to.to_string(), "unsent": it.datagrams_unsent });
    all.iter().map(object).collect()
}

/// Prints how sending to each of several destinations went.
fn print_destinations(sending: &Sending<'_>, refused: u64) {
    let all = sending.stream.handle().destinations();
    if all.len() < 2 {
        return;
    }
    eprintln!("destinations: {}, each of which was sent these packets", all.len());
    for it in all.iter().filter(|it| it.datagrams_unsent > 0) {
        let datagrams = counted(it.datagrams_unsent, "datagram");
        eprintln!("not sent to {}: {datagrams}, which the system refused", it.to);
    }
    if refused > 0 {
        let messages = counted(refused, "message");
        eprintln!("refused: {messages} that a destination's port is closed");
    }
}

/// Returns the state of rate control at the end; `null` without it.
fn rate(sending: &Sending<'_>, statistics: &Statistics) -> Value {
    let Some(rate) = statistics.rate else { return Value::Null };
    json!({
        "target": rate.target,
        "queue_delay_ms": rate.queue_delay.as_secs_f64() * 1e3,
        "round_trip_ms": rate.round_trip.map(|time| time.as_secs_f64() * 1e3),
        "frames_left_out": sending.thinning.as_ref().map_or(0, Thinning::left_out),
    })
}

fn print_text(sending: &Sending<'_>) {
    let Sending { source, stream, time, .. } = sending;
    let statistics = stream.statistics();
    let send = &statistics.send;
    let name = if source.is_track() {
        format!("{} ({})", source.name(), source.codec.title)
    } else {
        source.name()
    };
    eprintln!(
        "sent {name}: {} in {}, {}, {:.2} s, {:.1} Mbit/s, {:.2} system calls a frame",
        counted(send.frames, "frame"),
        counted(send.packets, "packet"),
        counted(send.frame_octets, "octet"),
        time.as_secs_f64(),
        report::megabits(send.frame_octets, *time),
        statistics.socket.calls() as f64 / send.frames.max(1) as f64,
    );
    print_destinations(sending, statistics.socket.refused);
    if send.frames_cut > 0 {
        eprintln!("cut: {}, of which not all packets were sent", counted(send.frames_cut, "frame"));
    }
    if send.units_left_out > 0 {
        let units = counted(send.units_left_out, "NAL unit");
        eprintln!("left out: {units} of types that RTP does not carry");
    }
    if send.frames_left_out > 0 {
        let frames = counted(send.frames_left_out, "frame");
        eprintln!("left out: {frames} of higher temporal layers");
    }
    let left_out = sending.thinning.as_ref().map_or(0, Thinning::left_out);
    if let Some(rate) = statistics.rate {
        eprintln!(
            "rate control: {:.2} Mbit/s at the end, {} left out",
            rate.target as f64 / 1e6,
            counted(left_out, "frame")
        );
    }
    let reports = sending.rtcp.text(stream);
    if !reports.is_empty() {
        eprintln!("reports: {reports}");
    }
}

/// Reports unsent frames and a closed port; the outcome is whether everything was sent, to a port
/// that was open.
pub(super) fn outcome(is_cut_short: bool, sendings: &mut [Sending<'_>]) -> Outcome {
    let unsent: u64 = sendings.iter().map(|sending| sending.outage.frames()).sum();
    if unsent > 0 {
        eprintln!("rushes: incomplete: {} could not be sent", counted(unsent, "frame"));
    }
    // A receiver may want only one of several streams.
    let is_refused = sendings.iter().all(Sending::is_refused);
    if is_refused
        && let Some(to) = sendings.first_mut().and_then(|it| it.stream.sender().destination())
    {
        eprintln!("rushes: nothing was received: no program listened on {to}");
    }
    if is_cut_short || unsent > 0 || is_refused { Outcome::Failed } else { Outcome::Done }
}
