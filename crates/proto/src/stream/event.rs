//! Events of a receiver.

use core::net::SocketAddr;

use super::stats::Discard;
use crate::seq::ExtendedSequence;
use crate::ssrc::Ssrc;
use crate::time::RtpTimestamp;

/// An event of a receiver, reported as soon as it is known.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// A frame (or, delivering by unit, a unit) was begun and cannot be completed.
    FrameDropped {
        /// Its source.
        ssrc: Ssrc,
        /// Its sampling instant.
        timestamp: RtpTimestamp,
    },
    /// A source's SSRC is used from another address too; packets from there are discarded (RFC 3550
    /// section 8.2). Reported once a second at most.
    Conflict {
        /// The source.
        ssrc: Ssrc,
    },
    /// The master key of sent or received packets has a sixteenth of its lifetime left, or less.
    KeyExpiring {
        /// Packets that it may still protect.
        left: u64,
    },
    /// The master key of sent or received packets is used up: nothing more is sent or accepted
    /// under it.
    KeyExpired,
    /// Packets are missing and will not be waited for any longer.
    PacketsLost {
        /// Their source.
        ssrc: Ssrc,
        /// The first of them.
        first: ExtendedSequence,
        /// How many there are.
        packets: u64,
    },
    /// Packets of a secured stream were refused. Reported once a second at most for each reason.
    Refused {
        /// Why: [`Discard::Authentication`], [`Discard::Replayed`], [`Discard::KeyExpired`] or
        /// [`Discard::UnknownKey`].
        reason: Discard,
        /// How many since the last report.
        packets: u64,
    },
    /// Packets of another payload type than the stream's were discarded. Reported once a second at
    /// most.
    OtherPayloadType {
        /// Their payload type, 0 to 127: of the latest, if there were several.
        payload_type: u8,
        /// Where the latest came from, if known.
        address: Option<SocketAddr>,
        /// How many since the last report.
        packets: u64,
    },
    /// A source has ended: it sent BYE, was silent for long, or gave way to another.
    SourceEnded {
        /// The source.
        ssrc: Ssrc,
    },
    /// A source continues with sequence numbers far from those before (RFC 3550 appendix A.1), as
    /// after a restart of the sender. Packets that it sent in between are unknown; its counts
    /// restart.
    SourceRestarted {
        /// The source.
        ssrc: Ssrc,
    },
    /// A source has passed its probation.
    SourceStarted {
        /// The source.
        ssrc: Ssrc,
    },
}
