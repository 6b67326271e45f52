//! Counters of streams.

use core::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::seq::ExtendedSequence;
use crate::ssrc::Ssrc;

/// Why a datagram was discarded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
#[non_exhaustive]
pub enum Discard {
    /// An empty datagram, which keeps a path open (RFC 6263 section 4.1).
    KeepAlive,
    /// Not RTP: too short, of another version, or with a length beyond the end of the datagram.
    NotRtp,
    /// ZRTP, although this end does not use ZRTP.
    Zrtp,
    /// RTCP on a port for RTP (RFC 5761 section 4).
    Rtcp,
    /// Another payload type than the stream's.
    PayloadType,
    /// Another source than the configured one.
    OtherSource,
    /// A source beyond the maximum number of concurrent sources.
    TooManySources,
    /// A packet of a source that did not pass its probation.
    Probation,
    /// The receiver's own synchronisation source: a collision or a loop.
    OwnSource,
    /// A source that is known from another transport address.
    Conflict,
    /// A retransmission of a packet that is not missing, or a repair packet that is malformed or
    /// protects no packet of a source and its window.
    Retransmission,
    /// A packet whose sequence number is far from the others, and that none followed.
    Stray,
    /// A packet that was received before.
    Duplicate,
    /// A packet that arrived after the receiver had stopped waiting for it.
    Late,
    /// A payload that its format does not allow.
    Payload,
    /// A payload of a packetization mode that was not negotiated.
    OutsideMode,
    /// A fragment whose start is missing.
    FragmentWithoutStart,
    /// A packet of a frame larger than the stream allows.
    FrameTooLarge,
    /// On a secured stream, a packet whose tag does not match: forged, damaged, clear, or under
    /// another key.
    Authentication,
    /// On a secured stream, a packet that was received before or is older than the replay window.
    Replayed,
    /// On a secured stream, a packet under a master key whose lifetime has ended.
    KeyExpired,
    /// On a secured stream, a packet whose MKI names an unknown master key.
    UnknownKey,
}

impl Discard {
    /// All reasons, in the order in which they are checked.
    pub const ALL: [Self; 22] = [
        Self::KeepAlive,
        Self::NotRtp,
        Self::Zrtp,
        Self::Rtcp,
        Self::PayloadType,
        Self::OtherSource,
        Self::TooManySources,
        Self::Probation,
        Self::OwnSource,
        Self::Conflict,
        Self::Retransmission,
        Self::Stray,
        Self::Duplicate,
        Self::Late,
        Self::Payload,
        Self::OutsideMode,
        Self::FragmentWithoutStart,
        Self::FrameTooLarge,
        Self::Authentication,
        Self::Replayed,
        Self::KeyExpired,
        Self::UnknownKey,
    ];

    /// Returns a short description of the reason.
    pub fn name(self) -> &'static str {
        match self {
            Self::KeepAlive => "keep-alive",
            Self::NotRtp => "not RTP",
            Self::Zrtp => "ZRTP",
            Self::Rtcp => "RTCP",
            Self::PayloadType => "other payload type",
            Self::OtherSource => "other source",
            Self::TooManySources => "too many sources",
            Self::Probation => "source on probation",
            Self::OwnSource => "own source",
            Self::Conflict => "conflicting address",
            Self::Retransmission => "retransmission not needed",
            Self::Stray => "stray sequence number",
            Self::Duplicate => "duplicate",
            Self::Late => "late",
            Self::Payload => "malformed payload",
            Self::OutsideMode => "interleaved mode",
            Self::FragmentWithoutStart => "fragment without start",
            Self::FrameTooLarge => "frame too large",
            Self::Authentication => "authentication failed",
            Self::Replayed => "replayed",
            Self::KeyExpired => "key used up",
            Self::UnknownKey => "unknown key",
        }
    }
}

/// Discarded datagrams by reason.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Discards([u64; Discard::ALL.len()]);

impl Discards {
    /// Returns the number of datagrams discarded for `reason`.
    pub fn get(&self, reason: Discard) -> u64 {
        self.0[reason as usize]
    }

    /// Returns the reasons that occurred, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (Discard, u64)> {
        Discard::ALL.into_iter().map(|reason| (reason, self.get(reason))).filter(|row| row.1 > 0)
    }

    /// Returns the number of all discarded datagrams.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    pub(super) fn count(&mut self, reason: Discard) {
        self.add(reason, 1);
    }

    pub(super) fn add(&mut self, reason: Discard, datagrams: u64) {
        self.0[reason as usize] += datagrams;
    }
}

/// Counters of a sender.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct SendStatistics {
    /// Frames accepted.
    pub frames: u64,
    /// Packets made.
    pub packets: u64,
    /// Octets of RTP payload, payload headers included.
    pub payload_octets: u64,
    /// Octets of padding ([`Sender::with_padding_limit`](super::Sender::with_padding_limit)).
    pub padding_octets: u64,
    /// Octets of the frames accepted.
    pub frame_octets: u64,
    /// Packets retransmitted on request; not included in `packets`.
    pub retransmitted: u64,
    /// Repair packets (RFC 8627); not included in `packets`.
    pub repairs: u64,
    /// Frames not sent completely, because sending failed or the master key expired. A sequence
    /// number is skipped after each frame that was begun, so that receivers drop it.
    pub frames_cut: u64,
    /// NAL units left out of frames because they are shorter than their header, or their type
    /// cannot be sent in RTP (such as the metadata of Dolby Vision, type 62 of H.265).
    pub units_left_out: u64,
    /// Frames of temporal layers that are not sent
    /// ([`Sender::set_max_temporal_id`](super::Sender::set_max_temporal_id)); not included in `frames`.
    pub frames_left_out: u64,
    /// Refused requests: the packet is gone, or was requested too often.
    pub retransmissions_refused: u64,
}

/// Counters of a receiver.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ReceiveStatistics {
    /// Packets accepted: from a believed source, in time, for the first time.
    pub packets: u64,
    /// Octets of RTP payload in the accepted packets.
    pub payload_octets: u64,
    /// Frames (or units) delivered.
    pub frames: u64,
    /// Frames (or units) begun and dropped.
    pub frames_dropped: u64,
    /// Dropped frames that were the first of their source and may lack their beginning: packets
    /// lost before the first one received cannot be detected. Included in `frames_dropped`.
    pub frames_unsure: u64,
    /// Missing packets for which the receiver has stopped waiting.
    pub packets_lost: u64,
    /// Packets that arrived after a later one, except duplicates.
    pub reordered: u64,
    /// Requests for missing packets, repetitions included.
    pub requested: u64,
    /// Missing packets that arrived after they were requested.
    pub recovered: u64,
    /// Missing packets that were requested and did not arrive in time.
    pub unanswered: u64,
    /// Missing packets that were not requested, because an answer could not have arrived in time:
    /// [`RequestTiming::latency_max`](crate::repair::RequestTiming::latency_max) is shorter than
    /// the round-trip time.
    pub not_requested: u64,
    /// Repair packets accepted (RFC 8627).
    pub repairs: u64,
    /// Missing packets recovered by repair packets (RFC 8627).
    pub repaired: u64,
    /// Octets of memory in the windows and unfinished frames of all sources together.
    pub held_octets: usize,
    /// Frames dropped because all sources together exceeded
    /// [`memory_max`](super::ReceiverConfig::memory_max).
    pub frames_displaced: u64,
    /// Packets whose header extension was malformed, in streams that have agreed on elements. The
    /// receiver ignores such an extension, but not the packet.
    pub extensions_malformed: u64,
    /// Events that were forgotten because the application did not poll them in time.
    pub events_forgotten: u64,
    /// Discarded datagrams by reason.
    pub discards: Discards,
    /// Statistics of each believed source.
    pub sources: Vec<SourceStatistics>,
    /// The sources that ended last, at most 16, the newest at the end.
    pub ended: Vec<SourceStatistics>,
}

/// Statistics of one source.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SourceStatistics {
    /// The source.
    pub ssrc: Ssrc,
    /// The transport address from which the source sends, if known.
    pub address: Option<SocketAddr>,
    /// Packets received, including late ones and duplicates (RFC 3550 appendix A.3), but not those
    /// retransmitted in a separate stream.
    pub received: u64,
    /// Packets expected so far (RFC 3550 appendix A.3).
    pub expected: u64,
    /// When the first packet arrived.
    pub first_heard: Instant,
    /// When the last packet arrived.
    pub last_heard: Instant,
    /// Packets expected less those received; negative with duplicates (RFC 3550 appendix A.3).
    pub cumulative_lost: i64,
    /// The newest packet.
    pub highest: ExtendedSequence,
    /// Interarrival jitter in ticks of the clock rate (RFC 3550 appendix A.8).
    pub jitter: u32,
    /// Interarrival jitter as time.
    pub jitter_time: Duration,
    /// Packets accepted: in time, for the first time.
    pub packets: u64,
    /// Missing packets for which the receiver has stopped waiting.
    pub packets_lost: u64,
    /// Frames (or units) delivered.
    pub frames: u64,
    /// Frames (or units) begun and dropped.
    pub frames_dropped: u64,
    /// Accepted packets whose payload the format does not know or allow, including packets of types
    /// reserved for extensions, which receivers must ignore. Not counted are fragments whose start
    /// was lost, frames that are too large, and the headers of Ogg files that GStreamer sends.
    pub packets_unusable: u64,
    /// Packets that routers marked instead of dropping them (CE of RFC 3168); late ones and
    /// duplicates included.
    pub packets_congested: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_its_own_place_and_name() {
        let mut discards = Discards::default();
        for (place, reason) in Discard::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, place);
            discards.count(reason);
        }
        assert_eq!(discards.total(), Discard::ALL.len() as u64);
        assert_eq!(discards.iter().count(), Discard::ALL.len());
    }
}
