//! RTP time: timestamps in ticks of a clock rate.

use std::num::NonZeroU32;
use std::time::Duration;

/// An RTP timestamp: the sampling instant in ticks of the payload's clock rate, modulo 2³²
/// (RFC 3550 section 5.1).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct RtpTimestamp(pub u32);

impl RtpTimestamp {
    /// The timestamp `ticks` later.
    #[inline]
    pub fn plus(self, ticks: u32) -> Self {
        Self(self.0.wrapping_add(ticks))
    }

    /// Ticks from `earlier` to `self` by the shorter way round.
    #[inline]
    #[allow(clippy::cast_possible_wrap)]
    pub fn distance(self, earlier: Self) -> i32 {
        self.0.wrapping_sub(earlier.0) as i32
    }
}

/// The rate of a payload's clock, in ticks per second; 90 000 for video, 48 000 for Opus.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct ClockRate(NonZeroU32);

impl ClockRate {
    /// 90 kHz, the clock of all video formats (RFC 3551 section 5).
    pub const VIDEO: Self = Self(NonZeroU32::new(90_000).unwrap());
    /// 48 kHz, the clock of Opus whatever it was sampled at (RFC 7587 section 4.1).
    pub const OPUS: Self = Self(NonZeroU32::new(48_000).unwrap());

    /// A clock of `hertz` ticks per second; `None` for zero.
    pub fn new(hertz: u32) -> Option<Self> {
        NonZeroU32::new(hertz).map(Self)
    }

    /// Ticks per second.
    pub fn hertz(self) -> u32 {
        self.0.get()
    }

    /// The whole ticks in `duration`, modulo 2³².
    pub fn ticks(self, duration: Duration) -> u32 {
        (duration.as_nanos() * u128::from(self.hertz()) / 1_000_000_000) as u32
    }

    /// How long `ticks` last.
    pub fn duration(self, ticks: u32) -> Duration {
        Duration::from_nanos(u64::from(ticks) * 1_000_000_000 / u64::from(self.hertz()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_at_30_hertz_is_3000_video_ticks() {
        assert_eq!(ClockRate::VIDEO.ticks(Duration::from_secs(1) / 30), 2999);
        assert_eq!(ClockRate::VIDEO.ticks(Duration::from_micros(33_334)), 3000);
        assert_eq!(ClockRate::OPUS.duration(960), Duration::from_millis(20));
    }

    #[test]
    fn timestamps_wrap() {
        assert_eq!(RtpTimestamp(u32::MAX).plus(2), RtpTimestamp(1));
        assert_eq!(RtpTimestamp(1).distance(RtpTimestamp(u32::MAX)), 2);
    }

    #[test]
    fn a_clock_of_zero_is_refused() {
        assert_eq!(ClockRate::new(0), None);
    }
}
