//! Converts the kernel's times of arrival, which are read from the system's clock, to instants.
//!
//! The system's clock may be set while datagrams wait. Linux slews both clocks alike, so their
//! difference is constant until one of them is set (or the machine sleeps). Each reading compares
//! them: if the difference has changed, times noted before the change have no meaning any more, and
//! datagrams that cannot be told from those get the time of reading.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// By how much both clocks may seem to differ because of their resolution.
const TOLERANCE: Duration = Duration::from_micros(1);

/// The relation between the two clocks, as one reading thread has found it.
#[derive(Debug, Default)]
pub(crate) struct StampClock {
    anchor: Option<Anchor>,
    /// The arrival of the last datagram, before which no later one can have arrived.
    last: Option<Instant>,
    now: Option<Instant>,
}

/// One instant by both clocks.
#[derive(Clone, Copy, Debug)]
struct Anchor {
    mono: Instant,
    /// Since 1970.
    real: Duration,
    /// Time between the two readings of the instant: the anchor is wrong by at most this.
    width: Duration,
}

impl StampClock {
    /// Reads the clocks and returns the time; with `is_needed`, for conversions.
    pub(crate) fn read(&mut self, is_needed: bool) -> Instant {
        let before = Instant::now();
        let real = is_needed.then(|| SystemTime::now().duration_since(UNIX_EPOCH).ok()).flatten();
        let Some(real) = real else {
            self.now = Some(before);
            return before;
        };
        let after = Instant::now();
        self.note(before, real, after);
        after
    }

    /// Notes that the system's clock showed `real` at an instant from `before` to `after`.
    fn note(&mut self, before: Instant, real: Duration, after: Instant) {
        self.now = Some(after);
        let width = after.saturating_duration_since(before);
        let fresh = Anchor { mono: after, real, width };
        let Some(anchor) = self.anchor else {
            self.anchor = Some(fresh);
            return;
        };
        let slack = anchor.width + TOLERANCE;
        let is_same = anchor
            .instant(real)
            .is_some_and(|instant| instant + slack >= before && instant <= after + slack);
        if !is_same {
            // Datagrams that are waiting now have times of the former clock; they arrived no later
            // than now, and `last` gives them this time.
            self.last = Some(after);
        }
        if !is_same || width < anchor.width {
            self.anchor = Some(fresh);
        }
    }

    /// Returns when a datagram arrived whose time the kernel noted as `stamp`, or when it was read.
    pub(crate) fn arrival(&mut self, stamp: Option<Duration>) -> Instant {
        let now = self.now.unwrap_or_else(Instant::now);
        let noted = stamp.and_then(|stamp| self.anchor?.instant(stamp));
        let arrival = noted.unwrap_or(now).min(now);
        let arrival = self.last.map_or(arrival, |last| arrival.max(last));
        self.last = Some(arrival);
        arrival
    }
}

impl Anchor {
    /// Converts a time of the system's clock; `None` if it is out of range.
    fn instant(self, real: Duration) -> Option<Instant> {
        match real.checked_sub(self.real) {
            Some(after) => self.mono.checked_add(after),
            None => self.mono.checked_sub(self.real.saturating_sub(real)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const REAL: Duration = Duration::from_secs(1_700_000_000);

    /// Returns an instant with room before it, and a clock that was read then.
    fn clock() -> (Instant, StampClock) {
        let start = Instant::now() + 1000 * MS;
        let mut clock = StampClock::default();
        clock.note(start, REAL, start);
        (start, clock)
    }

    #[test]
    fn a_datagram_that_waited_has_the_time_of_its_arrival() {
        let (start, mut clock) = clock();
        clock.note(start + 50 * MS, REAL + 50 * MS, start + 50 * MS);
        assert_eq!(clock.arrival(Some(REAL + 20 * MS)), start + 20 * MS);
        assert_eq!(clock.arrival(Some(REAL + 40 * MS)), start + 40 * MS);
    }

    #[test]
    fn without_a_time_of_the_kernel_it_is_that_of_reading() {
        let (start, mut clock) = clock();
        assert_eq!(clock.arrival(None), start);
    }

    #[test]
    fn arrivals_never_run_backwards_nor_ahead_of_the_reading() {
        let (start, mut clock) = clock();
        clock.note(start + 50 * MS, REAL + 50 * MS, start + 50 * MS);
        assert_eq!(clock.arrival(Some(REAL + 40 * MS)), start + 40 * MS);
        assert_eq!(clock.arrival(Some(REAL + 30 * MS)), start + 40 * MS);
        assert_eq!(clock.arrival(Some(REAL + 90 * MS)), start + 50 * MS);
    }

    #[test]
    fn a_step_of_the_clock_in_either_direction_moves_no_arrival() {
        for ahead in [true, false] {
            let (start, mut clock) = clock();
            let step = 3_600_000 * MS;
            let real = if ahead { REAL + step } else { REAL.saturating_sub(step) };
            let at = start + 50 * MS;
            clock.note(at, real + 50 * MS, at);
            // Noted before the step and read after it, in this call and in the next.
            assert_eq!(clock.arrival(Some(REAL + 20 * MS)), at);
            let at = start + 60 * MS;
            clock.note(at, real + 60 * MS, at);
            let late = clock.arrival(Some(REAL + 30 * MS));
            assert!(start + 50 * MS <= late && late <= at);
            // Noted after the step.
            let at = start + 90 * MS;
            clock.note(at, real + 90 * MS, at);
            assert_eq!(clock.arrival(Some(real + 80 * MS)), start + 80 * MS);
        }
    }

    #[test]
    fn a_thread_that_was_paused_between_both_clocks_finds_no_step() {
        let (start, mut clock) = clock();
        clock.note(start + 10 * MS, REAL + 10 * MS, start + 60 * MS);
        assert_eq!(clock.arrival(Some(REAL + 5 * MS)), start + 5 * MS);
    }

    #[test]
    fn a_first_reading_that_was_interrupted_is_improved_by_the_next() {
        let start = Instant::now();
        let mut clock = StampClock::default();
        clock.note(start, REAL, start + 40 * MS);
        clock.note(start + 50 * MS, REAL + 50 * MS, start + 50 * MS);
        assert_eq!(clock.arrival(Some(REAL + 45 * MS)), start + 45 * MS);
    }

    #[test]
    fn times_out_of_range_are_those_of_reading() {
        let (start, mut clock) = clock();
        for stamp in [Duration::MAX, Duration::new(u64::MAX, 0)] {
            assert_eq!(clock.arrival(Some(stamp)), start);
        }
    }
}
