//! Configuration of a participant, and the counts of its media for reports.

use std::time::Instant;

use crate::rtcp::SdesKind;
use crate::seq::ExtendedSequence;
use crate::ssrc::Ssrc;
use crate::time::ClockRate;
use crate::time::NtpTime;
use crate::time::RtpTimestamp;
use crate::timer::TimerConfig;

/// Configuration of a [`Participant`](super::Participant).
#[derive(Clone, Debug)]
pub struct ParticipantConfig {
    /// Its synchronisation source.
    pub ssrc: Ssrc,
    /// The source of its retransmissions (RFC 4588), if they have one of their own.
    pub retransmission: Option<Ssrc>,
    /// Its canonical name, the same for all streams of one clock (RFC 7022); at most 255 octets.
    pub cname: String,
    /// Its other SDES items, sent in turn (RFC 3550 section 6.3.9).
    pub description: Vec<(SdesKind, String)>,
    /// The rate of its media's timestamps, and of those it receives.
    pub clock_rate: ClockRate,
    /// What the wall clock showed at some instant.
    pub wall_clock: (Instant, NtpTime),
    /// When it may send.
    pub timer: TimerConfig,
    /// What makes its random choices differ from those of others.
    pub seed: u64,
    /// Octets in the largest datagram that it sends.
    pub packet_len_max: usize,
    /// Octets of IP and UDP headers, which count against the bandwidth (RFC 3550 section 6.2).
    pub header_len: usize,
    /// Whether feedback may be sent without a report before it (RFC 5506).
    pub reduced_size: bool,
    /// Other participants whose reports are kept.
    pub sources_max: usize,
}

/// What a participant has sent so far.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct MediaSent {
    /// Packets.
    pub packets: u64,
    /// Octets of payload.
    pub octets: u64,
    /// Packets of the source of retransmissions, if that is one of its own.
    pub retransmitted: u64,
    /// Octets of their payload.
    pub retransmitted_octets: u64,
    /// The timestamp of the last frame, and when it was captured.
    pub last: Option<(RtpTimestamp, Instant)>,
}

/// What a participant has received of one source.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Reception {
    /// The source.
    pub ssrc: Ssrc,
    /// Packets that should have come (RFC 3550 appendix A.3).
    pub expected: u64,
    /// Packets that came, late ones and duplicates included.
    pub received: u64,
    /// The newest packet.
    pub highest: ExtendedSequence,
    /// Jitter in ticks of the clock rate.
    pub jitter: u32,
    /// When its last packet came.
    pub last_heard: Instant,
}
