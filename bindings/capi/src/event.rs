//! What a receiver tells besides frames.

use std::ffi::CString;
use std::ffi::c_char;
use std::ptr;

/// What happened to a receiver.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(i32)]
pub enum EventKind {
    /// One of a later version.
    Other = 0,
    /// A frame was begun and cannot be completed: `ssrc`, `timestamp`.
    FrameDropped = 1,
    /// A source is used from another address too, which is not listened to: `ssrc`.
    Conflict = 2,
    /// A master key has a sixteenth of its lifetime left, or less: `count` packets.
    KeyExpiring = 3,
    /// A master key is used up.
    KeyExpired = 4,
    /// Packets are missing and no longer waited for: `ssrc`, `first`, `count`.
    PacketsLost = 5,
    /// Packets of a secured stream were refused: `reason`, `count` since this was last told.
    Refused = 6,
    /// A source has ended: it said goodbye, was silent for long, or gave way to another: `ssrc`.
    SourceEnded = 7,
    /// A source has passed its probation: `ssrc`.
    SourceStarted = 8,
    /// The receive hook's thread cannot read the socket: `reason`. Told at once, and once a second
    /// while that lasts; who pulls gets the error itself.
    Unreadable = 9,
    /// A source goes on with sequence numbers far from those before, as one that was started again:
    /// `ssrc`.
    SourceRestarted = 10,
}

/// Something that happened to a receiver. What the kind does not name is 0.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Event {
    /// What: a rushes_event_kind.
    pub kind: i32,
    /// The source.
    pub ssrc: u32,
    /// The sampling instant of the frame, in ticks.
    pub timestamp: u32,
    /// The first of the packets: its sequence number, with the wraps in the upper bits.
    pub first: u64,
    /// How many packets.
    pub count: u64,
    /// Why packets were refused, or the socket cannot be read; else NULL.
    pub reason: *const c_char,
}

/// What the kind does not name.
const NONE: Event = Event {
    kind: EventKind::Other as i32,
    ssrc: 0,
    timestamp: 0,
    first: 0,
    count: 0,
    reason: ptr::null(),
};

/// Lends the event of a socket that cannot be read to `take`.
pub(crate) fn with_error(error: &rushes::Error, take: impl FnOnce(*const Event)) {
    // No message has a zero in it.
    let words = CString::new(error.to_string()).unwrap_or_default();
    let event = Event { kind: EventKind::Unreadable as i32, reason: words.as_ptr(), ..NONE };
    take(&raw const event);
}

/// Lends an event to `take`.
pub(crate) fn with(event: &rushes::Event, take: impl FnOnce(*const Event)) {
    use rushes::Event as Told;
    let of = |kind: EventKind| Event { kind: kind as i32, ..NONE };
    let words;
    let event = match *event {
        Told::FrameDropped { ssrc, timestamp } => {
            Event { ssrc: ssrc.0, timestamp: timestamp.0, ..of(EventKind::FrameDropped) }
        }
        Told::Conflict { ssrc } => Event { ssrc: ssrc.0, ..of(EventKind::Conflict) },
        Told::KeyExpiring { left } => Event { count: left, ..of(EventKind::KeyExpiring) },
        Told::KeyExpired => of(EventKind::KeyExpired),
        Told::PacketsLost { ssrc, first, packets } => {
            Event { ssrc: ssrc.0, first: first.0, count: packets, ..of(EventKind::PacketsLost) }
        }
        Told::Refused { reason, packets } => {
            words = CString::new(reason.name()).unwrap_or_default();
            Event { count: packets, reason: words.as_ptr(), ..of(EventKind::Refused) }
        }
        Told::SourceEnded { ssrc } => Event { ssrc: ssrc.0, ..of(EventKind::SourceEnded) },
        Told::SourceStarted { ssrc } => Event { ssrc: ssrc.0, ..of(EventKind::SourceStarted) },
        Told::SourceRestarted { ssrc } => Event { ssrc: ssrc.0, ..of(EventKind::SourceRestarted) },
        _ => NONE,
    };
    take(&raw const event);
}
