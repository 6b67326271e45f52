//! RGB24 to RGBA8 by loads and stores that interleave, sixteen pixels at a time.

use std::arch::aarch64::{uint8x16x3_t, uint8x16x4_t, vdupq_n_u8};

use crate::convert::Rgba;
use crate::dispatch;

/// Converts pixels with an alpha of 255 and returns their number; some pixels at the end may
/// remain.
#[target_feature(enable = "neon")]
pub(crate) fn expand(rgb: &[u8], rgba: &mut [Rgba]) -> usize {
    let opaque = vdupq_n_u8(255);
    let out = rgba.as_flattened_mut().as_chunks_mut().0;
    let mut done = 0;
    for (rgb, out) in rgb.as_chunks().0.iter().zip(out) {
        let uint8x16x3_t(red, green, blue) = dispatch::load_threes(rgb);
        dispatch::store_fours(out, uint8x16x4_t(red, green, blue, opaque));
        done += 16;
    }
    done
}
