//! Positions in presentation order.

use crate::time::{ClockRate, FrameRate};

/// The position of a picture in presentation order, in 1/120 of a frame interval.
///
/// Frames are 120 apart, and the two fields of a frame 60. Smaller distances occur only after a
/// wrong guess (see [`PictureClock`](super::PictureClock)).
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Position(pub i64);

impl Position {
    /// Number of positions in a frame interval.
    pub const PER_FRAME: i64 = 120;

    /// Returns the time from position 0 in whole ticks of `clock` at `rate` frames per second.
    ///
    /// Different positions have different ticks if a frame interval has at least 120 of them: at
    /// 90 kHz, up to 750 frames per second.
    pub fn ticks(self, clock: ClockRate, rate: FrameRate) -> i64 {
        let ticks = i128::from(self.0)
            .saturating_mul(clock.hertz().into())
            .saturating_mul(rate.denominator().into());
        let divisor = i128::from(rate.numerator()).saturating_mul(Self::PER_FRAME.into());
        let ticks = ticks.div_euclid(divisor);
        i64::try_from(ticks).unwrap_or(if ticks < 0 { i64::MIN } else { i64::MAX })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_exact_and_rounded_down() {
        let ticks = |position, numerator, denominator| {
            let rate = FrameRate::new(numerator, denominator).unwrap();
            Position(position).ticks(ClockRate::VIDEO, rate)
        };
        assert_eq!(ticks(120, 30_000, 1_001), 3_003);
        assert_eq!(ticks(-60, 25, 1), -1_800);
        assert_eq!(ticks(120, 24_000, 1_001), 3_753);
        assert_eq!(ticks(-1, u32::MAX, 1), -1);
        assert_eq!(ticks(i64::MAX, 1, u32::MAX), i64::MAX);
    }
}
