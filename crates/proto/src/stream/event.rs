//! Events of a receiver.

use core::net::SocketAddr;

use super::stats::Discard;
use crate::seq::ExtendedSequence;
use crate::ssrc::Ssrc;
use crate::time::RtpTimestamp;

/// An event of a receiver.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// A frame (or, when delivering by unit, a unit) was begun and cannot be completed.
    FrameDropped {
        /// The source of the frame.
        ssrc: Ssrc,
        /// The RTP timestamp of the frame.
        timestamp: RtpTimestamp,
    },
    /// Packets with the SSRC of a source also arrive from another address; the receiver discards
    /// them (RFC 3550 section 8.2). Reported at most once a second.
    Conflict {
        /// The source.
        ssrc: Ssrc,
    },
    /// The master key of sent or received packets has at most a sixteenth of its lifetime left.
    KeyExpiring {
        /// Number of packets that the key may still protect.
        left: u64,
    },
    /// The lifetime of the master key of sent or received packets has ended: no packet is sent or
    /// accepted under it any more.
    KeyExpired,
    /// Packets are missing, and the receiver no longer waits for them.
    PacketsLost {
        /// The source of the packets.
        ssrc: Ssrc,
        /// The first missing packet.
        first: ExtendedSequence,
        /// Number of missing packets.
        packets: u64,
    },
    /// Packets of a secured stream were refused. Reported at most once a second for each reason.
    Refused {
        /// The reason: [`Discard::Authentication`], [`Discard::Replayed`], [`Discard::KeyExpired`]
        /// or [`Discard::UnknownKey`].
        reason: Discard,
        /// Number of packets since the last report.
        packets: u64,
    },
    /// Packets of another payload type were discarded. Reported at most once a second.
    OtherPayloadType {
        /// The payload type of the latest of these packets, 0 to 127.
        payload_type: u8,
        /// The address from which the latest of these packets came, if known.
        address: Option<SocketAddr>,
        /// Number of packets since the last report.
        packets: u64,
    },
    /// A source has ended: it sent BYE, was silent for too long, or was replaced by another source.
    SourceEnded {
        /// The source.
        ssrc: Ssrc,
    },
    /// A source continues with sequence numbers far from the previous ones (RFC 3550 appendix A.1),
    /// as after a restart of the sender. The number of packets that it sent in between is unknown,
    /// so its counts restart.
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
