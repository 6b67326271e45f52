//! `rushes recv`: a stream into a file, into a window, or both.

mod conceal;
mod contest;
#[cfg(feature = "window")]
mod decoder;
#[cfg(feature = "window")]
mod delimit;
mod film;
mod hints;
mod keep;
mod layers;
#[cfg(feature = "webrtc")]
mod played;
mod reception;
mod together;
mod track;
mod verdict;
#[cfg(feature = "window")]
pub(crate) mod window;
mod writer;

use std::net::IpAddr;
use std::path::Path;

use rushes::file::codec_of_name;
use rushes::net::resolve;
use rushes::{Codec, Fec, Session, StreamBuilder};

#[cfg(feature = "webrtc")]
pub(crate) use self::film::{Film, Report};
pub(crate) use self::keep::Files;
use self::reception::{End, Received};
use self::together::Together;
use self::track::{Stream, Track};
use self::writer::{Output, StreamObserver, Writer};
use crate::args::RecvArgs;
use crate::describe::{self, Described, Wanted};
use crate::endpoint::{Endpoint, Peer};
use crate::interrupt::Interrupt;
use crate::metrics::Metrics;
use crate::source::unknown_codec;
use crate::{Outcome, Usage, security, stream};

pub(crate) fn run(args: &RecvArgs) -> anyhow::Result<Outcome> {
    if args.output.json && args.output_file.as_deref() == Some(Path::new("-")) {
        let reason = "--json and -o - both write to the standard output; name a file";
        return Err(Usage(reason.to_owned()).into());
    }
    if let Some(file) = args.output_file.as_ref().filter(|_| args.keep.is_none()) {
        args.overwrite.check(file)?;
    }
    let interrupt = Interrupt::install()?;
    #[cfg(feature = "window")]
    if args.window.window {
        return window::run(args, &interrupt);
    }
    #[cfg(feature = "webrtc")]
    if let Some(url) = &args.whep {
        return played::receive(args, url, &interrupt);
    }
    args.entry.check_unused("--whep")?;
    receive(args, build(args)?, None, &interrupt)
}

/// Opens streams and receives them until they end. Writes them into the file, if any, or with
/// `--keep` into one file after another, and passes the first stream to an observer.
fn receive(
    args: &RecvArgs,
    described: Vec<Described>,
    mut observer: Option<Box<dyn StreamObserver>>,
    interrupt: &Interrupt,
) -> anyhow::Result<Outcome> {
    let metrics = Metrics::start(&args.metrics, args.output.quiet)?;
    let together = Together::new(described.len(), interrupt);
    let file = args.output_file.as_deref();
    let (mut files, mut outcome) = (Files::new(file, args.keep, args.overwrite), Outcome::Done);
    let mut next = Some(described);
    while let Some(described) = next.take() {
        let Some(mut streams) = open(args, described, &together)? else {
            anyhow::ensure!(
                together.has_begun(),
                "interrupted before keys were agreed on; nothing was received"
            );
            break;
        };
        for (number, stream) in streams.iter().enumerate() {
            metrics.observe(|| stream.observed(number));
        }
        let is_last = loop {
            let recorded =
                record(args, &mut streams, files.take().as_deref(), &together, observer.take())?;
            if recorded.outcome == Outcome::Failed {
                outcome = Outcome::Failed;
            }
            if recorded.has_frames {
                files.note_kept();
            }
            if recorded.is_stopped || files.is_used_up() {
                break true;
            }
            together.begin_file();
            if streams.iter().any(|stream| stream.agreed.is_some()) {
                // The next sender agrees on keys of its own.
                break false;
            }
        };
        for agreed in streams.iter().filter_map(|stream| stream.agreed.as_ref()) {
            if args.security.zrtp_ask {
                agreed.ask()?;
            }
        }
        metrics.clear();
        if !is_last {
            next = Some(build_again(args, streams)?);
        }
    }
    Ok(outcome)
}

/// Opens streams; returns `None` if the user stops it.
fn open(
    args: &RecvArgs,
    described: Vec<Described>,
    together: &Together<'_>,
) -> anyhow::Result<Option<Vec<Stream>>> {
    let open = |described| Stream::open(args, described, together);
    described.into_iter().map(open).collect()
}

/// Closes streams, and describes them again at the same ports.
fn build_again(args: &RecvArgs, streams: Vec<Stream>) -> anyhow::Result<Vec<Described>> {
    let ports: Vec<_> = streams.iter().map(|stream| stream.media.local_address().port()).collect();
    drop(streams);
    let again = |(described, port): (Described, u16)| {
        let builder = described.builder.local_port(port);
        Described { builder, ..described }
    };
    Ok(build(args)?.into_iter().zip(ports).map(again).collect())
}

/// The result of one file of a reception.
struct Recorded {
    outcome: Outcome,
    has_frames: bool,
    /// Whether the reception has ended, too.
    is_stopped: bool,
}

/// Writes a file of open streams, from their next frames to their end, and reports on it.
fn record(
    args: &RecvArgs,
    streams: &mut [Stream],
    file: Option<&Path>,
    together: &Together<'_>,
    mut observer: Option<Box<dyn StreamObserver>>,
) -> anyhow::Result<Recorded> {
    let is_first = !together.has_begun();
    let codecs: Vec<_> = streams.iter().map(|stream| stream.codec).collect();
    let sampled: Vec<_> = streams.iter().map(|stream| (stream.codec, stream.sampling)).collect();
    let mut media = file.map(|file| args.overwrite.media_writer(file, &sampled)).transpose()?;
    if let (Some(media), Some(raw)) = (&mut media, &streams[0].raw) {
        media.set_raw_video(raw.video, raw.frame_rate)?;
    }
    let output = Output::new(media, &codecs);
    let mut tracks = Vec::new();
    let is_one_of_several = streams.len() > 1;
    let file = file.filter(|_| args.keep.is_some());
    for (number, stream) in streams.iter_mut().enumerate() {
        let writer = Writer::new(&output, observer.take(), (number, stream));
        let mut contest = std::mem::take(&mut stream.next);
        if file.is_some() {
            contest = contest.apart();
        }
        let mut received = Received::default();
        (received.contest, received.rtcp) = (contest, std::mem::take(&mut stream.rtcp));
        tracks.push(Track { number, is_one_of_several, stream, file, writer, received });
    }
    let ended = track::receive(args, &mut tracks, together);
    for track in &mut tracks {
        track.received.leave_out_noise();
    }
    // Complete frames are saved before an error is reported.
    let has_frames = tracks.iter().any(|track| track.received.frames > 0);
    let observers: Vec<_> = tracks.iter_mut().map(|track| track.writer.observer.take()).collect();
    for track in &mut tracks {
        track.received.silence = output.silence();
    }
    let finished = output.finish(has_frames);
    ended?;
    for (track, has_frames) in tracks.iter_mut().zip(finished?) {
        track.received.note_file(has_frames);
    }
    let mut shown = Ok(());
    for observer in observers.into_iter().flatten().filter(|_| has_frames) {
        let finished = observer.finish();
        shown = shown.and(finished);
    }
    let is_stopped = tracks
        .iter()
        .any(|track| matches!(track.received.end, End::Signal | End::Duration | End::Wait));
    // A file that never began is reported only if it is the only one.
    let outcome =
        if has_frames || is_first { verdict::print(args, &mut tracks)? } else { Outcome::Done };
    tracks.iter_mut().for_each(Track::end);
    shown.map(|()| Recorded { outcome, has_frames, is_stopped })
}

/// Returns the streams that the command line gives: several, if a description has them and the file
/// holds them.
fn build(args: &RecvArgs) -> anyhow::Result<Vec<Described>> {
    let streams = match (&args.sdp, &args.from) {
        (Some(file), _) => {
            let is_film = args.ssrc.is_none() && args.control.rtx_ssrc.is_none();
            let film = args.output_file.as_deref().filter(|_| is_film && !args.window.window);
            let wanted = Wanted { codec: args.stream.codec, ssrc: args.ssrc, film };
            let context = stream::context(&args.control)?;
            let streams = describe::read(file, wanted, args.output.quiet, &context)?;
            if let (Some(output), [stream]) = (&args.output_file, &streams[..]) {
                check_name(output, stream.codec)?;
            }
            streams
        }
        (None, Some(from)) => vec![build_listening(args, from)?],
        (None, None) => return Err(Usage("recv needs --from or --sdp".to_owned()).into()),
    };
    let secured = args.security.security()?;
    let mut built = Vec::new();
    for described in streams {
        let mut builder = described.builder;
        if args.sdp.is_some() {
            // The peer's RTCP port on the command line is that of the first stream.
            let mut control = args.control.clone();
            control.rtcp_port = control.rtcp_port.filter(|_| built.is_empty());
            builder = stream::set_described(builder, described.group, &args.stream);
            builder = stream::set_addresses(builder, &control);
        }
        builder = finish(args, builder, built.is_empty())?;
        builder = security::set(builder, secured.clone());
        built.push(Described { builder, ..described });
    }
    Ok(built)
}

/// Refuses a file whose name is that of other codecs' files.
fn check_name(file: &Path, codec: Codec) -> Result<(), Usage> {
    let extension = file.extension().and_then(|it| it.to_str()).unwrap_or_default();
    let is_named = |codec: &Codec| {
        codec.files.extensions.iter().any(|own| own.eq_ignore_ascii_case(extension))
    };
    let Some(named) = Codec::all().find(is_named) else { return Ok(()) };
    if is_named(&codec) {
        return Ok(());
    }
    let own = codec.files.extensions.first().map(|own| format!(". Try: -o copy.{own}"));
    let (file, own) = (file.display(), own.unwrap_or_default());
    let reason =
        format!("{file} is the name of {}, and the stream is {}", named.title, codec.title);
    Err(Usage(reason + &own))
}

/// Returns the codec that the command line gives, directly or by a file's name.
fn named_codec(args: &RecvArgs) -> anyhow::Result<Codec> {
    match (args.stream.codec, &args.output_file) {
        (Some(codec), _) => Ok(codec),
        (None, Some(file)) => Ok(codec_of_name(file).ok_or_else(|| unknown_codec(file))?),
        (None, None) => Err(Usage("--window needs --codec or --sdp".to_owned()).into()),
    }
}

/// Returns a stream from an address that the command line names.
fn build_listening(args: &RecvArgs, from: &Endpoint) -> anyhow::Result<Described> {
    let codec = named_codec(args)?;
    stream::check_samples(&args.stream, &[codec])?;
    let payload_type = args.stream.payload_type.unwrap_or_else(|| codec.payload_type());
    stream::check_rtx(&args.control, payload_type, args.ssrc)?;
    let raw_video = args.stream.raw_video()?;
    if codec == Codec::Uncompressed && raw_video.is_none() {
        let reason = "packets of uncompressed video do not say its size: give the description that \
                      send --sdp writes, by --sdp FILE, or --size WIDTHxHEIGHT --sampling NAME \
                      --depth BITS, which send prints";
        return Err(Usage(reason.to_owned()).into());
    }
    let session = open_session(from.host.as_deref(), args)?;
    let builder = stream::set(session.stream(codec), &session, &args.stream, raw_video);
    let builder = stream::set_control(builder.local_port(from.port), &args.control)
        .report_arrivals(args.report_arrivals)
        .report_transport_wide(args.report_transport_wide);
    let group = session.peer().filter(IpAddr::is_multicast);
    Ok(Described { builder, codec, parameter_sets: Vec::new(), group })
}

/// Applies the settings that do not depend on how the stream was found.
fn finish(
    args: &RecvArgs,
    builder: StreamBuilder,
    is_first: bool,
) -> anyhow::Result<StreamBuilder> {
    let mut builder =
        builder.delivery(args.delivery.into()).incomplete_frames(args.missing.incomplete);
    if let Some(limit) = args.latency {
        builder = builder.latency(limit);
    }
    if let Some(time) = args.reorder_time {
        builder = builder.reorder_time(time);
    }
    if let Some(ssrc) = args.ssrc {
        builder = builder.remote_ssrc(ssrc);
    }
    if !args.sources.is_empty() {
        let mut sources = Vec::new();
        for host in &args.sources {
            sources.push(resolve(host, 0)?.ip());
        }
        builder = builder.multicast_sources(sources);
    }
    if args.fec {
        builder = builder.fec(Fec::receive().format(args.fec_format.into()));
    }
    if let Some(ssrc) = args.control.rtx_ssrc {
        builder = builder.remote_rtx_ssrc(ssrc);
    }
    if let (Some(peer), Some(host)) = (&args.peer, peer_host(args)?) {
        // A peer given by the user is accepted from its first packet on.
        let port = peer.port.filter(|_| is_first);
        builder = builder.only_from(host, port).probation(1);
    }
    Ok(builder)
}

/// Returns the address of the peer that the user gave, if any.
fn peer_host(args: &RecvArgs) -> anyhow::Result<Option<IpAddr>> {
    let Some(Peer { host, .. }) = &args.peer else { return Ok(None) };
    let host = resolve(host, 0)?.ip();
    if host.is_multicast() {
        let reason = format!("--peer {host} is a multicast group; name the host that sends to it");
        return Err(Usage(reason).into());
    }
    Ok(Some(host))
}

/// Returns a session that listens on `host`: a group to join, or a local address to bind to.
fn open_session(host: Option<&str>, args: &RecvArgs) -> anyhow::Result<Session> {
    let context = stream::context(&args.control)?;
    let Some(host) = host else {
        let session = context.session_any();
        let is_ipv6 = peer_host(args)?.is_some_and(|peer| peer.is_ipv6());
        return Ok(if is_ipv6 { context.receive_on("::")? } else { session });
    };
    Ok(context.receive_on(host)?)
}
