//! Frames per second.

use std::time::Duration;

use super::ClockRate;

/// A number of frames per second, as a fraction in lowest terms: 30 000 / 1 001 is exact.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct FrameRate {
    frames: u32,
    seconds: u32,
}

impl FrameRate {
    /// 30 frames per second.
    pub const DEFAULT: Self = Self { frames: 30, seconds: 1 };

    /// Returns `frames` per `seconds`; `None` if either is zero.
    ///
    /// ```
    /// use rushes_proto::FrameRate;
    /// assert_eq!(FrameRate::new(60_000, 2002), FrameRate::new(30_000, 1001));
    /// ```
    pub fn new(frames: u32, seconds: u32) -> Option<Self> {
        Self::reduced(frames.into(), seconds.into())
    }

    /// Returns `frames` per `seconds`; `None` if either is zero or, in lowest terms, too large.
    pub(crate) fn reduced(frames: u64, seconds: u64) -> Option<Self> {
        let divisor = greatest_divisor(frames, seconds).max(1);
        let part = |number: u64| u32::try_from(number / divisor).ok().filter(|part| *part > 0);
        Some(Self { frames: part(frames)?, seconds: part(seconds)? })
    }

    /// Returns the closest fraction to `rate` frames per second, which is exact for whole rates and
    /// for those of the 1 000 / 1 001 family; `None` unless `rate` is in 0.001..=1 000 000.
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

    /// Returns the number of frames in [`denominator`](Self::denominator) seconds, at least 1.
    pub fn numerator(self) -> u32 {
        self.frames
    }

    /// Returns the seconds in which there are [`numerator`](Self::numerator) frames, at least 1.
    pub fn denominator(self) -> u32 {
        self.seconds
    }

    /// Returns the number of frames per second.
    pub fn per_second(self) -> f64 {
        f64::from(self.frames) / f64::from(self.seconds)
    }

    /// Returns the time from one frame to the next.
    pub fn interval(self) -> Duration {
        Duration::from_nanos(u64::from(self.seconds) * 1_000_000_000 / u64::from(self.frames))
    }

    /// Returns the ticks of `clock_rate` before frame number `frame`, modulo 2³².
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

/// Returns the greatest common divisor; if one number is 0, the other one.
pub(crate) fn greatest_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
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
    fn rates_are_in_lowest_terms_and_never_zero() {
        assert_eq!(FrameRate::new(50, 2), FrameRate::new(25, 1));
        assert_eq!((FrameRate::new(0, 1), FrameRate::new(1, 0)), (None, None));
        assert_eq!(FrameRate::reduced(u64::MAX, u64::MAX), FrameRate::new(1, 1));
        assert_eq!(FrameRate::reduced(u64::MAX, 1), None);
    }

    #[test]
    fn ticks_do_not_drift() {
        let rate = FrameRate::new(30_000, 1001).unwrap();
        assert_eq!(rate.ticks(1, ClockRate::VIDEO), 3003);
        assert_eq!(rate.ticks(30_000, ClockRate::VIDEO), 1001 * 90_000);
    }
}
