//! Frame rates one after the other, until too much is lost.

use crate::sequence::Sequence;
use crate::trial::Trial;

/// Share of the access units that may be lost, as in the papers.
pub(super) const LOSS_MAX: f64 = 0.025;

/// The minimum share of the frame rate: the time of a trial is measured from first to last output.
const RATE_MIN: f64 = 0.85;

/// Seconds that a trial takes, if the rate is kept.
const TRIAL_TIME: f64 = 0.5;
/// Minimum number of access units in a trial.
const UNITS_MIN: usize = 32;

/// Divisor of the first frame rate down to which rates are tried if that was too high.
const DESCENT_MAX: u32 = 4;

/// No rates below this are tried, as such trials take long.
const DESCENT_END: u32 = 30;

/// The steps of the frame rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Steps {
    /// The first frame rate.
    pub(super) first: u32,
    /// The highest frame rate.
    pub(super) last: u32,
    /// Factor from one frame rate to the next, as long as rates are kept.
    pub(super) factor: u32,
    /// Number of times that the middle between a rate kept and one not kept is tried.
    pub(super) halvings: usize,
    /// Minimum number of trials at the peak rate; the median counts.
    pub(super) peak_runs: usize,
    /// Maximum number of octets that a trial sends.
    pub(super) amount: u64,
}

/// Whether a program kept up.
pub(super) fn kept(trial: &Trial, fps: u32) -> bool {
    trial.loss() <= LOSS_MAX && reached(trial) >= RATE_MIN * f64::from(fps)
}

/// Complete access units received per second.
pub(super) fn reached(trial: &Trial) -> f64 {
    trial.whole as f64 / trial.seconds.max(1e-9)
}

/// One frame rate that was tried.
#[derive(Clone, Debug)]
pub(super) struct Point {
    pub(super) fps: u32,
    trials: Vec<Trial>,
}

impl Point {
    pub(super) fn new(fps: u32, trial: Trial) -> Self {
        Self { fps, trials: vec![trial] }
    }

    pub(super) fn runs(&self) -> usize {
        self.trials.len()
    }

    /// The median trial by goodput, of two the better one; trials that lost too much rank lowest.
    pub(super) fn median(&self) -> Trial {
        let worth = |trial: &Trial| match trial.loss() {
            loss if loss > LOSS_MAX => -loss,
            _ => trial.gigabits(),
        };
        let mut trials = self.trials.clone();
        trials.sort_by(|one, other| worth(one).total_cmp(&worth(other)));
        trials.get(trials.len() / 2).copied().unwrap_or_default()
    }
}

/// The frame rate with the highest goodput among those with little loss.
pub(super) fn peak(points: &[Point]) -> Option<&Point> {
    let little = points.iter().filter(|point| point.median().loss() <= LOSS_MAX);
    little.max_by(|one, other| one.median().gigabits().total_cmp(&other.median().gigabits()))
}

/// The frame rates of one program. Several programs take turns, so that all try a rate within the
/// same minute.
#[derive(Clone, Debug)]
pub(super) struct Sweep {
    steps: Steps,
    points: Vec<Point>,
    /// The highest rate that was kept, and the lowest that was not.
    good: Option<u32>,
    bad: Option<u32>,
    halvings: usize,
    repeats: usize,
}

impl Sweep {
    pub(super) fn new(steps: Steps) -> Self {
        let (points, halvings) = (Vec::new(), steps.halvings);
        // The peak may move to another rate during its repetitions.
        let repeats = 2 * steps.peak_runs.saturating_sub(1);
        Self { steps, points, good: None, bad: None, halvings, repeats }
    }

    /// The frame rate to be tried next; `None` at the end.
    pub(super) fn next(&mut self) -> Option<u32> {
        match (self.good, self.bad) {
            (None, None) => return Some(self.steps.first),
            (Some(good), None) => {
                let fps = good.saturating_mul(self.steps.factor);
                if fps <= self.steps.last {
                    return Some(fps);
                }
            }
            (Some(good), Some(bad)) if self.halvings > 0 => {
                self.halvings -= 1;
                #[allow(clippy::cast_sign_loss, reason = "a root is not negative")]
                let middle = (f64::from(good) * f64::from(bad)).sqrt().round() as u32;
                return Some(middle);
            }
            (None, Some(bad)) if bad > DESCENT_END.max(self.steps.first / DESCENT_MAX) => {
                return Some((bad / 2).max(1));
            }
            (_, Some(_)) => {}
        }
        let peak = peak(&self.points).filter(|peak| peak.runs() < self.steps.peak_runs)?;
        self.repeats = self.repeats.checked_sub(1)?;
        Some(peak.fps)
    }

    /// Adds the trial at the rate that [`next`](Self::next) returned.
    pub(super) fn take(&mut self, fps: u32, trial: Trial) {
        let known = self.points.iter_mut().find(|point| point.fps == fps);
        let is_again = known.is_some();
        match known {
            Some(point) => point.trials.push(trial),
            None => self.points.push(Point::new(fps, trial)),
        }
        let is_between =
            self.bad.is_some_and(|bad| fps < bad) && self.good.is_none_or(|good| good < fps);
        let is_climbing = self.bad.is_none();
        if kept(&trial, fps) {
            if is_climbing || is_between {
                self.good = Some(fps);
            }
        } else if is_between || (is_climbing && (is_again || self.steps.peak_runs == 1)) {
            // While climbing, a failed rate is tried twice, as the machine may have been busy; with
            // a single run per rate, only once.
            self.bad = Some(fps);
        }
    }

    /// The points, ordered by frame rate.
    pub(super) fn points(mut self) -> Vec<Point> {
        self.points.sort_by_key(|point| point.fps);
        self.points
    }
}

/// The number of access units in a trial: whole intra periods unless those are too many.
pub(super) fn units(sequence: &Sequence, fps: u32, amount: u64) -> usize {
    #[allow(clippy::cast_sign_loss, reason = "a rate is not negative")]
    let wished = ((f64::from(fps) * TRIAL_TIME).ceil() as usize).max(UNITS_MIN);
    let mean = sequence.octets.len() / sequence.units.len().max(1);
    let most = usize::try_from(amount).unwrap_or(usize::MAX) / mean.max(1);
    let most = most.max(UNITS_MIN);
    match wished.next_multiple_of(sequence.period()) {
        periods if periods <= most => periods,
        _ => wished.min(most),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    fn trial(whole: u64, seconds: f64) -> Trial {
        Trial { offered: 100, whole, octets: whole * 1000, seconds, ..Trial::default() }
    }

    const STEPS: Steps =
        Steps { first: 100, last: 5_000, factor: 2, halvings: 2, peak_runs: 3, amount: 1 };

    /// The rates that are tried if `of` returns their trials.
    fn tried(mut sweep: Sweep, of: impl Fn(u32) -> Trial) -> (Vec<u32>, Vec<Point>) {
        let mut rates = Vec::new();
        while let Some(fps) = sweep.next() {
            rates.push(fps);
            sweep.take(fps, of(fps));
            assert!(rates.len() < 100, "{rates:?}");
        }
        (rates, sweep.points())
    }

    #[test]
    fn a_peak_loses_little() {
        let points = [(100, 100, 1.0), (200, 99, 0.5), (400, 97, 0.25)]
            .map(|(fps, whole, seconds)| Point::new(fps, trial(whole, seconds)));
        assert_eq!(peak(&points).unwrap().fps, 200);
        assert!(kept(&points[1].median(), 200) && !kept(&points[2].median(), 400));
        assert!(!kept(&trial(100, 1.0), 200), "half of the rate");
        assert!(peak(&[Point::new(100, trial(0, 0.0))]).is_none());
    }

    #[test]
    fn a_median_is_the_trial_in_the_middle_and_whoever_lost_is_below() {
        let mut point = Point::new(100, trial(100, 1.0));
        point.trials.push(trial(90, 0.1));
        assert_eq!(point.median().whole, 100, "the better of two");
        point.trials.push(trial(100, 0.5));
        assert!(point.median().seconds > 0.9);
    }

    #[test]
    fn rates_are_doubled_then_halved_then_the_peak_is_tried_again() {
        let limit = |fps: u32| trial(if fps <= 600 { 100 } else { 50 }, 100.0 / f64::from(fps));
        let (rates, points) = tried(Sweep::new(STEPS), limit);
        assert_eq!(rates, [100, 200, 400, 800, 800, 566, 673, 566, 566]);
        assert_eq!(peak(&points).unwrap().fps, 566);
        assert_eq!(peak(&points).unwrap().runs(), 3);
    }

    #[test]
    fn what_never_falls_ends_at_the_last_rate_and_what_falls_at_the_first_goes_below_it() {
        let (rates, _) = tried(Sweep::new(STEPS), |fps| trial(100, 100.0 / f64::from(fps)));
        assert_eq!(rates, [100, 200, 400, 800, 1600, 3200, 3200, 3200]);
        let (rates, points) = tried(Sweep::new(STEPS), |_| trial(0, 0.0));
        assert_eq!(rates, [100, 100, 50, 25]);
        assert!(peak(&points).is_none());
        let slow = |fps: u32| trial(if fps <= 60 { 100 } else { 50 }, 100.0 / f64::from(fps));
        let (rates, _) = tried(Sweep::new(STEPS), slow);
        assert_eq!(rates, [100, 100, 50, 71, 60, 60, 60]);
    }

    #[test]
    fn trials_are_whole_periods_within_their_bound() {
        let sequence = Sequence::make(rushes::Codec::H265, 10_000_000).unwrap();
        assert_eq!(units(&sequence, 60, u64::MAX) % sequence.period(), 0);
        let mean = sequence.octets.len() / sequence.units.len();
        assert_eq!(units(&sequence, 10_000, 100 * mean as u64), 100);
        assert_eq!(units(&sequence, 10_000, 1), UNITS_MIN);
    }
}
