//! Configuration of streams.

use std::time::Duration;

use thiserror::Error;

use super::fec::FecReception;
use super::{PACKET_LEN_MAX, PACKET_LEN_MIN};
use crate::payload::FrameSettings;
use crate::repair::RequestTiming;
use crate::rtp::ExtensionMap;
use crate::seq::SequenceNumber;
use crate::ssrc::{PayloadType, Ssrc};
use crate::time::{ClockRate, FrameRate, RtpTimestamp};

/// Configuration of a [`Sender`](super::Sender).
#[derive(Clone, Debug)]
pub struct SenderConfig {
    /// The stream's own synchronisation source, random (RFC 3550 section 8.1).
    pub ssrc: Ssrc,
    /// The payload type of every packet.
    pub payload_type: PayloadType,
    /// The sequence number of the first packet, random (RFC 3550 section 5.1).
    pub first_sequence: SequenceNumber,
    /// The timestamp of the first frame that is sent without one, random (RFC 3550 section 5.1).
    pub first_timestamp: RtpTimestamp,
    /// The rate of automatic timestamps, in ticks per second.
    pub clock_rate: ClockRate,
    /// The rate of automatic timestamps, in frames per second.
    pub frame_rate: FrameRate,
    /// Octets in the largest datagram, RTP header included:
    /// [`PACKET_LEN_MIN`]`..=`[`PACKET_LEN_MAX`].
    pub packet_len_max: usize,
}

impl SenderConfig {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let len = self.packet_len_max;
        if (PACKET_LEN_MIN..=PACKET_LEN_MAX).contains(&len) {
            Ok(())
        } else {
            Err(ConfigError::PacketLen { len })
        }
    }
}

/// Octets that all sources of a receiver may hold by default, beyond one frame of the largest size.
pub const MEMORY_BESIDE_A_FRAME: usize = 64 << 20;

/// Configuration of a [`Receiver`](super::Receiver).
#[derive(Clone, Debug)]
pub struct ReceiverConfig {
    /// The payload type to accept; packets of another are counted and ignored.
    pub payload_type: PayloadType,
    /// The rate of the timestamps, for jitter.
    pub clock_rate: ClockRate,
    /// The one source to accept, which then needs no probation; `None` accepts any source.
    pub remote_ssrc: Option<Ssrc>,
    /// The unit of delivery (access units or NAL units) and its maximum size.
    pub frame: FrameSettings,
    /// Maximum packets that the reorder window spans, rounded up to a power of two; 1..=16 384.
    pub reorder_packets_max: usize,
    /// Maximum octets of payload that the reorder window holds.
    pub reorder_len_max: usize,
    /// How long the receiver waits for a missing packet, counted from the first packet after it;
    /// longer if the packet is [requested](Self::requests).
    pub reorder_time: Duration,
    /// How long an unfinished frame is kept while its source sends nothing. It is then delivered if
    /// it is certainly whole, and dropped otherwise.
    pub frame_time: Duration,
    /// Maximum octets that the windows and unfinished frames of all sources hold together. Beyond
    /// it, sources above their share lose unfinished frames, those that have delivered least first.
    /// At least [`frame_len_max`](FrameSettings::frame_len_max).
    pub memory_max: usize,
    /// Number of packets close in sequence that are needed before a source is believed (RFC 3550
    /// appendix A.1, `MIN_SEQUENTIAL`). Until then they are kept. With 0 or 1 the first is enough.
    pub probation: u8,
    /// Maximum number of concurrent sources; 1 or more.
    pub sources_max: usize,
    /// How long a source may send neither media nor reports before it ends. If another source needs
    /// its place, the source ends after two seconds without media unless its reports continue.
    pub source_timeout: Duration,
    /// How missing packets are requested; `None` if they are not.
    pub requests: Option<RequestTiming>,
    /// The payload type of retransmissions (RFC 4588), and their SSRC if it is known.
    pub retransmission: Option<(PayloadType, Option<Ssrc>)>,
    /// The repair packets that recover missing ones (RFC 8627, RFC 5109); `None` if there are
    /// none.
    pub fec: Option<FecReception>,
    /// Whether the arrival time of each packet is remembered for reports (RFC 8888).
    pub arrivals: bool,
    /// The elements of header extensions that are read (RFC 8285); others are ignored.
    pub extensions: ExtensionMap,
    /// Whether the arrivals of packets with transport-wide sequence numbers are remembered for
    /// reports, if that element is agreed on: see [`Receiver::poll_wide_arrival`](super::Receiver).
    pub wide_arrivals: bool,
}

impl ReceiverConfig {
    /// Returns the defaults: a window of 512 packets, 4 MiB and 50 ms; frames of 64 MiB, unfinished
    /// for at most a second, and 128 MiB for all of them; 2 packets of probation; 16 sources, each
    /// of which ends after 30 seconds of silence.
    pub fn new(payload_type: PayloadType, clock_rate: ClockRate) -> Self {
        Self {
            payload_type,
            clock_rate,
            remote_ssrc: None,
            frame: FrameSettings::default(),
            reorder_packets_max: 512,
            reorder_len_max: 4 << 20,
            reorder_time: Duration::from_millis(50),
            frame_time: Duration::from_secs(1),
            memory_max: FrameSettings::default().frame_len_max + MEMORY_BESIDE_A_FRAME,
            probation: 2,
            sources_max: 16,
            source_timeout: Duration::from_secs(30),
            requests: None,
            retransmission: None,
            fec: None,
            arrivals: false,
            extensions: ExtensionMap::default(),
            wide_arrivals: false,
        }
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        if !(1..=16_384).contains(&self.reorder_packets_max) {
            return Err(ConfigError::ReorderPackets { packets: self.reorder_packets_max });
        }
        if self.fec.is_some_and(|fec| fec.red.is_some() != fec.format.is_in_red()) {
            return Err(ConfigError::FecFormat);
        }
        if self.sources_max == 0 {
            return Err(ConfigError::NoSources);
        }
        let (octets, frame) = (self.memory_max, self.frame.frame_len_max);
        if octets < frame {
            return Err(ConfigError::Memory { octets, frame });
        }
        Ok(())
    }
}

/// Why a stream cannot be made from a configuration.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum ConfigError {
    /// ULPFEC without the payload type of RED, or `FlexFEC` with one.
    #[error("ULPFEC needs the payload type of RED, and FlexFEC has none")]
    FecFormat,
    /// The memory limit that all sources share is smaller than the largest frame.
    #[error(
        "memory of {octets} octets for all sources is less than the largest frame, {frame} octets"
    )]
    Memory {
        /// The configured limit in octets.
        octets: usize,
        /// Octets in the largest frame.
        frame: usize,
    },
    /// A MID or RID is no token of SDP, or does not fit the form of header extensions.
    #[error(
        "a MID or RID of {len} octets cannot be sent: it has 1 to 16 letters, digits and the like, \
         or up to 255 with identifiers of header extensions from 16 on"
    )]
    StreamName {
        /// The length given, in octets.
        len: usize,
    },
    /// The maximum number of sources is zero.
    #[error("a receiver must follow at least one source")]
    NoSources,
    /// The maximum length of datagrams is out of range.
    #[error("a datagram length of {len} octets is outside {PACKET_LEN_MIN} to {PACKET_LEN_MAX}")]
    PacketLen {
        /// The configured length in octets.
        len: usize,
    },
    /// The span of the reorder window is out of range.
    #[error("a reorder window of {packets} packets is outside 1 to 16384")]
    ReorderPackets {
        /// The configured number of packets.
        packets: usize,
    },
}
