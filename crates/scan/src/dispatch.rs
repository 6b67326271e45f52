//! Selects the code for the processor's features: the only unsafe code.

use crate::blocks;

/// Calls [`blocks::blocks_without`] with the longest worthwhile vectors.
#[inline]
pub(crate) fn blocks_without(octets: &[u8]) -> usize {
    if is_x86_feature_detected!("avx512bw") {
        // SAFETY: the processor has AVX-512BW.
        return unsafe { with_avx512(octets) };
    }
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        return unsafe { with_avx2(octets) };
    }
    blocks::blocks_without(octets)
}

#[target_feature(enable = "avx512bw")]
fn with_avx512(octets: &[u8]) -> usize {
    blocks::blocks_without(octets)
}

#[target_feature(enable = "avx2")]
fn with_avx2(octets: &[u8]) -> usize {
    blocks::blocks_without(octets)
}
