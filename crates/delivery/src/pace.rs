//! Deadlines that adapt to the time that frames take to arrive.

use std::time::{Duration, Instant};

/// An adaptive deadline: one and a half times the average time that frames take.
///
/// This is the rule of Iho's thesis, for incomplete frames; a complete one never waits. While
/// packets of the frame still arrive, the deadline is at least half an average after the latest of
/// them, because the sender or the link is then slow and no packet need be lost.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    mean: Option<Duration>,
    floor: Duration,
    ceiling: Duration,
}

/// The weight of a new frame in the mean is 1 / `WEIGHT`.
const WEIGHT: u32 = 8;

impl Pace {
    /// Creates a pace that waits for at least `floor` and at most `ceiling` from a frame's latest packet
    /// on. The first frame has the whole of `ceiling`.
    pub fn new(floor: Duration, ceiling: Duration) -> Self {
        Self { mean: None, floor: floor.min(ceiling), ceiling }
    }

    /// Adds the time that one frame took, from its first packet to its last.
    pub fn handle_frame(&mut self, took: Duration) {
        let mean = |mean: Duration| (mean * (WEIGHT - 1) + took) / WEIGHT;
        self.mean = Some(self.mean.map_or(took, mean));
    }

    /// Returns the average time that frames take, once a frame has arrived.
    pub fn mean(&self) -> Option<Duration> {
        self.mean
    }

    /// Returns the deadline of a frame whose first and latest packets arrived at these times.
    pub fn deadline(&self, first: Instant, latest: Instant) -> Instant {
        let longest = latest + self.ceiling;
        let Some(mean) = self.mean else { return longest };
        let adapted = (first + mean * 3 / 2).max(latest + mean / 2);
        adapted.max(latest + self.floor).min(longest)
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "any instant will do")]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn the_first_frame_has_the_longest_deadline() {
        let start = Instant::now();
        assert_eq!(Pace::new(MS, 50 * MS).deadline(start, start), start + 50 * MS);
    }

    #[test]
    fn a_frame_has_one_and_a_half_times_the_average_time() {
        let start = Instant::now();
        let mut pace = Pace::new(MS, 50 * MS);
        pace.handle_frame(10 * MS);
        assert_eq!(pace.deadline(start, start), start + 15 * MS);
        for _ in 0..100 {
            pace.handle_frame(20 * MS);
        }
        let waits = pace.deadline(start, start) - start;
        assert!(waits > 29 * MS && waits <= 30 * MS, "{waits:?}");
    }

    #[test]
    fn while_packets_arrive_the_deadline_is_extended() {
        let start = Instant::now();
        let mut pace = Pace::new(MS, 50 * MS);
        pace.handle_frame(10 * MS);
        assert_eq!(pace.deadline(start, start + 14 * MS), start + 19 * MS);
        assert_eq!(pace.deadline(start, start + 500 * MS), start + 505 * MS);
    }

    #[test]
    fn a_silence_is_no_longer_than_the_ceiling_however_long_frames_take() {
        let start = Instant::now();
        let mut pace = Pace::new(MS, 50 * MS);
        assert_eq!(pace.deadline(start, start + 30 * MS), start + 80 * MS);
        pace.handle_frame(1000 * MS);
        assert_eq!(pace.deadline(start, start + 30 * MS), start + 80 * MS);
        assert_eq!(pace.deadline(start, start + 990 * MS), start + 1040 * MS);
    }

    #[test]
    fn no_deadline_is_shorter_than_the_floor() {
        let start = Instant::now();
        let mut pace = Pace::new(2 * MS, 50 * MS);
        pace.handle_frame(Duration::from_micros(10));
        assert_eq!(pace.deadline(start, start), start + 2 * MS);
        // A frame that is spread over 15 ms has the same time after its latest packet.
        assert_eq!(pace.deadline(start, start + 15 * MS), start + 17 * MS);
    }
}
