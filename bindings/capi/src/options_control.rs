//! Stream settings: RTCP, feedback, recovery.

use std::ffi::c_char;

use rushes::proto::rtcp::SdesKind;
use rushes::{Fec, FecFormat as Format, RateSettings, Recovery, Ssrc};

use crate::error::{Failure, Status};
use crate::options::{StreamOptions, argument, change, payload_type};
use crate::pointer;

/// How lost packets are retransmitted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(i32)]
pub enum RecoveryMode {
    /// Lost packets are not retransmitted.
    Off = 0,
    /// Retransmissions are sent in a separate stream (RFC 4588).
    Rtx = 1,
    /// Packets are repeated unchanged in their own stream, for peers that do not support RFC 4588.
    Verbatim = 2,
}

/// Whether repair packets are sent, and how many.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(i32)]
pub enum FecMode {
    /// Received repair packets are used, and none are sent.
    Receive = 0,
    /// As many repair packets as set are sent for 100 packets.
    Percent = 1,
    /// As many as the loss that receivers report needs, at most as many as set; needs RTCP.
    ByLoss = 2,
}

/// The format of repair packets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(i32)]
pub enum FecFormat {
    /// That of RFC 8627, in a stream of its own.
    Flexfec = 0,
    /// That of draft 03, as WebRTC programs use it.
    Flexfec03 = 1,
    /// ULPFEC (RFC 5109), in one stream with the media within RED (RFC 2198).
    Ulpfec = 2,
}

/// The items of a source description (RFC 3550 section 6.5); the values are the RFC's.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(i32)]
pub enum SdesItem {
    /// The canonical name.
    Cname = 1,
    /// The user's name.
    Name = 2,
    /// The user's electronic mail address.
    Email = 3,
    /// The user's telephone number.
    Phone = 4,
    /// The user's location.
    Location = 5,
    /// The application.
    Tool = 6,
    /// The user's current activity.
    Note = 7,
    /// A private extension with its own name.
    Private = 8,
}

/// Whether RTCP is sent and received; by default it is, on the stream's port plus one.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_rtcp(options: *const StreamOptions, on: bool) -> Status {
    change(options, |builder| Ok(builder.rtcp(on)))
}

/// Whether RTCP shares the stream's port (RFC 5761); by default not. Both sides must agree.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_rtcp_mux(
    options: *const StreamOptions,
    on: bool,
) -> Status {
    change(options, |builder| Ok(builder.rtcp_mux(on)))
}

/// The local port for RTCP; by default the stream's port plus one.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_rtcp_local_port(
    options: *const StreamOptions,
    port: u16,
) -> Status {
    change(options, |builder| Ok(builder.rtcp_local_port(port)))
}

/// The peer's port for RTCP; by default the port of its stream plus one.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_rtcp_remote_port(
    options: *const StreamOptions,
    port: u16,
) -> Status {
    change(options, |builder| Ok(builder.rtcp_remote_port(port)))
}

/// The session's bandwidth in bits per second, of which RTCP uses 5 % at most; by default 10
/// Mbit/s. All participants should have the same setting.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_session_bandwidth(
    options: *const StreamOptions,
    bits_per_second: u64,
) -> Status {
    change(options, |builder| Ok(builder.session_bandwidth(bits_per_second)))
}

/// Whether requests are sent at once (RFC 4585) rather than with the next report; by default only
/// with recovery.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_feedback(
    options: *const StreamOptions,
    on: bool,
) -> Status {
    change(options, |builder| Ok(builder.feedback(on)))
}

/// Whether feedback may be sent without a preceding report (RFC 5506); by default not. Both sides
/// must agree.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_reduced_size(
    options: *const StreamOptions,
    on: bool,
) -> Status {
    change(options, |builder| Ok(builder.reduced_size(on)))
}

/// Whether the arrival time and the ECN mark of each packet are reported to the sender (RFC 8888)
/// every 10 to 40 ms; the sender receives RUSHES_RTCP_EVENT_KIND_ARRIVALS. By default not.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_report_arrivals(
    options: *const StreamOptions,
    on: bool,
) -> Status {
    change(options, |builder| Ok(builder.report_arrivals(on)))
}

/// Whether the arrival time of each packet is reported by its transport-wide sequence number, as
/// browsers do; needs that element (rushes_stream_options_extension_uri()), and RTCP. By default not.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_report_transport_wide(
    options: *const StreamOptions,
    on: bool,
) -> Status {
    change(options, |builder| Ok(builder.report_transport_wide(on)))
}

/// How packets are marked for ECN (RFC 3168); the values are the codepoints.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(i32)]
pub enum RateMark {
    /// Packets are not marked: routers drop them.
    None = 0,
    /// ECT(1): routers mark packets when a queue begins (L4S, RFC 9330).
    L4s = 1,
    /// ECT(0): routers mark packets instead of dropping them.
    Classic = 2,
}

/// Controls the rate of sent media by SCReAM version 2: the encoder should follow
/// rushes_stream_target_rate(), and RUSHES_RTCP_EVENT_KIND_TARGET_RATE when it changes. Rates are in
/// bits per second, `min` <= `start` <= `max`; `mark` is a rushes_rate_mark. The peer must report
/// arrivals (rushes_stream_options_report_arrivals()). The streams of a session share one
/// controller. By default the rate is not controlled.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_rate_control(
    options: *const StreamOptions,
    min: u64,
    start: u64,
    max: u64,
    mark: i32,
) -> Status {
    change(options, |builder| {
        let settings = RateSettings::new(min, start, max);
        let settings = settings.map_err(|error| argument(error.to_string()))?;
        let settings = match mark {
            _ if mark == RateMark::None as i32 => settings,
            _ if mark == RateMark::L4s as i32 => settings.l4s(true),
            _ if mark == RateMark::Classic as i32 => settings.ecn(true),
            _ => return Err(argument(format!("{mark} is not a mark of packets"))),
        };
        Ok(builder.rate_control(settings))
    })
}

/// The stream's weight among the streams of its session with rate control, at least 1; by default
/// 1. The target of the path is divided by weight.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_rate_priority(
    options: *const StreamOptions,
    weight: u8,
) -> Status {
    change(options, |builder| Ok(builder.rate_priority(weight)))
}

/// Whether the circuit breakers of RFC 8083 watch the stream; by default they do. After
/// RUSHES_RTCP_EVENT_KIND_CIRCUIT_BREAKER, pushing fails with RUSHES_ERROR_CIRCUIT_BREAKER until
/// rushes_stream_resume() succeeds.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_circuit_breakers(
    options: *const StreamOptions,
    on: bool,
) -> Status {
    change(options, |builder| Ok(builder.circuit_breakers(on)))
}

/// An item of this participant's source description besides the canonical name; `item` is any
/// rushes_sdes_item except the first, the text at most 255 octets.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_describe(
    options: *const StreamOptions,
    item: i32,
    text: *const c_char,
) -> Status {
    change(options, |builder| {
        let text = pointer::text(text)?;
        if text.len() > 255 {
            return Err(argument(format!("an item of {} octets is longer than 255", text.len())));
        }
        Ok(builder.describe(kind(item)?, text))
    })
}

fn kind(item: i32) -> Result<SdesKind, Failure> {
    Ok(match item {
        2 => SdesKind::Name,
        3 => SdesKind::Email,
        4 => SdesKind::Phone,
        5 => SdesKind::Location,
        6 => SdesKind::Tool,
        7 => SdesKind::Note,
        8 => SdesKind::Private,
        _ => return Err(argument(format!("{item} is not an SDES item that can be set"))),
    })
}

/// Returns the number of an item of a source description.
pub(crate) fn item(kind: SdesKind) -> i32 {
    match kind {
        SdesKind::Cname => 1,
        SdesKind::Name => 2,
        SdesKind::Email => 3,
        SdesKind::Phone => 4,
        SdesKind::Location => 5,
        SdesKind::Tool => 6,
        SdesKind::Note => 7,
        SdesKind::Private => 8,
        SdesKind::Other(number) => number.into(),
        _ => 0,
    }
}

/// Whether and how lost packets are requested and retransmitted: a rushes_recovery_mode, by default
/// off. Both sides must agree and need RTCP. `payload_type` is that of RUSHES_RECOVERY_MODE_RTX; 0
/// derives it from the stream's (127 for 96, 126 for 97, and so on).
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_recovery(
    options: *const StreamOptions,
    mode: i32,
    payload_type: u8,
) -> Status {
    change(options, |builder| {
        let recovery = match (mode, payload_type) {
            (0, _) => Recovery::Off,
            (1, 0) => Recovery::On,
            (1, number) => Recovery::Rtx(self::payload_type(number)?),
            (2, _) => Recovery::Verbatim,
            _ => return Err(argument(format!("{mode} is not a recovery mode"))),
        };
        Ok(builder.recovery(recovery))
    })
}

/// The SSRC of the retransmissions that the stream sends, which must differ from that of its media;
/// random by default. Only with RUSHES_RECOVERY_MODE_RTX.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_rtx_ssrc(
    options: *const StreamOptions,
    ssrc: u32,
) -> Status {
    change(options, |builder| Ok(builder.rtx_ssrc(Ssrc(ssrc))))
}

/// The only SSRC from which retransmissions are accepted, which must differ from that of the media;
/// by default any. Only with RUSHES_RECOVERY_MODE_RTX.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_remote_rtx_ssrc(
    options: *const StreamOptions,
    ssrc: u32,
) -> Status {
    change(options, |builder| Ok(builder.remote_rtx_ssrc(Ssrc(ssrc))))
}

/// Forward error correction (RFC 8627): repair packets, from which a receiver computes lost packets
/// without asking for them. `mode` is a rushes_fec_mode; by default there are none. Both sides must
/// agree. `percent` is the number of repair packets for 100 packets, 1 to 100, or the largest; it is
/// ignored with RUSHES_FEC_MODE_RECEIVE. `format` is a rushes_fec_format. A sender calls
/// rushes_stream_send_keep_alive() after its last frame; otherwise the last packets have no repair
/// packets.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_fec(
    options: *const StreamOptions,
    mode: i32,
    percent: u8,
    format: i32,
) -> Status {
    change(options, |builder| {
        let fec = match mode {
            0 => Fec::receive(),
            1 => Fec::percent(percent),
            2 => Fec::by_loss(percent),
            _ => return Err(argument(format!("{mode} is not a mode of error correction"))),
        };
        let format = match format {
            0 => Format::FlexFec,
            1 => Format::FlexFec03,
            2 => Format::Ulp,
            _ => return Err(argument(format!("{format} is not a format of repair packets"))),
        };
        Ok(builder.fec(fec.format(format)))
    })
}

/// Octets of sent packets that are kept for retransmission, by default 4 MiB; only with recovery.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_history(
    options: *const StreamOptions,
    octets: usize,
) -> Status {
    change(options, |builder| Ok(builder.history(octets)))
}
