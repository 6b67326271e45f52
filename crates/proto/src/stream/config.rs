//! Configuration of streams.

use std::time::Duration;

use thiserror::Error;

use super::{PACKET_LEN_MAX, PACKET_LEN_MIN};
use crate::payload::FrameSettings;
use crate::repair::RequestTiming;
use crate::seq::SequenceNumber;
use crate::ssrc::{PayloadType, Ssrc};
use crate::time::{ClockRate, RtpTimestamp};

/// Frames per second, as a fraction: 30 000 / 1 001 is exact.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FrameRate {
    frames: u32,
    seconds: u32,
}

impl FrameRate {
    /// 30 frames per second.
    pub const DEFAULT: Self = Self { frames: 30, seconds: 1 };

    /// `frames` in `seconds`; `None` if either is zero.
    pub fn new(frames: u32, seconds: u32) -> Option<Self> {
        (frames > 0 && seconds > 0).then_some(Self { frames, seconds })
    }

    /// The closest fraction to `rate` frames per second that is exact for whole rates and for
    /// those of the 1 000 / 1 001 family; `None` unless `rate` is in 0.001..=1 000 000.
    #[allow(clippy::cast_sign_loss, reason = "the range is checked")]
    pub fn from_f64(rate: f64) -> Option<Self> {
        if !(0.001..=1_000_000.0).contains(&rate) {
            return None;
        }
        let drop_frame = rate * 1.001;
        let off_by = |value: f64| (value - value.round()).abs();
        if off_by(rate) > 1e-6 && off_by(drop_frame) < 0.01 && rate > 10.0 {
            return Self::new(drop_frame.round() as u32 * 1000, 1001);
        }
        if off_by(rate) <= 1e-6 {
            return Self::new(rate.round() as u32, 1);
        }
        Self::new((rate * 1000.0).round() as u32, 1000)
    }

    /// Frames per second.
    pub fn per_second(self) -> f64 {
        f64::from(self.frames) / f64::from(self.seconds)
    }

    /// The time from one frame to the next.
    pub fn interval(self) -> Duration {
        Duration::from_nanos(u64::from(self.seconds) * 1_000_000_000 / u64::from(self.frames))
    }

    /// Ticks of `clock_rate` before frame number `frame`, modulo 2³².
    pub fn ticks(self, frame: u64, clock_rate: ClockRate) -> u32 {
        let ticks = u128::from(frame) * u128::from(clock_rate.hertz()) * u128::from(self.seconds);
        (ticks / u128::from(self.frames)) as u32
    }
}

impl Default for FrameRate {
    fn default() -> Self {
        Self::DEFAULT
    }
}

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
    /// The one source to accept, which then needs no probation; any, if `None`.
    pub remote_ssrc: Option<Ssrc>,
    /// What is delivered as one frame, and how large it may be.
    pub frame: FrameSettings,
    /// Packets that the reorder window spans at most, rounded up to a power of two;
    /// 1..=16 384.
    pub reorder_packets_max: usize,
    /// Octets of payload that the reorder window holds at most.
    pub reorder_len_max: usize,
    /// How long a missing packet is waited for, counted from the first packet after it; longer
    /// where it is [asked for](Self::requests).
    pub reorder_time: Duration,
    /// How long an unfinished frame is kept while its source sends nothing. Whatever is complete is
    /// then delivered, the rest dropped.
    pub frame_time: Duration,
    /// Octets that the windows and unfinished frames of all sources hold together; a source that
    /// delivers more than others keeps its frames when others have to give way. At least
    /// [`frame_len_max`](FrameSettings::frame_len_max).
    pub memory_max: usize,
    /// Packets close in sequence that are needed before a source is believed (RFC 3550 appendix
    /// A.1, `MIN_SEQUENTIAL`); they are kept meanwhile. 0 and 1 believe the first one.
    pub probation: u8,
    /// Maximum number of concurrent sources; 1 or more.
    pub sources_max: usize,
    /// How long a source may be silent, its reports included, before it ends. If another source
    /// needs its place, two seconds without media are enough unless reports come.
    pub source_timeout: Duration,
    /// How missing packets are asked for; `None` if they are not.
    pub requests: Option<RequestTiming>,
    /// The payload type of retransmissions (RFC 4588), and their source if that is known.
    pub retransmission: Option<(PayloadType, Option<Ssrc>)>,
    /// Whether the arrival of each packet is remembered, to be reported (RFC 8888).
    pub arrivals: bool,
}

impl ReceiverConfig {
    /// The defaults: a window of 512 packets, 4 MiB and 50 ms; frames of 64 MiB, unfinished for a
    /// second at most, and 128 MiB for all of them; 2 packets of probation; 16 sources, each
    /// followed until 30 seconds of silence.
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
            arrivals: false,
        }
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        if !(1..=16_384).contains(&self.reorder_packets_max) {
            return Err(ConfigError::ReorderPackets { packets: self.reorder_packets_max });
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
    /// The memory limit that all sources share is smaller than the largest frame.
    #[error(
        "memory of {octets} octets for all sources is less than the largest frame, {frame} octets"
    )]
    Memory {
        /// The memory given.
        octets: usize,
        /// Octets in the largest frame.
        frame: usize,
    },
    /// The limit of sources is zero.
    #[error("a receiver must follow at least one source")]
    NoSources,
    /// The datagrams' length is out of range.
    #[error("a datagram length of {len} octets is outside {PACKET_LEN_MIN} to {PACKET_LEN_MAX}")]
    PacketLen {
        /// The length given.
        len: usize,
    },
    /// The reorder window's length is out of range.
    #[error("a reorder window of {packets} packets is outside 1 to 16384")]
    ReorderPackets {
        /// The number given.
        packets: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_rates_are_exact() {
        for (rate, frames, seconds) in
            [(30.0, 30, 1), (29.97, 30_000, 1001), (59.94, 60_000, 1001), (12.5, 12_500, 1000)]
        {
            let expected = FrameRate::new(frames, seconds).unwrap();
            assert_eq!(FrameRate::from_f64(rate), Some(expected), "{rate}");
        }
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(FrameRate::from_f64(rate), None);
        }
    }

    #[test]
    fn ticks_do_not_drift() {
        let rate = FrameRate::new(30_000, 1001).unwrap();
        assert_eq!(rate.ticks(1, ClockRate::VIDEO), 3003);
        assert_eq!(rate.ticks(30_000, ClockRate::VIDEO), 1001 * 90_000);
    }
}
