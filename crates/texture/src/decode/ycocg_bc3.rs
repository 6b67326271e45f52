//! Scaled YCoCg in BC3.
#![allow(
    clippy::inline_always,
    reason = "a loop is compiled for each set only where it is inlined"
)]
#![allow(clippy::needless_range_loop, reason = "a loop has the lanes of several arrays")]

use crate::InstructionSet;
use crate::convert::Loop;
use crate::decode::lanes::{BLOCKS, Group, Lanes, Palette, Pixels, Words};
use crate::decode::{bc1, bc4, lanes};

/// Decodes blocks of 16 bytes to four rows of opaque RGBA pixels, `stride` bytes apart.
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
        let luma = bc4::Values::new([low, high]);
        let offsets = palettes(ends);
        for (y, row) in group.rows.into_iter().enumerate() {
            let indices = lanes::halves(indices, 8 * y as u32);
            let mut four = [[[0; BLOCKS]; 2]; 4];
            for (x, to) in (0..).zip(&mut four) {
                *to = pixels(&luma.at(x, y), &offsets, &indices, x);
            }
            lanes::write(&four, row);
        }
    }
}

/// Returns the offsets of red, green and blue from luma, which are signed.
#[inline(always)]
fn palettes(ends: &Words) -> [Palette; 3] {
    let [mut orange, mut green, mut blue] = [[[0; BLOCKS]; 4]; 3];
    bc1::four(ends, |at, which, colour| {
        orange[which][at] = colour[0];
        green[which][at] = colour[1];
        blue[which][at] = colour[2];
    });
    for which in 0..4 {
        for at in 0..BLOCKS {
            let reciprocal = reciprocal(blue[which][at]);
            let [orange, green, blue] = [&mut orange, &mut green, &mut blue];
            let [orange, green, blue] =
                [orange, green, blue].map(|channel| &mut channel[which][at]);
            let (co, cg) = (i32::from(*orange) - 128, i32::from(*green) - 128);
            let scaled = |value: i32| ((value * reciprocal + 0x8000) >> 16).cast_unsigned() as u16;
            (*orange, *green, *blue) = (scaled(co - cg), scaled(cg), scaled(-co - cg));
        }
    }
    [Palette::new(&orange), Palette::new(&green), Palette::new(&blue)]
}

/// Returns 2¹⁶ divided by the scale, rounded down. The scale is 1 plus the value of blue in 5 bits.
#[inline(always)]
fn reciprocal(blue: u16) -> i32 {
    // Vectors have no division of integers. A quotient has a fraction of 0 or of 1/32 to 31/32, so that
    // it is rounded down if a little less than a half is subtracted before it is rounded to nearest, as
    // the addition of 2²³ does: the sum has no fractional bits, and the quotient in its lowest ones.
    const ROUNDING: f32 = 8_388_608.0;
    let quotient = 65_536.0 / f32::from((blue >> 3) + 1);
    (quotient - 31.0 / 64.0 + ROUNDING).to_bits().cast_signed() & 0x7f_ffff
}

#[inline(always)]
fn pixels(luma: &Lanes, offsets: &[Palette; 3], indices: &Lanes, x: u32) -> Pixels {
    let mut pixels = [[0; BLOCKS]; 2];
    for at in 0..BLOCKS {
        let masks = lanes::masks(indices[at], x);
        let [red, green, blue] = [0, 1, 2].map(|channel| {
            let sum = luma[at].wrapping_add(offsets[channel].select(at, masks)).cast_signed();
            sum.clamp(0, 255).cast_unsigned()
        });
        pixels[0][at] = red | green << 8;
        pixels[1][at] = blue | 0xff00;
    }
    pixels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reciprocals_are_rounded_down() {
        for blue in 0..=255 {
            assert_eq!(reciprocal(blue), 0x1_0000 / i32::from(blue / 8 + 1));
        }
    }
}
