//! Feedback before the next regular report (RFC 4585 sections 3.5.2 and 3.5.3).

use std::time::{Duration, Instant};

use super::config::FeedbackTiming;
use super::random::Random;

/// The packet sent at the time of a regular report.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Slot {
    /// A full compound packet.
    Report,
    /// Only waiting feedback: `T_rr_interval` delays the report.
    Feedback,
    /// Nothing: `T_rr_interval` delays the report.
    Suppressed,
}

/// The state of early feedback; the names are those of RFC 4585 section 3.4.
#[derive(Clone, Debug)]
pub(super) struct Feedback {
    timing: FeedbackTiming,
    allow_early: bool,
    /// When the early packet is sent.
    te: Option<Instant>,
    /// Whether feedback waits for the next regular report.
    stored: bool,
    t_rr_last: Option<Instant>,
    t_rr_current_interval: Duration,
}

impl Feedback {
    pub(super) fn new(timing: FeedbackTiming) -> Self {
        Self {
            timing,
            allow_early: true,
            te: None,
            stored: false,
            t_rr_last: None,
            t_rr_current_interval: Duration::ZERO,
        }
    }

    /// Returns when the early packet is sent, if one is scheduled.
    pub(super) fn te(&self) -> Option<Instant> {
        self.te
    }

    /// Schedules feedback on an event at `t0` (RFC 4585 section 3.5.2, steps 2 to 4); returns when
    /// it is sent, or `None` if that would be too late.
    pub(super) fn want(
        &mut self,
        t0: Instant,
        tn: Instant,
        t_dither_max: Duration,
        random: &mut Random,
    ) -> Option<Instant> {
        if self.te.is_some() {
            return self.te;
        }
        let regular = tn.max(t0);
        if self.stored {
            return Some(regular);
        }
        let at_regular_in_time = regular - t0 < self.timing.delay_max;
        if t_dither_max > self.timing.delay_max && !at_regular_in_time {
            return None;
        }
        if tn.saturating_duration_since(t0) < t_dither_max || tn <= t0 {
            self.stored = true;
            return Some(regular);
        }
        if self.allow_early {
            self.te = Some(t0 + t_dither_max.mul_f64(random.unit()));
            return self.te;
        }
        self.stored = at_regular_in_time;
        at_regular_in_time.then_some(regular)
    }

    /// Drops waiting feedback: another member has sent the same (RFC 4585 section 3.5.2, step 5a).
    pub(super) fn cancel(&mut self) {
        self.te = None;
        self.stored = false;
    }

    /// Removes the early packet if it is due at `now`; returns whether it was (RFC 4585 section
    /// 3.5.2, step 6).
    pub(super) fn take_early(&mut self, now: Instant) -> bool {
        let due = self.te.is_some_and(|te| te <= now);
        if due {
            self.cancel();
            self.allow_early = false;
        }
        due
    }

    /// Returns the packet to send at tn, after timer reconsideration (RFC 4585 section 3.5.3).
    pub(super) fn at_regular(&mut self, tn: Instant) -> Slot {
        self.allow_early = true;
        let waiting = self.stored || self.te.is_some();
        self.cancel();
        let since = self.t_rr_last.map(|last| tn.saturating_duration_since(last));
        match since {
            Some(since) if since < self.t_rr_current_interval && waiting => Slot::Feedback,
            Some(since) if since < self.t_rr_current_interval => Slot::Suppressed,
            _ => Slot::Report,
        }
    }

    /// Notes that a regular report was sent.
    ///
    /// The next spacing is drawn once per report, as in RFC 8108 section 7.1.1. If it were drawn
    /// again at each tn (RFC 4585 section 3.5.3), many short intervals would nearly halve it.
    pub(super) fn note_report(&mut self, now: Instant, random: &mut Random) {
        self.t_rr_last = Some(now);
        self.t_rr_current_interval = random.around(self.timing.regular_interval_min);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[allow(clippy::disallowed_methods, reason = "a test's epoch")]
    fn set_up(regular_interval_min: Duration) -> (Instant, Feedback, Random) {
        let timing = FeedbackTiming { regular_interval_min, delay_max: 100 * MS };
        (Instant::now(), Feedback::new(timing), Random::new(1))
    }

    #[test]
    fn between_two_parties_the_first_event_is_reported_at_once_and_the_next_waits() {
        let (t0, mut feedback, mut random) = set_up(Duration::ZERO);
        let tn = t0 + 200 * MS;
        assert_eq!(feedback.want(t0, tn, Duration::ZERO, &mut random), Some(t0));
        assert!(feedback.take_early(t0));
        assert_eq!(feedback.want(t0 + MS, tn, Duration::ZERO, &mut random), None);
        let later = t0 + 150 * MS;
        assert_eq!(feedback.want(later, tn, Duration::ZERO, &mut random), Some(tn));
        assert_eq!(feedback.at_regular(tn), Slot::Report);
        assert_eq!(feedback.want(tn, tn + 200 * MS, Duration::ZERO, &mut random), Some(tn));
    }

    #[test]
    fn an_event_joins_the_packet_that_is_scheduled() {
        let (t0, mut feedback, mut random) = set_up(Duration::ZERO);
        let te = feedback.want(t0, t0 + 200 * MS, 80 * MS, &mut random);
        for later in 1..10 {
            let again = feedback.want(t0 + later * MS, t0 + 200 * MS, 80 * MS, &mut random);
            assert_eq!(again, te);
        }
    }

    #[test]
    fn many_parties_spread_their_feedback_over_the_dithering_interval() {
        let (t0, mut feedback, mut random) = set_up(Duration::ZERO);
        let mut delays = Vec::new();
        for _ in 0..1000 {
            let te = feedback.want(t0, t0 + 200 * MS, 80 * MS, &mut random).unwrap();
            delays.push(te - t0);
            feedback.cancel();
        }
        assert!(delays.iter().all(|delay| *delay <= 80 * MS));
        let late = delays.iter().filter(|delay| **delay > 40 * MS).count();
        assert!((400..600).contains(&late), "{late}");
    }

    #[test]
    fn a_regular_report_within_the_dithering_interval_takes_the_feedback() {
        let (t0, mut feedback, mut random) = set_up(Duration::ZERO);
        let tn = t0 + 70 * MS;
        assert_eq!(feedback.want(t0, tn, 80 * MS, &mut random), Some(tn));
        assert_eq!(feedback.te(), None);
    }

    #[test]
    fn feedback_that_dithering_makes_useless_is_not_sent() {
        let (t0, mut feedback, mut random) = set_up(Duration::ZERO);
        assert_eq!(feedback.want(t0, t0 + 300 * MS, 110 * MS, &mut random), None);
    }

    #[test]
    fn feedback_that_another_member_sent_is_not_repeated() {
        let (t0, mut feedback, mut random) = set_up(Duration::ZERO);
        let te = feedback.want(t0, t0 + 200 * MS, 80 * MS, &mut random).unwrap();
        feedback.cancel();
        assert!(!feedback.take_early(te));
    }

    #[test]
    fn the_regular_interval_holds_reports_back_but_not_feedback() {
        let (t0, mut feedback, mut random) = set_up(1000 * MS);
        assert_eq!(feedback.at_regular(t0), Slot::Report);
        feedback.note_report(t0, &mut random);
        assert_eq!(feedback.at_regular(t0 + 400 * MS), Slot::Suppressed);
        let tn = t0 + 450 * MS;
        let _ = feedback.want(t0 + 440 * MS, tn, 20 * MS, &mut random);
        assert_eq!(feedback.at_regular(tn), Slot::Feedback);
        assert_eq!(feedback.at_regular(t0 + 1500 * MS), Slot::Report);
    }
}
