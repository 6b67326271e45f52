//! Short-term reference picture sets of H.265. They cannot be skipped unread, because the length of
//! a set that is predicted from another depends on the contents of that set.

use super::super::bits::BitReader;

/// An upper bound of the pictures in a set: each of its two halves has at most
/// `sps_max_dec_pic_buffering_minus1` of them, which is at most 15.
const PICTURES_MAX: usize = 32;

/// The differences of picture order counts of a set (`DeltaPocS0`, then `DeltaPocS1`).
#[derive(Clone, Copy, Debug, Default)]
struct ReferenceSet {
    deltas: [i32; PICTURES_MAX],
    /// `NumNegativePics`.
    negative: usize,
    /// `NumDeltaPocs`.
    len: usize,
}

impl ReferenceSet {
    fn push(&mut self, delta: i32) -> Option<()> {
        *self.deltas.get_mut(self.len)? = delta;
        self.len += 1;
        Some(())
    }
}

/// Skips `num_short_term_ref_pic_sets` and the sets (ITU-T H.265 section 7.3.7).
pub(super) fn skip_reference_sets(bits: &mut BitReader<'_>) -> Option<()> {
    let count = bits.ue_max(64)?;
    let mut previous = ReferenceSet::default();
    for index in 0..count {
        previous = if index > 0 && bits.flag()? {
            read_predicted(bits, &previous)?
        } else {
            read_explicit(bits)?
        };
    }
    Some(())
}

/// Reads a field that is a difference minus 1; returns the difference, 1 to 2¹⁵.
fn read_step(bits: &mut BitReader<'_>) -> Option<i32> {
    i32::try_from(1 + bits.ue_max(0x7fff)?).ok()
}

fn read_explicit(bits: &mut BitReader<'_>) -> Option<ReferenceSet> {
    let negative = bits.ue_max(16)?;
    let positive = bits.ue_max(16)?;
    let mut set = ReferenceSet { negative: negative as usize, ..ReferenceSet::default() };
    for (count, sign) in [(negative, -1), (positive, 1)] {
        let mut delta = 0_i32;
        for _ in 0..count {
            let step = read_step(bits)?;
            delta += sign * step;
            set.push(delta)?;
            bits.skip(1)?; // used_by_curr_pic
        }
    }
    Some(set)
}

/// Reads a set predicted from `reference` (section 7.4.8, equations 7-61 and 7-62).
fn read_predicted(bits: &mut BitReader<'_>, reference: &ReferenceSet) -> Option<ReferenceSet> {
    let is_negative = bits.flag()?;
    let step = read_step(bits)?;
    let step = if is_negative { -step } else { step };
    // The flags are in the reference's order; the last is for the step itself.
    let mut used = [true; PICTURES_MAX + 1];
    for used in &mut used[..=reference.len] {
        let used_by_curr_pic = bits.flag()?;
        *used = used_by_curr_pic || bits.flag()?;
    }
    let deltas = &reference.deltas[..reference.len];
    let (before, after) = deltas.split_at(reference.negative);
    let candidate = |(place, delta): (usize, &i32)| used[place].then_some(delta + step);
    let before = || before.iter().enumerate().filter_map(candidate);
    let offset = reference.negative;
    let after = || after.iter().enumerate().map(|(n, delta)| (n + offset, delta));
    let itself = used[reference.len].then_some(step);
    let mut set = ReferenceSet::default();
    let negative = after().rev().filter_map(candidate).chain(itself).chain(before());
    negative.filter(|delta| *delta < 0).try_for_each(|delta| set.push(delta))?;
    set.negative = set.len;
    let positive = before().rev().chain(itself).chain(after().filter_map(candidate));
    positive.filter(|delta| *delta > 0).try_for_each(|delta| set.push(delta))?;
    Some(set)
}
