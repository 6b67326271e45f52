//! Selects the code for the processor's features: the only unsafe code.

use std::arch::x86_64::{
    __m256i, __m512i, _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_or_si256,
    _mm256_set1_epi8, _mm256_setzero_si256, _mm256_xor_si256, _mm512_loadu_si512, _mm512_or_si512,
    _mm512_set1_epi8, _mm512_testn_epi8_mask, _mm512_xor_si512,
};

use crate::blocks::{self, CHUNK_LEN, Chunk};

/// Calls [`blocks::find`] with the longest worthwhile vectors.
#[inline]
pub(crate) fn find(octets: &[u8]) -> Option<usize> {
    if is_x86_feature_detected!("avx512bw") {
        // SAFETY: the processor has AVX-512BW.
        return unsafe { with_avx512(octets) };
    }
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        return unsafe { with_avx2(octets) };
    }
    blocks::find(octets, blocks::starts)
}

#[target_feature(enable = "avx512bw")]
fn with_avx512(octets: &[u8]) -> Option<usize> {
    let load = |chunk: &Chunk, at: usize| -> __m512i {
        let octets = &chunk[at..at + CHUNK_LEN];
        // SAFETY: as many octets are read; they need no alignment.
        unsafe { _mm512_loadu_si512(octets.as_ptr().cast()) }
    };
    blocks::find(octets, |chunk| {
        let zeros = _mm512_or_si512(load(chunk, 0), load(chunk, 1));
        let one = _mm512_xor_si512(load(chunk, 2), _mm512_set1_epi8(1));
        let code = _mm512_or_si512(zeros, one);
        _mm512_testn_epi8_mask(code, code)
    })
}

#[target_feature(enable = "avx2")]
fn with_avx2(octets: &[u8]) -> Option<usize> {
    let load = |chunk: &Chunk, at: usize| -> __m256i {
        let octets = &chunk[at..at + CHUNK_LEN / 2];
        // SAFETY: as many octets are read; they need no alignment.
        unsafe { _mm256_loadu_si256(octets.as_ptr().cast()) }
    };
    let half = |chunk: &Chunk, at: usize| -> u64 {
        let zeros = _mm256_or_si256(load(chunk, at), load(chunk, at + 1));
        let one = _mm256_xor_si256(load(chunk, at + 2), _mm256_set1_epi8(1));
        let begins = _mm256_cmpeq_epi8(_mm256_or_si256(zeros, one), _mm256_setzero_si256());
        _mm256_movemask_epi8(begins).cast_unsigned().into()
    };
    blocks::find(octets, |chunk| half(chunk, 0) | half(chunk, CHUNK_LEN / 2) << (CHUNK_LEN / 2))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn naive(octets: &[u8]) -> Option<usize> {
        octets.windows(3).position(|window| window == [0, 0, 1])
    }

    proptest! {
        #[test]
        fn shorter_vectors_find_what_a_loop_over_octets_finds(
            octets in prop::collection::vec(prop_oneof![1 => 0..3_u8, 40 => any::<u8>()], 0..3000),
            from in 0..70_usize,
        ) {
            let octets = &octets[from.min(octets.len())..];
            prop_assert_eq!(blocks::find(octets, blocks::starts), naive(octets));
            if is_x86_feature_detected!("avx2") {
                // SAFETY: the processor has AVX2.
                prop_assert_eq!(unsafe { with_avx2(octets) }, naive(octets));
            }
        }
    }
}
