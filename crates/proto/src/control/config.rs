//! Configuration of a participant, and the counts of its media for reports.

use std::time::Instant;

use crate::rtcp::SdesKind;
use crate::seq::ExtendedSequence;
use crate::ssrc::Ssrc;
use crate::time::{ClockRate, NtpTime, RtpTimestamp};
use crate::timer::TimerConfig;

/// Configuration of a [`Participant`](super::Participant).
#[derive(Clone, Debug)]
pub struct ParticipantConfig {
    /// Its synchronisation source.
    pub ssrc: Ssrc,
    /// The source of its retransmissions (RFC 4588), if they have a separate one.
    pub retransmission: Option<Ssrc>,
    /// Its canonical name, the same for all streams of one clock (RFC 7022); at most 255 octets.
    pub cname: String,
    /// Its other SDES items, sent in turn (RFC 3550 section 6.3.9).
    pub description: Vec<(SdesKind, String)>,
    /// The clock rate of the media it sends and receives.
    pub clock_rate: ClockRate,
    /// An instant and its wall-clock time.
    pub wall_clock: (Instant, NtpTime),
    /// The configuration of its transmission timer.
    pub timer: TimerConfig,
    /// The seed of its random numbers; must differ from those of other participants.
    pub seed: u64,
    /// Maximum length of the datagrams it sends, in octets.
    pub packet_len_max: usize,
    /// Octets of IP and UDP headers, which are part of the bandwidth (RFC 3550 section 6.2).
    pub header_len: usize,
    /// Whether feedback may be sent without a report before it (RFC 5506).
    pub reduced_size: bool,
    /// Maximum number of other participants whose state is kept.
    pub sources_max: usize,
}

/// Counts of the media sent so far.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct MediaSent {
    /// Packets sent.
    pub packets: u64,
    /// Octets of payload.
    pub octets: u64,
    /// Packets of the source of retransmissions, if that is a separate one.
    pub retransmitted: u64,
    /// Octets of payload in the packets of that source.
    pub retransmitted_octets: u64,
    /// The timestamp and the capture of the last frame. If it is given before any packet is counted,
    /// media is about to be sent, and the first report may precede the first packet (RFC 6051 section
    /// 2.1.1).
    pub last: Option<(RtpTimestamp, Instant)>,
}

/// Counts of the media received from one source.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Reception {
    /// The source.
    pub ssrc: Ssrc,
    /// Packets expected (RFC 3550 appendix A.3).
    pub expected: u64,
    /// Packets that arrived, including late ones and duplicates.
    pub received: u64,
    /// The newest packet.
    pub highest: ExtendedSequence,
    /// Jitter in ticks of the clock rate.
    pub jitter: u32,
    /// When its last packet arrived.
    pub last_heard: Instant,
}
