//! The settings that all commands share.

use std::net::IpAddr;

use rushes::net::{Interface, MulticastOptions};
use rushes::payload::raw::RawVideo;
use rushes::{Codec, Context, Error, PayloadType, Recovery, Session, Ssrc, StreamBuilder};

use crate::Usage;
use crate::args::{ControlArgs, RecoveryName, StreamArgs};

/// Applies `args` to a stream of `session`; `raw_video` is its uncompressed video, if it has any.
pub(crate) fn set(
    mut builder: StreamBuilder,
    session: &Session,
    args: &StreamArgs,
    raw_video: Option<RawVideo>,
) -> StreamBuilder {
    builder = builder.mtu(args.mtu).send_path(args.send_path).receive_path(args.receive_path);
    if let Some(octets) = args.socket_buffer {
        builder = builder.socket_buffer(octets);
    }
    if let Some(payload_type) = args.payload_type {
        builder = builder.payload_type(payload_type);
    }
    if let Some(clock_rate) = args.clock_rate {
        builder = builder.clock_rate(clock_rate);
    }
    if let Some(channels) = args.channels {
        builder = builder.channels(channels);
    }
    if let Some(time) = args.packet_time {
        builder = builder.packet_time(time);
    }
    if let Some(elements) = args.capture_time {
        builder = builder.extensions(elements);
    }
    for (id, uri) in &args.extension {
        builder = builder.extension(*id, uri);
    }
    if let Some(dscp) = args.dscp {
        builder = builder.dscp(dscp);
    }
    if let Some(video) = raw_video {
        builder = fit_frames(builder.raw_video(video));
    }
    on_interface(builder, session.peer().filter(IpAddr::is_multicast), args)
}

/// Applies the options of `args` for the interface, and for the multicast group if there is one.
fn on_interface(builder: StreamBuilder, group: Option<IpAddr>, args: &StreamArgs) -> StreamBuilder {
    match (group, &args.interface) {
        (Some(group), interface) => {
            // Parsing cannot fail, since any text that is no address or index is a name.
            let interface = interface.as_ref().and_then(|text| text.parse::<Interface>().ok());
            let options = MulticastOptions::new(group);
            builder.multicast(MulticastOptions { interface, ttl: args.ttl, ..options })
        }
        (None, Some(name)) => builder.interface(name),
        (None, None) => builder,
    }
}

/// Octets in the largest frame that streams accept by default, and in the largest frame of uncompressed
/// video: more than one of 8K has with 16 bits.
const FRAME_LEN: usize = 64 << 20;
const FRAME_LEN_MAX: usize = 256 << 20;

/// Accepts frames of uncompressed video that are as large as agreed on.
pub(crate) fn fit_frames(builder: StreamBuilder) -> StreamBuilder {
    let len = builder.raw_parameters().map_or(0, |raw| raw.video.frame_len());
    if (FRAME_LEN..=FRAME_LEN_MAX).contains(&len) { builder.frame_len_max(len) } else { builder }
}

/// Applies the options of `args` that a description does not determine.
/// `group` is the multicast group that it names, if any.
pub(crate) fn set_described(
    mut builder: StreamBuilder,
    group: Option<IpAddr>,
    args: &StreamArgs,
) -> StreamBuilder {
    builder = on_interface(fit_frames(builder), group, args)
        .send_path(args.send_path)
        .receive_path(args.receive_path);
    if let Some(octets) = args.socket_buffer {
        builder = builder.socket_buffer(octets);
    }
    match args.dscp {
        Some(dscp) => builder.dscp(dscp),
        None => builder,
    }
}

/// Applies the options of `args` for RTCP addresses and keep-alives.
pub(crate) fn set_addresses(mut builder: StreamBuilder, args: &ControlArgs) -> StreamBuilder {
    builder = builder.rtcp(!args.no_rtcp);
    if let Some(port) = args.rtcp_port {
        builder = builder.rtcp_remote_port(port);
    }
    if let Some(interval) = args.keep_alive {
        builder = builder.keep_alive(interval);
    }
    builder
}

/// Applies the options of `args` for RTCP.
pub(crate) fn set_control(builder: StreamBuilder, args: &ControlArgs) -> StreamBuilder {
    let mut builder = set_addresses(builder, args).rtcp_mux(args.rtcp_mux);
    if let Some(recovery) = args.recovery {
        let rtx = args.rtx_payload_type.map(Recovery::Rtx);
        builder = builder.recovery(rtx.unwrap_or_else(|| recovery.into()));
    }
    if args.feedback {
        builder = builder.feedback(true);
    }
    builder
}

/// Checks that options of samples are given for a stream of samples.
pub(crate) fn check_samples(args: &StreamArgs, codecs: &[Codec]) -> Result<(), Usage> {
    let given = args.channels.map(|_| "--channels");
    let given = given.or_else(|| args.packet_time.map(|_| "--packet-time"));
    match (given, codecs) {
        (Some(given), [.., codec]) if codecs.iter().all(|codec| codec.sample.is_none()) => {
            let reason = format!("{given} is for l16, l24, pcmu and pcma, not for {}", codec.name);
            Err(Usage(reason))
        }
        _ => Ok(()),
    }
}

/// Checks the retransmission options of a stream with `payload_type` and, if it was set, `ssrc`.
pub(crate) fn check_rtx(
    args: &ControlArgs,
    payload_type: PayloadType,
    ssrc: Option<Ssrc>,
) -> Result<(), Usage> {
    let payload_type_given = args.rtx_payload_type.map(|_| "--rtx-payload-type");
    let given = payload_type_given.or_else(|| args.rtx_ssrc.map(|_| "--rtx-ssrc"));
    if let Some(given) = given.filter(|_| args.recovery != Some(RecoveryName::Rtx)) {
        return Err(Usage(format!("{given} is for retransmissions: give --recovery rtx too")));
    }
    if args.rtx_payload_type == Some(payload_type) {
        let number = payload_type.value();
        return Err(Usage(format!(
            "--rtx-payload-type {number} is the payload type of the stream itself: give another, \
             from 96 to 127"
        )));
    }
    match args.rtx_ssrc {
        Some(rtx) if Some(rtx) == ssrc => {
            Err(Usage(format!("--rtx-ssrc {rtx} is the stream's own --ssrc: give another")))
        }
        _ => Ok(()),
    }
}

/// Creates a context with the canonical name in `args`, if any.
pub(crate) fn context(args: &ControlArgs) -> Result<Context, Error> {
    args.cname.as_deref().map_or_else(|| Ok(Context::new()), Context::with_cname)
}

/// Explains why a stream cannot be opened, and which options would help.
pub(crate) fn explain(error: Error) -> anyhow::Error {
    let help = match error {
        Error::NoRtx => {
            "cannot open the stream (its description has no retransmissions: leave --rtx-ssrc out)"
        }
        Error::RtxSsrc { .. } => "cannot open the stream (give another --ssrc or --rtx-ssrc)",
        Error::SourceWithoutGroup => {
            "cannot open the stream (--source is for a multicast group, as in --from 232.1.2.3:5004; \
             for others give --peer)"
        }
        Error::RtcpPort { .. } => "cannot open the stream (try --rtcp-mux or --no-rtcp)",
        _ => "cannot open the stream",
    };
    anyhow::Error::from(error).context(help)
}
