//! Slows down a live source that is much faster than its rate.

use std::time::{Duration, Instant};

/// A source is ahead when its frames arrive this much earlier than those of a source at 5/4 of its
/// rate. No camera's clock is that wrong, and a burst of a camera's delayed frames is shorter.
const AHEAD_MAX: Duration = Duration::from_millis(500);

/// The same in frames, for low rates.
const AHEAD_FRAMES: u32 = 4;

/// Number of late frames in a row after which a source is no longer ahead.
const LATE_FRAMES: u32 = 30;

/// Decides when each frame of a source is passed on.
///
/// A camera's frames are passed on when they arrive, even if its clock differs from ours: a
/// schedule would keep every later frame as late as the latest one. A program that reads a file
/// writes as fast as the pipe is read; such a source is ahead, and its frames wait until they are
/// due.
#[derive(Debug)]
pub(super) struct Pace {
    interval: Duration,
    /// When the last frame was passed on.
    last: Option<Instant>,
    /// How much earlier frames arrive than those of a source at 5/4 of the rate.
    lead: Duration,
    late: u32,
    is_ahead: bool,
}

impl Pace {
    pub(super) fn new(interval: Duration) -> Self {
        Self { interval, last: None, lead: Duration::ZERO, late: 0, is_ahead: false }
    }

    pub(super) fn is_ahead(&self) -> bool {
        self.is_ahead
    }

    /// Returns when the frame that arrived at `arrival` is passed on.
    pub(super) fn next(&mut self, arrival: Instant) -> Instant {
        let Some(last) = self.last.replace(arrival) else { return arrival };
        if !self.is_ahead {
            let since = arrival.saturating_duration_since(last);
            self.lead = (self.lead + self.interval * 4 / 5).saturating_sub(since);
            self.is_ahead = self.lead > AHEAD_MAX.max(self.interval * AHEAD_FRAMES);
            return arrival;
        }
        let due = last + self.interval;
        self.late = if arrival > due { self.late + 1 } else { 0 };
        if self.late > LATE_FRAMES {
            *self = Self::new(self.interval);
        }
        self.last = Some(due.max(arrival));
        due.max(arrival)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_millis(40);
    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_camera_is_never_held_up_though_its_clock_is_fast_and_its_frames_are_irregular() {
        let (mut pace, start) = (Pace::new(INTERVAL), Instant::now());
        for frame in 0..10_000 {
            // The source is a tenth faster than its rate, and sometimes ten frames arrive at once.
            let gather = if frame / 100 % 3 == 0 { frame / 10 * 10 + 9 } else { frame };
            let arrival = start + gather * 36 * MS;
            assert_eq!(pace.next(arrival), arrival, "{frame}");
        }
        assert!(!pace.is_ahead());
    }

    #[test]
    fn a_file_is_soon_noticed_and_read_at_its_rate() {
        let (mut pace, mut now) = (Pace::new(INTERVAL), Instant::now());
        let mut steps = Vec::new();
        for _ in 0..100 {
            let before = now;
            now = pace.next(now + MS);
            steps.push(now - before);
        }
        let first = steps.iter().position(|step| *step == INTERVAL).unwrap();
        assert!((10..30).contains(&first), "{first}");
        assert!(pace.is_ahead() && steps[first..].iter().all(|step| *step == INTERVAL));
    }

    #[test]
    fn a_late_file_does_not_hurry_afterwards() {
        let (mut pace, mut now) = (Pace::new(INTERVAL), Instant::now());
        (0..100).for_each(|_| now = pace.next(now));
        now = pace.next(now + 1000 * MS);
        assert_eq!(pace.next(now), now + INTERVAL);
    }

    #[test]
    fn a_source_that_is_late_all_the_time_is_live_again() {
        let (mut pace, mut now) = (Pace::new(INTERVAL), Instant::now());
        (0..100).for_each(|_| now = pace.next(now));
        assert!(pace.is_ahead());
        for _ in 0..=LATE_FRAMES {
            now += INTERVAL + MS;
            assert_eq!(pace.next(now), now);
        }
        assert!(!pace.is_ahead());
        assert_eq!(pace.next(now + MS), now + MS);
    }

    #[test]
    fn a_slow_rate_has_room_for_some_frames_at_once() {
        let start = Instant::now();
        let mut pace = Pace::new(Duration::from_secs(10));
        for _ in 0..5 {
            assert_eq!(pace.next(start), start);
        }
        assert!(!pace.is_ahead());
    }
}
