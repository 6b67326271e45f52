//! `rushes recv`: a stream into a file, into a window, or both.

#[cfg(feature = "window")]
mod decoder;
#[cfg(feature = "window")]
mod delimit;
#[cfg(feature = "window")]
pub(crate) mod window;
#[cfg(not(feature = "window"))]
#[path = "window_absent.rs"]
mod window;

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use rushes::file::{MediaWriter, codec_of};
use rushes::net::resolve;
use rushes::{Codec, Frame, MediaStream, RtpTimestamp, Session, Ssrc, StreamBuilder, sdp};
use serde_json::json;

use crate::Outcome;
use crate::Usage;
use crate::args::{ControlArgs, RecvArgs};
use crate::control::{Heard, Latency, sent_by};
use crate::describe::{self, Described, Wanted};
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::report;
use crate::security;
use crate::source::unknown_codec;
use crate::stream;
use crate::values::Endpoint;
use crate::zrtp;

/// How often Ctrl-C is looked for.
const PATIENCE: Duration = Duration::from_millis(50);

/// How long it may take after Ctrl-C to take what waits, as more may come all the time.
const AFTER_INTERRUPT: Duration = Duration::from_millis(200);

/// How long a stream may still bring something after its sender said goodbye.
const AFTER_GOODBYE: Duration = Duration::from_millis(300);

pub(crate) fn run(args: &RecvArgs) -> anyhow::Result<Outcome> {
    if args.output.json && args.output_file.as_deref() == Some(Path::new("-")) {
        let reason = "--json and -o - both want the standard output; name a file";
        return Err(Usage(reason.to_owned()).into());
    }
    let interrupt = Interrupt::listen()?;
    if args.window.window {
        return window::run(args, &interrupt);
    }
    stream_into(args, build(args)?, &interrupt, |_| Ok(Nobody))
}

/// Whoever is shown a stream.
trait Audience {
    /// The next octets of the stream: a frame, or what must be known before the first.
    fn octets(&mut self, octets: &[u8]);

    /// So many packets are missing so far.
    fn lost(&mut self, packets: u64);

    /// Nothing more comes.
    fn finish(self) -> anyhow::Result<()>;
}

struct Nobody;

impl Audience for Nobody {
    fn octets(&mut self, _: &[u8]) {}

    fn lost(&mut self, _: u64) {}

    fn finish(self) -> anyhow::Result<()> {
        Ok(())
    }
}

/// Receives a stream until it ends: into the file, if there is to be one, and for the audience
/// that gathers once it is known what frames are.
fn stream_into<A: Audience>(
    args: &RecvArgs,
    Described { builder, codec, parameter_sets }: Described,
    interrupt: &Interrupt,
    gather: impl FnOnce(Codec) -> anyhow::Result<A>,
) -> anyhow::Result<Outcome> {
    let audience = gather(codec)?;
    let tells = !args.output.quiet && !args.output.json;
    let opened = zrtp::open(builder, interrupt, |address| {
        if tells {
            // In one piece, for whoever reads the address from a pipe.
            std::io::stderr().write_all(format!("listening on {address}\n").as_bytes())?;
        }
        Ok(())
    })?;
    let Some((mut stream, agreed)) = opened else {
        anyhow::bail!("interrupted before keys were agreed on; nothing was received");
    };
    zrtp::tell(agreed.as_ref(), args.output.quiet);
    let file = args.output_file.as_deref();
    let mut writer = Writer {
        media: file.map(|file| MediaWriter::create(file, codec)).transpose()?,
        audience,
        codec,
        parameter_sets: Some(parameter_sets).filter(|sets| !sets.is_empty()),
    };
    if !args.output.quiet {
        stream.on_event(|event| security::tell(&event))?;
    }
    let mut received = Received::default();
    let ended = receive(args, &mut stream, &mut writer, interrupt, &mut received);
    if let Some(media) = writer.media.filter(|_| received.frames > 0) {
        media.finish()?;
    }
    // What came whole is kept before an error is told.
    ended?;
    let shown = if received.frames > 0 { writer.audience.finish() } else { Ok(()) };
    let outcome = print(args, &stream, agreed.as_ref(), &mut received)?;
    if let Some(agreed) = agreed.filter(|_| args.security.zrtp_ask) {
        agreed.ask()?;
    }
    shown.map(|()| outcome)
}

/// What came.
#[derive(Debug, Default)]
struct Received {
    frames: u64,
    octets: u64,
    /// Frames of other sources than the first.
    others: u64,
    time: Duration,
    source: Option<Ssrc>,
    heard: Heard,
    latency: Latency,
}

impl Received {
    /// Packets that were sent and did not come: missing in between, or after the last or before
    /// the first that came, if the sender's last report counts more.
    fn lost(&self, stream: &MediaStream) -> u64 {
        let receive = stream.statistics().receive;
        let sent = self.source.and_then(|source| sent_by(stream, source));
        let ends = sent.map_or(0, |sent| sent.saturating_sub(receive.packets));
        receive.packets_lost.max(ends.min(u64::from(u32::MAX / 2)))
    }
}

/// Where frames go, and what a description says must stand before the first.
struct Writer<A> {
    media: Option<MediaWriter>,
    audience: A,
    codec: Codec,
    parameter_sets: Option<Vec<u8>>,
}

impl<A: Audience> Writer<A> {
    fn write(&mut self, frame: &Frame) -> anyhow::Result<()> {
        if let Some(sets) = self.parameter_sets.take()
            && !sdp::has_parameter_sets(self.codec, frame)
        {
            self.put(&sets, frame.timestamp())?;
        }
        self.put(frame, frame.timestamp())
    }

    fn put(&mut self, octets: &[u8], timestamp: RtpTimestamp) -> anyhow::Result<()> {
        self.audience.octets(octets);
        if let Some(media) = &mut self.media {
            media.write(octets, timestamp)?;
        }
        Ok(())
    }
}

fn build(args: &RecvArgs) -> anyhow::Result<Described> {
    let described = match (&args.sdp, &args.from) {
        (Some(file), _) => {
            let wanted = Wanted { codec: args.stream.codec.map(Codec::from), ssrc: args.ssrc };
            let context = stream::context(&args.control)?;
            let described = describe::read(file, wanted, args.output.quiet, &context)?;
            let builder = stream::set_described(described.builder, &args.stream);
            let builder = stream::set_addresses(builder, &args.control);
            Described { builder, ..described }
        }
        (None, Some(from)) => listened(args, from)?,
        (None, None) => return Err(Usage("recv needs --from or --sdp".to_owned()).into()),
    };
    let builder = finish(args, described.builder);
    let builder = security::set(builder, args.security.security()?);
    Ok(Described { builder, ..described })
}

/// The codec that the command line names, itself or by a file's name.
fn named_codec(args: &RecvArgs) -> anyhow::Result<Codec> {
    match (args.stream.codec, &args.output_file) {
        (Some(codec), _) => Ok(codec.into()),
        (None, Some(file)) => Ok(codec_of(file).ok_or_else(|| unknown_codec(file))?),
        (None, None) => Err(Usage("--window needs --codec or --sdp".to_owned()).into()),
    }
}

/// A stream from an address that the command line names.
fn listened(args: &RecvArgs, from: &Endpoint) -> anyhow::Result<Described> {
    let codec = named_codec(args)?;
    let payload_type = args.stream.payload_type.unwrap_or_else(|| codec.payload_type());
    stream::check_rtx(&args.control, payload_type, args.ssrc)?;
    let session = listen(from.host.as_deref(), &args.control)?;
    let builder = stream::set(session.stream(codec), &session, &args.stream);
    let builder = stream::set_control(builder.local_port(from.port), &args.control);
    Ok(Described { builder, codec, parameter_sets: Vec::new() })
}

/// What is set however the stream was found.
fn finish(args: &RecvArgs, builder: StreamBuilder) -> StreamBuilder {
    let mut builder = builder
        .delivery(args.delivery.into())
        // Whoever sends to this port is meant: a stream of one packet counts, too.
        .probation(1);
    if let Some(limit) = args.latency {
        builder = builder.latency(limit);
    }
    if let Some(time) = args.reorder_time {
        builder = builder.reorder_time(time);
    }
    if let Some(ssrc) = args.ssrc {
        builder = builder.remote_ssrc(ssrc);
    }
    if let Some(ssrc) = args.control.rtx_ssrc {
        builder = builder.remote_rtx_ssrc(ssrc);
    }
    builder
}

/// A session that hears `host`: a group to join, or a local address to bind to.
fn listen(host: Option<&str>, args: &ControlArgs) -> anyhow::Result<Session> {
    let context = stream::context(args)?;
    let Some(host) = host else { return Ok(context.session_any()) };
    if resolve(host, 0)?.ip().is_multicast() {
        return Ok(context.session(host)?);
    }
    Ok(context.session_any().local_address(host)?)
}

fn receive<A: Audience>(
    args: &RecvArgs,
    stream: &mut MediaStream,
    writer: &mut Writer<A>,
    interrupt: &Interrupt,
    received: &mut Received,
) -> anyhow::Result<()> {
    let mut progress = Progress::new(args.output, None);
    let mut first = None;
    let mut last = Instant::now();
    let mut packets = 0;
    let mut asked = None;
    loop {
        if asked.is_none() && interrupt.came() {
            asked = Some(Instant::now());
        }
        // Whoever asks for the end gets what waits already.
        let patience = if asked.is_some() { Duration::ZERO } else { PATIENCE };
        if asked.is_some_and(|at| at.elapsed() >= AFTER_INTERRUPT) {
            break;
        }
        if let Some(frame) = stream.pull_frame(patience)? {
            last = Instant::now();
            let start = *first.get_or_insert(last);
            received.time = last - start;
            if *received.source.get_or_insert_with(|| frame.ssrc()) != frame.ssrc() {
                received.others += 1;
                continue;
            }
            received.latency.take(stream, &frame);
            writer.write(&frame)?;
            received.frames += 1;
            received.octets += frame.len() as u64;
            writer.audience.lost(stream.statistics().receive.packets_lost);
        } else {
            // Packets that complete no frame are no silence either.
            let now = stream.statistics().receive.packets;
            if now != packets {
                packets = now;
                last = Instant::now();
                first.get_or_insert(last);
            } else if asked.is_some() {
                break;
            }
            received.heard.listen(stream);
            let left = received.source.is_some_and(|source| received.heard.has_left(source));
            let patience = if left { AFTER_GOODBYE } else { args.idle_timeout };
            if first.is_some() && last.elapsed() >= patience {
                break;
            }
        }
        progress.show(received.octets, || stream.statistics());
    }
    progress.finish();
    Ok(())
}

fn print(
    args: &RecvArgs,
    stream: &MediaStream,
    agreed: Option<&zrtp::Agreed>,
    received: &mut Received,
) -> anyhow::Result<Outcome> {
    let statistics = stream.statistics();
    let receive = &statistics.receive;
    let lost = received.lost(stream);
    let complete = lost == 0 && receive.frames_dropped == 0 && received.others == 0;
    let rate = report::megabits(received.octets, received.time);
    if args.output.json {
        report::say(json!({
            "complete": complete && received.frames > 0,
            "frames_written": args.output_file.as_ref().map(|_| received.frames),
            "octets_written": args.output_file.as_ref().map(|_| received.octets),
            "frames_received": received.frames,
            "frames_of_other_sources": received.others,
            "seconds": received.time.as_secs_f64(),
            "megabits_per_second": rate,
            "packets_lost": lost,
            "zrtp": agreed.map(zrtp::Agreed::object),
            "received": report::received(&statistics),
            "rtcp": received.heard.report(stream),
            "capture_to_delivery": received.latency.report(),
        }))?;
    } else if !args.output.quiet {
        eprintln!(
            "received {} frames in {} packets, {} octets, {:.2} s, {rate:.1} Mbit/s",
            received.frames,
            receive.packets,
            received.octets,
            received.time.as_secs_f64(),
        );
        let discards = report::discards(&statistics);
        if !discards.is_empty() {
            eprintln!("discarded: {discards}");
        }
    }
    if received.frames == 0 {
        let file = if args.output_file.is_some() { "; no file was written" } else { "" };
        eprintln!("rushes: nothing whole came{file}");
        return Ok(Outcome::Fell);
    }
    if !complete {
        eprintln!(
            "rushes: incomplete: {} packets lost, {} frames dropped, {} frames of other \
             sources ignored",
            lost, receive.frames_dropped, received.others,
        );
        return Ok(Outcome::Fell);
    }
    Ok(Outcome::Done)
}
