//! Time on the wire: RTP timestamps in ticks of a clock rate, wall-clock time in NTP's format.

mod frame_rate;

pub use frame_rate::FrameRate;
pub(crate) use frame_rate::greatest_divisor;

use std::num::NonZeroU32;
use std::time::Duration;

/// An RTP timestamp: the sampling instant in ticks of the payload's clock rate, modulo 2³²
/// (RFC 3550 section 5.1).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct RtpTimestamp(pub u32);

impl RtpTimestamp {
    /// Returns the timestamp `ticks` later.
    #[inline]
    pub fn plus(self, ticks: u32) -> Self {
        Self(self.0.wrapping_add(ticks))
    }

    /// Returns the number of ticks from `earlier` to `self` in the shorter direction.
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
    /// 48 kHz, the clock of Opus at any sampling rate (RFC 7587 section 4.1).
    pub const OPUS: Self = Self(NonZeroU32::new(48_000).unwrap());

    /// Creates a clock of `hertz` ticks per second; `None` for zero.
    pub const fn new(hertz: u32) -> Option<Self> {
        match NonZeroU32::new(hertz) {
            Some(hertz) => Some(Self(hertz)),
            None => None,
        }
    }

    /// Returns the number of ticks per second.
    pub fn hertz(self) -> u32 {
        self.0.get()
    }

    /// Returns the whole ticks in `duration`, modulo 2³².
    pub fn ticks(self, duration: Duration) -> u32 {
        (duration.as_nanos() * u128::from(self.hertz()) / 1_000_000_000) as u32
    }

    /// Returns the duration of `ticks`.
    pub fn duration(self, ticks: u32) -> Duration {
        Duration::from_nanos(u64::from(ticks) * 1_000_000_000 / u64::from(self.hertz()))
    }
}

/// Seconds from the NTP epoch, 1900, to the Unix epoch, 1970.
const UNIX_EPOCH: u64 = 2_208_988_800;

/// A wall-clock instant in NTP's 64-bit format: seconds since 1900-01-01 UTC modulo 2³², with a
/// 32-bit fraction (RFC 3550 section 4).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct NtpTime(pub u64);

impl NtpTime {
    /// Returns the instant `since_unix_epoch` after 1970-01-01 UTC.
    ///
    /// ```
    /// use rushes_proto::NtpTime;
    /// use std::time::Duration;
    /// let ntp = NtpTime::from_unix(Duration::from_millis(500));
    /// assert_eq!(ntp, NtpTime((2_208_988_800 << 32) | (1 << 31)));
    /// assert_eq!(ntp.unix(), Duration::from_millis(500));
    /// ```
    pub fn from_unix(since_unix_epoch: Duration) -> Self {
        Self(UNIX_EPOCH << 32).plus(since_unix_epoch)
    }

    /// Returns the time since 1970-01-01 UTC; values before 1970 are assumed to be after the wrap
    /// in 2036 (RFC 3550 section 4).
    pub fn unix(self) -> Duration {
        let seconds = (self.0 >> 32).wrapping_sub(UNIX_EPOCH) & 0xffff_ffff;
        Duration::from_secs(seconds) + fraction(self.0 & 0xffff_ffff)
    }

    /// Returns the instant `time` later, modulo 2³² seconds.
    #[must_use]
    pub fn plus(self, time: Duration) -> Self {
        let fraction = (u64::from(time.subsec_nanos()) << 32).div_ceil(1_000_000_000);
        Self(self.0.wrapping_add(time.as_secs() << 32).wrapping_add(fraction))
    }

    /// Returns the instant `time` earlier, modulo 2³² seconds.
    #[must_use]
    pub fn minus(self, time: Duration) -> Self {
        Self(self.0.wrapping_sub(Self(0).plus(time).0))
    }

    /// Returns the nanoseconds from `earlier` to `self` in the shorter direction, at most 68 years;
    /// negative if `earlier` is later.
    #[allow(clippy::cast_possible_wrap, reason = "the wrap is the shorter way round")]
    pub fn nanos_since(self, earlier: Self) -> i64 {
        let difference = i128::from(self.0.wrapping_sub(earlier.0) as i64);
        ((difference * 1_000_000_000) >> 32) as i64
    }

    /// Returns the middle 32 bits: seconds modulo 2¹⁶ in units of 1/65 536 s, as in LSR and DLRR
    /// (RFC 3550 section 6.4.1).
    pub fn middle(self) -> u32 {
        (self.0 >> 16) as u32
    }
}

/// Returns the duration of `fraction` / 2³² seconds, rounded down to whole nanoseconds.
fn fraction(fraction: u64) -> Duration {
    Duration::from_nanos((fraction * 1_000_000_000) >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ntp_time_counts_from_1900_and_converts_back() {
        for nanos in [0, 1, 999_999_999, 1_600_000_000_123_456_789] {
            let since = Duration::from_nanos(nanos);
            assert_eq!(NtpTime::from_unix(since).unix(), since);
        }
        assert_eq!(NtpTime(0xb44d_b705_2000_0000).middle(), 0xb705_2000);
    }

    #[test]
    fn ntp_time_wraps_in_2036() {
        let before = NtpTime(u64::MAX);
        let after = before.plus(Duration::from_secs(1));
        assert_eq!(after.0, 0xffff_ffff);
        assert!((after.nanos_since(before) - 1_000_000_000).abs() <= 1);
        assert!((before.nanos_since(after) + 1_000_000_000).abs() <= 1);
        assert_eq!(after.minus(Duration::from_secs(1)), before);
    }

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
