//! Capture times as instants for the library, and as dates for people.

use std::time::{Duration, Instant};

/// Maps capture times onto instants from an arbitrary start. The instants never decrease, although
/// captures from several queues are slightly out of order and clocks are adjusted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VirtualClock {
    start: Instant,
    first: Option<Duration>,
    now: Instant,
}

impl VirtualClock {
    pub(crate) fn new(start: Instant) -> Self {
        Self { start, first: None, now: start }
    }

    /// Returns the instant of a packet captured at `time`; without a time, the last instant.
    pub(crate) fn at(&mut self, time: Option<Duration>) -> Instant {
        if let Some(time) = time {
            let first = *self.first.get_or_insert(time);
            let instant = self.start.checked_add(time.saturating_sub(first));
            self.now = self.now.max(instant.unwrap_or(self.now));
        }
        self.now
    }
}

/// Formats a time since 1970 as a date in UTC, with milliseconds.
pub(crate) fn date(time: Duration) -> String {
    let (seconds, millis) = (time.as_secs(), time.subsec_millis());
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{millis:03} UTC")
}

/// Returns year, month and day of a day counted from 1970-01-01. It computes with years that begin
/// in March, so that the leap day is the last day.
fn civil(days: u64) -> (u64, u64, u64) {
    const ERA: u64 = 146_097; // days in 400 years
    let days = days + 719_468; // from 0000-03-01
    let (era, day) = (days / ERA, days % ERA);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + next, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, "1970-01-01 00:00:00.000 UTC"),
            (951_782_399, "2000-02-28 23:59:59.000 UTC"),
            (951_782_400, "2000-02-29 00:00:00.000 UTC"),
            (1_709_251_200, "2024-03-01 00:00:00.000 UTC"),
            (4_107_542_399, "2100-02-28 23:59:59.000 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00.000 UTC"),
        ] {
            assert_eq!(date(Duration::from_secs(seconds)), expected);
        }
    }

    #[test]
    fn capture_time_never_goes_back_and_never_overflows() {
        let start = Instant::now();
        let mut clock = VirtualClock::new(start);
        let second = Duration::from_secs(1);
        assert_eq!(clock.at(Some(second * 10)), start);
        assert_eq!(clock.at(Some(second * 12)), start + second * 2);
        assert_eq!(clock.at(Some(second * 11)), start + second * 2);
        assert_eq!(clock.at(None), start + second * 2);
        assert_eq!(clock.at(Some(Duration::MAX)), start + second * 2);
    }
}
