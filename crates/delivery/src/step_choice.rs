//! How much a server sends: less while packets are lost, and more again when the path allows it.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The share of lost packets from which a smaller step is taken.
const LOSS_MAX: f64 = 0.02;

/// The share of lost packets up to which a path is clean.
const LOSS_CLEAN: f64 = 0.002;

/// The largest share of lost packets that may have another cause than congestion, such as a radio
/// link.
const LOSS_OTHER_MAX: f64 = 0.05;

/// The share of the path's capacity that a smaller step may use.
const DOWN_SHARE: f64 = 0.85;

/// The share of the path's capacity that a larger step may use.
const UP_SHARE: f64 = 0.95;

/// Time after a change in which losses still belong to the frames before it.
const SETTLE: Duration = Duration::from_millis(500);

/// Time over which the share of lost packets is counted, and the least of it that counts.
const WINDOW: Duration = Duration::from_secs(1);
const WINDOW_MIN: Duration = Duration::from_millis(200);

/// Reports that come faster than this replace each other.
const SPACING: Duration = Duration::from_millis(50);

/// Packets of which the share of lost ones counts.
const PACKETS_MIN: u64 = 50;

/// Time without losses before a larger step is tried.
const CLEAN: Duration = Duration::from_secs(5);

/// Time before a step is tried for which the path had no capacity. It doubles each time the path
/// still has none, up to the second.
const PATIENCE: Duration = Duration::from_secs(60);
const PATIENCE_MAX: Duration = Duration::from_secs(600);

/// Time after a larger step in which losses show that the path has no capacity for it.
const TRIAL: Duration = Duration::from_secs(30);

/// How long losses with another cause than congestion are tolerated before they are judged again.
const TOLERATED: Duration = Duration::from_secs(60);

/// A report, and what is sent from then on.
#[derive(Clone, Copy, Debug)]
struct Report {
    at: Instant,
    /// The packets sent and lost until then.
    sent: u64,
    lost: u64,
    /// The octets that are sent for each one of a step until the next report.
    factor: f64,
}

/// Chooses among steps of a stream, from the largest bit rate to the smallest, by the packets that
/// a client reports lost.
///
/// Above 2 % of losses it proposes the largest step that fits the part of the current one that
/// arrived. After 5 s without losses it proposes the next larger one if that fits what the path is
/// known to carry, otherwise after a minute, and each time that fails after twice as long, up to ten
/// minutes. Losses below 5 % that a smaller step does not reduce have another cause: the step is
/// undone, and such losses are tolerated for a minute.
#[derive(Clone, Debug)]
pub struct StepChoice {
    /// The bit rates of the steps.
    rates: Vec<u64>,
    step: usize,
    settled: Instant,
    reports: VecDeque<Report>,
    clean_since: Option<Instant>,
    /// The step before a smaller one was taken, and the share of lost packets then.
    reduced: Option<(usize, f64)>,
    /// What the path is known to carry, in bits per second, and until when this is believed.
    capacity: Option<(f64, Instant)>,
    patience: Duration,
    /// When a larger step was taken whose trial is not over.
    raised: Option<Instant>,
    /// The share of lost packets that is tolerated, and until when.
    tolerated: Option<(f64, Instant)>,
    /// The octets that are sent for each one of a step from now on.
    factor: f64,
}

impl StepChoice {
    /// Creates a choice among steps with these bit rates, the largest first, at the first step.
    pub fn new(rates: Vec<u64>, now: Instant) -> Self {
        Self {
            rates,
            step: 0,
            settled: now + SETTLE,
            reports: VecDeque::new(),
            clean_since: None,
            reduced: None,
            capacity: None,
            patience: PATIENCE,
            raised: None,
            tolerated: None,
            factor: 1.0,
        }
    }

    /// Sets how many repair packets are sent for 100 packets: every step takes as much more of the path
    /// from the next report on.
    pub fn set_fec_percent(&mut self, percent: u8) {
        self.factor = 1.0 + f64::from(percent) / 100.0;
    }

    /// Returns the current step.
    pub fn step(&self) -> usize {
        self.step
    }

    /// Handles a report: the packets sent and lost since the beginning of the session. Returns the
    /// step to take instead of the current one. It is not the current one before
    /// [`handle_change`](Self::handle_change), and may be proposed again until then.
    pub fn handle_report(&mut self, now: Instant, sent: u64, lost: u64) -> Option<usize> {
        if now < self.settled {
            self.reports.clear();
        }
        if let [.., before, last] = self.reports.make_contiguous()
            && last.at.saturating_duration_since(before.at) < SPACING
        {
            self.reports.pop_back();
        }
        self.reports.push_back(Report { at: now, sent, lost, factor: self.factor });
        while self.reports.len() > 2 && self.reports[1].at + WINDOW <= now {
            self.reports.pop_front();
        }
        let before = *self.reports.front()?;
        let window = now.saturating_duration_since(before.at);
        let sent = sent.saturating_sub(before.sent);
        if window < WINDOW_MIN || sent < PACKETS_MIN {
            return None;
        }
        let loss = (lost.saturating_sub(before.lost) as f64 / sent as f64).min(1.0);
        self.tolerated = self.tolerated.filter(|&(_, until)| now < until);
        if self.raised.is_some_and(|raised| now >= raised + TRIAL) {
            (self.raised, self.patience) = (None, PATIENCE);
        }
        let tolerated = self.tolerated.map_or(0.0, |(loss, _)| loss);
        if loss > LOSS_CLEAN.max(tolerated) {
            self.clean_since = None;
        } else {
            self.clean_since.get_or_insert(now);
        }
        if loss > LOSS_MAX.max(tolerated) {
            self.reduce(now, window, loss)
        } else {
            self.raise(now)
        }
    }

    /// Returns the octets that were sent for each one of a step on average since the first report.
    fn factor_before(&self) -> f64 {
        let (mut packets, mut octets) = (0.0, 0.0);
        for (from, to) in self.reports.iter().zip(self.reports.iter().skip(1)) {
            let sent = to.sent.saturating_sub(from.sent) as f64;
            packets += sent;
            octets += sent * from.factor;
        }
        if packets > 0.0 { octets / packets } else { self.factor }
    }

    fn reduce(&mut self, now: Instant, window: Duration, loss: f64) -> Option<usize> {
        if let Some((before, loss_before)) = self.reduced
            && loss_before < LOSS_OTHER_MAX
            && loss < LOSS_OTHER_MAX
        {
            if window < WINDOW {
                return None;
            }
            if loss > loss_before / 2.0 {
                self.tolerated = Some((2.0 * loss.max(loss_before), now + TOLERATED));
                (self.reduced, self.capacity) = (None, None);
                return Some(before);
            }
        }
        let carried = *self.rates.get(self.step)? as f64 * self.factor_before() * (1.0 - loss);
        if self.raised.take().is_some() {
            self.patience = (self.patience * 2).min(PATIENCE_MAX);
        }
        self.capacity = Some((carried, now + self.patience));
        let smaller = self.step + 1..self.rates.len();
        let fits = |&step: &usize| self.rates[step] as f64 * self.factor <= carried * DOWN_SHARE;
        let step = smaller.clone().find(fits).or_else(|| smaller.last())?;
        self.reduced = Some((self.step, loss));
        Some(step)
    }

    fn raise(&self, now: Instant) -> Option<usize> {
        let larger = self.step.checked_sub(1)?;
        let is_clean = self.clean_since.is_some_and(|since| now >= since + CLEAN);
        let rate = self.rates[larger] as f64 * self.factor;
        let fits = |(carried, until): (f64, Instant)| rate <= carried * UP_SHARE || now >= until;
        (is_clean && self.capacity.is_none_or(fits)).then_some(larger)
    }

    /// Takes a step: its frames are sent from `now` on.
    pub fn handle_change(&mut self, now: Instant, step: usize) {
        let step = step.min(self.rates.len().saturating_sub(1));
        if step < self.step {
            self.reduced = None;
            let rate = self.rates[step] as f64 * self.factor;
            let was_too_much = self.capacity.is_some_and(|(carried, _)| rate > carried * UP_SHARE);
            self.raised = was_too_much.then_some(now);
        }
        (self.step, self.settled, self.clean_since) = (step, now + SETTLE, None);
        self.reports.clear();
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, clippy::cast_sign_loss, reason = "a model of a path")]
mod tests {
    use super::*;

    const MBIT: u64 = 1_000_000;
    const REPORT: Duration = Duration::from_millis(250);

    /// A path that carries a number of bits per second and loses a share of the packets besides.
    struct Path {
        choice: StepChoice,
        now: Instant,
        sent: u64,
        lost: f64,
        /// Every step that was taken, and after how many seconds.
        steps: Vec<(f64, usize)>,
        start: Instant,
    }

    impl Path {
        fn new(rates: &[u64]) -> Self {
            let start = Instant::now();
            let rates = rates.iter().map(|rate| rate * MBIT).collect();
            let choice = StepChoice::new(rates, start);
            Self { choice, now: start, sent: 0, lost: 0.0, steps: Vec::new(), start }
        }

        /// Sends for some seconds; returns the share of packets that were lost.
        fn run(&mut self, seconds: u64, carries: u64, random: f64) -> f64 {
            let (sent, lost) = (self.sent, self.lost);
            for _ in 0..seconds * 4 {
                let rate = self.choice.rates[self.choice.step] as f64 * self.choice.factor;
                // Packets of 1 250 octets.
                let packets = rate / 10_000.0 * REPORT.as_secs_f64();
                let dropped = (1.0 - (carries * MBIT) as f64 / rate).max(0.0);
                self.sent += packets as u64;
                self.lost += packets * (dropped + (1.0 - dropped) * random);
                self.now += REPORT;
                let proposed = self.choice.handle_report(self.now, self.sent, self.lost as u64);
                if let Some(step) = proposed {
                    self.steps.push(((self.now - self.start).as_secs_f64(), step));
                    self.choice.handle_change(self.now, step);
                }
            }
            (self.lost - lost) / (self.sent - sent) as f64
        }
    }

    #[test]
    fn a_step_that_fits_is_taken_within_a_second_and_kept() {
        let mut path = Path::new(&[110, 60, 30]);
        path.run(2, 100, 0.0);
        assert_eq!(path.steps.iter().map(|it| it.1).collect::<Vec<_>>(), [1]);
        assert!(path.steps[0].0 <= 1.0, "{:?}", path.steps);
        assert_eq!((path.run(58, 100, 0.0), path.steps.len()), (0.0, 1));
    }

    #[test]
    fn repair_packets_count_when_a_larger_step_is_tried() {
        let mut path = Path::new(&[110, 60, 30]);
        path.run(30, 70, 0.0);
        assert_eq!(path.choice.step(), 1, "60 of 70 Mbit/s");
        let mut path = Path::new(&[110, 60, 30]);
        path.choice.set_fec_percent(50);
        // 90 of 70 Mbit/s, and 45.
        path.run(30, 70, 0.0);
        assert_eq!(path.choice.step(), 2, "{:?}", path.steps);
    }

    #[test]
    fn what_the_path_carries_is_known_by_the_repair_packets_that_were_sent() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        // A fifth is lost. Without repair packets so far, 80 were carried, of which 68 may be used; with 50 for
        // 100 packets, 120 and 102. With 50 from now on, the smaller steps take 90 and 45.
        for (before, step) in [(0, 2), (50, 1)] {
            let mut choice = StepChoice::new(vec![100, 60, 30], start);
            choice.set_fec_percent(before);
            assert_eq!(choice.handle_report(at(500), 0, 0), None);
            choice.set_fec_percent(50);
            assert_eq!(choice.handle_report(at(1_000), 1_000, 200), Some(step), "{before}");
        }
    }

    #[test]
    fn steps_that_do_not_fit_are_skipped() {
        let mut path = Path::new(&[800, 400, 200, 100]);
        path.run(10, 250, 0.0);
        assert_eq!(path.steps.iter().map(|it| it.1).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn a_path_that_recovers_has_the_larger_steps_again() {
        let mut path = Path::new(&[110, 60, 30]);
        path.run(30, 40, 0.0);
        assert_eq!(path.choice.step(), 2);
        let lost = path.run(150, 200, 0.0);
        assert_eq!((lost, path.choice.step()), (0.0, 0), "{:?}", path.steps);
    }

    #[test]
    fn steps_do_not_alternate() {
        let mut path = Path::new(&[110, 60, 30]);
        let lost = path.run(3600, 100, 0.0);
        // Tried after 1, 3, 7, 15, 25, 35, 45 and 55 minutes.
        assert!(path.steps.len() <= 18, "{:?}", path.steps);
        assert!(lost < 0.001, "{lost}");
    }

    #[test]
    fn losses_with_another_cause_do_not_reduce_the_stream() {
        let mut path = Path::new(&[110, 60, 30]);
        path.run(3600, 1_000, 0.03);
        let reduced = path.steps.iter().filter(|it| it.1 > 0).count();
        // Judged once a minute.
        assert!(reduced <= 61, "{reduced}: {:?}", path.steps);
        let largest: f64 = path
            .steps
            .windows(2)
            .filter(|pair| pair[0].1 > 0)
            .map(|pair| pair[1].0 - pair[0].0)
            .fold(0.0, f64::max);
        assert!(largest <= 3.0, "{:?}", path.steps);
    }

    #[test]
    fn the_smallest_step_is_kept_however_much_is_lost() {
        let mut path = Path::new(&[110, 60, 30]);
        path.run(60, 1, 0.0);
        assert_eq!(path.choice.step(), 2);
        let mut single = Path::new(&[110]);
        single.run(60, 1, 0.0);
        assert!(single.steps.is_empty());
    }

    #[test]
    fn hostile_reports_take_only_steps_that_exist() {
        let start = Instant::now();
        let (mut choice, mut now) = (StepChoice::new(vec![3, 2, 1], start), start);
        for at in 0..10_000_u64 {
            let value = at.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            now += Duration::from_micros(value % 2_000);
            let (sent, lost) = (value.rotate_left(17), value.rotate_right(23));
            if let Some(step) = choice.handle_report(now, sent, lost) {
                assert!(step < 3);
                choice.handle_change(now, step);
            }
            assert!(choice.reports.len() <= 64, "{}", choice.reports.len());
        }
        assert!(StepChoice::new(Vec::new(), start).handle_report(start, 0, 0).is_none());
    }
}
