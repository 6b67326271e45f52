//! Estimates the server's clock by exchanges of four times, as in NTP (RFC 5905 section 8).

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::message::{Ping, Pong};

/// Number of exchanges of which the shortest is used (as in RFC 5905 section 10).
const EXCHANGES: usize = 8;

/// Maximum drift between two clocks, in microseconds per second; crystals drift at most 50 each.
const DRIFT_PER_SECOND: u64 = 100;

/// A clock that counts microseconds since an instant.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Timeline {
    epoch: Instant,
}

impl Timeline {
    /// Creates a clock that is 0 up to `epoch`. The whole program should use one.
    pub fn new(epoch: Instant) -> Self {
        Self { epoch }
    }

    /// Returns the clock's time at `instant`, in microseconds.
    pub fn micros(&self, instant: Instant) -> u64 {
        let since = instant.saturating_duration_since(self.epoch);
        u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
    }
}

/// An estimate of the server's clock.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ClockEstimate {
    /// Microseconds by which the server's clock is ahead of the client's; negative if it is behind.
    pub offset: i64,
    /// The round-trip time of the exchange that gave `offset`: the shortest of the last eight.
    pub round_trip: Duration,
    /// Maximum error of `offset`: half of the round-trip time, and the drift since then.
    pub error: Duration,
}

impl ClockEstimate {
    /// Converts the server's time `server` to the client's; both in microseconds.
    pub fn to_client(&self, server: u64) -> i64 {
        i64::try_from(server).unwrap_or(i64::MAX).saturating_sub(self.offset)
    }
}

#[derive(Clone, Copy, Debug)]
struct Exchange {
    offset: i64,
    round_trip: u64,
    /// When the exchange ended, in microseconds of the client's clock.
    ended: u64,
}

/// The client's half of the clock exchange.
///
/// A delayed message makes its exchange asymmetric, but also longer, so the shortest of the last
/// eight is used. If an exchange contradicts it by more than the errors of both, a clock was set or
/// stood still; the older exchanges are then discarded.
#[derive(Debug, Default)]
pub struct ClockFilter {
    next_id: u32,
    unanswered: VecDeque<Ping>,
    exchanges: VecDeque<Exchange>,
}

impl ClockFilter {
    /// Creates a filter without exchanges.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a ping to be sent now; `now` is in microseconds of the client's clock.
    pub fn ask(&mut self, now: u64) -> Ping {
        let ping = Ping { id: self.next_id, t1: now };
        self.next_id = self.next_id.wrapping_add(1);
        if self.unanswered.len() >= EXCHANGES {
            self.unanswered.pop_front();
        }
        self.unanswered.push_back(ping);
        ping
    }

    /// Handles an answer that arrived at `t4`, in microseconds of the client's clock.
    ///
    /// Returns whether the answer is plausible and belongs to one of the last eight pings.
    pub fn answer(&mut self, pong: Pong, t4: u64) -> bool {
        let index =
            self.unanswered.iter().position(|ping| ping.id == pong.id && ping.t1 == pong.t1);
        let Some(index) = index else { return false };
        self.unanswered.remove(index);
        let ended = t4;
        let [t1, t2, t3, t4] = [pong.t1, pong.t2, pong.t3, t4].map(i128::from);
        let (Ok(offset), Ok(round_trip)) = (
            i64::try_from((t2 - t1 + t3 - t4).div_euclid(2)),
            u64::try_from((t4 - t1) - (t3 - t2)),
        ) else {
            return false;
        };
        if t3 < t2 || offset == i64::MIN {
            return false;
        }
        let new = Exchange { offset, round_trip, ended };
        if self.best().is_some_and(|best| contradict(&best, &new)) {
            self.exchanges.clear();
        }
        if self.exchanges.len() >= EXCHANGES {
            self.exchanges.pop_front();
        }
        self.exchanges.push_back(new);
        true
    }

    /// Returns the estimate at `now`, a time of the client's clock in µs; `None` before any answer.
    pub fn estimate(&self, now: u64) -> Option<ClockEstimate> {
        let best = self.best()?;
        let error = half(best.round_trip).saturating_add(drift(best.ended, now));
        Some(ClockEstimate {
            offset: best.offset,
            round_trip: Duration::from_micros(best.round_trip),
            error: Duration::from_micros(error),
        })
    }

    /// Returns the shortest exchange; among equal ones, the newest.
    fn best(&self) -> Option<Exchange> {
        self.exchanges.iter().rev().min_by_key(|exchange| exchange.round_trip).copied()
    }
}

/// Returns whether two exchanges cannot both be right.
fn contradict(old: &Exchange, new: &Exchange) -> bool {
    let both = half(old.round_trip).saturating_add(half(new.round_trip));
    old.offset.abs_diff(new.offset) > both.saturating_add(drift(old.ended, new.ended))
}

/// Returns half of a round-trip time, rounded up, plus one for the rounding of the offset.
fn half(round_trip: u64) -> u64 {
    round_trip / 2 + 1
}

/// Returns the microseconds that two clocks can drift apart between two times.
fn drift(from: u64, to: u64) -> u64 {
    to.saturating_sub(from) / (1_000_000 / DRIFT_PER_SECOND) + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Makes one exchange a second with these delays there and back; returns the time at the end.
    ///
    /// `server` converts the client's time to the server's.
    fn exchange(
        filter: &mut ClockFilter,
        delays: &[(u64, u64)],
        start: u64,
        server: impl Fn(u64) -> u64,
    ) -> u64 {
        let mut now = start;
        for (there, back) in delays {
            let ping = filter.ask(now);
            let (t2, t3) = (server(now + there), server(now + there + 5));
            let t4 = now + there + 5 + back;
            assert!(filter.answer(Pong { id: ping.id, t1: ping.t1, t2, t3 }, t4));
            now = t4.max(now + 1_000_000);
        }
        now
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_error_is_at_most_half_of_the_shortest_round_trip(
            delays in prop::collection::vec((0..50_000_u64, 0..50_000_u64), 1..30),
            start in 0..1_u64 << 40,
            ahead in 0..1_u64 << 40,
        ) {
            let mut filter = ClockFilter::new();
            let now = exchange(&mut filter, &delays, start, |now| now + ahead);
            let estimate = filter.estimate(now).unwrap();
            let last = &delays[delays.len().saturating_sub(8)..];
            let shortest = last.iter().map(|(there, back)| there + back).min().unwrap();
            prop_assert_eq!(estimate.round_trip, Duration::from_micros(shortest));
            prop_assert!(estimate.offset.abs_diff(ahead.cast_signed()) <= shortest.div_ceil(2));
        }

        #[test]
        fn clocks_that_drift_apart_stay_within_the_estimated_error(
            delays in prop::collection::vec((0..5_000_u64, 0..5_000_u64), 1..30),
            per_second in 0..=90_u64,
        ) {
            let mut filter = ClockFilter::new();
            let server = |now: u64| 7_000_000 + now + now * per_second / 1_000_000;
            let now = exchange(&mut filter, &delays, 1_000_000, server);
            let estimate = filter.estimate(now).unwrap();
            let off = estimate.offset.abs_diff((server(now) - now).cast_signed());
            prop_assert!(u128::from(off) <= estimate.error.as_micros());
        }

        #[test]
        fn any_answer_is_taken_or_refused_without_panic(
            times in prop::array::uniform4(any::<u64>()),
            now: u64,
        ) {
            let mut filter = ClockFilter::new();
            let ping = filter.ask(times[0]);
            let pong = Pong { id: ping.id, t1: ping.t1, t2: times[1], t3: times[2] };
            filter.answer(pong, times[3]);
            if let Some(estimate) = filter.estimate(now) {
                estimate.to_client(times[1]);
            }
        }
    }

    #[test]
    fn a_clock_that_was_set_is_followed_at_once() {
        let mut filter = ClockFilter::new();
        let now = exchange(&mut filter, &[(10, 10); 8], 0, |now| now + 1_000_000);
        assert_eq!(filter.estimate(now).unwrap().offset, 1_000_000);
        let now = exchange(&mut filter, &[(500, 500)], now, |now| now + 9_000_000);
        assert_eq!(filter.estimate(now).unwrap().offset, 9_000_000);
    }

    #[test]
    fn an_answer_without_a_request_is_refused() {
        let mut filter = ClockFilter::new();
        let ping = filter.ask(100);
        let pong = Pong { id: ping.id, t1: ping.t1, t2: 5, t3: 6 };
        assert!(!filter.answer(Pong { id: ping.id + 1, ..pong }, 200));
        assert!(!filter.answer(Pong { t1: 99, ..pong }, 200));
        assert!(filter.answer(pong, 200));
        assert!(!filter.answer(pong, 200), "twice");
        let ping = filter.ask(300);
        let pong = Pong { id: ping.id, t1: ping.t1, t2: 9, t3: 8 };
        assert!(!filter.answer(pong, 400), "sent before the ping arrived");
        assert_eq!(filter.estimate(400).unwrap().round_trip, Duration::from_micros(99));
    }
}
