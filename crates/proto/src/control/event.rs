//! Events of a participant.

use crate::rtcp::BitRateLimit;
use crate::rtcp::Loss;
use crate::rtcp::PacketReport;
use crate::rtcp::ReportBlock;
use crate::rtcp::SdesKind;
use crate::rtcp::SenderInfo;
use crate::seq::SequenceNumber;
use crate::ssrc::Ssrc;
use std::time::Duration;

/// How a key frame is requested.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum KeyFrameRequest {
    /// Pictures were lost (PLI, RFC 4585 section 6.3.1).
    PictureLoss,
    /// A decoder refresh point is needed, as when someone joins (FIR, RFC 5104 section 4.3.1).
    FullIntra,
}

/// A message from another participant, or a change of its state or ours.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ControlEvent {
    /// A sender report.
    SenderReport {
        /// Who reports.
        from: Ssrc,
        /// Its sender information.
        info: SenderInfo,
    },
    /// A report block about this participant's media.
    ReceiverReport {
        /// Who reports.
        from: Ssrc,
        /// What it received.
        block: ReportBlock,
        /// The round-trip time that follows from it.
        round_trip: Option<Duration>,
    },
    /// The round-trip time, of a participant that sends no media (RFC 3611 section 4.5).
    RoundTrip {
        /// Who answered.
        from: Ssrc,
        /// The time.
        round_trip: Duration,
    },
    /// A source description of a participant that is new, or with a change.
    SourceDescription {
        /// The participant.
        from: Ssrc,
        /// Its items.
        items: Vec<(SdesKind, String)>,
    },
    /// A participant leaves.
    Bye {
        /// The participant.
        from: Ssrc,
        /// Its reason; empty if it gave none.
        reason: String,
    },
    /// A participant was silent for so long that it counts as gone (RFC 3550 section 6.3.5).
    TimedOut {
        /// The participant.
        from: Ssrc,
    },
    /// An application's own packet.
    App {
        /// Who sent it.
        from: Ssrc,
        /// Which of the application's packets it is, 0..=31.
        subtype: u8,
        /// The application: four ASCII characters.
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
        /// Who misses them.
        from: Ssrc,
        /// The packets, in order.
        sequences: Vec<SequenceNumber>,
    },
    /// Parts of a picture did not reach a receiver (SLI).
    SlicesLost {
        /// Who misses them.
        from: Ssrc,
        /// The parts.
        losses: Vec<Loss>,
    },
    /// A receiver reports which picture it has (RPSI).
    ReferencePicture {
        /// The receiver.
        from: Ssrc,
        /// The picture, in the codec's own terms.
        picture: Vec<u8>,
    },
    /// A receiver wants at most so many bits per second (TMMBR). It is answered by itself, and
    /// holds until the receiver asks for another limit, leaves or falls silent.
    BitRateRequested {
        /// Who asks.
        from: Ssrc,
        /// The limit; its source is this participant.
        limit: BitRateLimit,
    },
    /// A sender reports the limits that it keeps (TMMBN).
    BitRateNotified {
        /// The sender.
        from: Ssrc,
        /// The limits, each with the receiver that asked for it.
        limits: Vec<BitRateLimit>,
    },
    /// A receiver estimates what the path can carry (REMB).
    Estimate {
        /// Who estimates.
        from: Ssrc,
        /// Bits per second.
        bit_rate: u64,
    },
    /// When this participant's packets reached a receiver (RFC 8888).
    Arrivals {
        /// Who received them.
        from: Ssrc,
        /// The instant from which arrivals are counted back: the middle 32 bits of the receiver's
        /// NTP time.
        instant: u32,
        /// The packets, in order, those that did not come included.
        packets: Vec<PacketReport>,
    },
    /// Datagrams were refused because they are not authentic, came before, or are under a key that
    /// is used up; only of secured participants, reported once a second at most.
    Refused {
        /// How many since the last report.
        datagrams: u64,
    },
    /// A master key, of our media or of any participant's reports, has a sixteenth of its lifetime
    /// left, or less.
    KeyExpiring {
        /// Packets that it may still protect.
        left: u64,
    },
    /// A master key, of our media or of any participant's reports, is used up.
    KeyExpired,
    /// This participant's SSRC is in use elsewhere too: it takes a new one (RFC 3550 section 8.2).
    Collision {
        /// The SSRC until now.
        old: Ssrc,
        /// The SSRC from now on.
        new: Ssrc,
    },
    /// This participant's own packets come back to it.
    Loop {
        /// Its SSRC.
        ssrc: Ssrc,
    },
}
