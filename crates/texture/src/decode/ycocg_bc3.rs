//! Scaled YCoCg in BC3.

use crate::decode::{bc1, bc3, bc4, texels};

/// Decodes blocks of 16 bytes to four rows of opaque RGBA pixels, `stride` bytes apart.
///
/// Stops where `blocks` or one of the rows ends.
pub(crate) fn decode_block_row(blocks: &[u8], rgba: &mut [u8], stride: usize) {
    texels::each_block(blocks, rgba, stride, |block: &[u8; 16], rows| {
        let [luma, [a, b, c, d, indices @ ..]] = bc3::halves(block);
        let colours = bc1::four(u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
        let chroma = colours.map(offsets);
        let luma = bc4::values(luma);
        for ((row, luma), indices) in rows.into_iter().zip(luma.as_chunks::<4>().0).zip(indices) {
            for (n, (pixel, &luma)) in row.as_chunks_mut().0.iter_mut().zip(luma).enumerate() {
                *pixel = colour(luma, chroma[usize::from((indices >> (2 * n)) & 3)]);
            }
        }
    });
}

/// 2¹⁶ divided by each scale.
const RECIPROCALS: [i32; 32] = {
    let mut reciprocals = [0x1_0000; 32];
    let (mut place, mut scale) = (0, 1);
    while place < reciprocals.len() {
        reciprocals[place] /= scale;
        (place, scale) = (place + 1, scale + 1);
    }
    reciprocals
};

/// Returns the offsets of red, green and blue from luma.
///
/// The scale is 1 plus the value of blue in 5 bits.
fn offsets([orange, green, blue, _]: [u8; 4]) -> [i16; 3] {
    let reciprocal = RECIPROCALS[usize::from(blue >> 3)];
    let (orange, green) = (i32::from(orange) - 128, i32::from(green) - 128);
    let scaled = |value: i32| ((value * reciprocal + 0x8000) >> 16) as i16;
    [scaled(orange - green), scaled(green), scaled(-orange - green)]
}

fn colour(luma: u8, offsets: [i16; 3]) -> [u8; 4] {
    let channel = |offset: i16| (i16::from(luma) + offset).clamp(0, 255).cast_unsigned() as u8;
    let [red, green, blue] = offsets.map(channel);
    [red, green, blue, 255]
}
