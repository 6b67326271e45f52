//! The rate of a unit: a token bucket of octets.

use std::time::{Duration, Instant};

/// Minimum wait: shorter ones cost more than they smooth.
const WAIT_MIN: Duration = Duration::from_micros(50);

/// Octets that may be sent now, and the rate at which more become available.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket {
    /// Octets per second; 0 if unlimited.
    rate: f64,
    burst: f64,
    level: f64,
    filled_at: Option<Instant>,
}

impl Bucket {
    /// Creates a full bucket of `burst` octets, filled at `bit_rate` bits per second (0 means
    /// unlimited).
    pub(super) fn new(bit_rate: u64, burst: usize) -> Self {
        let burst = burst as f64;
        Self { rate: bit_rate as f64 / 8.0, burst, level: burst, filled_at: None }
    }

    /// Takes octets out; returns how long to wait before sending them.
    pub(super) fn take(&mut self, now: Instant, octets: usize) -> Duration {
        if self.rate <= 0.0 {
            return Duration::ZERO;
        }
        let since = self.filled_at.map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
        self.filled_at = Some(now);
        self.level = (self.level + since.as_secs_f64() * self.rate).min(self.burst);
        self.level -= octets as f64;
        if self.level >= 0.0 {
            return Duration::ZERO;
        }
        // At one bit per second the wait may be too long for a `Duration`.
        let wait = Duration::try_from_secs_f64(-self.level / self.rate).unwrap_or(Duration::MAX);
        let wait = wait.min(Duration::from_secs(1));
        if wait < WAIT_MIN { Duration::ZERO } else { wait }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_sent_at_once_and_the_rest_at_the_rate() {
        let mut bucket = Bucket::new(8_000_000, 1_000);
        let now = Instant::now();
        assert_eq!(bucket.take(now, 1_000), Duration::ZERO);
        assert_eq!(bucket.take(now, 500), Duration::from_micros(500));
        // The wait has refilled the bucket.
        let later = now + Duration::from_micros(500);
        assert_eq!(bucket.take(later, 500), Duration::from_micros(500));
        let much_later = now + Duration::from_secs(1);
        assert_eq!(bucket.take(much_later, 1_000), Duration::ZERO);
    }

    #[test]
    fn waits_too_short_to_sleep_are_added_up() {
        let mut bucket = Bucket::new(8_000_000, 0);
        let now = Instant::now();
        assert_eq!(bucket.take(now, 40), Duration::ZERO);
        assert_eq!(bucket.take(now, 40), Duration::from_micros(80));
    }

    #[test]
    fn without_a_rate_there_is_no_wait() {
        let mut bucket = Bucket::new(0, 0);
        assert_eq!(bucket.take(Instant::now(), usize::MAX), Duration::ZERO);
    }
}
