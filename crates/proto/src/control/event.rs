//! Events of a participant.

use super::circuit_breaker::CircuitBreaker;
use crate::rtcp::{BitRateLimit, PacketReport, ReportBlock, SdesKind, SenderInfo, WideReport};
use crate::seq::SequenceNumber;
use crate::ssrc::Ssrc;
use std::time::Duration;

/// The kind of a key frame request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum KeyFrameRequest {
    /// Pictures were lost (PLI, RFC 4585 section 6.3.1).
    PictureLoss,
    /// A decoder refresh point is needed, for example when a receiver joins (FIR, RFC 5104 section
    /// 4.3.1).
    FullIntra,
}

/// A message from another participant, or a change of its state or ours.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ControlEvent {
    /// A sender report.
    SenderReport {
        /// The reporting participant.
        from: Ssrc,
        /// Its sender information.
        info: SenderInfo,
    },
    /// A report block about this participant's media.
    ReceiverReport {
        /// The reporting participant.
        from: Ssrc,
        /// Its report block.
        block: ReportBlock,
        /// The round-trip time calculated from it, if known.
        round_trip: Option<Duration>,
    },
    /// The round-trip time, measured by a participant that sends no media (RFC 3611 section 4.5).
    RoundTrip {
        /// The participant that answered.
        from: Ssrc,
        /// The round-trip time.
        round_trip: Duration,
    },
    /// A source description of a new participant, or a changed one.
    SourceDescription {
        /// The participant.
        from: Ssrc,
        /// Its items.
        items: Vec<(SdesKind, String)>,
    },
    /// A participant leaves the session.
    Bye {
        /// The participant.
        from: Ssrc,
        /// Its reason; empty if it gave none.
        reason: String,
    },
    /// A participant timed out (RFC 3550 section 6.3.5).
    TimedOut {
        /// The participant.
        from: Ssrc,
    },
    /// An application-defined packet.
    App {
        /// The sender.
        from: Ssrc,
        /// The subtype, which the application defines, 0..=31.
        subtype: u8,
        /// The name of the application: four ASCII characters.
        name: [u8; 4],
        /// Its data, a multiple of four octets.
        data: Vec<u8>,
    },
    /// A receiver needs a picture that it can decode without others.
    KeyFrameRequested {
        /// The requester; some peers write the SSRC of our own media here.
        from: Ssrc,
        /// The kind of request.
        request: KeyFrameRequest,
    },
    /// Packets of this participant's media did not reach a receiver (generic NACK).
    PacketsLost {
        /// The receiver.
        from: Ssrc,
        /// The packets, in order.
        sequences: Vec<SequenceNumber>,
    },
    /// A receiver requests a maximum bit rate (TMMBR). It is answered automatically, and applies
    /// until the receiver requests another limit, leaves or times out.
    BitRateRequested {
        /// The receiver.
        from: Ssrc,
        /// The limit; its source is this participant.
        limit: BitRateLimit,
    },
    /// A sender reports the limits that it observes (TMMBN).
    BitRateNotified {
        /// The sender.
        from: Ssrc,
        /// The limits, each with the receiver that requested it.
        limits: Vec<BitRateLimit>,
    },
    /// A receiver's estimate of the bit rate that the path can carry (REMB).
    Estimate {
        /// The receiver.
        from: Ssrc,
        /// Bits per second.
        bit_rate: u64,
    },
    /// The arrival times of this participant's packets at a receiver (RFC 8888).
    Arrivals {
        /// The receiver.
        from: Ssrc,
        /// The instant from which arrivals are counted back: the middle 32 bits of the receiver's
        /// NTP time.
        instant: u32,
        /// The packets, in order, including those that did not arrive.
        packets: Vec<PacketReport>,
    },
    /// The arrival times of a connection's packets at a receiver, by their transport-wide numbers
    /// (draft-holmer-rmcat-transport-wide-cc-extensions-01 section 3).
    WideArrivals {
        /// The receiver.
        from: Ssrc,
        /// The number of the report, modulo 256.
        number: u8,
        /// The packets, in order, including those that did not arrive.
        packets: Vec<WideReport>,
    },
    /// The target bit rate of this participant's media has changed by 1 % or more, or has reached
    /// its minimum or maximum.
    ///
    /// Only streams with rate control report this.
    TargetRate {
        /// Bits per second.
        bit_rate: u64,
    },
    /// The peer sends no reports of arrivals (RFC 8888), without which the target rate falls to its
    /// minimum. Only streams with rate control report this, and once.
    NotReported,
    /// Datagrams were refused because they are not authentic, are replays, or use an expired key.
    /// Only secured participants report this, at most once a second.
    Refused {
        /// The number of datagrams since the last report.
        datagrams: u64,
    },
    /// A master key, of our media or of any participant's reports, has a sixteenth of its lifetime
    /// left, or less.
    KeyExpiring {
        /// Packets that the key may still protect.
        left: u64,
    },
    /// The lifetime of a master key, of our media or of any participant's reports, has ended.
    KeyExpired,
    /// Another participant also uses this participant's SSRC, so this one changes to a new SSRC
    /// (RFC 3550 section 8.2).
    Collision {
        /// The old SSRC.
        old: Ssrc,
        /// The new SSRC.
        new: Ssrc,
    },
    /// A circuit breaker has triggered: this participant must stop sending media (RFC 8083).
    CircuitBreaker(CircuitBreaker),
    /// This participant receives its own packets.
    Loop {
        /// Its SSRC.
        ssrc: Ssrc,
    },
}
