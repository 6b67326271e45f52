//! The delay in the queue of the path (section 4.2.1.4 of the draft; RFC 6817).

use std::collections::VecDeque;

use super::VIRTUAL_RTT;
use super::feedback::ReceiverTime;

/// Weight of a new delay above the average.
const QDELAY_AVG_G: f64 = 0.25;

/// Limits of the target of the queue's delay, in seconds.
const QDELAY_TARGET_LO: f64 = 0.06;
const QDELAY_TARGET_HI: f64 = 0.4;

/// Weight of the minimum delay of a round trip, by which the drift of clocks is noticed.
const QDELAY_MIN_AVG_ALPHA: f64 = 1.0 / 256.0;

/// Maximum delay in seconds: greater ones are errors of a clock.
const QDELAY_MAX: f64 = 10.0;

/// Number and length in seconds of the periods whose least delay is remembered (RFC 6817 section
/// 2.4.2).
const BASE_PERIODS: usize = 10;
const BASE_PERIOD: f64 = 60.0;

/// Numbers of delays of which the mean and the variance are taken.
const HISTORY_SHORT: usize = 50;
const HISTORY_LONG: usize = 200;

/// Weight of a round trip in the share of round trips with losses. A loss counts for 33 round trips:
/// with a longer memory, a path that becomes slower would be taken for one with competing flows.
const LOSS_EVENTS_G: f64 = 1.0 / 8.0;

/// Estimates the delay of the queue from times of two clocks.
#[derive(Clone, Debug)]
pub(super) struct QueueDelay {
    /// The first difference of the clocks, from which others are counted.
    origin: Option<u32>,
    /// The least difference of each period, the latest last.
    base: VecDeque<i32>,
    period_began: f64,
    /// The latest delay.
    pub(super) last: f64,
    /// The average, which rises slowly and falls at once.
    pub(super) average: f64,
    /// The delay that is aimed at.
    pub(super) target: f64,
    updated: f64,
    /// When this round trip began, and whether a loss was reported in it.
    round_trip_began: f64,
    has_loss: bool,
    /// The least delay of this round trip, if any was noted, and its long-term average.
    least: Option<f64>,
    least_average: f64,
    /// Delays in units of the lower target.
    history: VecDeque<f64>,
    loss_events: f64,
}

impl QueueDelay {
    pub(super) fn new() -> Self {
        Self {
            origin: None,
            base: VecDeque::new(),
            period_began: 0.0,
            last: 0.0,
            average: 0.0,
            target: QDELAY_TARGET_LO,
            updated: 0.0,
            round_trip_began: 0.0,
            has_loss: false,
            least: None,
            least_average: 0.0,
            history: VecDeque::new(),
            loss_events: 0.0,
        }
    }

    /// Notes when a packet that was sent at `sent` seconds arrived.
    pub(super) fn note(&mut self, now: f64, sent: f64, arrival: ReceiverTime) {
        let difference = arrival.0.wrapping_sub((sent * 65_536.0) as u64 as u32);
        let origin = *self.origin.get_or_insert(difference);
        let difference = difference.wrapping_sub(origin).cast_signed();
        if self.base.is_empty() || now - self.period_began >= BASE_PERIOD {
            self.period_began = now;
            self.base.push_back(difference);
            if self.base.len() > BASE_PERIODS {
                self.base.pop_front();
            }
        }
        if let Some(base) = self.base.back_mut() {
            *base = difference.min(*base);
        }
        let base = self.base.iter().copied().min().unwrap_or(difference);
        let units = difference.saturating_sub(base);
        self.last = (f64::from(units) / 65_536.0).min(QDELAY_MAX);
        self.least = Some(self.least.map_or(self.last, |least| least.min(self.last)));
    }

    /// Updates the average and the target, once in a round trip or more often. Returns whether the
    /// clocks drift, so that delays are measured anew.
    pub(super) fn update(&mut self, now: f64, rtt: f64, has_loss: bool) -> bool {
        self.has_loss |= has_loss;
        if now - self.updated >= rtt.min(VIRTUAL_RTT) {
            self.updated = now;
            self.average = if self.last < self.average {
                self.last
            } else {
                self.average + QDELAY_AVG_G * (self.last - self.average)
            };
            self.adjust_target();
        }
        if now - self.round_trip_began < rtt {
            return false;
        }
        self.round_trip_began = now;
        self.end_round_trip()
    }

    /// Updates the averages that have a value for each round trip.
    fn end_round_trip(&mut self) -> bool {
        let event = f64::from(u8::from(std::mem::take(&mut self.has_loss)));
        self.loss_events += LOSS_EVENTS_G * (event - self.loss_events);
        let least = self.least.take().unwrap_or(self.least_average);
        self.least_average += QDELAY_MIN_AVG_ALPHA * (least - self.least_average);
        let has_drift = self.least_average > self.target / 4.0;
        if has_drift {
            self.least_average = 0.0;
            self.base.clear();
        }
        has_drift
    }

    /// Raises the target when flows compete that fill the queue until packets are lost (section
    /// 4.5.4).
    fn adjust_target(&mut self) {
        self.history.push_back(self.last / QDELAY_TARGET_LO);
        if self.history.len() > HISTORY_LONG {
            self.history.pop_front();
        }
        let mean = |count: usize| {
            let delays = self.history.iter().rev().take(count);
            delays.sum::<f64>() / count.min(self.history.len()) as f64
        };
        let (short, long) = (mean(HISTORY_SHORT), mean(HISTORY_LONG));
        let squares = self.history.iter().map(|delay| (delay - long) * (delay - long));
        let variance = squares.sum::<f64>() / self.history.len() as f64;
        let wanted = (short + variance.sqrt()) * QDELAY_TARGET_LO;
        self.target = if self.loss_events > 0.002 {
            1.5 * wanted
        } else if variance < 0.2 {
            wanted
        } else if wanted < QDELAY_TARGET_LO {
            wanted.max(self.target * 0.5)
        } else {
            self.target * 0.9
        };
        self.target = self.target.clamp(QDELAY_TARGET_LO, QDELAY_TARGET_HI);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_is_what_exceeds_the_least_one_whatever_the_clocks_say() {
        for offset in [0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_0000] {
            let mut delay = QueueDelay::new();
            let mut note = |sent: f64, travel: f64| {
                let arrival = ((sent + travel) * 65_536.0) as u64 as u32;
                delay.note(sent, sent, ReceiverTime(arrival.wrapping_add(offset)));
                delay.last
            };
            assert!(note(1.0, 0.05) < 0.001);
            assert!((note(1.1, 0.15) - 0.1).abs() < 0.001, "{offset}");
            assert!((note(70_000.0, 0.25) - 0.2).abs() < 0.001, "{offset}");
        }
    }

    #[test]
    fn a_loss_counts_for_its_round_trip_whenever_it_is_reported() {
        let mut delay = QueueDelay::new();
        // A loss in each round trip of 100 ms, 10 ms after an update of the average.
        for n in 0..2000_u32 {
            delay.update(f64::from(n) * 0.01, 0.1, n % 10 == 1);
        }
        assert!(delay.loss_events > 0.9, "{}", delay.loss_events);
        // One loss in eight round trips.
        let mut delay = QueueDelay::new();
        for n in 0..6400_u32 {
            delay.update(f64::from(n) * 0.01, 0.1, n % 80 == 71);
        }
        assert!((0.1..0.3).contains(&delay.loss_events), "{}", delay.loss_events);
    }

    #[test]
    fn a_queue_of_others_is_not_taken_for_drift_within_a_few_round_trips() {
        let mut delay = QueueDelay::new();
        delay.note(0.0, 0.0, ReceiverTime(0));
        for n in 1..2000_u32 {
            let sent = f64::from(n) * 0.01;
            delay.note(sent, sent, ReceiverTime(((sent + 0.05) * 65_536.0) as u64 as u32));
            assert!(!delay.update(sent, 0.4, false), "{sent}");
        }
    }

    #[test]
    fn clocks_that_drift_apart_are_measured_anew() {
        let mut delay = QueueDelay::new();
        let mut resets = 0;
        for n in 0..100_000_u32 {
            let sent = f64::from(n) * 0.05;
            // 200 parts in a million.
            let arrival = (sent * 1.0002 * 65_536.0) as u64 as u32;
            delay.note(sent, sent, ReceiverTime(arrival));
            resets += u32::from(delay.update(sent, 0.05, false));
        }
        assert!(resets > 3, "{resets}");
        assert!(delay.last < 0.1, "{}", delay.last);
    }
}
