//! Sampling instants of the frames of a live source.

use std::time::{Duration, Instant};

use rushes_proto::FrameRate;

/// Divisor of the correction: 1/8 of the difference between expected and real arrival is applied.
const PHASE_GAIN: i64 = 8;

/// Maximum weight of the previous mean interval, in intervals.
const INTERVALS: u32 = 16;

/// Lateness of a frame after which the clock restarts at its arrival: the source paused.
const PAUSE: Duration = Duration::from_millis(500);

/// Derives the sampling instants of a live source's frames from their arrival.
///
/// The instants increase and follow the source's clock without the jitter of its pipe. With a known
/// frame rate they are whole intervals apart, even after a pause.
///
/// ```
/// use rushes::file::ArrivalClock;
/// use std::time::{Duration, Instant};
///
/// let mut clock = ArrivalClock::new(None);
/// let start = Instant::now();
/// assert_eq!(clock.next(start), start);
/// let second = clock.next(start + Duration::from_millis(35));
/// assert!(second > start + Duration::from_millis(33) && second <= start + Duration::from_millis(35));
/// ```
#[derive(Clone, Debug)]
pub struct ArrivalClock {
    rate: Option<FrameRate>,
    interval: Duration,
    last: Option<Instant>,
    arrivals: Arrivals,
}

/// The arrivals from which the interval is measured.
#[derive(Clone, Debug, Default)]
struct Arrivals {
    last: Option<Instant>,
    /// Intervals in the mean, at most [`INTERVALS`].
    intervals: u32,
    /// Frames that arrived together with the one at `last`.
    together: u32,
}

impl Arrivals {
    /// Returns the mean interval after a frame at `arrival`; `interval` is the mean before it.
    /// Frames that arrive together divide the interval that follows among them.
    fn next(&mut self, arrival: Instant, interval: Duration) -> Duration {
        let Some(last) = self.last else {
            self.last = Some(arrival);
            return interval;
        };
        let since = arrival.saturating_duration_since(last);
        if since < interval / 8 {
            self.together += 1;
            return interval;
        }
        self.last = Some(arrival);
        let frames = std::mem::take(&mut self.together) + 1;
        if since > PAUSE {
            return interval;
        }
        self.intervals = (self.intervals + 1).min(INTERVALS);
        (interval * (self.intervals - 1) + since / frames) / self.intervals
    }
}

impl ArrivalClock {
    /// Creates a clock for frames at `rate`; with `None` it measures the rate.
    pub fn new(rate: Option<FrameRate>) -> Self {
        let interval = rate.unwrap_or_default().interval();
        Self { rate, interval, last: None, arrivals: Arrivals::default() }
    }

    /// Returns the clock with the frame rate `rate` from the next frame on.
    #[must_use]
    pub fn at_rate(self, rate: FrameRate) -> Self {
        Self { last: self.last, ..Self::new(Some(rate)) }
    }

    /// Returns the frame interval, given or measured so far (at first 1/30 s).
    pub fn interval(&self) -> Duration {
        self.interval
    }

    /// Returns the sampling instant of the next frame, whose first octets arrived at `arrival`. The
    /// instant is later than `arrival` if the frame is early: at an unknown rate, frames that
    /// arrive together are placed at least three quarters of an interval apart.
    pub fn next(&mut self, arrival: Instant) -> Instant {
        let Some(last) = self.last else {
            self.arrivals.next(arrival, self.interval);
            self.last = Some(arrival);
            return arrival;
        };
        let instant = if let Some(rate) = self.rate {
            after(last, rate, arrival)
        } else {
            self.interval = self.arrivals.next(arrival, self.interval);
            let expected = last + self.interval;
            let late = nanos_between(expected, arrival);
            let begins_anew = late > nanos(PAUSE);
            let smoothed = moved(expected, late / PHASE_GAIN);
            let instant = if begins_anew { arrival } else { smoothed };
            instant.max(last + self.interval * 3 / 4)
        };
        self.last = Some(instant);
        instant
    }
}

/// Returns the instant one interval of `rate` after `last`; after a pause, the first whole number
/// of intervals that is not before `arrival`.
fn after(last: Instant, rate: FrameRate, arrival: Instant) -> Instant {
    let next = last + rate.interval();
    if arrival.saturating_duration_since(next) <= PAUSE {
        return next;
    }
    let intervals = (arrival - last).as_nanos().div_ceil(rate.interval().as_nanos().max(1));
    last + rate.interval() * u32::try_from(intervals).unwrap_or(u32::MAX)
}

fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

/// Returns the nanoseconds from `from` to `to`.
fn nanos_between(from: Instant, to: Instant) -> i64 {
    nanos(to.saturating_duration_since(from)) - nanos(from.saturating_duration_since(to))
}

/// Returns the instant `nanos` nanoseconds after `instant`.
fn moved(instant: Instant, nanos: i64) -> Instant {
    let by = Duration::from_nanos(nanos.unsigned_abs());
    if nanos < 0 { instant.checked_sub(by).unwrap_or(instant) } else { instant + by }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn instants(rate: Option<f64>, arrivals: impl IntoIterator<Item = u64>) -> Vec<f64> {
        let mut clock = ArrivalClock::new(rate.and_then(FrameRate::from_f64));
        let start = Instant::now();
        let next = |arrival: u64| clock.next(start + Duration::from_micros(arrival)) - start;
        arrivals.into_iter().map(next).map(|time| time.as_secs_f64() * 1e3).collect()
    }

    #[test]
    fn jitter_is_smoothed_and_the_rate_is_found() {
        // 50 frames per second, up to 12 ms late.
        let arrivals = (0..500_u64).map(|n| n * 20_000 + (n * 7919) % 12_000);
        let found = instants(None, arrivals);
        let steps: Vec<_> = found.windows(2).map(|pair| pair[1] - pair[0]).skip(250).collect();
        assert!(steps.iter().all(|step| (17.0..23.0).contains(step)), "{steps:?}");
        let mean = steps.iter().sum::<f64>() / steps.len() as f64;
        assert!((mean - 20.0).abs() < 0.1, "{mean}");
    }

    #[test]
    fn with_a_rate_instants_are_whole_intervals_apart_also_over_a_pause() {
        let arrivals = (0..20).chain(100..120).map(|n| n * 40_000 + (n % 3) * 9000);
        let found = instants(Some(25.0), arrivals);
        let expected: Vec<_> = (0..20).chain(100..120).map(|n| n as f64 * 40.0).collect();
        let late: Vec<_> = found.iter().zip(&expected).map(|(it, want)| it - want).collect();
        assert!(late[..20].iter().all(|late| late.abs() < 1e-6), "{late:?}");
        // After the pause the phase can differ by a frame, and is kept.
        assert!(late[20..].iter().all(|it| (it - late[20]).abs() < 1e-6 && *it < 41.0), "{late:?}");
        assert!((late[20] / 40.0).fract().abs() < 1e-6, "{late:?}");
    }

    #[test]
    fn after_a_pause_the_instants_follow_at_once() {
        let found = instants(None, [0, 33_000, 66_000, 5_000_000, 5_033_000]);
        assert!((found[3] - 5000.0).abs() < 1e-6, "{found:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..<_>::default() })]

        #[test]
        fn instants_increase_whenever_frames_come(
            gaps in prop::collection::vec(0..2_000_000_u64, 1..100),
            rate in prop::option::of(1.0..240.0_f64),
        ) {
            let arrivals = gaps.iter().scan(0, |at, gap| { *at += gap; Some(*at) });
            let found = instants(rate, arrivals);
            prop_assert!(found.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", found);
        }

        #[test]
        fn an_unknown_rate_is_measured(interval in 5_000..500_000_u64, together in 1..4_u64) {
            let arrival = |n: u64| (n - n % together) * interval;
            let found = instants(None, (0..400).map(arrival));
            let mean = (found[399] - found[200]) * 1e3 / 199.0;
            prop_assert!((mean / interval as f64 - 1.0).abs() < 0.05, "{} {}", mean, interval);
        }
    }

    #[test]
    fn an_encoder_that_ends_delivers_its_last_frames_at_once() {
        let arrivals = (0..100).map(|n| n * 40_000).chain([100 * 40_000; 45]);
        let found = instants(None, arrivals);
        let steps: Vec<_> = found.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(steps.iter().all(|step| (29.0..41.0).contains(step)), "{steps:?}");
    }
}
