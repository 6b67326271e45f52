//! BC3: a block of alpha and a block of colour, which always has four colours.
#![allow(
    clippy::inline_always,
    reason = "a loop is compiled for each set only where it is inlined"
)]
#![allow(clippy::needless_range_loop, reason = "a loop has the lanes of several arrays")]

use crate::InstructionSet;
use crate::convert::Loop;
use crate::decode::lanes::{BLOCKS, Group, Palette};
use crate::decode::{bc1, bc4, lanes};

/// Decodes blocks of 16 bytes to four rows of RGBA pixels, `stride` bytes apart.
///
/// Stops where `blocks` or one of the rows ends.
pub(crate) fn decode_block_row(set: InstructionSet, blocks: &[u8], rgba: &mut [u8], stride: usize) {
    lanes::decode::<Blocks, 4>(set, blocks, rgba, stride);
}

/// The loop that decodes a group.
enum Blocks {}

impl Loop for Blocks {
    type Arguments<'a> = Group<'a, 4>;

    #[inline(always)]
    fn run(group: Group<'_, 4>) {
        let [low, high, ends, indices] = &lanes::words(group.blocks);
        let alpha = bc4::Values::new([low, high]);
        let [mut red_green, mut blue] = [[[0; BLOCKS]; 4]; 2];
        bc1::four(ends, |at, which, colour| {
            red_green[which][at] = colour[0] | colour[1] << 8;
            blue[which][at] = colour[2];
        });
        let palettes = [Palette::new(&red_green), Palette::new(&blue)];
        for (y, row) in group.rows.into_iter().enumerate() {
            let indices = lanes::halves(indices, 8 * y as u32);
            let mut four = [[[0; BLOCKS]; 2]; 4];
            for (x, to) in (0..).zip(&mut four) {
                *to = bc1::pixels(&palettes, &indices, x);
                let alpha = alpha.at(x, y);
                for at in 0..BLOCKS {
                    to[1][at] |= alpha[at] << 8;
                }
            }
            lanes::write(&four, row);
        }
    }
}
