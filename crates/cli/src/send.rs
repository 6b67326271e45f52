//! `rushes send`: sends a file to a host.

use std::num::NonZeroU64;
use std::path::Path;
use std::time::{Duration, Instant};

use rushes::file::{MediaFrame, MediaReader, NextFrame};
use rushes::{Error, FrameRate, MediaStream, Pacing, RtpTimestamp, StreamBuilder};
use serde_json::json;

use crate::args::SendArgs;
use crate::control::RtcpSummary;
use crate::interrupt::Interrupt;
use crate::live::LiveTimes;
use crate::outage::Outage;
use crate::progress::{Progress, note};
use crate::schedule::Schedule;
use crate::source::Source;
use crate::{Outcome, Usage, describe, report, security, stream, zrtp};

/// Number and spacing of the packets without payload that end a stream. They reveal a lost tail;
/// several, because they can be lost too, and late enough for a full buffer to drain.
const END_PACKETS: u32 = 3;
const END_PACKET_SPACING: Duration = Duration::from_millis(50);

/// How long requests for the last packets are answered.
const LAST_REQUESTS: Duration = Duration::from_millis(500);

/// Interval between checks for Ctrl-C.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Interval between checks for Ctrl-C and for packets, while a live source has no frame.
const LIVE_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Pause before the next attempt to send, where no schedule sets one.
const OUTAGE_PAUSE: Duration = Duration::from_millis(10);

pub(crate) fn run(args: &SendArgs) -> anyhow::Result<Outcome> {
    let interrupt = Interrupt::install()?;
    let source = Source::new(Some(&args.file), &args.stream)?;
    check(args, &source)?;
    let is_live = source.is_live();
    // A file that cannot be read is reported before anything is sent. What a live source makes
    // before there is a stream is late.
    let mut reader = if is_live { None } else { Some(source.open(args.timing.fps)?) };
    let declared = reader.as_ref().and_then(MediaReader::frame_rate);
    let mut schedule = Schedule::new(args.timing.fps, declared, source.clock_rate);
    let builder = build(args, &source, schedule.rate())?;
    if let Some(file) = &args.sdp {
        args.overwrite.check(file).map_err(|error| with_its_key(args, file, error))?;
        describe::write(file, &builder, &source)?;
        if args.dry_run {
            note_new_key(args, file);
            if args.output.json {
                report::print_line(json!({ "described": file.display().to_string() }))?;
            }
            return Ok(Outcome::Done);
        }
    }
    let opened = zrtp::open(builder, &interrupt, None, |_| Ok(()))?;
    let Some((mut stream, agreed)) = opened else {
        anyhow::bail!("interrupted before keys were agreed on; nothing was sent");
    };
    zrtp::print_agreed(agreed.as_ref(), args.output.quiet);
    let is_endless = is_live || args.repeat == 0;
    let len = (!is_endless).then(|| source.len().saturating_mul(args.repeat));
    let mut sending = Sending {
        args,
        interrupt: &interrupt,
        progress: Progress::new(args.output, len),
        rtcp: RtcpSummary::default(),
        outage: Outage::new(args.give_up, args.output.quiet),
        position: 0,
    };
    let start = Instant::now();
    let begin = (start, stream.sender().next_timestamp());
    for _ in 0..NonZeroU64::new(args.repeat).map_or(u64::MAX, NonZeroU64::get) {
        let reader = match reader.take() {
            Some(reader) => reader,
            None => source.open(args.timing.fps)?,
        };
        if is_live {
            sending.live(reader, &source, &mut stream)?;
        } else {
            sending.file(reader, begin, &mut schedule, &mut stream)?;
            schedule.begin_again();
        }
        if interrupt.is_requested() || sending.position == 0 {
            break;
        }
    }
    let Sending { progress, mut rtcp, outage, position, .. } = sending;
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
    // A source without an end is ended by Ctrl-C.
    Ok(outcome(interrupt.is_requested() && !is_endless, &outage))
}

/// Adds how to send a stream that a description with a new key describes.
fn with_its_key(args: &SendArgs, file: &Path, error: anyhow::Error) -> anyhow::Error {
    if !args.security.makes_a_key() {
        return error;
    }
    let name = file.display();
    anyhow::anyhow!("{error}; --key-file {name} instead of --sdp {name} sends with its key")
}

/// Says how to send the stream that was described with a new key.
fn note_new_key(args: &SendArgs, file: &Path) {
    let Some(suite) = args.security.srtp.filter(|_| args.security.makes_a_key()) else { return };
    if args.output.quiet || file == Path::new("-") {
        return;
    }
    let ssrc = match args.ssrc {
        Some(ssrc) => {
            let rtx = args.control.rtx_ssrc.map(|ssrc| format!(" --rtx-ssrc {:#010x}", ssrc.0));
            format!(" --ssrc {:#010x}{} --fresh-key", ssrc.0, rtx.unwrap_or_default())
        }
        None => String::new(),
    };
    note!(
        "{name} has a new key; to send with it: --srtp {suite} --key-file {name}{ssrc} instead of \
         --sdp and --dry-run",
        name = file.display(),
    );
}

/// Refuses options that contradict each other.
fn check(args: &SendArgs, source: &Source) -> Result<(), Usage> {
    if args.to.port == 0 {
        return Err(Usage("--to needs a port from 1 to 65535".to_owned()));
    }
    if args.dry_run && args.security.zrtp {
        let reason = "--dry-run cannot describe a --zrtp stream: its values are new in each run";
        return Err(Usage(reason.to_owned()));
    }
    if args.repeat != 1 && source.is_live() {
        let reason = format!("{} can be read only once: leave --loop out", source.name());
        return Err(Usage(reason));
    }
    Ok(())
}

/// A stream that frames are sent to.
struct Sending<'a> {
    args: &'a SendArgs,
    interrupt: &'a Interrupt,
    progress: Progress,
    rtcp: RtcpSummary,
    outage: Outage,
    /// Octets sent.
    position: u64,
}

impl Sending<'_> {
    /// Sends the frames of a file when they are due.
    fn file(
        &mut self,
        mut reader: MediaReader,
        (start, first): (Instant, RtpTimestamp),
        schedule: &mut Schedule,
        stream: &mut MediaStream,
    ) -> anyhow::Result<()> {
        while let Some(frame) = reader.next_frame()? {
            if self.interrupt.is_requested() {
                break;
            }
            let time = schedule.next(frame);
            if !self.args.timing.flat_out {
                wait_until(start + time.due, stream, &mut self.rtcp, self.interrupt)?;
            }
            let now = Instant::now();
            let captured = now.checked_sub(time.age).unwrap_or(now);
            self.push(frame, (time.ticks.map(|ticks| first.plus(ticks)), captured), stream)?;
        }
        Ok(())
    }

    /// Sends the frames of a live source when they come.
    fn live(
        &mut self,
        mut reader: MediaReader,
        source: &Source,
        stream: &mut MediaStream,
    ) -> anyhow::Result<()> {
        let first = stream.sender().next_timestamp();
        let mut times = LiveTimes::new(self.args.timing.fps, source.clock_rate, first);
        while !self.interrupt.is_requested() {
            let next = reader.next_frame_until(Instant::now() + LIVE_POLL_INTERVAL)?;
            let frame = match next {
                NextFrame::Frame(frame) => frame,
                NextFrame::Pending => {
                    // Requests and reports are answered.
                    ignore_transient(stream.sender().wait_until(Instant::now()))?;
                    self.rtcp.poll(stream, None);
                    continue;
                }
                NextFrame::End => break,
            };
            let time = times.next(frame, Instant::now());
            if !self.args.timing.flat_out {
                wait_until(time.due, stream, &mut self.rtcp, self.interrupt)?;
            }
            self.push(frame, (Some(time.timestamp), time.captured), stream)?;
            if times.turns_out_a_file() && !self.args.output.quiet && !self.args.timing.flat_out {
                note!(
                    "{} is ahead of real time; it is now sent at 30 frames per second \
                     (--fps sets another rate)",
                    source.name()
                );
            }
        }
        Ok(())
    }

    /// Sends one frame.
    fn push(
        &mut self,
        frame: &MediaFrame,
        (timestamp, captured): (Option<RtpTimestamp>, Instant),
        stream: &mut MediaStream,
    ) -> anyhow::Result<()> {
        let sent = stream.sender().push_frame_captured(&frame.data, timestamp, captured);
        if !self.outage.take(sent)? && self.args.timing.flat_out {
            // The file must not end before the network is back.
            let due = Instant::now() + OUTAGE_PAUSE;
            wait_until(due, stream, &mut self.rtcp, self.interrupt)?;
        }
        self.position += frame.data.len() as u64;
        self.progress.show(self.position, || stream.statistics());
        Ok(())
    }
}

/// Reports unsent frames; the outcome is whether everything was sent.
fn outcome(is_cut_short: bool, outage: &Outage) -> Outcome {
    if outage.frames() > 0 {
        eprintln!("rushes: incomplete: {} frames could not be sent", outage.frames());
    }
    let is_complete = !is_cut_short && outage.frames() == 0;
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

fn build(args: &SendArgs, source: &Source, rate: FrameRate) -> anyhow::Result<StreamBuilder> {
    let payload_type = args.stream.payload_type.unwrap_or_else(|| source.codec.payload_type());
    stream::check_rtx(&args.control, payload_type, args.ssrc)?;
    let sets_source = args.ssrc.is_some() || args.control.rtx_ssrc.is_some();
    if sets_source && args.security.has_given_key() && !args.fresh_key {
        let reason = "a second run with the same key and SSRC repeats the key stream, which reveals \
                      both streams: leave --ssrc and --rtx-ssrc out, add --fresh-key if the key is \
                      new, or use --zrtp --secret-file, which makes a key for each run";
        return Err(Usage(reason.to_owned()).into());
    }
    if let Some(ssrc) = args.security.described_ssrc()?.filter(|ssrc| args.ssrc != Some(*ssrc)) {
        let reason = format!(
            "the description in --key-file names the SSRC {ssrc:#010x}, and its receivers accept \
             no other: add --ssrc {ssrc:#010x} --fresh-key, in a single run, or describe the stream \
             without --ssrc",
            ssrc = ssrc.0,
        );
        return Err(Usage(reason).into());
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
        .frame_rate(rate)
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
        Some(_) => args.security.security_or_random()?,
        None => args.security.security()?,
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
