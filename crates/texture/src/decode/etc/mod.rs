//! ETC1 and ETC2 without alpha, whose modes and tables are those of the Khronos Data Format
//! Specification. Any 64 bits are a valid block.
#![allow(
    clippy::inline_always,
    reason = "a loop is compiled for each set only where it is inlined"
)]
#![allow(clippy::needless_range_loop, reason = "a loop has the lanes of several arrays")]

mod colours;
mod plane;

use crate::InstructionSet;
use crate::convert::Loop;
use crate::decode::etc::colours::Colours;
use crate::decode::etc::plane::Planes;
use crate::decode::lanes;
use crate::decode::lanes::{BLOCKS, Group, Octets, Pixels, Words};

/// Decodes blocks of ETC1, of which differences that overflow wrap around, to four rows of RGBA pixels,
/// `stride` bytes apart.
///
/// Stops where `blocks` or one of the rows ends.
pub(crate) fn etc1_block_row(set: InstructionSet, blocks: &[u8], rgba: &mut [u8], stride: usize) {
    lanes::decode::<Blocks<false>, 2>(set, blocks, rgba, stride);
}

/// Like [`etc1_block_row`], of ETC2, where differences that overflow select other modes.
pub(crate) fn etc2_block_row(set: InstructionSet, blocks: &[u8], rgba: &mut [u8], stride: usize) {
    lanes::decode::<Blocks<true>, 2>(set, blocks, rgba, stride);
}

/// The loop that decodes a group of ETC2, or of ETC1.
enum Blocks<const ETC2: bool> {}

impl<const ETC2: bool> Loop for Blocks<ETC2> {
    type Arguments<'a> = Group<'a, 2>;

    #[inline(always)]
    fn run(group: Group<'_, 2>) {
        let [heads, indices] = &lanes::words(group.blocks);
        if ETC2 && colours::any_overflows(heads) {
            write::<true>(heads, indices, group);
        } else {
            write::<false>(heads, indices, group);
        }
    }
}

/// Writes the pixels of blocks, of which those of ETC1's modes alone take less time.
#[inline(always)]
fn write<const ALL_MODES: bool>(heads: &Words, indices: &Words, group: Group<'_, 2>) {
    let colours = Colours::new::<ALL_MODES>(heads);
    let mut planes = Planes::new::<ALL_MODES>(heads, indices);
    // Of the right columns before those of the left ones, and of the upper bits before the lower ones.
    let mut bits = [[0; BLOCKS]; 4];
    for n in 0..4 {
        bits[n] = lanes::octets(indices, 8 * n as u32);
    }
    for (y, row) in group.rows.into_iter().enumerate() {
        let mut four = [[[0; BLOCKS]; 2]; 4];
        for (x, to) in four.iter_mut().enumerate() {
            let bits = [&bits[1 - x / 2], &bits[3 - x / 2]];
            let bit = 1 << (x % 2 * 4 + y);
            let mut octets = colours.select::<ALL_MODES>((x, y), bits, bit);
            if ALL_MODES {
                planes.replace(x, &mut octets);
            }
            *to = pixels(&octets);
        }
        if ALL_MODES {
            planes.descend();
        }
        lanes::write(&four, row);
    }
}

/// Returns opaque pixels.
#[inline(always)]
fn pixels([red, green, blue]: &[Octets; 3]) -> Pixels {
    let mut pixels = [[0; BLOCKS]; 2];
    for at in 0..BLOCKS {
        pixels[0][at] = u16::from(red[at]) | u16::from(green[at]) << 8;
        pixels[1][at] = u16::from(blue[at]) | 0xff00;
    }
    pixels
}

#[cfg(test)]
mod tests {
    use super::*;

    type Decode = fn([u8; 8]) -> Vec<[u8; 4]>;

    fn pixels(decode: fn(InstructionSet, &[u8], &mut [u8], usize), block: [u8; 8]) -> Vec<[u8; 4]> {
        let mut rgba = [0; 64];
        decode(InstructionSet::fastest(), &block, &mut rgba, 16);
        rgba.as_chunks().0.to_vec()
    }

    fn etc1(block: [u8; 8]) -> Vec<[u8; 4]> {
        pixels(etc1_block_row, block)
    }

    fn etc2(block: [u8; 8]) -> Vec<[u8; 4]> {
        pixels(etc2_block_row, block)
    }

    fn reds(decode: Decode, block: [u8; 8]) -> Vec<u8> {
        decode(block).iter().map(|pixel| pixel[0]).collect()
    }

    #[test]
    fn an_individual_block_has_two_halves_and_a_modifier_for_each_pixel() {
        // Two halves side by side: red 0x11 with table 0 (2, 8) on the left, 0xee with table 7 (47,
        // 183) on the right. Pixel indices run down columns from the lowest bit; 3 in the first
        // pixel is -8.
        let block = [0x1e, 0, 0, 7 << 2, 0, 1, 0, 1];
        for decode in [etc1 as Decode, etc2] {
            let row = |first| [first, 0x11 + 2, 255, 255];
            let rows = [row(0x11 - 8), row(0x13), row(0x13), row(0x13)];
            assert_eq!(reds(decode, block), rows.concat());
        }
    }

    #[test]
    fn a_differential_block_flipped_has_halves_one_above_the_other() {
        // A differential, flipped block: red 16 of 31 and one less, with table 0 for both.
        let block = [16 << 3 | 7, 0, 0, 0b11, 0, 0, 0, 0];
        for decode in [etc1 as Decode, etc2] {
            let (above, below) = (0x84 + 2, 0x7b + 2);
            assert_eq!(reds(decode, block), [[above; 8], [below; 8]].concat());
        }
    }

    #[test]
    fn a_planar_block_of_etc2_rises_along_its_rows_and_columns() {
        // Origin 0, horizontal red 63, vertical red 0; green and blue 0. Byte 2 holds blue bits 4-3
        // at 4-3 and 2-1 at 1-0; its difference of -4 makes blue overflow below 0, which selects
        // the planar mode.
        let block = [0, 0, 0b0000_0100, 0b0111_1111, 0, 0, 0, 0];
        let reds = reds(etc2, block);
        assert_eq!(reds[..4], reds[12..], "no change downwards");
        assert_eq!(reds[..4], [0, 64, 128, 191]);
    }

    #[test]
    fn a_t_block_of_etc2_has_its_first_colour_alone() {
        // Red of 0 with a difference of -4 selects T: first colour (0, 0, 0) with bit 2 for the
        // overflow, second colour 0x88 in all channels, distance 3.
        let block = [0b0000_0100, 0, 0x88, 0x82, 0xff, 0xff, 0, 0];
        // Index 2 everywhere selects the second colour itself.
        assert_eq!(etc2(block), [[0x88, 0x88, 0x88, 255]; 16]);
        // Index 1 everywhere selects the second colour plus the distance.
        let lighter = [0b0000_0100, 0, 0x88, 0x82, 0, 0, 0xff, 0xff];
        assert_eq!(etc2(lighter), [[0x8b, 0x8b, 0x8b, 255]; 16]);
    }
}
