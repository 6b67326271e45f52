//! The published bounding-box encoder, one pixel at a time.
//!
//! As in J.M.P. van Waveren, "Real-Time DXT Compression", 2006, corners are truncated to 5, 6 and 5
//! bits, and indices are chosen by the least sum of absolute differences.

type Colour = [i32; 3];

/// Encodes a picture of whole blocks.
pub(crate) fn bc1(rgba: &[u8], stride: usize) -> Vec<u8> {
    let mut blocks = Vec::new();
    for row in rgba.chunks_exact(4 * stride) {
        for x in (0..stride).step_by(16) {
            let pixel = |n: usize| {
                let at = n / 4 * stride + x + n % 4 * 4;
                [0, 1, 2].map(|channel| i32::from(row[at + channel]))
            };
            blocks.extend(block(&std::array::from_fn(pixel)));
        }
    }
    blocks
}

fn block(pixels: &[Colour; 16]) -> [u8; 8] {
    let (mut low, mut high) = ([255; 3], [0; 3]);
    for pixel in pixels {
        for n in 0..3 {
            low[n] = low[n].min(pixel[n]);
            high[n] = high[n].max(pixel[n]);
        }
    }
    for n in 0..3 {
        let inset = (high[n] - low[n]) >> 4;
        low[n] += inset;
        high[n] -= inset;
    }
    let [high, low] = [high, low].map(|[r, g, b]| [r >> 3, g >> 2, b >> 3]);
    let colours = palette(high, low);
    let mut indices = 0_u32;
    for pixel in pixels.iter().rev() {
        let distance = |n: &usize| difference(pixel, &colours[*n]);
        indices = indices << 2 | (0..4).min_by_key(distance).unwrap_or(0) as u32;
    }
    let packed = |[r, g, b]: Colour| u64::from((r << 11 | g << 5 | b).cast_unsigned());
    (packed(high) | packed(low) << 16 | u64::from(indices) << 32).to_le_bytes()
}

/// Returns the ends, with their upper bits repeated in the lower ones, and the thirds between them.
fn palette(high: Colour, low: Colour) -> [Colour; 4] {
    let [a, b] = [high, low].map(|[r, g, b]| [r << 3 | r >> 2, g << 2 | g >> 4, b << 3 | b >> 2]);
    let third = |near: Colour, far: Colour| [0, 1, 2].map(|n| (2 * near[n] + far[n]) / 3);
    [a, b, third(a, b), third(b, a)]
}

fn difference(a: &Colour, b: &Colour) -> i32 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum()
}
