//! Increasing rates, until too much is lost or the sender is late.

use std::time::Instant;

use super::contestant::Contestant;
use crate::report::median;
use crate::sequence::Sequence;
use crate::trial::Trial;

/// Share of the access units that may be lost at a rate that counts as reached, as in the papers.
const LOSS_MAX: f64 = 0.025;

/// Share of the rate that the sender must reach.
const KEPT_MIN: f64 = 0.975;

/// Maximum number of steps up and down: no sender is faster, and slower rates are useless.
const STEPS_UP_MAX: usize = 24;
const STEPS_DOWN_MAX: usize = 10;

/// The plan of a sweep.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// The rate to begin with, in access units per second.
    pub(super) first: f64,
    /// Factor from one rate to the next.
    pub(super) factor: f64,
    /// Number of times that the gap between the highest rate reached and the next is halved.
    pub(super) halvings: usize,
    /// Number of trials at the peak.
    pub(super) runs: usize,
    /// Only these rates, if there are any.
    pub(super) rates: Vec<f64>,
    /// No trial starts after this.
    pub(super) end: Instant,
}

/// A contestant's trials at one rate.
#[derive(Clone, Debug)]
pub(super) struct Point {
    pub(super) rate: f64,
    pub(super) trials: Vec<Trial>,
}

/// A contestant's trials.
pub(super) struct Line<'c> {
    pub(super) contestant: &'c dyn Contestant,
    /// Ordered by rate.
    pub(super) points: Vec<Point>,
}

impl Point {
    pub(super) fn median(&self, of: impl Fn(&Trial) -> f64) -> f64 {
        median(&mut self.trials.iter().map(of).collect::<Vec<f64>>())
    }

    /// Whether the rate was reached.
    pub(super) fn holds(&self) -> bool {
        let kept = |trial: &Trial| trial.sent_rate.map_or(1.0, |rate| rate / self.rate);
        self.median(Trial::loss) <= LOSS_MAX && self.median(kept) >= KEPT_MIN
    }

    /// CPU seconds of the sender per gigabyte sent, and of the receiver per gigabyte received
    /// complete.
    pub(super) fn cpu(&self, sequence: &Sequence) -> [Option<f64>; 2] {
        let mut costs = [Vec::new(), Vec::new()];
        for trial in &self.trials {
            let sent = sequence.octets_of(usize::try_from(trial.offered).unwrap_or(0));
            let halves = [(trial.send_cpu, sent), (trial.receive_cpu, trial.octets)];
            for (costs, (cpu, octets)) in costs.iter_mut().zip(halves) {
                costs.extend(cpu.filter(|_| octets > 0).map(|cpu| cpu * 1e9 / octets as f64));
            }
        }
        costs.map(|mut costs| (!costs.is_empty()).then(|| median(&mut costs)))
    }
}

impl<'c> Line<'c> {
    pub(super) fn new(contestant: &'c dyn Contestant) -> Self {
        Self { contestant, points: Vec::new() }
    }

    /// The highest rate that was reached.
    pub(super) fn peak(&self) -> Option<&Point> {
        self.points.iter().rev().find(|point| point.holds())
    }

    /// The next rate above the peak that was tried.
    fn above(&self) -> Option<f64> {
        let peak = self.peak()?.rate;
        self.points.iter().map(|point| point.rate).find(|rate| *rate > peak)
    }

    fn take(&mut self, rate: f64, trial: Trial) -> &Point {
        let at = self.points.partition_point(|point| point.rate < rate);
        if self.points.get(at).is_none_or(|point| point.rate > rate) {
            self.points.insert(at, Point { rate, trials: Vec::new() });
        }
        let point = &mut self.points[at];
        point.trials.push(trial);
        point
    }
}

/// A sweep of one sequence: all contestants take turns at each rate.
pub(super) struct Sweep<'s, 'c> {
    pub(super) sequence: &'s Sequence,
    pub(super) plan: Plan,
    pub(super) lines: Vec<Line<'c>>,
    /// Called with a description of the next trial.
    pub(super) progress: &'s dyn Fn(&str),
}

impl Sweep<'_, '_> {
    pub(super) fn run(&mut self) -> anyhow::Result<()> {
        if !self.plan.rates.is_empty() {
            for rate in self.plan.rates.clone() {
                for _ in 0..self.plan.runs {
                    self.turn(|_| Some(rate))?;
                }
            }
            return Ok(());
        }
        self.climb()?;
        self.descend()?;
        for _ in 0..self.plan.halvings {
            self.turn(|line| Some((line.peak()?.rate * line.above()?).sqrt()))?;
        }
        // A peak that is not reached again is replaced by the next lower one.
        let runs = self.plan.runs;
        for _ in 0..2 * runs {
            self.turn(|line| {
                let peak = line.peak()?;
                (peak.trials.len() < runs).then_some(peak.rate)
            })?;
        }
        Ok(())
    }

    fn climb(&mut self) -> anyhow::Result<()> {
        let mut climbs = vec![true; self.lines.len()];
        let mut rate = self.plan.first;
        for _ in 0..STEPS_UP_MAX {
            for (n, climbs) in climbs.iter_mut().enumerate().filter(|(_, climbs)| **climbs) {
                // A single failed trial may be a disturbance: only the second one ends the climb.
                *climbs = self.attempt(n, rate)? || self.plan.runs > 1 && self.attempt(n, rate)?;
            }
            rate *= self.plan.factor;
        }
        Ok(())
    }

    fn descend(&mut self) -> anyhow::Result<()> {
        let mut rate = self.plan.first;
        for _ in 0..STEPS_DOWN_MAX {
            rate /= self.plan.factor;
            self.turn(|line| line.peak().is_none().then_some(rate))?;
        }
        Ok(())
    }

    /// One trial of each contestant at the rate that `choose` returns, if any.
    fn turn(&mut self, choose: impl Fn(&Line<'_>) -> Option<f64>) -> anyhow::Result<()> {
        for n in 0..self.lines.len() {
            if let Some(rate) = choose(&self.lines[n]) {
                self.attempt(n, rate)?;
            }
        }
        Ok(())
    }

    /// One trial; returns whether the rate was reached. Without time left, there is no trial.
    fn attempt(&mut self, n: usize, rate: f64) -> anyhow::Result<bool> {
        if Instant::now() >= self.plan.end {
            return Ok(false);
        }
        let line = &mut self.lines[n];
        let (what, name) = (self.sequence.name(), line.contestant.name());
        (self.progress)(&format!("rates: {what}: {rate:.0} a second: {name}"));
        let trial = line.contestant.run(self.sequence, rate)?;
        line.take(rate, trial);
        Ok(Point { rate, trials: vec![trial] }.holds())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use std::cell::Cell;
    use std::time::Duration;

    use rushes::Codec;

    use super::*;

    /// Loses too much beyond a limit, and in the trial with the number `disturbed`.
    struct Limited {
        limit: f64,
        trials: Cell<usize>,
        disturbed: usize,
    }

    impl Limited {
        fn to(limit: f64, disturbed: usize) -> Self {
            Self { limit, trials: Cell::new(0), disturbed }
        }
    }

    impl Contestant for Limited {
        fn name(&self) -> &'static str {
            "limited"
        }

        fn run(&self, _: &Sequence, rate: f64) -> anyhow::Result<Trial> {
            self.trials.set(self.trials.get() + 1);
            let is_good = rate <= self.limit && self.trials.get() != self.disturbed;
            let whole = if is_good { 64 } else { 60 };
            Ok(Trial { offered: 64, whole, octets: 64_000, seconds: 1.0, ..Trial::default() })
        }
    }

    fn swept(contestants: &[&dyn Contestant], change: impl Fn(&mut Plan)) -> Vec<Vec<Point>> {
        let sequence = Sequence::make(Codec::H265, 1_000_000).unwrap();
        let end = Instant::now() + Duration::from_secs(3600);
        let rates = Vec::new();
        let mut plan = Plan { first: 100.0, factor: 2.0, halvings: 3, runs: 3, rates, end };
        change(&mut plan);
        let lines = contestants.iter().map(|contestant| Line::new(*contestant)).collect();
        let mut sweep = Sweep { sequence: &sequence, plan, lines, progress: &|_| () };
        sweep.run().unwrap();
        sweep.lines.into_iter().map(|line| line.points).collect()
    }

    fn peak(points: &[Point]) -> &Point {
        points.iter().rev().find(|point| point.holds()).unwrap()
    }

    #[test]
    fn the_peak_is_found_within_the_last_halving_above_and_below_the_first_rate() {
        let contestants = [1500.0, 70.0, 3.0].map(|limit| Limited::to(limit, 0));
        let dynamic: Vec<&dyn Contestant> =
            contestants.iter().map(|one| one as &dyn Contestant).collect();
        for (points, contestant) in swept(&dynamic, |_| ()).iter().zip(&contestants) {
            let peak = peak(points);
            assert!(peak.rate <= contestant.limit);
            assert!(peak.rate > contestant.limit / 1.1, "{} {}", peak.rate, contestant.limit);
            assert_eq!(peak.trials.len(), 3);
        }
    }

    #[test]
    fn a_disturbed_trial_is_no_end() {
        let disturbed = Limited::to(1500.0, 3);
        let points = swept(&[&disturbed], |_| ());
        assert!(peak(&points[0]).rate > 1300.0);
    }

    #[test]
    fn what_never_holds_has_no_peak_and_comes_to_an_end() {
        let points = swept(&[&Limited::to(0.0, 0)], |_| ());
        assert!(points[0].iter().all(|point| !point.holds()));
        assert_eq!(points[0].len(), 1 + STEPS_DOWN_MAX);
    }

    #[test]
    fn rates_that_are_told_are_the_only_ones() {
        let points = swept(&[&Limited::to(1e9, 0)], |plan| plan.rates = vec![50.0, 20.0]);
        let rates: Vec<f64> = points[0].iter().map(|point| point.rate).collect();
        assert_eq!(rates, [20.0, 50.0]);
        assert_eq!(points[0][0].trials.len(), 3);
    }

    #[test]
    fn after_its_end_nothing_is_tried() {
        let contestant = Limited::to(1e9, 0);
        swept(&[&contestant], |plan| plan.end = Instant::now());
        assert_eq!(contestant.trials.get(), 0);
    }

    #[test]
    fn a_sender_that_is_late_has_not_reached_the_rate() {
        let trial = Trial { offered: 64, whole: 64, sent_rate: Some(97.0), ..Trial::default() };
        assert!(!Point { rate: 100.0, trials: vec![trial] }.holds());
        assert!(Point { rate: 99.0, trials: vec![trial] }.holds());
    }
}
