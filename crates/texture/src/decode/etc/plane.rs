//! Planar blocks of ETC2, whose channels rise from an origin along the rows and columns.
#![allow(
    clippy::inline_always,
    reason = "a loop is compiled for each set only where it is inlined"
)]
#![allow(clippy::needless_range_loop, reason = "a loop has the lanes of several arrays")]

use crate::decode::etc::colours;
use crate::decode::lanes::{BLOCKS, Octets, Words, either, mask};

/// A signed 16-bit value of each block.
type Levels = [i16; BLOCKS];

/// The planes of red, green and blue, four times as high as the channels.
pub(super) struct Planes {
    /// Mask of the blocks that have planes.
    is_planar: Octets,
    /// The levels of a row's first pixel, with 2 for rounding.
    levels: [Levels; 3],
    /// What each step to the right and downwards adds.
    right: [Levels; 3],
    down: [Levels; 3],
}

impl Planes {
    /// Takes both words of the blocks; the first row is the current one.
    #[inline(always)]
    pub(super) fn new<const ALL_MODES: bool>(heads: &Words, rests: &Words) -> Self {
        let [mut levels, mut right, mut down] = [[[0; BLOCKS]; 3]; 3];
        let mut is_planar = [0; BLOCKS];
        if ALL_MODES {
            let overflows = colours::overflows(heads);
            for at in 0..BLOCKS {
                let [red_green, blue] = [overflows[at] as u16, (overflows[at] >> 16) as u16];
                is_planar[at] = mask(red_green == 0 && blue != 0);
            }
            for at in 0..BLOCKS {
                let (head, rest) = (heads[at].swap_bytes(), rests[at].swap_bytes());
                let green = (head >> 24 & 1) << 6 | head >> 17 & 0x3f;
                let blue = (head >> 16 & 1) << 5 | (head >> 11 & 3) << 3 | head >> 7 & 7;
                let red_across = (head >> 2 & 0x1f) << 1 | head & 1;
                let origin = [six(head >> 25), seven(green), six(blue)];
                let across = [six(red_across), seven(rest >> 25), six(rest >> 19)];
                let below = [six(rest >> 13), seven(rest >> 6), six(rest)];
                for channel in 0..3 {
                    levels[channel][at] = 4 * origin[channel] + 2;
                    right[channel][at] = across[channel] - origin[channel];
                    down[channel][at] = below[channel] - origin[channel];
                }
            }
        }
        Self { is_planar, levels, right, down }
    }

    /// Replaces the colours of planar blocks by those at `x` of the current row.
    #[inline(always)]
    pub(super) fn replace(&self, x: usize, colours: &mut [Octets; 3]) {
        let x = (x as u16).cast_signed();
        for channel in 0..3 {
            let mut octets = [0; BLOCKS];
            for at in 0..BLOCKS {
                let level = self.levels[channel][at] + x * self.right[channel][at];
                octets[at] = (level >> 2).clamp(0, 255).cast_unsigned() as u8;
            }
            for at in 0..BLOCKS {
                colours[channel][at] = either(self.is_planar[at], octets[at], colours[channel][at]);
            }
        }
    }

    /// Continues with the next row.
    #[inline(always)]
    pub(super) fn descend(&mut self) {
        for channel in 0..3 {
            for at in 0..BLOCKS {
                self.levels[channel][at] += self.down[channel][at];
            }
        }
    }
}

/// Returns eight bits for the lowest six.
#[inline(always)]
fn six(bits: u32) -> i16 {
    ((bits & 0x3f) << 2 | bits >> 4 & 3).cast_signed() as i16
}

/// Returns eight bits for the lowest seven.
#[inline(always)]
fn seven(bits: u32) -> i16 {
    ((bits & 0x7f) << 1 | bits >> 6 & 1).cast_signed() as i16
}
