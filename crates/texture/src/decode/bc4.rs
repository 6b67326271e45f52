//! BC4: blocks of one channel.
#![allow(
    clippy::inline_always,
    reason = "a loop is compiled for each set only where it is inlined"
)]
#![allow(clippy::needless_range_loop, reason = "a loop has the lanes of several arrays")]

use crate::decode::lanes;
use crate::decode::lanes::{BLOCKS, Lanes, Words};

/// The values of blocks, of which each has both ends and six values between them or, if the first end is
/// not greater, four values between them, 0 and 255.
pub(super) struct Values {
    /// The codes of a row's four values, three bits each.
    codes: [Lanes; 4],
    /// The first end, and how much each step towards the other end adds, modulo 2¹⁶; both times the
    /// number of steps, and the former with 1 for rounding.
    first: Lanes,
    step: Lanes,
    /// The number of steps between the ends, 7 or 5, and 2¹⁶ divided by it, rounded up.
    steps: Lanes,
    reciprocal: Lanes,
    /// The codes of 0 and 255: 6 and 7, or 8 if there are none.
    black: Lanes,
    white: Lanes,
}

impl Values {
    /// Takes the two words of the blocks.
    #[inline(always)]
    pub(super) fn new([low, high]: [&Words; 2]) -> Self {
        let mut middle = [0; BLOCKS];
        for at in 0..BLOCKS {
            middle[at] = low[at] >> 28 | high[at] << 4;
        }
        let codes = [
            lanes::halves(low, 16),
            lanes::halves(&middle, 0),
            lanes::halves(high, 8),
            lanes::halves(high, 20),
        ];
        let ends = lanes::halves(low, 0);
        let [mut first, mut step, mut steps, mut reciprocal, mut black, mut white] =
            [[0; BLOCKS]; 6];
        for at in 0..BLOCKS {
            let (a, b) = (ends[at] & 0xff, ends[at] >> 8);
            let has_eight = mask(a > b);
            steps[at] = 5 + (has_eight & 2);
            reciprocal[at] = either(has_eight, 9_363, 13_108);
            black[at] = either(has_eight, 8, 6);
            white[at] = either(has_eight, 8, 7);
            first[at] = a * steps[at] + 1;
            step[at] = b.wrapping_sub(a);
        }
        Self { codes, first, step, steps, reciprocal, black, white }
    }

    /// Returns value `x` of row `y` of each block.
    #[inline(always)]
    pub(super) fn at(&self, x: u32, y: usize) -> Lanes {
        let mut values = [0; BLOCKS];
        for at in 0..BLOCKS {
            let code = self.codes[y][at] >> (3 * x) & 7;
            // Code 0 is the first end, 1 the other one, and those after it lie between them.
            let steps = code.saturating_sub(1) + (self.steps[at] & mask(code == 1));
            let sum = self.first[at].wrapping_add(self.step[at].wrapping_mul(steps));
            let value = ((u32::from(sum) * u32::from(self.reciprocal[at])) >> 16) as u16;
            let (black, white) = (mask(code == self.black[at]), mask(code == self.white[at]));
            values[at] = value & !(black | white) | white & 0xff;
        }
        values
    }
}

#[inline(always)]
fn mask(is: bool) -> u16 {
    u16::from(is).wrapping_neg()
}

#[inline(always)]
fn either(mask: u16, one: u16, other: u16) -> u16 {
    one & mask | other & !mask
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_product_with_a_reciprocal_is_the_quotient() {
        for (steps, reciprocal) in [(7_u32, 9_363), (5, 13_108)] {
            for sum in 1..=255 * steps + 1 {
                assert_eq!((sum * reciprocal) >> 16, sum / steps);
            }
        }
    }
}
