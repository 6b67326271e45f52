//! Frame rates one after the other, until too much is lost.

use super::adapter::Adapter;
use super::trials::{Part, Rig, StartUp};
use crate::sequence::Sequence;
use crate::trial::Trial;

/// Share of the access units that may be lost: what the papers allow.
pub(super) const LOSS_MAX: f64 = 0.025;

/// How far below its frame rate a program may be: the clock of a trial begins and ends with octets.
const RATE_MIN: f64 = 0.85;

/// Seconds that a trial takes, if its rate is kept.
const TRIAL_TIME: f64 = 0.5;
/// Access units of a trial, at least.
const UNITS_MIN: usize = 32;

/// How frame rates are stepped.
#[derive(Clone, Copy, Debug)]
pub(super) struct Steps {
    /// The first frame rate.
    pub(super) first: u32,
    /// No higher one is tried.
    pub(super) last: u32,
    /// From one frame rate to the next, as long as nothing much is lost.
    pub(super) factor: u32,
    /// How often the middle between a rate that was kept and one that was not is tried.
    pub(super) halvings: usize,
    /// Octets that a trial sends, at most.
    pub(super) amount: u64,
}

/// What a sweep showed, by frame rate.
pub(super) type Swept = Vec<(u32, Trial)>;

/// Whether a program kept up.
pub(super) fn kept(trial: &Trial, fps: u32) -> bool {
    let rate = trial.whole as f64 / trial.seconds.max(1e-9);
    trial.loss() <= LOSS_MAX && rate >= RATE_MIN * f64::from(fps)
}

/// The trial of most goodput among those that lost little.
pub(super) fn peak(swept: &Swept) -> Option<&(u32, Trial)> {
    let little = swept.iter().filter(|(_, trial)| trial.loss() <= LOSS_MAX);
    little.max_by(|(_, one), (_, other)| one.gigabits().total_cmp(&other.gigabits()))
}

pub(super) fn sweep(
    rig: &mut Rig<'_>,
    sequence: &Sequence,
    who: (&Adapter, Part),
    start_up: StartUp,
    steps: Steps,
) -> anyhow::Result<Swept> {
    let mut swept = Swept::new();
    let mut run = |fps: u32| -> anyhow::Result<bool> {
        let trial = rig.run(who, start_up, fps, units(sequence, fps, steps.amount))?;
        swept.push((fps, trial));
        Ok(kept(&trial, fps))
    };
    let (mut good, mut fps) = (None, steps.first);
    let mut bad = None;
    while bad.is_none() && fps <= steps.last {
        // Once more, if it fell: the machine may have been busy with something else.
        if run(fps)? || run(fps)? {
            good = Some(fps);
            fps = fps.saturating_mul(steps.factor);
        } else {
            bad = Some(fps);
        }
    }
    if let (Some(mut good), Some(mut bad)) = (good, bad) {
        for _ in 0..steps.halvings {
            let middle = f64::from(good) * f64::from(bad);
            #[allow(clippy::cast_sign_loss, reason = "a root is not")]
            let middle = middle.sqrt().round() as u32;
            if run(middle)? { good = middle } else { bad = middle }
        }
    }
    swept.sort_by_key(|(fps, _)| *fps);
    Ok(swept)
}

/// How many access units a trial sends: whole intra periods where they are not too many.
fn units(sequence: &Sequence, fps: u32, amount: u64) -> usize {
    #[allow(clippy::cast_sign_loss, reason = "a rate is not")]
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
#[allow(clippy::unwrap_used, reason = "a test may")]
mod tests {
    use super::*;

    fn trial(whole: u64, seconds: f64) -> Trial {
        Trial { offered: 100, whole, octets: whole * 1000, seconds, ..Trial::default() }
    }

    #[test]
    fn a_peak_loses_little() {
        let swept = vec![(100, trial(100, 1.0)), (200, trial(99, 0.5)), (400, trial(97, 0.25))];
        assert_eq!(peak(&swept).unwrap().0, 200);
        assert!(kept(&swept[1].1, 200) && !kept(&swept[2].1, 400));
        assert!(!kept(&trial(100, 1.0), 200), "half of the rate");
        assert!(peak(&vec![(100, trial(0, 0.0))]).is_none());
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
