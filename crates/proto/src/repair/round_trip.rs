//! The time from a request to its answer, smoothed (RFC 6298 section 2).

use std::time::Duration;

/// Minimum time added to the smoothed time before a request is repeated: requests are not sent at
/// once.
const MARGIN: Duration = Duration::from_millis(10);

/// After so many consecutive answers that arrive too early, the path is assumed to be shorter.
const SOONER_MAX: u8 = 8;

/// The time from a request to its answer, as far as it is known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundTrip {
    /// The round-trip time measured by reports: no answer arrives earlier.
    least: Option<Duration>,
    smoothed: Option<Duration>,
    deviation: Duration,
    /// Whether a packet that was requested only once was answered.
    is_sure: bool,
    /// Number of consecutive packets that arrived earlier than an answer can.
    sooner: u8,
}

impl RoundTrip {
    pub(super) fn set_least(&mut self, time: Duration) {
        self.least = Some(time);
    }

    /// Notes that a packet arrived `time` after the first of `attempts` requests for it.
    pub(super) fn take(&mut self, time: Duration, attempts: u8) {
        // A packet that was merely late arrives earlier than any answer could.
        if self.least.is_some_and(|least| time < least * 3 / 4) {
            self.sooner += 1;
            if self.sooner < SOONER_MAX {
                return;
            }
            self.least = None;
            self.smoothed = None;
        }
        self.sooner = 0;
        // After several requests, it is unknown which one was answered (RFC 6298 section 3); until
        // a better value is known, the longest possible time is used.
        let is_sure = attempts == 1;
        match self.smoothed {
            Some(smoothed) if self.is_sure => {
                if is_sure {
                    self.deviation = (self.deviation * 3 + smoothed.abs_diff(time)) / 4;
                    self.smoothed = Some((smoothed * 7 + time) / 8);
                }
            }
            Some(_) if !is_sure => {}
            _ => {
                self.smoothed = Some(time);
                self.deviation = Duration::ZERO;
                self.is_sure = is_sure;
            }
        }
    }

    /// Notes that an answer arrived too late, `time` after the first request: the estimate is too
    /// short.
    pub(super) fn raise(&mut self, time: Duration) {
        if self.time().is_none_or(|known| known < time) {
            (self.smoothed, self.deviation, self.is_sure) = (Some(time), Duration::ZERO, false);
            self.least = self.least.max(Some(time * 2 / 3));
        }
    }

    /// Returns the time that an answer takes, if known.
    #[inline]
    pub(super) fn time(&self) -> Option<Duration> {
        self.smoothed.max(self.least)
    }

    /// Returns the time without an answer after which a request is repeated, if known.
    #[inline]
    pub(super) fn retry(&self) -> Option<Duration> {
        Some(self.time()? + MARGIN.max(self.deviation * 4))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn answers_are_smoothed_and_their_deviation_delays_the_next_request() {
        let mut round_trip = RoundTrip::default();
        assert_eq!((round_trip.time(), round_trip.retry()), (None, None));
        for n in 0..200_u32 {
            round_trip.take((80 + n % 2 * 40) * MS, 1);
        }
        let time = round_trip.time().unwrap();
        assert!((95 * MS..105 * MS).contains(&time), "{time:?}");
        let retry = round_trip.retry().unwrap();
        assert!((160 * MS..200 * MS).contains(&retry), "{retry:?}");
    }

    #[test]
    fn answers_to_repeated_requests_count_only_until_there_are_certain_ones() {
        let mut round_trip = RoundTrip::default();
        round_trip.take(200 * MS, 4);
        assert_eq!(round_trip.time(), Some(200 * MS));
        round_trip.take(100 * MS, 1);
        assert_eq!(round_trip.time(), Some(100 * MS));
        round_trip.take(400 * MS, 2);
        assert_eq!(round_trip.time(), Some(100 * MS));
    }

    #[test]
    fn a_packet_that_arrives_earlier_than_any_answer_is_no_answer() {
        let mut round_trip = RoundTrip::default();
        round_trip.set_least(100 * MS);
        round_trip.take(3 * MS, 1);
        assert_eq!(round_trip.time(), Some(100 * MS));
        round_trip.take(110 * MS, 1);
        assert_eq!(round_trip.time(), Some(110 * MS));
    }
}
