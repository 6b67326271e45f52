//! Times from timestamps, for files.

use rushes_proto::RtpTimestamp;

/// Ticks between two timestamps from which the second counts as that of another clock: ten minutes of
/// Opus.
const JUMP: u32 = 600 * 48_000;

/// Converts timestamps to times from the first frame on, without their wraps.
#[derive(Debug, Default)]
pub(super) struct TimestampClock {
    last: Option<(RtpTimestamp, i64)>,
    /// The latest time, and the last distance between two: that to the first frame of another source.
    latest: i64,
    step: i64,
}

impl TimestampClock {
    /// Returns the time of `timestamp`, in its ticks.
    pub(super) fn time(&mut self, timestamp: RtpTimestamp) -> i64 {
        let time = match self.last {
            Some((last, time)) if timestamp.distance(last).unsigned_abs() < JUMP => {
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
        let mut clock = TimestampClock::default();
        let mut time = |timestamp| clock.time(RtpTimestamp(timestamp));
        assert_eq!(time(u32::MAX - 2999), 0);
        assert_eq!([time(3000), time(0), time(6000)], [6000, 3000, 9000]);
        clock.change_source();
        assert_eq!(clock.time(RtpTimestamp(77)), 15_000);
        assert_eq!(clock.time(RtpTimestamp(1 << 31)), 21_000, "another clock");
    }
}
