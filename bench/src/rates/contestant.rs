//! A participant in a sweep of frame rates.

use crate::sequence::Sequence;
use crate::trial::Trial;

/// Minimum duration of a trial in seconds, if the rate is kept.
const TRIAL_TIME: f64 = 0.35;

/// Minimum number of access units in a trial.
const UNITS_MIN: usize = 64;

/// One way of moving a sequence from one process to another: by Rushes, by the kernel alone, or by
/// another program.
pub(crate) trait Contestant {
    /// Its name in tables and legends.
    fn name(&self) -> &str;

    /// Whether it is a reference for others, drawn with dashes.
    fn is_reference(&self) -> bool {
        false
    }

    /// Sends access units of `sequence` from its beginning, `rate` per second, and receives them.
    /// Their number should be that of [`units_of_trial`].
    ///
    /// # Errors
    /// If it cannot run at all. Lost or late access units are not an error.
    fn run(&self, sequence: &Sequence, rate: f64) -> anyhow::Result<Trial>;
}

/// The number of access units in a trial at `rate` per second: whole intra periods, so that all
/// trials of a sequence have the same share of large units.
pub(crate) fn units_of_trial(sequence: &Sequence, rate: f64) -> usize {
    #[allow(clippy::cast_sign_loss, reason = "rates are above zero")]
    let wished = ((rate * TRIAL_TIME).ceil() as usize).max(UNITS_MIN);
    wished.next_multiple_of(sequence.period())
}
