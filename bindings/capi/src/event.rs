//! Events of a receiver.

use std::ffi::{CString, c_char};
use std::ptr;

/// The kind of a receiver's event.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(i32)]
pub enum EventKind {
    /// An event of a later version.
    Other = 0,
    /// A frame was begun and cannot be completed: `ssrc`, `timestamp`.
    FrameDropped = 1,
    /// A second address also sends with this SSRC; its packets are ignored: `ssrc`.
    Conflict = 2,
    /// A sixteenth or less of a master key's lifetime is left: `count` packets.
    KeyExpiring = 3,
    /// A master key is exhausted.
    KeyExpired = 4,
    /// Packets are missing, and the receiver no longer waits for them: `ssrc`, `first`, `count`.
    PacketsLost = 5,
    /// Packets of a secured stream were refused: `reason`, and `count` since the last such event.
    Refused = 6,
    /// A source has ended: it sent BYE, timed out, or was evicted in favour of another: `ssrc`.
    SourceEnded = 7,
    /// A source has passed its probation: `ssrc`.
    SourceStarted = 8,
    /// The receive hook's thread cannot read the socket: `reason`. Reported at once, and once a
    /// second while the error lasts; a call that pulls frames returns the error itself.
    Unreadable = 9,
    /// A source continues with sequence numbers far from its earlier ones, as after a restart:
    /// `ssrc`.
    SourceRestarted = 10,
    /// Packets of another payload type than the stream's were discarded: `payload_type` and
    /// `address` of the latest, and `count` since the last such event. Reported at most once a
    /// second.
    OtherPayloadType = 11,
}

/// An event of a receiver. Fields that its kind does not list are 0 or NULL. Later versions may add
/// fields at the end.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Event {
    /// A rushes_event_kind.
    pub kind: i32,
    /// The source.
    pub ssrc: u32,
    /// The sampling instant of the frame, in ticks.
    pub timestamp: u32,
    /// The extended sequence number of the first packet, with the number of wraps in the upper
    /// bits.
    pub first: u64,
    /// The number of packets.
    pub count: u64,
    /// Why packets were refused or the socket cannot be read; otherwise NULL.
    pub reason: *const c_char,
    /// The address and port that packets came from, such as "192.0.2.1:5004"; NULL if unknown.
    pub address: *const c_char,
    /// The payload type of the packets, 0..=127.
    pub payload_type: u8,
}

/// An event with empty fields.
const NONE: Event = Event {
    kind: EventKind::Other as i32,
    ssrc: 0,
    timestamp: 0,
    first: 0,
    count: 0,
    reason: ptr::null(),
    address: ptr::null(),
    payload_type: 0,
};

/// Passes the event of an unreadable socket to `take`.
pub(crate) fn with_error(error: &rushes::Error, take: impl FnOnce(*const Event)) {
    // Messages never contain a zero octet.
    let reason = CString::new(error.to_string()).unwrap_or_default();
    let event = Event { kind: EventKind::Unreadable as i32, reason: reason.as_ptr(), ..NONE };
    take(&raw const event);
}

/// Passes an event to `take`; the event is valid during the call only.
pub(crate) fn with(event: &rushes::Event, take: impl FnOnce(*const Event)) {
    use rushes::Event as LibraryEvent;
    let of = |kind: EventKind| Event { kind: kind as i32, ..NONE };
    let text;
    let event = match *event {
        LibraryEvent::FrameDropped { ssrc, timestamp } => {
            Event { ssrc: ssrc.0, timestamp: timestamp.0, ..of(EventKind::FrameDropped) }
        }
        LibraryEvent::Conflict { ssrc } => Event { ssrc: ssrc.0, ..of(EventKind::Conflict) },
        LibraryEvent::KeyExpiring { left } => Event { count: left, ..of(EventKind::KeyExpiring) },
        LibraryEvent::KeyExpired => of(EventKind::KeyExpired),
        LibraryEvent::PacketsLost { ssrc, first, packets } => {
            Event { ssrc: ssrc.0, first: first.0, count: packets, ..of(EventKind::PacketsLost) }
        }
        LibraryEvent::Refused { reason, packets } => {
            text = CString::new(reason.name()).ok();
            let reason = text.as_ref().map_or(ptr::null(), |text| text.as_ptr());
            Event { count: packets, reason, ..of(EventKind::Refused) }
        }
        LibraryEvent::OtherPayloadType { payload_type, address, packets } => {
            text = address.and_then(|address| CString::new(address.to_string()).ok());
            let address = text.as_ref().map_or(ptr::null(), |text| text.as_ptr());
            let kind = of(EventKind::OtherPayloadType);
            Event { count: packets, address, payload_type, ..kind }
        }
        LibraryEvent::SourceEnded { ssrc } => Event { ssrc: ssrc.0, ..of(EventKind::SourceEnded) },
        LibraryEvent::SourceStarted { ssrc } => {
            Event { ssrc: ssrc.0, ..of(EventKind::SourceStarted) }
        }
        LibraryEvent::SourceRestarted { ssrc } => {
            Event { ssrc: ssrc.0, ..of(EventKind::SourceRestarted) }
        }
        _ => NONE,
    };
    take(&raw const event);
}
