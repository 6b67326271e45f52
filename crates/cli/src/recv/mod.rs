//! `rushes recv`: a stream into a file, into a window, or both.

mod contest;
#[cfg(feature = "window")]
mod decoder;
#[cfg(feature = "window")]
mod delimit;
mod hints;
mod reception;
mod verdict;
#[cfg(feature = "window")]
pub(crate) mod window;
mod writer;

use std::io::Write;
use std::net::IpAddr;
use std::path::Path;

use rushes::file::{MediaWriter, codec_of};
use rushes::net::resolve;
use rushes::{Codec, Session, StreamBuilder};

use self::hints::Hints;
use self::reception::{Received, Reception};
use self::verdict::Verdict;
use self::writer::{NoObserver, StreamObserver, Writer};
use crate::args::RecvArgs;
use crate::describe::{self, Described, Wanted};
use crate::endpoint::{Endpoint, Peer};
use crate::interrupt::Interrupt;
use crate::metrics;
use crate::metrics::Metrics;
use crate::source::unknown_codec;
use crate::{Outcome, Usage, security, stream, zrtp};

/// A restarted receiver has lost its replay list (RFC 3711 section 3.3.2).
const REPLAY: &str = "rushes: packets recorded under this key in an earlier run would be accepted; \
                      --zrtp --secret-file makes a key for each run\n";

pub(crate) fn run(args: &RecvArgs) -> anyhow::Result<Outcome> {
    if args.output.json && args.output_file.as_deref() == Some(Path::new("-")) {
        let reason = "--json and -o - both write to the standard output; name a file";
        return Err(Usage(reason.to_owned()).into());
    }
    if let Some(file) = &args.output_file {
        args.overwrite.check(file)?;
    }
    let interrupt = Interrupt::install()?;
    #[cfg(feature = "window")]
    if args.window.window {
        return window::run(args, &interrupt);
    }
    stream_into(args, build(args)?, &interrupt, |_| Ok(NoObserver))
}

/// Receives a stream until it ends, into the file, if any, and for an observer. `observe` makes the
/// observer once the codec is known.
fn stream_into<A: StreamObserver>(
    args: &RecvArgs,
    Described { builder, codec, parameter_sets }: Described,
    interrupt: &Interrupt,
    observe: impl FnOnce(Codec) -> anyhow::Result<A>,
) -> anyhow::Result<Outcome> {
    let metrics = Metrics::start(&args.metrics, args.output.quiet)?;
    let observer = observe(codec)?;
    let prints = !args.output.quiet && !args.output.json;
    let opened = zrtp::open(builder, interrupt, args.wait, |address| {
        let listening = if prints { format!("listening on {address}\n") } else { String::new() };
        let warns = args.security.has_given_key() && !args.output.quiet;
        // In one write, for programs that read the address from a pipe.
        let text = format!("{listening}{}", if warns { REPLAY } else { "" });
        std::io::stderr().write_all(text.as_bytes())?;
        Ok(())
    })?;
    let Some((mut stream, agreed)) = opened else {
        anyhow::bail!("interrupted before keys were agreed on; nothing was received");
    };
    zrtp::print_agreed(agreed.as_ref(), args.output.quiet);
    let file = args.output_file.as_deref();
    let media = file.map(|file| args.overwrite.media_writer(file, codec)).transpose()?;
    let mut writer = Writer::new(media, observer, codec, parameter_sets);
    if !args.output.quiet {
        let mut hints = Hints::new(codec, args.sdp.is_some() || args.stream.payload_type.is_some());
        stream.receiver()?.on_event(move |event| {
            security::report_event(&event);
            hints.take(&event);
        });
    }
    let mut received = Received::default();
    metrics.observe(|| metrics::Receiving {
        handle: stream.handle(),
        rtcp: stream.rtcp(),
        codec,
        written: received.written.clone(),
    });
    let ended = Reception::new(args, &mut stream, &mut writer, &mut received).run(interrupt);
    // Complete frames are saved before an error is reported.
    let media = writer.media.filter(|_| received.frames > 0);
    let finished = media.map_or(Ok(()), MediaWriter::finish);
    ended?;
    finished?;
    let shown = if received.frames > 0 { writer.observer.finish() } else { Ok(()) };
    let verdict = Verdict::of(&stream, &received);
    let outcome = verdict.print(args, &stream, agreed.as_ref(), &mut received)?;
    if let Some(agreed) = agreed.filter(|_| args.security.zrtp_ask) {
        agreed.ask()?;
    }
    shown.map(|()| outcome)
}

fn build(args: &RecvArgs) -> anyhow::Result<Described> {
    let described = match (&args.sdp, &args.from) {
        (Some(file), _) => {
            let wanted = Wanted { codec: args.stream.codec, ssrc: args.ssrc };
            let context = stream::context(&args.control)?;
            let described = describe::read(file, wanted, args.output.quiet, &context)?;
            let builder = stream::set_described(described.builder, &args.stream);
            let builder = stream::set_addresses(builder, &args.control);
            Described { builder, ..described }
        }
        (None, Some(from)) => build_listening(args, from)?,
        (None, None) => return Err(Usage("recv needs --from or --sdp".to_owned()).into()),
    };
    let builder = finish(args, described.builder)?;
    let builder = security::set(builder, args.security.security()?);
    Ok(Described { builder, ..described })
}

/// The codec that the command line gives, directly or by a file's name.
fn named_codec(args: &RecvArgs) -> anyhow::Result<Codec> {
    match (args.stream.codec, &args.output_file) {
        (Some(codec), _) => Ok(codec),
        (None, Some(file)) => Ok(codec_of(file).ok_or_else(|| unknown_codec(file))?),
        (None, None) => Err(Usage("--window needs --codec or --sdp".to_owned()).into()),
    }
}

/// A stream from an address that the command line names.
fn build_listening(args: &RecvArgs, from: &Endpoint) -> anyhow::Result<Described> {
    let codec = named_codec(args)?;
    let payload_type = args.stream.payload_type.unwrap_or_else(|| codec.payload_type());
    stream::check_rtx(&args.control, payload_type, args.ssrc)?;
    let session = open_session(from.host.as_deref(), args)?;
    let builder = stream::set(session.stream(codec), &session, &args.stream);
    let builder = stream::set_control(builder.local_port(from.port), &args.control);
    Ok(Described { builder, codec, parameter_sets: Vec::new() })
}

/// Settings that do not depend on how the stream was found.
fn finish(args: &RecvArgs, builder: StreamBuilder) -> anyhow::Result<StreamBuilder> {
    let mut builder = builder.delivery(args.delivery.into());
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
    if let (Some(peer), Some(host)) = (&args.peer, peer_host(args)?) {
        // A peer given by the user is accepted from its first packet on.
        builder = builder.only_from(host, peer.port).probation(1);
    }
    Ok(builder)
}

/// The address of the peer that the user gave, if any.
fn peer_host(args: &RecvArgs) -> anyhow::Result<Option<IpAddr>> {
    let Some(Peer { host, .. }) = &args.peer else { return Ok(None) };
    let host = resolve(host, 0)?.ip();
    if host.is_multicast() {
        let reason = format!("--peer {host} is a multicast group; name the host that sends to it");
        return Err(Usage(reason).into());
    }
    Ok(Some(host))
}

/// A session that listens on `host`: a group to join, or a local address to bind to.
fn open_session(host: Option<&str>, args: &RecvArgs) -> anyhow::Result<Session> {
    let context = stream::context(&args.control)?;
    let Some(host) = host else {
        let session = context.session_any();
        let is_ipv6 = peer_host(args)?.is_some_and(|peer| peer.is_ipv6());
        return Ok(if is_ipv6 { context.receive_on("::")? } else { session });
    };
    Ok(context.receive_on(host)?)
}
