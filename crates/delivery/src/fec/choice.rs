//! The ratio of repair packets by the losses that a client reports.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use crate::plan::repairs;
use crate::{FEC_PERCENT_MAX, Plan};

/// The share of frames that may stay damaged.
const DAMAGED: f64 = 0.001;

/// By how much more than the reported loss is planned for: losses come in bursts.
const MARGIN_MIN: f64 = 2.0;
const MARGIN_MAX: f64 = 8.0;

/// The factor by which the margin grows if packets stay lost, and shrinks again.
const MARGIN_STEP: f64 = 1.5;

/// The largest loss that is planned for.
const LOSS_MAX: f64 = 0.5;

/// Time over which the share of lost packets is counted, and the least of it that counts.
const WINDOW: Duration = Duration::from_secs(1);
const WINDOW_MIN: Duration = Duration::from_millis(200);

/// Reports that come faster than this are not used.
const SPACING: Duration = Duration::from_millis(50);

/// Packets of which the share of lost ones counts.
const PACKETS_MIN: u64 = 50;

/// How long the highest loss is planned for. Losses come in phases.
const HOLD: Duration = Duration::from_secs(10);

/// How long requests alone are not relied on after they left packets lost.
const DISTRUST: Duration = Duration::from_secs(60);

/// Counts of a session, since its beginning.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LossReport {
    /// Packets sent, without repair packets and those sent again.
    pub sent: u64,
    /// Packets that the path lost, whether or not they were recovered.
    pub lost: u64,
    /// Packets that stayed lost.
    pub unrecovered: u64,
    /// How many requests of a packet, one after the other, can be answered in time for its frame.
    pub answers_in_time: u8,
}

/// Chooses the ratio of repair packets by the losses that a client reports.
///
/// It is the lowest with which one of a thousand frames stays damaged if packets are lost independently,
/// twice as often as in the worst second of the last ten; if packets stay lost nevertheless, up to eight
/// times as often. There are no repair packets without losses, nor if requests alone achieve that. A short
/// stripe needs a higher ratio than a long one, and all have that of the one that needs most; a stripe of a few
/// packets that has as many repair packets may still be damaged more often.
#[derive(Clone, Debug)]
pub struct FecChoice {
    max: u8,
    reports: VecDeque<(Instant, LossReport)>,
    /// The losses that may still be the highest: later ones are lower.
    losses: VecDeque<(Instant, f64)>,
    percent: u8,
    margin: f64,
    /// When the ratio or the margin changed last: packets that stayed lost before do not count.
    changed_at: Option<Instant>,
    /// Until when requests alone are not relied on.
    distrusted: Option<Instant>,
}

impl FecChoice {
    /// Creates the choice of a session, of at most `max` repair packets for 100 packets, 0 to 100; none at
    /// first.
    pub fn new(max: u8) -> Self {
        Self {
            max: max.min(FEC_PERCENT_MAX),
            reports: VecDeque::new(),
            losses: VecDeque::new(),
            percent: 0,
            margin: MARGIN_MIN,
            changed_at: None,
            distrusted: None,
        }
    }

    /// Returns the repair packets for 100 packets.
    pub fn percent(&self) -> u8 {
        self.percent
    }

    /// Handles a report about frames of this plan; returns the repair packets for 100 packets from now
    /// on.
    pub fn handle_report(&mut self, now: Instant, report: LossReport, plan: &Plan) -> u8 {
        let last = self.reports.back().map(|(at, _)| *at);
        if last.is_some_and(|last| now.saturating_duration_since(last) < SPACING) {
            return self.percent;
        }
        if self.reports.is_empty() {
            // The counts begin with the session.
            let begun = now.checked_sub(WINDOW_MIN).unwrap_or(now);
            self.reports.push_back((begun, LossReport::default()));
        }
        self.reports.push_back((now, report));
        while self.reports.len() > 2 && self.reports[1].0 + WINDOW <= now {
            self.reports.pop_front();
        }
        let Some(&(from, before)) = self.reports.front() else { return self.percent };
        let sent = report.sent.saturating_sub(before.sent);
        if now.saturating_duration_since(from) < WINDOW_MIN || sent < PACKETS_MIN {
            return self.percent;
        }
        let lost = report.lost.saturating_sub(before.lost);
        let is_damaged = report.unrecovered > before.unrecovered;
        let highest = self.note_loss(now, (lost as f64 / sent as f64).min(1.0));
        self.note_damage(now, is_damaged, report.answers_in_time > 0);
        let is_trusted = self.distrusted.is_none_or(|until| until <= now);
        let answers = if is_trusted { report.answers_in_time } else { 0 };
        let loss = (highest * self.margin).min(LOSS_MAX);
        let percent = needed(loss, answers, plan).min(self.max);
        if percent != self.percent {
            (self.percent, self.changed_at) = (percent, Some(now));
        }
        percent
    }

    /// Notes a loss; returns the highest one that still counts.
    fn note_loss(&mut self, now: Instant, loss: f64) -> f64 {
        while self.losses.back().is_some_and(|(_, earlier)| *earlier <= loss) {
            self.losses.pop_back();
        }
        self.losses.push_back((now, loss));
        while self.losses.front().is_some_and(|(at, _)| *at + HOLD < now) {
            self.losses.pop_front();
        }
        self.losses.front().map_or(0.0, |(_, loss)| *loss)
    }

    /// Notes whether packets stayed lost.
    fn note_damage(&mut self, now: Instant, is_damaged: bool, has_answers: bool) {
        let since = self.changed_at.map(|at| now.saturating_duration_since(at));
        if is_damaged && self.percent == 0 && has_answers {
            self.distrusted = Some(now + DISTRUST);
        } else if is_damaged && self.percent > 0 && since.is_none_or(|since| since > WINDOW) {
            self.margin = (self.margin * MARGIN_STEP).min(MARGIN_MAX);
            self.changed_at = Some(now);
        } else if !is_damaged && self.margin > MARGIN_MIN && since.is_none_or(|it| it > HOLD) {
            self.margin = (self.margin / MARGIN_STEP).max(MARGIN_MIN);
            self.changed_at = Some(now);
        }
    }
}

/// Returns the repair packets for 100 packets that a loss needs.
fn needed(loss: f64, answers: u8, plan: &Plan) -> u8 {
    let (sizes, blocks) = (plan.block_sizes(), plan.blocks());
    if loss <= 0.0 || blocks == 0 {
        return 0;
    }
    // The probability that every answer is lost.
    let unanswered = loss.powi(answers.into());
    if answers > 0 && f64::from(plan.packets()) * loss * unanswered <= DAMAGED {
        return 0;
    }
    let most = (DAMAGED / unanswered).min(0.5 * f64::from(blocks));
    let suffices = |percent: &u8| failing(&sizes, *percent, loss) <= most;
    (0..FEC_PERCENT_MAX).find(suffices).unwrap_or(FEC_PERCENT_MAX)
}

/// Returns how many of a frame's blocks are not recovered on average, without those that have as many repair
/// packets as packets: no ratio gives them more. `sizes` are the blocks by their number of packets.
fn failing(sizes: &BTreeMap<u32, u32>, percent: u8, loss: f64) -> f64 {
    let of_size = |(&packets, &blocks): (&u32, &u32)| {
        let repairs = repairs(packets, percent);
        let is_most = repairs >= packets;
        let fails = if is_most { 0.0 } else { exceeding(packets + repairs, repairs, loss) };
        fails * f64::from(blocks)
    };
    sizes.iter().map(of_size).sum()
}

/// Returns the probability that more than `most` of `packets` packets are lost.
fn exceeding(packets: u32, most: u32, loss: f64) -> f64 {
    let mut exactly = (1.0 - loss).powi(packets.cast_signed());
    let mut up_to = exactly;
    for lost in 1..=most {
        exactly *= f64::from(packets + 1 - lost) / f64::from(lost) * loss / (1.0 - loss);
        up_to += exactly;
    }
    (1.0 - up_to).max(0.0)
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, clippy::cast_sign_loss, reason = "a model of a path")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const REPORT: Duration = Duration::from_millis(250);

    fn plan(packets: usize) -> Plan {
        Plan::new(&[(packets, 187)], 1).unwrap()
    }

    /// A session of 50 frames a second.
    struct Session {
        choice: FecChoice,
        plan: Plan,
        now: Instant,
        report: LossReport,
        lost: f64,
    }

    impl Session {
        fn new(packets: usize, answers_in_time: u8) -> Self {
            let report = LossReport { answers_in_time, ..LossReport::default() };
            let (choice, plan) = (FecChoice::new(50), plan(packets));
            Self { choice, plan, now: Instant::now(), report, lost: 0.0 }
        }

        /// Loses a share of the packets for some seconds, of which some stay lost; returns the ratio.
        fn run(&mut self, seconds: u32, loss: f64, stays: impl Fn(u8) -> bool) -> u8 {
            for _ in 0..seconds * 4 {
                let sent = f64::from(self.plan.packets()) * 50.0 * REPORT.as_secs_f64();
                self.report.sent += sent as u64;
                self.lost += sent * loss;
                self.report.lost = self.lost as u64;
                self.report.unrecovered += u64::from(stays(self.choice.percent()));
                self.now += REPORT;
                self.choice.handle_report(self.now, self.report, &self.plan);
            }
            self.choice.percent()
        }
    }

    #[test]
    fn the_probability_of_more_losses_is_that_of_the_binomial_distribution() {
        assert!((exceeding(10, 0, 0.1) - (1.0 - 0.9_f64.powi(10))).abs() < 1e-12);
        assert!((exceeding(3, 1, 0.5) - 0.5).abs() < 1e-12);
        assert!(exceeding(512, 512, 0.5).abs() < 1e-9);
    }

    #[test]
    fn without_losses_there_are_no_repair_packets_and_with_them_as_many_as_are_needed() {
        let mut session = Session::new(187 * 2, 0);
        assert_eq!(session.run(5, 0.0, |_| false), 0);
        let at_1 = session.run(5, 0.01, |percent| percent == 0);
        let at_5 = session.run(5, 0.05, |_| false);
        // 2 % of 187 packets are 4, and 10 % are 19; rarely there are three times or twice as many.
        assert!((5..=8).contains(&at_1) && (16..=24).contains(&at_5), "{at_1} {at_5}");
        assert_eq!(session.run(9, 0.0, |_| false), at_5, "the worst second of ten counts");
        assert_eq!(session.run(3, 0.0, |_| false), 0);
    }

    #[test]
    fn a_short_last_stripe_is_protected_as_well_as_the_others() {
        let plan = Plan::new(&[(186 + 4, 186); 4], 1).unwrap();
        for loss in [0.01, 0.02, 0.05] {
            let mut session = Session { plan: plan.clone(), ..Session::new(1, 0) };
            session.choice = FecChoice::new(100);
            let percent = session.run(5, loss, |_| false);
            let fails = |packets: u32| {
                let repairs = repairs(packets, percent);
                plan.units() as f64 * exceeding(packets + repairs, repairs, loss * 2.0)
            };
            let damaged = fails(186) + fails(4);
            let has_most = repairs(4, percent) == 4 && fails(186) <= DAMAGED;
            assert!(damaged <= DAMAGED || has_most, "{loss}: {percent} %, {damaged}");
            // With 76 for 100 packets, 4 have 4.
            assert!(percent <= 76, "{loss}: {percent} %");
        }
    }

    #[test]
    fn the_first_report_of_losses_counts() {
        let mut choice = FecChoice::new(50);
        let report = LossReport { sent: 1_000, lost: 10, unrecovered: 10, answers_in_time: 0 };
        assert!(choice.handle_report(Instant::now(), report, &plan(187)) >= 5);
    }

    #[test]
    fn if_requests_suffice_there_are_no_repair_packets() {
        for (loss, answers, none) in [
            (0.001, 1, false),
            (0.001, 2, true),
            (0.01, 1, false),
            (0.01, 3, true),
            (0.05, 3, false),
        ] {
            let percent = Session::new(187 * 2, answers).run(5, loss, |_| false);
            assert_eq!(percent == 0, none, "{loss} {answers}: {percent}");
        }
        let alone = Session::new(187 * 2, 0).run(5, 0.05, |_| false);
        let with = Session::new(187 * 2, 1).run(5, 0.05, |_| false);
        assert!(with < alone, "requests do a part: {with} {alone}");
    }

    #[test]
    fn requests_that_leave_packets_lost_are_not_relied_on() {
        let mut session = Session::new(187 * 2, 3);
        assert_eq!(session.run(5, 0.01, |_| false), 0);
        assert!(session.run(1, 0.01, |_| true) >= 5);
        assert!(session.run(50, 0.01, |_| false) >= 5);
        assert_eq!(session.run(30, 0.01, |_| false), 0);
    }

    #[test]
    fn bursts_that_stay_lost_raise_the_ratio_for_a_while() {
        let mut session = Session::new(187 * 2, 0);
        let first = session.run(5, 0.01, |percent| percent == 0);
        let raised = session.run(10, 0.01, |percent| percent < 12);
        assert!((12..=20).contains(&raised), "{first} {raised}");
        assert_eq!(session.run(60, 0.01, |_| false), first);
    }

    #[test]
    fn a_margin_is_not_raised_without_end() {
        assert_eq!(Session::new(187, 0).run(60, 0.3, |_| true), 50);
        let most = Session::new(187, 0).run(60, 0.01, |_| true);
        assert!(most <= 20, "{most}");
    }

    proptest! {
        #[test]
        fn any_reports_give_a_ratio_within_the_maximum_in_limited_memory(
            max in 0_u8..=255,
            packets in 1_usize..5_000,
            reports in prop::collection::vec((any::<u64>(), any::<u64>(), any::<u8>(), 0_u64..2_000), 0..200),
        ) {
            let (mut choice, plan, mut now) = (FecChoice::new(max), plan(packets), Instant::now());
            for (sent, lost, answers_in_time, millis) in reports {
                now += Duration::from_millis(millis);
                let report = LossReport { sent, lost, unrecovered: lost / 3, answers_in_time };
                let percent = choice.handle_report(now, report, &plan);
                prop_assert!(percent <= max.min(100));
                prop_assert!(choice.reports.len() <= 23 && choice.losses.len() <= 202);
            }
        }
    }
}
