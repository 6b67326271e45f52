//! Times from timestamps, for files.

use rushes_proto::{ClockRate, RtpTimestamp};

/// Seconds between two timestamps from which the second counts as that of another clock.
const JUMP: u32 = 600;

/// Converts timestamps to times from the first frame on, without their wraps.
#[derive(Debug)]
pub(super) struct TimestampClock {
    /// The same in ticks.
    jump: u32,
    last: Option<(RtpTimestamp, i64)>,
    /// The latest time, and the last distance between two: that to the first frame of another source.
    latest: i64,
    step: i64,
}

impl TimestampClock {
    /// Creates a clock for timestamps of this rate.
    pub(super) fn new(rate: ClockRate) -> Self {
        Self { jump: rate.hertz().saturating_mul(JUMP), last: None, latest: 0, step: 0 }
    }

    /// Returns the time of `timestamp`, in its ticks.
    pub(super) fn time(&mut self, timestamp: RtpTimestamp) -> i64 {
        let time = match self.last {
            Some((last, time)) if timestamp.distance(last).unsigned_abs() < self.jump => {
                let distance = i64::from(timestamp.distance(last));
                self.step = if distance == 0 { self.step } else { distance.abs() };
                time.saturating_add(distance)
            }
            _ => self.latest.saturating_add(self.step),
        };
        self.last = Some((timestamp, time));
        self.latest = self.latest.max(time);
        time
    }

    /// Marks the next timestamp as that of another sender.
    pub(super) fn change_source(&mut self) {
        self.last = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_go_on_over_wraps_and_changes_of_the_source() {
        let mut clock = TimestampClock::new(ClockRate::VIDEO);
        let mut time = |timestamp| clock.time(RtpTimestamp(timestamp));
        assert_eq!(time(u32::MAX - 2999), 0);
        assert_eq!([time(3000), time(0), time(6000)], [6000, 3000, 9000]);
        clock.change_source();
        assert_eq!(clock.time(RtpTimestamp(77)), 15_000);
        assert_eq!(clock.time(RtpTimestamp(1 << 31)), 21_000, "another clock");
        let pause = 400 * 90_000;
        assert_eq!(clock.time(RtpTimestamp(1 << 31).plus(pause)), 21_000 + i64::from(pause));
    }
}
