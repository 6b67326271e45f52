//! `rushes send`: sends a file to a host.

use std::time::{Duration, Instant};

use rushes::{Error, MediaStream, Pacing, StreamBuilder};
use serde_json::json;

use crate::args::SendArgs;
use crate::control::RtcpSummary;
use crate::interrupt::Interrupt;
use crate::outage::Outage;
use crate::progress::Progress;
use crate::source::{Schedule, Source};
use crate::{Outcome, Usage, describe, report, security, stream, zrtp};

/// Number and spacing of the packets without payload that end a stream. They reveal a lost tail;
/// several, because they can be lost too, and late enough for a full buffer to drain.
const END_PACKETS: u32 = 3;
const END_PACKET_SPACING: Duration = Duration::from_millis(50);

/// How long requests for the last packets are answered.
const LAST_REQUESTS: Duration = Duration::from_millis(500);

/// Interval between checks for Ctrl-C.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Pause before the next attempt to send, where no schedule sets one.
const OUTAGE_PAUSE: Duration = Duration::from_millis(10);

pub(crate) fn run(args: &SendArgs) -> anyhow::Result<Outcome> {
    if args.to.port == 0 {
        return Err(Usage("--to needs a port from 1 to 65535".to_owned()).into());
    }
    if args.dry_run && args.security.zrtp {
        let reason = "--dry-run cannot describe a --zrtp stream: its values are new in each run";
        return Err(Usage(reason.to_owned()).into());
    }
    let interrupt = Interrupt::install()?;
    let source = Source::new(Some(&args.file), &args.stream)?;
    // A file that cannot be read is reported before anything is sent.
    let mut reader = source.open()?;
    let builder = build(args, &source)?;
    if let Some(file) = &args.sdp {
        args.overwrite.check(file)?;
        describe::write(file, &builder, &source)?;
        if args.dry_run {
            if args.output.json {
                report::print_line(json!({ "described": file.display().to_string() }))?;
            }
            return Ok(Outcome::Done);
        }
    }
    let opened = zrtp::open(builder, &interrupt, |_| Ok(()))?;
    let Some((mut stream, agreed)) = opened else {
        anyhow::bail!("interrupted before keys were agreed on; nothing was sent");
    };
    zrtp::print_agreed(agreed.as_ref(), args.output.quiet);
    let mut progress = Progress::new(args.output, Some(source.len().saturating_mul(args.repeat)));
    let mut schedule = Schedule::new(args.timing);
    let mut rtcp = RtcpSummary::default();
    let mut outage = Outage::new(args.give_up, args.output.quiet);
    let start = Instant::now();
    let mut position = 0;
    'files: for time in 0..args.repeat {
        if time > 0 {
            reader = source.open()?;
        }
        while let Some(frame) = reader.next_frame()? {
            if interrupt.is_requested() {
                break 'files;
            }
            if !args.timing.flat_out {
                let due = start + schedule.next(frame.duration);
                wait_until(due, &mut stream, &mut rtcp, &interrupt)?;
            }
            if !outage.take(stream.push_frame(frame.data, None))? && args.timing.flat_out {
                // The file must not end before the network is back.
                let due = Instant::now() + OUTAGE_PAUSE;
                wait_until(due, &mut stream, &mut rtcp, &interrupt)?;
            }
            position += frame.data.len() as u64;
            progress.show(position, || stream.statistics());
        }
    }
    let time = start.elapsed();
    if position == 0 && !interrupt.is_requested() {
        anyhow::bail!("{}: contains no frame; nothing was sent", source.name());
    }
    end(args, &mut stream)?;
    rtcp.poll(&stream, None);
    if !args.control.no_rtcp {
        // A receiver that gets the goodbye reports on the whole stream when it leaves.
        stream.rtcp().send_bye("")?;
        ignore_transient(rtcp.await_reports(&mut stream, &interrupt))?;
    }
    progress.finish();
    print(args, &source, &stream, (&rtcp, &outage), (time, agreed.as_ref()))?;
    if let Some(agreed) = agreed.filter(|_| args.security.zrtp_ask) {
        agreed.ask()?;
    }
    Ok(outcome(&interrupt, &outage))
}

/// Reports unsent frames; the outcome is whether everything was sent.
fn outcome(interrupt: &Interrupt, outage: &Outage) -> Outcome {
    if outage.frames() > 0 {
        eprintln!("rushes: incomplete: {} frames could not be sent", outage.frames());
    }
    let is_complete = !interrupt.is_requested() && outage.frames() == 0;
    if is_complete { Outcome::Done } else { Outcome::Failed }
}

/// Makes a lost tail detectable. With RTCP, the report in the goodbye counts the packets; without,
/// packets without payload follow. (They would disturb the Opus decoders of other programs.)
fn end(args: &SendArgs, stream: &mut MediaStream) -> anyhow::Result<()> {
    if args.control.no_rtcp {
        for _ in 0..END_PACKETS {
            ignore_transient(stream.sender().wait_until(Instant::now() + END_PACKET_SPACING))?;
            ignore_transient(stream.sender().send_keep_alive())?;
        }
        return Ok(());
    }
    if stream.statistics().send.packets == 1 {
        // Receivers accept a source from its second packet on (RFC 3550 appendix A.1).
        ignore_transient(stream.sender().send_keep_alive())?;
    }
    // Time for a full buffer to drain, and for requests for the last packets.
    let time = if args.control.recovery.is_some() { LAST_REQUESTS } else { END_PACKET_SPACING };
    ignore_transient(stream.sender().wait_until(Instant::now() + time))?;
    Ok(())
}

/// Ignores transient network errors, where there is nothing to repeat.
fn ignore_transient(outcome: Result<(), Error>) -> Result<(), Error> {
    match outcome {
        Err(error) if error.is_transient() => {
            std::thread::sleep(OUTAGE_PAUSE);
            Ok(())
        }
        outcome => outcome,
    }
}

/// Waits until `due` or Ctrl-C, and answers requests meanwhile.
fn wait_until(
    due: Instant,
    stream: &mut MediaStream,
    rtcp: &mut RtcpSummary,
    interrupt: &Interrupt,
) -> anyhow::Result<()> {
    while Instant::now() < due && !interrupt.is_requested() {
        ignore_transient(stream.sender().wait_until(due.min(Instant::now() + POLL_INTERVAL)))?;
        rtcp.poll(stream, None);
    }
    Ok(())
}

fn build(args: &SendArgs, source: &Source) -> anyhow::Result<StreamBuilder> {
    let payload_type = args.stream.payload_type.unwrap_or_else(|| source.codec.payload_type());
    stream::check_rtx(&args.control, payload_type, args.ssrc)?;
    let sets_source = args.ssrc.is_some() || args.control.rtx_ssrc.is_some();
    if sets_source && args.security.has_given_key() && !args.fresh_key {
        let reason = "a second run with the same key and SSRC repeats the key stream, which reveals \
                      both streams: leave --ssrc and --rtx-ssrc out, add --fresh-key if the key is \
                      new, or use --zrtp --secret-file, which makes a key for each run";
        return Err(Usage(reason.to_owned()).into());
    }
    if args.sdp.is_some() && args.control.rtx_ssrc.is_some() && args.ssrc.is_none() {
        let reason = "--sdp can name --rtx-ssrc only together with --ssrc: give --ssrc too";
        return Err(Usage(reason.to_owned()).into());
    }
    let host = args.to.host.as_deref().unwrap_or("127.0.0.1");
    let session = stream::context(&args.control)?.session(host)?;
    let timing = args.timing;
    let pacing = match (timing.pacing, timing.flat_out) {
        (Some(pacing), _) => pacing,
        (None, true) => Pacing::Off,
        (None, false) => Pacing::default(),
    };
    let mut builder = stream::set(session.stream(source.codec), &session, &args.stream)
        .local_port(args.local_port)
        .remote_port(args.to.port)
        .frame_rate(Schedule::new(timing).rate())
        .pacing(pacing)
        .zero_copy(args.zero_copy);
    builder = stream::set_control(builder, &args.control);
    if let Some(ssrc) = args.ssrc {
        builder = builder.ssrc(ssrc);
    }
    if let Some(ssrc) = args.control.rtx_ssrc {
        builder = builder.rtx_ssrc(ssrc);
    }
    // A description carries the key to the receiver, so a random one is made if none is given.
    let secured = match args.sdp {
        // A key made now would not be that of a later run.
        Some(_) if !args.dry_run => args.security.security_or_random()?,
        _ => args.security.security()?,
    };
    Ok(security::set(builder, secured))
}

fn print(
    args: &SendArgs,
    source: &Source,
    stream: &MediaStream,
    (rtcp, outage): (&RtcpSummary, &Outage),
    (time, agreed): (Duration, Option<&zrtp::Agreed>),
) -> anyhow::Result<()> {
    let statistics = stream.statistics();
    let send = &statistics.send;
    let rate = report::megabits(send.frame_octets, time);
    if args.output.json {
        report::print_line(json!({
            "source": source.name(),
            "ssrc": stream.ssrc().to_string(),
            "security": args.security.name(),
            "zrtp": agreed.map(zrtp::Agreed::object),
            "seconds": time.as_secs_f64(),
            "megabits_per_second": rate,
            "sent": report::sent(&statistics),
            "unsent": outage.report(),
            "rtcp": rtcp.report(stream),
        }))?;
    } else if !args.output.quiet {
        eprintln!(
            "sent {}: {} frames in {} packets, {} octets, {:.2} s, {rate:.1} Mbit/s, {:.2} system \
             calls a frame",
            source.name(),
            send.frames,
            send.packets,
            send.frame_octets,
            time.as_secs_f64(),
            statistics.socket.calls() as f64 / send.frames.max(1) as f64,
        );
        if send.units_left_out > 0 {
            eprintln!(
                "left out: {} NAL units of types that RTP does not carry",
                send.units_left_out
            );
        }
        let reports = rtcp.text(stream);
        if !reports.is_empty() {
            eprintln!("reports: {reports}");
        }
    }
    Ok(())
}
