//! Writes the sixteen pixels of a block to their rows.

/// The four pixels of a block's row.
pub(super) type Row = [u8; 16];

/// Converts a pixel of `texture2ddecoder`, whose lowest byte is blue.
pub(super) fn rgba(pixel: u32) -> [u8; 4] {
    let [blue, green, red, alpha] = pixel.to_le_bytes();
    [red, green, blue, alpha]
}
