//! RTCP events: reports and requests of peers.

use std::ffi::{CString, c_char};
use std::ptr;
use std::time::Duration;

use rushes::proto::rtcp::{Arrival, PacketReport};
use rushes::{ControlEvent as LibraryEvent, KeyFrameRequest};

use crate::control::KeyFrame;
use crate::options_control;

/// The kind of an RTCP event.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(i32)]
pub enum RtcpEventKind {
    /// An event of a later version.
    Other = 0,
    /// A sender report: `ntp`, `timestamp`, `packets`, `octets`.
    SenderReport = 1,
    /// A report about our media: `report`, `round_trip`.
    ReceiverReport = 2,
    /// The round-trip time to a participant that sends no media: `round_trip`.
    RoundTrip = 3,
    /// A new source description: `items`, `item_count`.
    SourceDescription = 4,
    /// A participant has left: `text`.
    Bye = 5,
    /// A participant has timed out.
    TimedOut = 6,
    /// An application-defined packet: `subtype`, `text` (four characters), `data`, `data_len`.
    App = 7,
    /// A receiver needs a key frame: `request`.
    KeyFrameRequested = 8,
    /// Packets that we sent did not reach a receiver: `sequences`, `sequence_count`.
    PacketsLost = 9,
    /// A receiver requests a bit rate of at most `bit_rate`. The library answers the request.
    BitRateRequested = 12,
    /// A sender announces the limits that it observes.
    BitRateNotified = 13,
    /// A receiver estimates the capacity of the path: `bit_rate`.
    Estimate = 14,
    /// The arrivals of packets that we sent at a receiver: `ntp` (middle 32 bits), `arrivals`,
    /// `arrival_count`.
    Arrivals = 15,
    /// Datagrams were refused because they are not authentic: `count` since the last such event.
    Refused = 16,
    /// A sixteenth or less of a master key's lifetime is left: `count` packets.
    KeyExpiring = 17,
    /// A master key is exhausted.
    KeyExpired = 18,
    /// Another participant used our SSRC, which was `from` and is `ssrc` from now on.
    Collision = 19,
    /// We receive our own packets.
    Loop = 20,
    /// The target rate of the stream has changed by 1 % or more: `bit_rate`. Only with rate control.
    TargetRate = 21,
    /// The peer sends no reports of arrivals, without which the target rate falls to its minimum.
    /// Only with rate control.
    NotReported = 22,
    /// A circuit breaker has stopped our media (RFC 8083): `text`, the reason.
    CircuitBreaker = 23,
}

/// A reception report about one source (RFC 3550 section 6.4.1).
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct ReportBlock {
    /// The source.
    pub ssrc: u32,
    /// The share of packets lost since the last report, in 1/256.
    pub fraction_lost: u8,
    /// Packets lost since the start; negative if duplicates arrived.
    pub cumulative_lost: i32,
    /// The highest sequence number received, with the number of its wraps in the upper 16 bits.
    pub highest: u32,
    /// The jitter of arrivals, in ticks of the media's clock.
    pub jitter: u32,
    /// The middle 32 bits of the NTP time of the last sender report; 0 if none arrived.
    pub last_sender_report: u32,
    /// The time since that report arrived, in 1/65536 s; 0 if none arrived.
    pub delay: u32,
}

impl From<&rushes::proto::rtcp::ReportBlock> for ReportBlock {
    fn from(block: &rushes::proto::rtcp::ReportBlock) -> Self {
        Self {
            ssrc: block.ssrc.0,
            fraction_lost: block.fraction_lost,
            cumulative_lost: block.cumulative_lost,
            highest: block.highest,
            jitter: block.jitter,
            last_sender_report: block.last_sender_report,
            delay: block.delay,
        }
    }
}

/// One item of a source description.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct SdesText {
    /// A rushes_sdes_item, or another item number of RFC 3550.
    pub item: i32,
    /// The item's text.
    pub text: *const c_char,
}

/// The arrival of one packet that we sent.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct PacketArrival {
    /// The packet's sequence number.
    pub sequence: u16,
    /// Whether it arrived.
    pub has_arrived: bool,
    /// Its ECN codepoint (RFC 3168), 0..=3.
    pub ecn: u8,
    /// Nanoseconds before the instant of the report; UINT64_MAX if unknown or out of the report's
    /// range.
    pub before: u64,
}

/// An RTCP event. Fields that its kind does not list are 0 or NULL.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ControlEvent {
    /// A rushes_rtcp_event_kind.
    pub kind: i32,
    /// The SSRC of the participant that sent it.
    pub from: u32,
    /// Another source, if the kind has one.
    pub ssrc: u32,
    /// A sampling instant, in ticks of the media's clock.
    pub timestamp: u32,
    /// The same instant on the wall clock, as an NTP timestamp (RFC 5905): seconds since 1900 in
    /// the upper 32 bits.
    pub ntp: u64,
    /// Packets sent, modulo 2^32.
    pub packets: u32,
    /// Octets of payload sent, modulo 2^32.
    pub octets: u32,
    /// The round-trip time in nanoseconds; 0 if it is not known.
    pub round_trip: u64,
    /// A report about our media.
    pub report: ReportBlock,
    /// The kind of key frame request: a rushes_key_frame.
    pub request: i32,
    /// Bits per second.
    pub bit_rate: u64,
    /// A count, whose meaning depends on the kind.
    pub count: u64,
    /// The subtype of an application-defined packet, 0..=31.
    pub subtype: u8,
    /// A reason or a name.
    pub text: *const c_char,
    /// Octets.
    pub data: *const u8,
    /// The number of octets.
    pub data_len: usize,
    /// Sequence numbers.
    pub sequences: *const u16,
    /// The number of sequence numbers.
    pub sequence_count: usize,
    /// Items of a source description.
    pub items: *const SdesText,
    /// The number of items.
    pub item_count: usize,
    /// The arrivals of packets.
    pub arrivals: *const PacketArrival,
    /// The number of arrivals.
    pub arrival_count: usize,
}

/// Memory that an event points to.
#[derive(Default)]
struct Lent {
    text: Option<CString>,
    texts: Vec<CString>,
    items: Vec<SdesText>,
    sequences: Vec<u16>,
    arrivals: Vec<PacketArrival>,
}

fn empty() -> ControlEvent {
    ControlEvent {
        kind: RtcpEventKind::Other as i32,
        from: 0,
        ssrc: 0,
        timestamp: 0,
        ntp: 0,
        packets: 0,
        octets: 0,
        round_trip: 0,
        report: ReportBlock::default(),
        request: 0,
        bit_rate: 0,
        count: 0,
        subtype: 0,
        text: ptr::null(),
        data: ptr::null(),
        data_len: 0,
        sequences: ptr::null(),
        sequence_count: 0,
        items: ptr::null(),
        item_count: 0,
        arrivals: ptr::null(),
        arrival_count: 0,
    }
}

/// Converts a text to a C string, without its zero octets.
fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', "")).unwrap_or_default()
}

pub(crate) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Passes an event to `take`; the event is valid during the call only.
pub(crate) fn with(event: &LibraryEvent, take: impl FnOnce(*const ControlEvent)) {
    let mut lent = Lent::default();
    let event = fill_media(event, &mut lent)
        .or_else(|| fill_participants(event, &mut lent))
        .unwrap_or_else(|| fill_rest(event));
    take(&raw const event);
}

fn of(kind: RtcpEventKind, from: rushes::Ssrc) -> ControlEvent {
    ControlEvent { kind: kind as i32, from: from.0, ..empty() }
}

/// Converts reports and requests about media.
fn fill_media(event: &LibraryEvent, lent: &mut Lent) -> Option<ControlEvent> {
    Some(match event {
        LibraryEvent::SenderReport { from, info } => ControlEvent {
            ntp: info.ntp.0,
            timestamp: info.rtp.0,
            packets: info.packets,
            octets: info.octets,
            ..of(RtcpEventKind::SenderReport, *from)
        },
        LibraryEvent::ReceiverReport { from, block, round_trip } => ControlEvent {
            report: block.into(),
            round_trip: round_trip.map_or(0, nanos),
            ..of(RtcpEventKind::ReceiverReport, *from)
        },
        LibraryEvent::RoundTrip { from, round_trip } => {
            ControlEvent { round_trip: nanos(*round_trip), ..of(RtcpEventKind::RoundTrip, *from) }
        }
        LibraryEvent::KeyFrameRequested { from, request } => {
            let request = match request {
                KeyFrameRequest::PictureLoss => KeyFrame::PictureLoss,
                KeyFrameRequest::FullIntra => KeyFrame::FullIntra,
            };
            ControlEvent { request: request as i32, ..of(RtcpEventKind::KeyFrameRequested, *from) }
        }
        LibraryEvent::PacketsLost { from, sequences } => {
            lent.sequences = sequences.iter().map(|sequence| sequence.0).collect();
            ControlEvent {
                sequences: lent.sequences.as_ptr(),
                sequence_count: lent.sequences.len(),
                ..of(RtcpEventKind::PacketsLost, *from)
            }
        }
        LibraryEvent::Arrivals { from, instant, packets } => {
            lent.arrivals = packets.iter().map(arrival).collect();
            ControlEvent {
                ntp: u64::from(*instant) << 16,
                arrivals: lent.arrivals.as_ptr(),
                arrival_count: lent.arrivals.len(),
                ..of(RtcpEventKind::Arrivals, *from)
            }
        }
        LibraryEvent::BitRateRequested { from, limit } => {
            ControlEvent { bit_rate: limit.bit_rate, ..of(RtcpEventKind::BitRateRequested, *from) }
        }
        LibraryEvent::Estimate { from, bit_rate } => {
            ControlEvent { bit_rate: *bit_rate, ..of(RtcpEventKind::Estimate, *from) }
        }
        _ => return None,
    })
}

fn arrival(report: &PacketReport) -> PacketArrival {
    let (ecn, before) = match report.arrival {
        Some((ecn, Arrival::Before(time))) => (ecn as u8, nanos(time)),
        Some((ecn, _)) => (ecn as u8, u64::MAX),
        None => (0, u64::MAX),
    };
    let has_arrived = report.arrival.is_some();
    PacketArrival { sequence: report.sequence.0, has_arrived, ecn, before }
}

/// Converts events about participants: descriptions, goodbyes, application-defined packets,
/// reference pictures.
fn fill_participants(event: &LibraryEvent, lent: &mut Lent) -> Option<ControlEvent> {
    Some(match event {
        LibraryEvent::SourceDescription { from, items } => {
            lent.texts = items.iter().map(|(_, text)| c_text(text)).collect();
            let kinds = items.iter().map(|(kind, _)| options_control::item(*kind));
            let texts = lent.texts.iter().map(|text| text.as_ptr());
            lent.items = kinds.zip(texts).map(|(item, text)| SdesText { item, text }).collect();
            ControlEvent {
                items: lent.items.as_ptr(),
                item_count: lent.items.len(),
                ..of(RtcpEventKind::SourceDescription, *from)
            }
        }
        LibraryEvent::Bye { from, reason } => {
            let text = lent.text.insert(c_text(reason)).as_ptr();
            ControlEvent { text, ..of(RtcpEventKind::Bye, *from) }
        }
        LibraryEvent::CircuitBreaker(breaker) => {
            let text = lent.text.insert(c_text(&breaker.to_string())).as_ptr();
            ControlEvent { text, ..of(RtcpEventKind::CircuitBreaker, rushes::Ssrc(0)) }
        }
        LibraryEvent::App { from, subtype, name, data } => {
            let text = lent.text.insert(c_text(&String::from_utf8_lossy(name))).as_ptr();
            ControlEvent {
                subtype: *subtype,
                text,
                data: data.as_ptr(),
                data_len: data.len(),
                ..of(RtcpEventKind::App, *from)
            }
        }
        _ => return None,
    })
}

fn fill_rest(event: &LibraryEvent) -> ControlEvent {
    let none = rushes::Ssrc(0);
    match event {
        LibraryEvent::TimedOut { from } => of(RtcpEventKind::TimedOut, *from),
        LibraryEvent::BitRateNotified { from, .. } => of(RtcpEventKind::BitRateNotified, *from),
        LibraryEvent::Refused { datagrams } => {
            ControlEvent { count: *datagrams, ..of(RtcpEventKind::Refused, none) }
        }
        LibraryEvent::KeyExpiring { left } => {
            ControlEvent { count: *left, ..of(RtcpEventKind::KeyExpiring, none) }
        }
        LibraryEvent::KeyExpired => of(RtcpEventKind::KeyExpired, none),
        LibraryEvent::Collision { old, new } => {
            ControlEvent { ssrc: new.0, ..of(RtcpEventKind::Collision, *old) }
        }
        LibraryEvent::Loop { ssrc } => of(RtcpEventKind::Loop, *ssrc),
        LibraryEvent::TargetRate { bit_rate } => {
            ControlEvent { bit_rate: *bit_rate, ..of(RtcpEventKind::TargetRate, none) }
        }
        LibraryEvent::NotReported => of(RtcpEventKind::NotReported, none),
        _ => empty(),
    }
}
