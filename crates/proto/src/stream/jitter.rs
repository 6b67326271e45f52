//! Interarrival jitter (RFC 3550 section 6.4.1 and appendix A.8).

use std::time::{Duration, Instant};

use crate::time::{ClockRate, RtpTimestamp};

/// The smoothed difference between the spacing of packets on arrival and that of their timestamps.
#[derive(Clone, Debug)]
pub(super) struct Jitter {
    clock_rate: ClockRate,
    epoch: Instant,
    /// The last arrival, as time and in ticks; packets of one receive call share both.
    last: (Instant, u32),
    transit: Option<u32>,
    /// The jitter in ticks, times 16.
    scaled: u32,
}

impl Jitter {
    pub(super) fn new(clock_rate: ClockRate, epoch: Instant) -> Self {
        Self { clock_rate, epoch, last: (epoch, 0), transit: None, scaled: 0 }
    }

    /// Updates the jitter with a packet sampled at `timestamp`.
    #[inline]
    pub(super) fn take(&mut self, arrival: Instant, timestamp: RtpTimestamp) {
        if arrival != self.last.0 {
            let ticks = self.clock_rate.ticks(arrival.saturating_duration_since(self.epoch));
            self.last = (arrival, ticks);
        }
        let transit = self.last.1.wrapping_sub(timestamp.0);
        if let Some(before) = self.transit.replace(transit) {
            let deviation = RtpTimestamp(transit).distance(RtpTimestamp(before)).unsigned_abs();
            // RFC 3550 appendix A.8, in integers: J += (|D| - J) / 16. A deviation of more than
            // a few minutes is a jump of the clock, which must not overflow the sum.
            let deviation = deviation.min(u32::MAX >> 6);
            self.scaled = self.scaled - ((self.scaled + 8) >> 4) + deviation;
        }
    }

    /// Returns the jitter as time.
    pub(super) fn time(&self) -> Duration {
        self.clock_rate.duration(self.ticks())
    }

    /// Returns the jitter in ticks of the clock rate.
    pub(super) fn ticks(&self) -> u32 {
        self.scaled >> 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[allow(clippy::disallowed_methods, reason = "any epoch will do")]
    fn epoch() -> Instant {
        Instant::now()
    }

    #[test]
    fn packets_spaced_as_sampled_have_no_jitter() {
        let epoch = epoch();
        let mut jitter = Jitter::new(ClockRate::OPUS, epoch);
        for n in 0..100 {
            let arrival = epoch + Duration::from_millis(20 * u64::from(n));
            jitter.take(arrival, RtpTimestamp(960 * n));
        }
        assert_eq!(jitter.ticks(), 0);
    }

    #[test]
    fn a_constant_deviation_is_approached() {
        let epoch = epoch();
        let mut jitter = Jitter::new(ClockRate::OPUS, epoch);
        for n in 0..400 {
            let late = if n % 2 == 0 { 0 } else { 10 };
            let arrival = epoch + Duration::from_millis(20 * u64::from(n) + late);
            jitter.take(arrival, RtpTimestamp(960 * n));
        }
        assert!((470..=481).contains(&jitter.ticks()), "{}", jitter.ticks());
    }

    #[test]
    fn wild_timestamps_do_not_overflow() {
        let epoch = epoch();
        let mut jitter = Jitter::new(ClockRate::VIDEO, epoch);
        for n in 0..1000_u32 {
            jitter.take(epoch, RtpTimestamp(if n % 2 == 0 { 0 } else { 1 << 31 }));
        }
        assert!(jitter.ticks() <= u32::MAX >> 6);
    }
}
