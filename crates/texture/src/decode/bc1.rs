//! BC1, with and without transparency.
#![allow(
    clippy::inline_always,
    reason = "a loop is compiled for each set only where it is inlined"
)]
#![allow(clippy::needless_range_loop, reason = "a loop has the lanes of several arrays")]

use crate::InstructionSet;
use crate::convert::Loop;
use crate::decode::lanes;
use crate::decode::lanes::{BLOCKS, Group, Lanes, Palette, Pixels, Words};
use crate::rgb565;

/// Decodes blocks of 8 bytes to four rows of RGBA pixels, `stride` bytes apart.
///
/// Stops where `blocks` or one of the rows ends.
pub(crate) fn decode_block_row(set: InstructionSet, blocks: &[u8], rgba: &mut [u8], stride: usize) {
    lanes::decode::<Blocks, 2>(set, blocks, rgba, stride);
}

/// The loop that decodes a group.
enum Blocks {}

impl Loop for Blocks {
    type Arguments<'a> = Group<'a, 2>;

    #[inline(always)]
    fn run(group: Group<'_, 2>) {
        let [ends, indices] = &lanes::words(group.blocks);
        let [mut red_green, mut blue_alpha] = [[[0; BLOCKS]; 4]; 2];
        four(ends, |at, which, [red, green, blue]| {
            red_green[which][at] = red | green << 8;
            blue_alpha[which][at] = blue | 0xff00;
        });
        for at in 0..BLOCKS {
            // Such blocks have three colours, and transparent black.
            let has_three = u16::from(ends[at] as u16 <= (ends[at] >> 16) as u16).wrapping_neg();
            let [red, green, blue] = half(ends[at]);
            let either = |four: u16, three: u16| four & !has_three | three & has_three;
            red_green[2][at] = either(red_green[2][at], red | green << 8);
            blue_alpha[2][at] = either(blue_alpha[2][at], blue | 0xff00);
            red_green[3][at] = either(red_green[3][at], 0);
            blue_alpha[3][at] = either(blue_alpha[3][at], 0);
        }
        let palettes = [Palette::new(&red_green), Palette::new(&blue_alpha)];
        for (y, row) in group.rows.into_iter().enumerate() {
            let indices = lanes::halves(indices, 8 * y as u32);
            let mut four = [[[0; BLOCKS]; 2]; 4];
            for (x, to) in (0..).zip(&mut four) {
                *to = pixels(&palettes, &indices, x);
            }
            lanes::write(&four, row);
        }
    }
}

/// Calls `put` with each block, the number of each of its four colours, and the colour: the two ends, and
/// those at one and two thirds between them.
#[inline(always)]
pub(super) fn four(ends: &Words, mut put: impl FnMut(usize, usize, [u16; 3])) {
    for (which, [near, far]) in [[3, 0], [0, 3], [2, 1], [1, 2]].into_iter().enumerate() {
        for at in 0..BLOCKS {
            let (first, second) = channels(ends[at]);
            let sums = [0, 1, 2].map(|n| near * first[n] + far * second[n]);
            put(at, which, rgb565::third(sums));
        }
    }
}

/// Returns the colour halfway between two ends.
#[inline(always)]
fn half(ends: u32) -> [u16; 3] {
    let (first, second) = channels(ends);
    rgb565::half([0, 1, 2].map(|n| first[n] + second[n]))
}

#[inline(always)]
fn channels(ends: u32) -> ([u16; 3], [u16; 3]) {
    (rgb565::channels(ends as u16), rgb565::channels((ends >> 16) as u16))
}

/// Returns the pixels at `x` of a row whose indices are given.
#[inline(always)]
pub(super) fn pixels(palettes: &[Palette; 2], indices: &Lanes, x: u32) -> Pixels {
    let mut pixels = [[0; BLOCKS]; 2];
    for at in 0..BLOCKS {
        let masks = lanes::masks(indices[at], x);
        pixels[0][at] = palettes[0].select(at, masks);
        pixels[1][at] = palettes[1].select(at, masks);
    }
    pixels
}
