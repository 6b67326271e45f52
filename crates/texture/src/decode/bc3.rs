//! BC3: a block of alpha and a block of colour, which always has four colours.

use crate::decode::{bc1, bc4, texels};

/// Decodes blocks of 16 bytes to four rows of RGBA pixels, `stride` bytes apart.
///
/// Stops where `blocks` or one of the rows ends.
pub(crate) fn decode_block_row(blocks: &[u8], rgba: &mut [u8], stride: usize) {
    texels::each_block(blocks, rgba, stride, |block: &[u8; 16], mut rows| {
        let [alpha, [a, b, c, d, indices @ ..]] = halves(block);
        let colours = bc1::four(u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
        bc1::paint(&colours, indices, rows.each_mut().map(|row| &mut **row));
        let alpha = bc4::values(alpha);
        for (row, alpha) in rows.into_iter().zip(alpha.as_chunks::<4>().0) {
            for (pixel, &alpha) in row.as_chunks_mut::<4>().0.iter_mut().zip(alpha) {
                pixel[3] = alpha;
            }
        }
    });
}

/// Returns the alpha block and the colour block of a BC3 block.
pub(super) fn halves(block: &[u8; 16]) -> [[u8; 8]; 2] {
    let whole = u128::from_le_bytes(*block);
    [whole as u64, (whole >> 64) as u64].map(u64::to_le_bytes)
}
