//! The round-trip time to another participant.

use std::time::Duration;

/// The round-trip time to a participant, estimated from several measurements.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RoundTripTime {
    /// The last measurement.
    pub last: Duration,
    /// The weighted mean of the measurements, with most weight on the newest (RFC 6298 section 2).
    pub smoothed: Duration,
    /// The mean deviation from `smoothed`; zero after the first measurement.
    pub deviation: Duration,
}

impl RoundTripTime {
    /// Creates an estimate from the first measurement.
    pub(super) fn new(time: Duration) -> Self {
        Self { last: time, smoothed: time, deviation: Duration::ZERO }
    }

    /// Returns the estimate after one more measurement.
    pub(super) fn with(self, time: Duration) -> Self {
        Self {
            last: time,
            smoothed: (self.smoothed * 7 + time) / 8,
            deviation: (self.deviation * 3 + self.smoothed.abs_diff(time)) / 4,
        }
    }

    /// Returns the time to wait for the answer to a request: nearly all answers arrive earlier.
    ///
    /// ```
    /// # use rushes_proto::control::RoundTripTime;
    /// # use std::time::Duration;
    /// let ms = Duration::from_millis;
    /// let time = RoundTripTime { last: ms(90), smoothed: ms(100), deviation: ms(15) };
    /// assert_eq!(time.timeout(), ms(160));
    /// ```
    pub fn timeout(&self) -> Duration {
        self.smoothed + self.deviation * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn the_estimate_follows_the_path_and_its_jitter() {
        let mut time = RoundTripTime::new(40 * MS);
        assert_eq!(time.timeout(), 40 * MS);
        for _ in 0..100 {
            time = time.with(220 * MS);
        }
        assert!(time.smoothed.abs_diff(220 * MS) < MS && time.deviation < MS, "{time:?}");
        for n in 0..100 {
            time = time.with(if n % 2 == 0 { 200 * MS } else { 240 * MS });
        }
        assert!(time.timeout() > 240 * MS && time.timeout() < 320 * MS, "{time:?}");
    }
}
