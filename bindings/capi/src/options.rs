//! Stream settings: media and timing.

use std::ffi::c_char;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rushes::{
    Burst, ClockRate, Delivery, ExtensionKind, ExtensionMap, FrameRate, Framing, Pacing,
    PayloadType, RtpTimestamp, SequenceNumber, Ssrc, StreamBuilder,
};

use crate::error::{Failure, Status};
use crate::guard::guard;
use crate::handle::handle_type;
use crate::options_security::Secrets;
use crate::session::Session;
use crate::stream::Stream;
use crate::{handle, pointer, zrtp};

/// Settings for opening streams. Each has a working default.
#[derive(Debug)]
pub struct StreamOptions(Mutex<Settings>);
handle_type!(StreamOptions, 5, "stream's options");

impl StreamOptions {
    pub(crate) fn new(session: rushes::Session, builder: StreamBuilder) -> Self {
        let secrets = Secrets::default();
        let extensions = ExtensionMap::default();
        let sources = Vec::new();
        let settings = Settings { builder, session, secrets, sas_hook: None, extensions, sources };
        Self(Mutex::new(settings))
    }
}

/// The settings of the library's builder, and those that only this interface has.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) builder: StreamBuilder,
    pub(crate) session: rushes::Session,
    pub(crate) secrets: Secrets,
    pub(crate) sas_hook: Option<Arc<zrtp::SasCallback>>,
    pub(crate) extensions: ExtensionMap,
    /// The hosts from which the session's multicast group is received.
    pub(crate) sources: Vec<IpAddr>,
}

/// The payload format of a stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(i32)]
pub enum Codec {
    /// H.264 (AVC), RFC 6184.
    H264 = 1,
    /// H.265 (HEVC), RFC 7798.
    H265 = 2,
    /// H.266 (VVC), RFC 9328.
    H266 = 3,
    /// Opus, RFC 7587.
    Opus = 4,
    /// Frames of any kind, split when larger than a packet.
    Generic = 5,
    /// KLV metadata, RFC 6597.
    Klv = 6,
    /// VP8, RFC 7741.
    Vp8 = 7,
    /// VP9, RFC 9628.
    Vp9 = 8,
    /// AV1. A frame is a temporal unit.
    Av1 = 9,
    /// Uncompressed video, RFC 4175, which needs rushes_stream_options_raw_video().
    Uncompressed = 10,
    /// Samples of 16 bits, RFC 3551: of each channel in turn, in network byte order.
    L16 = 11,
    /// Samples of 24 bits, RFC 3190.
    L24 = 12,
    /// Samples in the mu-law of ITU-T G.711, RFC 3551.
    Pcmu = 13,
    /// Samples in the A-law of ITU-T G.711, RFC 3551.
    Pcma = 14,
}

/// The meaning of an element of RTP header extensions (RFC 8285).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(i32)]
pub enum Extension {
    /// The capture time of a frame, as browsers send it (abs-capture-time).
    AbsCaptureTime = 1,
    /// The capture time of a frame (RFC 6051, 64 bits).
    Ntp64 = 2,
    /// The capture time of a frame (RFC 6051, 56 bits).
    Ntp56 = 3,
}

fn extension(number: i32) -> Result<ExtensionKind, Failure> {
    const KINDS: [ExtensionKind; 3] =
        [ExtensionKind::AbsCaptureTime, ExtensionKind::Ntp64, ExtensionKind::Ntp56];
    let kind = usize::try_from(i64::from(number) - 1).ok().and_then(|place| KINDS.get(place));
    kind.copied().ok_or_else(|| argument(format!("{number} is not a header extension")))
}

/// Returns the error of an argument that is out of range.
pub(crate) fn argument(message: impl Into<String>) -> Failure {
    Failure::new(Status::Argument, message)
}

/// The names of the codecs, from 1 on.
const CODECS: [&str; 14] = [
    "h264",
    "h265",
    "h266",
    "opus",
    "generic",
    "klv",
    "vp8",
    "vp9",
    "av1",
    "uncompressed",
    "l16",
    "l24",
    "pcmu",
    "pcma",
];

pub(crate) fn codec(number: i32) -> Result<rushes::Codec, Failure> {
    let name = usize::try_from(i64::from(number) - 1).ok().and_then(|place| CODECS.get(place));
    let codec = name.and_then(|name| rushes::Codec::named(name));
    codec.ok_or_else(|| argument(format!("{number} is not a codec")))
}

/// Returns the number of a codec; 0 if it has none.
pub(crate) fn codec_number(codec: rushes::Codec) -> i32 {
    let place = (1..).zip(CODECS).find(|(_, name)| *name == codec.name);
    place.map_or(0, |(number, _)| number)
}

pub(crate) fn payload_type(number: u8) -> Result<PayloadType, Failure> {
    PayloadType::checked(number).map_err(|error| argument(error.to_string()))
}

/// Returns a copy of the current settings.
pub(crate) fn settings(options: *const StreamOptions) -> Result<Settings, Failure> {
    let options = handle::get(options)?;
    Ok(options.0.lock().unwrap_or_else(PoisonError::into_inner).clone())
}

/// Changes one setting.
pub(crate) fn change_all(
    options: *const StreamOptions,
    act: impl FnOnce(&mut Settings) -> Result<(), Failure>,
) -> Status {
    guard(|| {
        let options = handle::get(options)?;
        let mut settings = options.0.lock().unwrap_or_else(PoisonError::into_inner);
        act(&mut settings)
    })
}

/// Changes a setting of the library's builder.
pub(crate) fn change(
    options: *const StreamOptions,
    act: impl FnOnce(StreamBuilder) -> Result<StreamBuilder, Failure>,
) -> Status {
    change_all(options, |settings| {
        settings.builder = act(settings.builder.clone())?;
        Ok(())
    })
}

/// Creates settings for streams of a session that carry `codec` (a rushes_codec); close them with
/// rushes_stream_options_close(). They may be used for several streams.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_new(
    session: *const Session,
    codec: i32,
    options: *mut *mut StreamOptions,
) -> Status {
    guard(|| {
        pointer::write(options, std::ptr::null_mut())?;
        let session = handle::get(session)?.0.clone();
        let builder = session.stream(self::codec(codec)?);
        pointer::write(options, handle::insert(StreamOptions::new(session, builder))?)
    })
}

/// Closes settings. Streams opened with them stay open.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_close(options: *mut StreamOptions) -> Status {
    guard(|| handle::remove(options).map(drop))
}

/// Opens a stream: checks every setting and binds the socket, unless the session has a stream on
/// the same port already. Close it with rushes_stream_close().
///
/// With rushes_stream_options_zrtp() it blocks until both ends have agreed on a key.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_open(
    options: *const StreamOptions,
    stream: *mut *mut Stream,
) -> Status {
    guard(|| {
        pointer::write(stream, std::ptr::null_mut())?;
        let opened = zrtp::open(settings(options)?)?;
        pointer::write(stream, handle::insert(Stream::new(opened)?)?)
    })
}

/// The local UDP port; 0, the default, selects a free one.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_local_port(
    options: *const StreamOptions,
    port: u16,
) -> Status {
    change(options, |builder| Ok(builder.local_port(port)))
}

/// The peer's UDP port. Without it the stream only receives.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_remote_port(
    options: *const StreamOptions,
    port: u16,
) -> Status {
    change(options, |builder| Ok(builder.remote_port(port)))
}

/// Adds a destination, as a name or an address and its port, to the session's peer at the remote port:
/// each packet is sent to all of them, 64 at most. The frame is split, protected and kept for
/// retransmission once; a destination gets alone the packets that it requests, and one that cannot be
/// reached stops no other. RTCP goes to the port after this one, or with rtcp_mux to the same. All have
/// the stream's keys. Opening the stream fails if the destinations cannot be served together: one given
/// twice, groups, both IP versions, rate control, ZRTP.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_also_to(
    options: *const StreamOptions,
    host: *const c_char,
    port: u16,
) -> Status {
    change(options, |builder| {
        let address = rushes::net::resolve(pointer::text(host)?, port)?;
        Ok(builder.also_to(address))
    })
}

/// The payload type to send and to accept, 0..=63 or 96..=127 (RFC 5761); by default 96 for H.264,
/// 97 for H.265, 98 for H.266, 111 for Opus, 0 for PCMU, 8 for PCMA, 99 for generic frames.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_payload_type(
    options: *const StreamOptions,
    payload_type: u8,
) -> Status {
    change(options, |builder| Ok(builder.payload_type(self::payload_type(payload_type)?)))
}

/// The stream's own SSRC; random by default.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_ssrc(options: *const StreamOptions, ssrc: u32) -> Status {
    change(options, |builder| Ok(builder.ssrc(Ssrc(ssrc))))
}

/// The only SSRC to accept, from its first packet on; by default any. Streams that share a port
/// need this setting or different payload types.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_remote_ssrc(
    options: *const StreamOptions,
    ssrc: u32,
) -> Status {
    change(options, |builder| Ok(builder.remote_ssrc(Ssrc(ssrc))))
}

/// The only host to accept datagrams from, as a name or an address, and the port that its media
/// comes from; 0 for any port. Datagrams from other hosts are counted (`foreign`) and ignored. By
/// default the session's peer, if it has one that is not a multicast group, and otherwise any host.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_only_from(
    options: *const StreamOptions,
    host: *const c_char,
    port: u16,
) -> Status {
    change(options, |builder| {
        let host = rushes::net::resolve(pointer::text(host)?, 0)?.ip();
        Ok(builder.only_from(host, Some(port).filter(|port| *port != 0)))
    })
}

/// An element of RTP header extensions (a rushes_extension) and its identifier, 1..=14 or 16..=255,
/// on which both ends have agreed; by default there are none. With an element for the capture time,
/// the first packet of each frame carries the time at which the frame was captured
/// (rushes_stream_push_frame_captured()) or pushed, and received frames have it
/// (rushes_frame_look()). May be called for several elements.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_extension(
    options: *const StreamOptions,
    extension: i32,
    id: u8,
) -> Status {
    change_all(options, |settings| {
        let kind = self::extension(extension)?;
        let elements = settings.extensions.with(kind, id);
        settings.extensions = elements.map_err(|error| argument(error.to_string()))?;
        settings.builder = settings.builder.clone().extensions(settings.extensions);
        Ok(())
    })
}

/// An element of RTP header extensions by its URI, known or the application's own, and its identifier,
/// 1..=14 or 16..=255, on which both ends have agreed. The stream writes MID, RID, the time of sending
/// (abs-send-time) and transport-wide sequence numbers itself; the application gives others with
/// rushes_stream_push_frame_with(). Received frames have the elements of their first and last packets
/// (rushes_frame_element()). May be called for several elements.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_extension_uri(
    options: *const StreamOptions,
    uri: *const c_char,
    id: u8,
) -> Status {
    change(options, |builder| Ok(builder.extension(id, pointer::text(uri)?)))
}

/// Whether packets may have header extensions of both forms (a=extmap-allow-mixed); then elements up
/// to identifier 14 may be empty or longer than 16 octets. By default not. Both sides must agree.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_extmap_allow_mixed(
    options: *const StreamOptions,
    on: bool,
) -> Status {
    change(options, |builder| Ok(builder.extmap_allow_mixed(on)))
}

/// The identification of the stream's media (a=mid), which packets carry with the element
/// urn:ietf:params:rtp-hdrext:sdes:mid until the receiver has reported on the stream.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_mid(
    options: *const StreamOptions,
    mid: *const c_char,
) -> Status {
    change(options, |builder| Ok(builder.mid(pointer::text(mid)?)))
}

/// The identification of the stream among those of its media (RFC 8851), which packets carry as the
/// MID, with the element urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_rid(
    options: *const StreamOptions,
    rid: *const c_char,
) -> Status {
    change(options, |builder| Ok(builder.rid(pointer::text(rid)?)))
}

/// The clock rate of the timestamps in hertz, not 0; by default the codec's: 90000 for video, 48000
/// for Opus, L16 and L24, 8000 for PCMU and PCMA. Of samples it is the sampling rate.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_clock_rate(
    options: *const StreamOptions,
    hertz: u32,
) -> Status {
    change(options, |builder| {
        let rate = ClockRate::new(hertz).ok_or_else(|| argument("the clock rate must not be 0"))?;
        Ok(builder.clock_rate(rate))
    })
}

/// The number of audio channels of L16, L24, PCMU and PCMA, not 0; by default 2, and 1 of PCMU and PCMA.
/// Both ends must agree.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_channels(
    options: *const StreamOptions,
    channels: u8,
) -> Status {
    change(options, |builder| Ok(builder.channels(channels)))
}

/// Nanoseconds of samples in a packet of L16, L24, PCMU and PCMA, more than 0 and up to 200 ms, rounded
/// to whole samples; by default 1 ms, of PCMU and PCMA 20 ms, or less where more channels do not fit. A
/// frame that is pushed is cut into packets of this duration; a received frame is one packet.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_packet_time(
    options: *const StreamOptions,
    time: u64,
) -> Status {
    change(options, |builder| Ok(builder.packet_time(Duration::from_nanos(time))))
}

/// The rate of the frames to send, `frames` in `seconds` (for example 30000 in 1001), neither 0. It
/// is used for automatic timestamps and for pacing; by default timestamps are 1/30 s apart and
/// pacing follows the intervals between the calls.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_frame_rate(
    options: *const StreamOptions,
    frames: u32,
    seconds: u32,
) -> Status {
    change(options, |builder| {
        let rate = FrameRate::new(frames, seconds);
        let rate = rate.ok_or_else(|| argument("the frame rate's numbers must not be 0"))?;
        Ok(builder.frame_rate(rate))
    })
}

/// Sends all packets of a frame at once.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_pacing_off(options: *const StreamOptions) -> Status {
    change(options, |builder| Ok(builder.pacing(Pacing::Off)))
}

/// Spreads large frames over a share of the frame interval, 0.01 to 1; 0.9 by default.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_pacing_share(
    options: *const StreamOptions,
    share: f32,
) -> Status {
    change(options, |builder| Ok(builder.pacing(Pacing::Share(share))))
}

/// Sends at this rate, in bits of UDP payload per second, regardless of the size of a frame; a
/// stream with a rate of 0 cannot be opened.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_pacing_rate(
    options: *const StreamOptions,
    bits_per_second: u64,
) -> Status {
    change(options, |builder| Ok(builder.pacing(Pacing::Rate(bits_per_second))))
}

/// The largest burst of a paced sender, which contains at least one packet: `octets` of UDP payload,
/// 32768 by default, and with a rate also what is sent at that rate in `time` nanoseconds, 2 ms by
/// default.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_burst(
    options: *const StreamOptions,
    octets: usize,
    time: u64,
) -> Status {
    let time = Duration::from_nanos(time);
    change(options, |builder| Ok(builder.burst(Burst { octets, time })))
}

/// How much may be added to what is sent so that the packets of neighbouring NAL units, or of lines of
/// uncompressed video, have one length, in thousandths of its octets, 0..=1000: padding (RFC 3550 section
/// 5.1) and further headers. 20 by default, and 0 adds nothing. Frames of many units or lines then cost the
/// system little more than those of one unit.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_padding_limit(
    options: *const StreamOptions,
    per_mille: u16,
) -> Status {
    change(options, |builder| Ok(builder.padding_limit(per_mille)))
}

/// Whether each NAL unit is delivered as soon as it is complete; by default complete access units
/// are.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_deliver_units(
    options: *const StreamOptions,
    on: bool,
) -> Status {
    let delivery = if on { Delivery::Unit } else { Delivery::AccessUnit };
    change(options, |builder| Ok(builder.delivery(delivery)))
}

/// Whether NAL units are delimited by lengths of 4 octets, in frames pushed and pulled; by default
/// by start codes (00 00 00 01).
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_length_prefixed(
    options: *const StreamOptions,
    on: bool,
) -> Status {
    let framing = if on { Framing::LengthPrefixed } else { Framing::AnnexB };
    change(options, |builder| Ok(builder.framing(framing)))
}

/// Octets in the largest frame to accept, by default 64 MiB.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_frame_len_max(
    options: *const StreamOptions,
    octets: usize,
) -> Status {
    change(options, |builder| Ok(builder.frame_len_max(octets)))
}

/// sprop-max-don-diff of H.265 and H.266 (RFC 7798 section 7.1): if not 0, the default, NAL units
/// carry decoding order numbers, and the receiver restores their decoding order. Both sides must
/// agree.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_max_don_diff(
    options: *const StreamOptions,
    max: u16,
) -> Status {
    change(options, |builder| Ok(builder.max_don_diff(max)))
}

/// sprop-depack-buf-nalus of H.265 (RFC 7798 section 7.1): the maximum number of NAL units sent
/// before one that they follow in decoding order; 0, the default, if unknown.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_depack_buf_nalus(
    options: *const StreamOptions,
    units: u16,
) -> Status {
    change(options, |builder| Ok(builder.depack_buf_nalus(units)))
}

/// sprop-depack-buf-bytes of H.265 and H.266 (RFC 7798 section 7.1): the maximum number of octets
/// of NAL units that wait for others; 0, the default, if unknown.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_depack_buf_bytes(
    options: *const StreamOptions,
    octets: u32,
) -> Status {
    change(options, |builder| Ok(builder.depack_buf_bytes(octets)))
}

/// Nanoseconds to wait for a missing packet, from the first packet after it: by default 50 ms, and
/// with recovery at least that. It adds no delay while no packet is missing.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_reorder_time(
    options: *const StreamOptions,
    time: u64,
) -> Status {
    change(options, |builder| Ok(builder.reorder_time(Duration::from_nanos(time))))
}

/// Nanoseconds that a frame may wait for requested packets, by default 500 ms. The receiver waits
/// for as long as four requests take, and does not request packets that could not arrive in time.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_latency(
    options: *const StreamOptions,
    limit: u64,
) -> Status {
    change(options, |builder| Ok(builder.latency(Duration::from_nanos(limit))))
}

/// Octets that unfinished frames and reorder windows of all sources may hold together: by default
/// 64 MiB more than the largest frame, and at least the size of that frame.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_memory(
    options: *const StreamOptions,
    octets: usize,
) -> Status {
    change(options, |builder| Ok(builder.memory(octets)))
}

/// Maximum number of packets that the reorder window spans (1..=16384), and of octets that it
/// holds; by default 512 (with recovery 4096) and 4 MiB.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_reorder_window(
    options: *const StreamOptions,
    packets: usize,
    octets: usize,
) -> Status {
    change(options, |builder| Ok(builder.reorder_window(packets, octets)))
}

/// Number of packets after which a source is accepted, by default 2; earlier packets are kept until
/// then. With 1 a source is accepted at once.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_probation(
    options: *const StreamOptions,
    packets: u8,
) -> Status {
    change(options, |builder| Ok(builder.probation(packets)))
}

/// Maximum number of concurrent sources, by default 16, and nanoseconds of silence after which a
/// source ends, by default 30 s.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_sources(
    options: *const StreamOptions,
    max: usize,
    timeout: u64,
) -> Status {
    change(options, |builder| Ok(builder.sources(max, Duration::from_nanos(timeout))))
}

/// The first sequence number and timestamp; random by default.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_first_packet(
    options: *const StreamOptions,
    sequence: u16,
    timestamp: u32,
) -> Status {
    change(options, |builder| {
        Ok(builder.first_packet(SequenceNumber(sequence), RtpTimestamp(timestamp)))
    })
}
