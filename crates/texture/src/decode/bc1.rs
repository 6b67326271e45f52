//! BC1, with and without transparency.

use crate::decode::texels;
use crate::decode::texels::Row;
use crate::rgb565;

/// Decodes blocks of 8 bytes to four rows of RGBA pixels, `stride` bytes apart.
///
/// Stops where `blocks` or one of the rows ends.
pub(crate) fn decode_block_row(blocks: &[u8], rgba: &mut [u8], stride: usize) {
    texels::each_block(blocks, rgba, stride, |&[a, b, c, d, indices @ ..]: &[u8; 8], rows| {
        let [first, second] = [u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d])];
        let colours = if first > second { four(first, second) } else { three(first, second) };
        paint(&colours, indices, rows);
    });
}

/// Returns the two ends and the colours at one and two thirds between them.
pub(super) fn four(first: u16, second: u16) -> [[u8; 4]; 4] {
    let (near, far) = (rgb565::channels(first), rgb565::channels(second));
    let thirds = |near: [u16; 3], far: [u16; 3]| {
        opaque(rgb565::mean([0, 1, 2].map(|n| 2 * near[n] + far[n]), 3))
    };
    [
        opaque(rgb565::mean(near, 1)),
        opaque(rgb565::mean(far, 1)),
        thirds(near, far),
        thirds(far, near),
    ]
}

/// Returns the two ends, their mean, and transparent black.
fn three(first: u16, second: u16) -> [[u8; 4]; 4] {
    let (near, far) = (rgb565::channels(first), rgb565::channels(second));
    let half = opaque(rgb565::mean([0, 1, 2].map(|n| near[n] + far[n]), 2));
    [opaque(rgb565::mean(near, 1)), opaque(rgb565::mean(far, 1)), half, [0; 4]]
}

fn opaque([red, green, blue]: [u8; 3]) -> [u8; 4] {
    [red, green, blue, 255]
}

/// Writes the colours that the indices select.
pub(super) fn paint(colours: &[[u8; 4]; 4], indices: [u8; 4], rows: [&mut Row; 4]) {
    for (row, indices) in rows.into_iter().zip(indices) {
        for (n, pixel) in row.as_chunks_mut().0.iter_mut().enumerate() {
            *pixel = colours[usize::from(indices >> (2 * n) & 3)];
        }
    }
}
