//! Times in containers.

use std::cmp::Ordering;
use std::num::NonZeroU32;
use std::time::Duration;

use rushes_proto::ClockRate;

/// A time in a container since its beginning, exact in the container's own units. Frames before the
/// beginning have negative times.
#[derive(Clone, Copy, Debug)]
pub struct MediaTime {
    ticks: i64,
    per_second: NonZeroU32,
}

impl MediaTime {
    /// The beginning.
    pub const ZERO: Self = Self { ticks: 0, per_second: NonZeroU32::MIN };

    /// Creates a time of `ticks` units, with `per_second` units in a second.
    pub fn new(ticks: i64, per_second: NonZeroU32) -> Self {
        Self { ticks, per_second }
    }

    /// Converts to ticks of `clock_rate`, rounded to the nearest; halves are rounded away from
    /// zero.
    pub fn ticks(self, clock_rate: ClockRate) -> i64 {
        self.scaled(clock_rate.hertz())
    }

    /// Converts to nanoseconds, rounded to the nearest.
    pub fn nanos(self) -> i64 {
        self.scaled(1_000_000_000)
    }

    /// Returns the time from `earlier` to `self`, or zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        let nanos = i128::from(self.nanos()) - i128::from(earlier.nanos());
        Duration::from_nanos(u64::try_from(nanos.max(0)).unwrap_or(u64::MAX))
    }

    fn scaled(self, hertz: u32) -> i64 {
        let per_second = i128::from(self.per_second.get());
        let ticks = i128::from(self.ticks) * i128::from(hertz);
        let half = per_second / 2 * ticks.signum();
        i64::try_from((ticks + half) / per_second).unwrap_or(if ticks < 0 {
            i64::MIN
        } else {
            i64::MAX
        })
    }
}

impl PartialEq for MediaTime {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for MediaTime {}

impl PartialOrd for MediaTime {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for MediaTime {
    fn cmp(&self, other: &Self) -> Ordering {
        let own = i128::from(self.ticks) * i128::from(other.per_second.get());
        own.cmp(&(i128::from(other.ticks) * i128::from(self.per_second.get())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(ticks: i64, per_second: u32) -> MediaTime {
        MediaTime::new(ticks, NonZeroU32::new(per_second).unwrap())
    }

    #[test]
    fn times_are_exact_and_ticks_the_nearest() {
        assert_eq!(time(512, 15_360).ticks(ClockRate::VIDEO), 3_000);
        assert_eq!(time(1_001, 24_000).ticks(ClockRate::VIDEO), 3_754);
        assert_eq!(time(-1_001, 24_000).ticks(ClockRate::VIDEO), -3_754);
        assert_eq!(time(3_003, 24_000).ticks(ClockRate::VIDEO), 11_261);
        assert_eq!(time(1, 3).nanos(), 333_333_333);
        assert_eq!(time(i64::MAX, 1).nanos(), i64::MAX);
        assert_eq!(time(i64::MIN, 1).ticks(ClockRate::VIDEO), i64::MIN);
    }

    #[test]
    fn times_of_different_units_compare() {
        assert_eq!(time(1, 2), time(500, 1_000));
        assert!(time(1, 3) < time(334, 1_000));
        assert!(time(-1, 3) < MediaTime::ZERO);
        assert_eq!(time(3, 2).since(time(1, 1)), Duration::from_millis(500));
        assert_eq!(time(1, 1).since(time(3, 2)), Duration::ZERO);
    }
}
