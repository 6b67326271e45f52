//! Writes the sixteen pixels of a block to their rows.

/// The four pixels of a block's row.
pub(super) type Row = [u8; 16];

/// Calls `block` with each block of `N` bytes and its four rows, until there are no more blocks or
/// rows.
///
/// `rgba` has four rows, `stride` bytes apart; the last may end with its last block.
pub(super) fn each_block<const N: usize>(
    blocks: &[u8],
    rgba: &mut [u8],
    stride: usize,
    mut block: impl FnMut(&[u8; N], [&mut Row; 4]),
) {
    let Some((a, rest)) = rgba.split_at_mut_checked(stride) else { return };
    let Some((b, rest)) = rest.split_at_mut_checked(stride) else { return };
    let Some((c, d)) = rest.split_at_mut_checked(stride) else { return };
    let [a, b, c, d] = [a, b, c, d].map(|row| row.as_chunks_mut().0.iter_mut());
    for ((((octets, a), b), c), d) in blocks.as_chunks().0.iter().zip(a).zip(b).zip(c).zip(d) {
        block(octets, [a, b, c, d]);
    }
}

/// Converts a pixel of `texture2ddecoder`, whose lowest byte is blue.
pub(super) fn rgba(pixel: u32) -> [u8; 4] {
    let [blue, green, red, alpha] = pixel.to_le_bytes();
    [red, green, blue, alpha]
}
