//! Pictures for the tests of this folder.
#![allow(dead_code, reason = "each test file uses only some items")]

use rushes_texture::{Format, Layout};

/// Sizes, some of which are not whole blocks in any block format.
pub(crate) const ODD_SIZES: [(u32, u32); 4] = [(1, 1), (30, 26), (5, 3), (1_918, 1_078)];

/// Formats of individual, uncompressed pixels.
pub(crate) const RAW: [Format; 6] = [
    Format::Rgb24,
    Format::Rgba8,
    Format::Rgb565,
    Format::Yuv420,
    Format::Yuv422,
    Format::YCoCg420,
];

/// Deterministic pseudo-random bytes.
pub(crate) fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..length).map(|_| next()).collect()
}

/// Returns a frame of noise.
pub(crate) fn noisy(format: Format, width: u32, height: u32) -> Vec<u8> {
    noise(Layout::new(format, width, height).unwrap().bytes())
}

/// Enlarges a picture of `pixel` bytes per pixel by repeating its edges.
pub(crate) fn padded(picture: &[u8], pixel: usize, from: [u32; 2], to: [u32; 2]) -> Vec<u8> {
    let [width, height] = from.map(|side| side as usize);
    let mut larger = Vec::new();
    for y in 0..to[1] as usize {
        for x in 0..to[0] as usize {
            let at = (y.min(height - 1) * width + x.min(width - 1)) * pixel;
            larger.extend_from_slice(&picture[at..at + pixel]);
        }
    }
    larger
}
