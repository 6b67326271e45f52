//! Who takes part in a sweep of frame rates.

use crate::sequence::Sequence;
use crate::trial::Trial;

/// Seconds that a trial takes at least, if its rate is kept.
const TRIAL_TIME: f64 = 0.35;

/// Access units that a trial has at least.
const UNITS_MIN: usize = 64;

/// One way of moving a sequence from one process into another: ours, the kernel's alone, or that of
/// another program.
pub(crate) trait Contestant {
    /// What tables and legends call it.
    fn name(&self) -> &str;

    /// Whether others are compared with it: it is drawn in dashes.
    fn is_beside(&self) -> bool {
        false
    }

    /// Sends access units of `sequence` from its beginning, `rate` a second, and receives them.
    /// How many is best told by [`units_of_trial`].
    ///
    /// # Errors
    /// If it cannot run at all. What is lost or late is no error.
    fn run(&self, sequence: &Sequence, rate: f64) -> anyhow::Result<Trial>;
}

/// How many access units a trial at `rate` a second sends: whole intra periods, so that all trials
/// of a sequence have the same share of large units.
pub(crate) fn units_of_trial(sequence: &Sequence, rate: f64) -> usize {
    #[allow(clippy::cast_sign_loss, reason = "rates are above zero")]
    let wished = ((rate * TRIAL_TIME).ceil() as usize).max(UNITS_MIN);
    wished.next_multiple_of(sequence.period())
}
