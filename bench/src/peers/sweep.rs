//! Frame rates of programs: which are tried, and which was the best.

use crate::ends::Trial;
use crate::sequence::Sequence;
use crate::sweep::{LOSS_MAX, Plan, Point};

/// The minimum share of the frame rate: the time of a trial is measured from first to last output.
const RATE_MIN: f64 = 0.85;

/// Seconds that a trial takes, if the rate is kept.
const TRIAL_TIME: f64 = 0.5;
/// Minimum number of access units in a trial.
const UNITS_MIN: usize = 32;

/// Divisor of the first frame rate down to which rates are tried if that was too high.
const DESCENT_MAX: f64 = 4.0;

/// No rates below this are tried, as such trials take long.
const DESCENT_END: f64 = 30.0;

/// Returns the plan of a sweep from frame rate `first` to `last`.
pub(super) fn plan(first: u32, last: u32, is_quick: bool) -> Plan {
    let first = f64::from(first);
    Plan {
        first,
        last: f64::from(last),
        factor: if is_quick { 4.0 } else { 2.0 },
        divisor: 2.0,
        floor: DESCENT_END.max(first / DESCENT_MAX),
        halvings: if is_quick { 1 } else { 2 },
        runs: if is_quick { 1 } else { 3 },
        is_whole: true,
        rates: Vec::new(),
        end: None,
        kept,
        peak,
    }
}

/// Returns whether a program kept up.
fn kept(trial: &Trial, fps: f64) -> bool {
    trial.loss() <= LOSS_MAX && reached(trial) >= RATE_MIN * fps
}

/// Returns the complete access units received per second.
pub(super) fn reached(trial: &Trial) -> f64 {
    trial.whole as f64 / trial.seconds.max(1e-9)
}

/// Returns the median trial by goodput, of two the better one; trials that lost too much rank
/// lowest.
pub(super) fn median(point: &Point) -> Trial {
    let worth = |trial: &Trial| match trial.loss() {
        loss if loss > LOSS_MAX => -loss,
        _ => trial.gigabits(),
    };
    let mut trials = point.trials.0.clone();
    trials.sort_by(|one, other| worth(one).total_cmp(&worth(other)));
    trials.get(trials.len() / 2).copied().unwrap_or_default()
}

/// Returns the frame rate with the highest goodput among those with little loss.
pub(super) fn peak(points: &[Point]) -> Option<&Point> {
    let little = points.iter().filter(|point| median(point).loss() <= LOSS_MAX);
    little.max_by(|one, other| median(one).gigabits().total_cmp(&median(other).gigabits()))
}

/// Returns the number of access units in a trial: whole intra periods unless those are too many.
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
    use crate::ends::Trials;
    use crate::sweep::sweep;

    fn trial(whole: u64, seconds: f64) -> Trial {
        Trial { offered: 100, whole, octets: whole * 1000, seconds, ..Trial::default() }
    }

    fn point(rate: f64, trials: &[Trial]) -> Point {
        Point { rate, trials: Trials(trials.to_vec()) }
    }

    /// Returns the rates that are tried if `of` returns their trials.
    fn tried(of: impl Fn(f64) -> Trial) -> (Vec<f64>, Vec<Point>) {
        let mut rates = Vec::new();
        let swept = sweep(&[()], &plan(100, 5_000, false), |(), fps| {
            rates.push(fps);
            assert!(rates.len() < 100, "{rates:?}");
            Ok(Some(of(fps)))
        });
        (rates, swept.unwrap().remove(0).unwrap())
    }

    #[test]
    fn a_peak_loses_little() {
        let points = [(100.0, 100, 1.0), (200.0, 99, 0.5), (400.0, 97, 0.25)]
            .map(|(fps, whole, seconds)| point(fps, &[trial(whole, seconds)]));
        assert!((peak(&points).unwrap().rate - 200.0).abs() < 1e-9);
        assert!(kept(&median(&points[1]), 200.0) && !kept(&median(&points[2]), 400.0));
        assert!(!kept(&trial(100, 1.0), 200.0), "half of the rate");
        assert!(peak(&[point(100.0, &[trial(0, 0.0)])]).is_none());
    }

    #[test]
    fn a_median_is_the_trial_in_the_middle_and_whoever_lost_is_below() {
        let trials = [trial(100, 1.0), trial(90, 0.1), trial(100, 0.5)];
        assert_eq!(median(&point(100.0, &trials[..2])).whole, 100, "the better of two");
        assert!(median(&point(100.0, &trials)).seconds > 0.9);
    }

    #[test]
    fn rates_are_doubled_then_halved_then_the_peak_is_tried_again() {
        let limit = |fps: f64| trial(if fps <= 600.0 { 100 } else { 50 }, 100.0 / fps);
        let (rates, points) = tried(limit);
        assert_eq!(rates, [100.0, 200.0, 400.0, 800.0, 800.0, 566.0, 673.0, 566.0, 566.0]);
        let peak = peak(&points).unwrap();
        assert_eq!((peak.rate, peak.trials.0.len()), (566.0, 3));
    }

    #[test]
    fn what_never_falls_ends_at_the_last_rate_and_what_falls_at_the_first_goes_below_it() {
        let (rates, _) = tried(|fps| trial(100, 100.0 / fps));
        assert_eq!(rates, [100.0, 200.0, 400.0, 800.0, 1600.0, 3200.0, 3200.0, 3200.0]);
        let (rates, points) = tried(|_| trial(0, 0.0));
        assert_eq!(rates, [100.0, 100.0, 50.0, 25.0]);
        assert!(peak(&points).is_none());
        let slow = |fps: f64| trial(if fps <= 60.0 { 100 } else { 50 }, 100.0 / fps);
        let (rates, _) = tried(slow);
        assert_eq!(rates, [100.0, 100.0, 50.0, 71.0, 60.0, 60.0, 60.0]);
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
