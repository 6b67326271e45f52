//! Rates of access units one after the other, until too much is lost: the way to a peak.

use std::time::Instant;

use crate::ends::{Trial, Trials};

/// Share of the access units that may be lost at a rate that counts as reached, as in the papers.
pub(crate) const LOSS_MAX: f64 = 0.025;

/// The plan of a sweep.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The rate to begin with, in access units per second.
    pub(crate) first: f64,
    /// The highest rate.
    pub(crate) last: f64,
    /// Factor from one rate to the next, as long as rates are kept.
    pub(crate) factor: f64,
    /// Divisor from one rate to the next if the first was too high, down to about `floor`.
    pub(crate) divisor: f64,
    pub(crate) floor: f64,
    /// Number of times that the middle between a rate kept and one not kept is tried.
    pub(crate) halvings: usize,
    /// Minimum number of trials at the peak.
    pub(crate) runs: usize,
    /// Whether rates are whole numbers.
    pub(crate) is_whole: bool,
    /// Only these rates, if there are any.
    pub(crate) rates: Vec<f64>,
    /// No trial starts after this.
    pub(crate) end: Option<Instant>,
    /// Whether the sender and the receiver kept up with a rate.
    pub(crate) kept: fn(&Trial, f64) -> bool,
    /// The peak of the points, which are ordered by rate.
    pub(crate) peak: fn(&[Point]) -> Option<&Point>,
}

/// The trials at one rate.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    pub(crate) rate: f64,
    pub(crate) trials: Trials,
}

/// The rates of one way of sending. Several ways take turns, so that all try a rate within the same
/// minute.
struct Sweep<'p> {
    plan: &'p Plan,
    /// Ordered by rate.
    points: Vec<Point>,
    /// The highest rate that was kept, and the lowest that was not.
    good: Option<f64>,
    bad: Option<f64>,
    halvings: usize,
    repeats: usize,
}

impl<'p> Sweep<'p> {
    fn new(plan: &'p Plan) -> Self {
        // The peak may move to another rate during its repetitions.
        let repeats = 2 * plan.runs.saturating_sub(1);
        Self { plan, points: Vec::new(), good: None, bad: None, halvings: plan.halvings, repeats }
    }

    /// Returns the rate to be tried next; `None` at the end.
    fn next(&mut self) -> Option<f64> {
        if !self.plan.rates.is_empty() {
            let tried: usize = self.points.iter().map(|point| point.trials.0.len()).sum();
            return self.plan.rates.get(tried / self.plan.runs).copied();
        }
        let rate = self.towards_the_peak().or_else(|| {
            let peak = (self.plan.peak)(&self.points)?;
            let is_enough = peak.trials.0.len() >= self.plan.runs;
            self.repeats = if is_enough { None } else { self.repeats.checked_sub(1) }?;
            Some(peak.rate)
        })?;
        Some(if self.plan.is_whole { rate.round() } else { rate })
    }

    /// Returns the next rate up, down or between; `None` when there is no more to try.
    fn towards_the_peak(&mut self) -> Option<f64> {
        match (self.good, self.bad) {
            (None, None) => Some(self.plan.first),
            (Some(good), None) => {
                Some(good * self.plan.factor).filter(|rate| *rate <= self.plan.last)
            }
            (None, Some(bad)) => Some(bad / self.plan.divisor).filter(|_| bad > self.plan.floor),
            (Some(good), Some(bad)) => {
                self.halvings = self.halvings.checked_sub(1)?;
                Some((good * bad).sqrt())
            }
        }
    }

    /// Adds the trial at the rate that [`next`](Self::next) returned.
    fn take(&mut self, rate: f64, trial: Trial) {
        let at = self.points.partition_point(|point| point.rate < rate);
        let is_again = self.points.get(at).is_some_and(|point| point.rate <= rate);
        if !is_again {
            self.points.insert(at, Point { rate, trials: Trials::default() });
        }
        self.points[at].trials.0.push(trial);
        let is_between =
            self.bad.is_some_and(|bad| rate < bad) && self.good.is_none_or(|good| good < rate);
        let is_climbing = self.bad.is_none();
        if (self.plan.kept)(&trial, rate) {
            if is_climbing || is_between {
                self.good = Some(rate);
            }
        } else if is_between || (is_climbing && (is_again || self.plan.runs == 1)) {
            // While climbing, a failed rate is tried twice, as the machine may have been busy; with
            // a single run per rate, only once.
            self.bad = Some(rate);
        }
    }
}

/// Sweeps all `ways`, which take turns. Returns the points of each, or nothing for one of which
/// `run` returned no trial.
pub(crate) fn sweep<W>(
    ways: &[W],
    plan: &Plan,
    mut run: impl FnMut(&W, f64) -> anyhow::Result<Option<Trial>>,
) -> anyhow::Result<Vec<Option<Vec<Point>>>> {
    let mut sweeps: Vec<_> = ways.iter().map(|_| Some(Sweep::new(plan))).collect();
    let mut is_over = false;
    while !is_over {
        is_over = true;
        for (way, place) in ways.iter().zip(&mut sweeps) {
            let Some(sweep) = place else { continue };
            if plan.end.is_some_and(|end| Instant::now() >= end) {
                continue;
            }
            let Some(rate) = sweep.next() else { continue };
            is_over = false;
            match run(way, rate)? {
                Some(trial) => sweep.take(rate, trial),
                None => *place = None,
            }
        }
    }
    Ok(sweeps.into_iter().map(|sweep| sweep.map(|sweep| sweep.points)).collect())
}
