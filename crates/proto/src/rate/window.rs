//! The reference window (section 4.2.2 of the draft).

use super::delay::QueueDelay;
use super::{MSS, VIRTUAL_RTT};

/// Minimum window in octets.
const MIN_REF_WND: f64 = 3000.0;

/// By how much the window may exceed the octets in flight.
const BYTES_IN_FLIGHT_HEAD_ROOM: f64 = 1.5;

/// Factors after a loss and after a mark of classic ECN.
const BETA_LOSS: f64 = 0.7;
const BETA_ECN: f64 = 0.8;

/// Factor of a reduction while the target is already below the acknowledged rate.
const BACKOFF_SCALE_LOW_TARGET_RATE: f64 = 0.25;

/// Number of round trips after congestion in which the window grows cautiously.
const POST_CONGESTION_DELAY_RTT: f64 = 100.0;

/// Share of the window by which it may grow in a round trip.
const MUL_INCREASE_FACTOR: f64 = 0.02;

/// What a report says, as far as it changes the window. Times are in seconds.
#[allow(clippy::struct_excessive_bools, reason = "they are independent of each other")]
pub(super) struct Update<'a> {
    pub(super) now: f64,
    /// Octets in flight after the report.
    pub(super) in_flight: u64,
    pub(super) rtt: f64,
    pub(super) has_loss: bool,
    pub(super) has_mark: bool,
    /// The average share of marked packets, with L4S.
    pub(super) l4s_alpha: Option<f64>,
    pub(super) delay: &'a QueueDelay,
    /// Octets acknowledged since the last update, without those of marked packets.
    pub(super) unmarked: u64,
    /// Whether the target is already well below the acknowledged rate.
    pub(super) is_lowered: bool,
    /// Whether the window may grow: the target is below its maximum.
    pub(super) may_grow: bool,
}

/// The octets that should be in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReferenceWindow {
    octets: f64,
    /// The window at which congestion began last.
    inflection: f64,
    may_set_inflection: bool,
    congested: Option<f64>,
    reacted: f64,
    /// A loss and a mark since the last reaction.
    has_loss: bool,
    has_mark: bool,
    /// The most octets in flight in this round trip and in the one before.
    most_in_flight: [u64; 2],
    round_trip_began: f64,
}

impl ReferenceWindow {
    pub(super) fn new() -> Self {
        Self {
            octets: MIN_REF_WND,
            inflection: 1.0,
            may_set_inflection: true,
            congested: None,
            reacted: 0.0,
            has_loss: false,
            has_mark: false,
            most_in_flight: [0; 2],
            round_trip_began: 0.0,
        }
    }

    pub(super) fn octets(&self) -> f64 {
        self.octets
    }

    pub(super) fn set(&mut self, octets: f64) {
        self.octets = octets.max(MIN_REF_WND);
    }

    /// Returns the share of the window that one packet is, at most 1.
    pub(super) fn ratio(&self) -> f64 {
        (MSS / self.octets).min(1.0)
    }

    pub(super) fn note_in_flight(&mut self, octets: u64) {
        self.most_in_flight[0] = self.most_in_flight[0].max(octets);
    }

    /// Returns 0.1 near the window at which congestion began last, up to 1 far from it.
    fn distance(&self) -> f64 {
        let distance = (self.octets - self.inflection) / self.inflection * 8.0;
        (distance * distance).clamp(0.1, 1.0)
    }

    pub(super) fn update(&mut self, update: &Update<'_>) {
        let distance = self.distance();
        self.reduce(update, distance);
        self.grow(update, distance);
        if update.now - self.round_trip_began >= update.rtt {
            self.round_trip_began = update.now;
            self.most_in_flight = [update.in_flight, self.most_in_flight[0]];
        }
    }

    /// Reduces the window by congestion, once in a round trip (section 4.2.2.1).
    fn reduce(&mut self, update: &Update<'_>, distance: f64) {
        let Update { now, rtt, delay, .. } = *update;
        if update.has_loss || update.has_mark {
            self.congested = Some(now);
        }
        self.has_loss |= update.has_loss;
        self.has_mark |= update.has_mark;
        if now - self.reacted < rtt.min(VIRTUAL_RTT) {
            return;
        }
        // A reaction in each VIRTUAL_RTT of a longer round trip is the smaller.
        let often = (rtt / VIRTUAL_RTT).max(1.0);
        let lowered = if update.is_lowered { BACKOFF_SCALE_LOW_TARGET_RATE } else { 1.0 };
        let factor = if self.has_loss {
            BETA_LOSS
        } else if self.has_mark {
            match update.l4s_alpha {
                Some(alpha) => {
                    let calm = delay.last < delay.target / 4.0;
                    let scale = if calm { distance.max(0.25) } else { 1.0 };
                    1.0 - alpha / 2.0 / often * scale * lowered
                }
                None => BETA_ECN,
            }
        } else if delay.average > delay.target / 2.0 {
            let alpha = (delay.average / (delay.target / 2.0) - 1.0).min(1.0);
            1.0 - alpha / 2.0 / often * lowered
        } else {
            return;
        };
        if self.may_set_inflection {
            self.inflection = self.octets;
            self.may_set_inflection = false;
        }
        let is_l4s = !self.has_loss && self.has_mark && update.l4s_alpha.is_some();
        if is_l4s && now - self.reacted > 100.0 * rtt.max(VIRTUAL_RTT) {
            // Without congestion for long, the window may have grown far beyond what is in flight.
            // Before the second round trip, nothing is known of it.
            if self.most_in_flight[1] > 0 {
                self.octets = self.octets.min(self.most_in_flight[1] as f64);
            }
        }
        self.set(self.octets * factor);
        self.reacted = now;
        (self.has_loss, self.has_mark) = (false, false);
    }

    /// Enlarges the window by acknowledged octets (section 4.2.2.2).
    fn grow(&mut self, update: &Update<'_>, distance: f64) {
        let rtt = update.rtt;
        let cautious = POST_CONGESTION_DELAY_RTT * rtt.max(VIRTUAL_RTT);
        let calm = self.congested.map_or(1.0, |at| ((update.now - at) / cautious).clamp(0.0, 1.0));
        let growth = update.unmarked as f64
            * self.ratio()
            * (rtt / VIRTUAL_RTT).min(1.0)
            * distance.max(0.25)
            * (1.0 + MUL_INCREASE_FACTOR * self.octets / MSS * calm * distance);
        let most = self.most_in_flight[0].max(self.most_in_flight[1]) as f64;
        let octets = self.octets + growth;
        if update.may_grow && growth > 0.0 && octets <= MSS + most * BYTES_IN_FLIGHT_HEAD_ROOM {
            self.octets = octets;
            self.may_set_inflection = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the share of the window that a delay of three quarters of its target takes away.
    fn reduction(is_lowered: bool) -> f64 {
        let mut delay = QueueDelay::new();
        delay.average = 0.75 * delay.target;
        let mut window = ReferenceWindow::new();
        window.set(100_000.0);
        window.update(&Update {
            now: 1.0,
            in_flight: 50_000,
            rtt: 0.1,
            has_loss: false,
            has_mark: false,
            l4s_alpha: None,
            delay: &delay,
            unmarked: 0,
            is_lowered,
            may_grow: true,
        });
        1.0 - window.octets() / 100_000.0
    }

    #[test]
    fn a_target_that_is_already_lowered_keeps_the_window_from_falling_too_far() {
        // Half of alpha, which is a half, in each of four reactions of a round trip of 100 ms.
        assert!((reduction(false) - 0.0625).abs() < 1e-9, "{}", reduction(false));
        assert!((reduction(true) - 0.0625 / 4.0).abs() < 1e-9, "{}", reduction(true));
    }
}
