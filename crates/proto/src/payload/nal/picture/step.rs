//! The step: the difference of the picture order counts of two adjacent frames.
//!
//! It is usually 2 in H.264, whose fields are counted, and 1 in H.265 and H.266. Some encoders use
//! 1 in H.264 or 2 in H.265, which no header declares.

use crate::time::greatest_divisor;

/// Number of frames after which a step is believed unless it was contradicted: more frames than the
/// usual structures have at the beginning of a sequence before every second frame is coded.
const FRAMES: u64 = 40;

/// Minimum number of frames in a whole sequence that shows its step.
const FRAMES_OF_SEQUENCE: u64 = 3;

/// The largest step that is believed.
const STEP_MAX: i64 = 60;

/// Number of sequences for which a step that two frames have shown is kept, even if no other frames
/// show it: frames, or a temporal layer, may be missing.
const TRUSTED: u32 = 4;

/// The step of a stream, and what the current sequence shows about it.
#[derive(Clone, Debug)]
pub(super) struct Step {
    counts: i64,
    /// Number of further sequences for which the step is not replaced by a larger one.
    trusted: u32,
    seen: Seen,
}

/// The frames of a sequence.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    first: i64,
    frames: u64,
    /// The greatest common divisor of the differences of their counts.
    divisor: u64,
    lowest: i64,
    highest: i64,
    has_fields: bool,
}

impl Step {
    /// Creates a step of `counts`, which is used unless frames show another.
    pub(super) fn new(counts: i64) -> Self {
        Self { counts, trusted: 0, seen: Seen::default() }
    }

    /// Returns the difference of the counts of two adjacent frames: 1 to 60.
    pub(super) fn counts(&self) -> i64 {
        self.counts
    }

    pub(super) fn set(&mut self, counts: i64) {
        self.counts = counts.clamp(1, STEP_MAX);
    }

    /// Notes the difference of the counts of two frames between which no other frame is known.
    /// Returns whether it is smaller than the step, which it then replaces.
    pub(super) fn show(&mut self, difference: i64) -> bool {
        let is_smaller = difference < self.counts;
        if difference <= self.counts {
            self.trusted = TRUSTED;
            self.set(difference);
        }
        is_smaller
    }

    /// Starts a sequence.
    pub(super) fn start(&mut self) {
        self.trusted = self.trusted.saturating_sub(1);
        self.seen = Seen::default();
    }

    /// Notes the next picture of the sequence in decoding order.
    pub(super) fn push(&mut self, count: i64, is_field: bool) {
        let seen = &mut self.seen;
        if seen.frames == 0 {
            (seen.first, seen.lowest, seen.highest) = (count, count, count);
        }
        seen.frames += 1;
        seen.has_fields |= is_field;
        seen.divisor = greatest_divisor(seen.divisor, count.abs_diff(seen.first));
        seen.lowest = seen.lowest.min(count);
        seen.highest = seen.highest.max(count);
    }

    /// Returns the step of the frames so far, if they show a larger one. `is_whole` is whether
    /// these are all frames of the sequence.
    pub(super) fn larger(&self, is_whole: bool) -> Option<i64> {
        let Seen { frames, divisor, lowest, highest, has_fields, .. } = self.seen;
        let enough = frames >= if is_whole { FRAMES_OF_SEQUENCE } else { FRAMES };
        // No frame is missing, so no frame with a smaller difference can follow.
        let is_dense = highest.abs_diff(lowest) == divisor * (frames.max(1) - 1);
        let step = i64::try_from(divisor).ok()?;
        (self.trusted == 0
            && enough
            && is_dense
            && !has_fields
            && step > self.counts
            && step <= STEP_MAX)
            .then_some(step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pushed(counts: impl IntoIterator<Item = i64>) -> Step {
        let mut step = Step::new(1);
        counts.into_iter().for_each(|count| step.push(count, false));
        step
    }

    #[test]
    fn the_step_of_a_whole_sequence_is_that_of_its_frames() {
        assert_eq!(pushed([0, 8, 4, 2, 6]).larger(true), Some(2));
        assert_eq!(pushed([0, 8, 4, 2, 6, 3]).larger(true), None);
        assert_eq!(pushed([0, 8, 4, 2]).larger(true), None);
        assert_eq!(pushed([0, 8]).larger(true), None);
    }

    #[test]
    fn an_unfinished_sequence_must_be_long_to_show_its_step() {
        assert_eq!(pushed((0..39).map(|n| 2 * n)).larger(false), None);
        assert_eq!(pushed((0..40).map(|n| 2 * n)).larger(false), Some(2));
        assert_eq!(pushed((0..40).map(|n| 99 * n)).larger(false), None);
    }

    #[test]
    fn a_step_that_was_shown_is_trusted_for_some_sequences() {
        let mut step = Step::new(2);
        assert!(step.show(1) && !step.show(1) && !step.show(2));
        let mut larger = || {
            step.start();
            for count in [0, 2, 4] {
                step.push(count, false);
            }
            step.larger(true)
        };
        assert_eq!([(); 5].map(|()| larger()), [None, None, None, Some(2), Some(2)]);
    }

    #[test]
    fn fields_show_no_step_of_frames() {
        let mut step = pushed((0..40).map(|n| 4 * n));
        step.push(160, true);
        assert_eq!(step.larger(true), None);
    }
}
