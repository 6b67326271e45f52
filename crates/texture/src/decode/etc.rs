//! ETC1 and ETC2 without alpha, by `texture2ddecoder`. Any 64 bits are a valid block.

use texture2ddecoder::{decode_etc1_block, decode_etc2_rgb_block};

use crate::decode::texels;

/// The sixteen pixels of a block: blue, green, red and alpha from the lowest byte up.
type Pixels = [u32; 16];

/// Returns the pixels of an ETC1 block.
pub(super) fn etc1(block: [u8; 8]) -> Pixels {
    let mut pixels = [0; 16];
    decode_etc1_block(&block, &mut pixels);
    pixels
}

/// Returns the pixels of an ETC2 block.
pub(super) fn etc2(block: [u8; 8]) -> Pixels {
    let mut pixels = [0; 16];
    decode_etc2_rgb_block(&block, &mut pixels);
    pixels
}

/// Decodes blocks of 8 bytes to four rows of RGBA pixels, `stride` bytes apart.
///
/// Stops where `blocks` or one of the rows ends.
pub(super) fn decode_block_row(
    decode: fn([u8; 8]) -> Pixels,
    blocks: &[u8],
    rgba: &mut [u8],
    stride: usize,
) {
    texels::each_block(blocks, rgba, stride, |&block, rows| {
        let pixels = decode(block);
        for (row, pixels) in rows.into_iter().zip(pixels.as_chunks::<4>().0) {
            for (to, &pixel) in row.as_chunks_mut().0.iter_mut().zip(pixels) {
                *to = texels::rgba(pixel);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reds(decode: fn([u8; 8]) -> Pixels, block: [u8; 8]) -> Vec<u8> {
        decode(block).iter().map(|&pixel| texels::rgba(pixel)[0]).collect()
    }

    #[test]
    fn an_individual_block_has_two_halves_and_a_modifier_for_each_pixel() {
        // Two halves side by side: red 0x11 with table 0 (2, 8) on the left, 0xee with table 7 (47,
        // 183) on the right. Pixel indices run down columns from the lowest bit; 3 in the first
        // pixel is -8.
        let block = [0x1e, 0, 0, 7 << 2, 0, 1, 0, 1];
        for decode in [etc1 as fn([u8; 8]) -> Pixels, etc2] {
            let row = |first| [first, 0x11 + 2, 255, 255];
            let rows = [row(0x11 - 8), row(0x13), row(0x13), row(0x13)];
            assert_eq!(reds(decode, block), rows.concat());
        }
    }

    #[test]
    fn a_differential_block_flipped_has_halves_one_above_the_other() {
        // A differential, flipped block: red 16 of 31 and one less, with table 0 for both.
        let block = [16 << 3 | 7, 0, 0, 0b11, 0, 0, 0, 0];
        for decode in [etc1 as fn([u8; 8]) -> Pixels, etc2] {
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
        assert_eq!(etc2(block).map(texels::rgba), [[0x88, 0x88, 0x88, 255]; 16]);
        // Index 1 everywhere selects the second colour plus the distance.
        let lighter = [0b0000_0100, 0, 0x88, 0x82, 0, 0, 0xff, 0xff];
        assert_eq!(etc2(lighter).map(texels::rgba), [[0x8b, 0x8b, 0x8b, 255]; 16]);
    }
}
