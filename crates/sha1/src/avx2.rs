//! SHA-1 of eight lanes in the 256-bit vectors of AVX2.

use std::arch::x86_64::{
    __m256i, _mm_cvtsi32_si128, _mm256_add_epi32, _mm256_and_si256, _mm256_or_si256,
    _mm256_set_epi32, _mm256_set_m128i, _mm256_set1_epi32, _mm256_shuffle_epi8, _mm256_slli_epi32,
    _mm256_srl_epi32, _mm256_unpackhi_epi32, _mm256_unpackhi_epi64, _mm256_unpacklo_epi32,
    _mm256_unpacklo_epi64, _mm256_xor_si256,
};

use crate::dispatch::{load128, load256_words, store256_words};
use crate::rounds::eighty_rounds;
use crate::schedule::{Block, States};

/// Compresses the first `count` blocks of every lane.
#[target_feature(enable = "avx2")]
pub(crate) fn compress(states: &mut States<8>, blocks: &[&[Block]; 8], count: usize) {
    let mut state = [constant(0); 5];
    for (vector, words) in state.iter_mut().zip(&states.0) {
        *vector = load256_words(words);
    }
    for n in 0..count {
        let mut words = words(blocks, n);
        let after = eighty_rounds!(state, words);
        for (vector, after) in state.iter_mut().zip(after) {
            *vector = add(*vector, after);
        }
    }
    for (vector, words) in state.iter().zip(&mut states.0) {
        store256_words(words, *vector);
    }
}

/// Returns the words of block `n`: vector w holds word w of all lanes.
#[inline]
#[target_feature(enable = "avx2")]
fn words(blocks: &[&[Block]; 8], n: usize) -> [__m256i; 16] {
    let mut words = [constant(0); 16];
    for (quarter, words) in words.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        for (row, word) in words.iter_mut().enumerate() {
            let low = load128(&blocks[row][n].as_chunks::<16>().0[quarter]);
            let high = load128(&blocks[row + 4][n].as_chunks::<16>().0[quarter]);
            *word = _mm256_set_m128i(high, low);
        }
        *words = transpose(*words);
    }
    words
}

/// Transposes the 4 × 4 words in each half of the vectors, and swaps the bytes of each word.
#[inline]
#[target_feature(enable = "avx2")]
fn transpose([a, b, c, d]: [__m256i; 4]) -> [__m256i; 4] {
    let big_endian = _mm256_set_epi32(
        0x0c0d_0e0f,
        0x0809_0a0b,
        0x0405_0607,
        0x0001_0203,
        0x0c0d_0e0f,
        0x0809_0a0b,
        0x0405_0607,
        0x0001_0203,
    );
    let ab_low = _mm256_unpacklo_epi32(a, b);
    let ab_high = _mm256_unpackhi_epi32(a, b);
    let cd_low = _mm256_unpacklo_epi32(c, d);
    let cd_high = _mm256_unpackhi_epi32(c, d);
    [
        _mm256_shuffle_epi8(_mm256_unpacklo_epi64(ab_low, cd_low), big_endian),
        _mm256_shuffle_epi8(_mm256_unpackhi_epi64(ab_low, cd_low), big_endian),
        _mm256_shuffle_epi8(_mm256_unpacklo_epi64(ab_high, cd_high), big_endian),
        _mm256_shuffle_epi8(_mm256_unpackhi_epi64(ab_high, cd_high), big_endian),
    ]
}

#[inline]
#[target_feature(enable = "avx2")]
fn constant(word: u32) -> __m256i {
    _mm256_set1_epi32(word.cast_signed())
}

#[inline]
#[target_feature(enable = "avx2")]
fn add(a: __m256i, b: __m256i) -> __m256i {
    _mm256_add_epi32(a, b)
}

#[inline]
#[target_feature(enable = "avx2")]
fn exclusive_or(a: __m256i, b: __m256i) -> __m256i {
    _mm256_xor_si256(a, b)
}

#[inline]
#[target_feature(enable = "avx2")]
fn rotate<const BITS: i32>(a: __m256i) -> __m256i {
    // A shift by the constant `32 - BITS` cannot be written yet; the compiler makes it one.
    let right = _mm256_srl_epi32(a, _mm_cvtsi32_si128(32 - BITS));
    _mm256_or_si256(_mm256_slli_epi32::<BITS>(a), right)
}

/// Selects `c` where `b` is set, and `d` elsewhere.
#[inline]
#[target_feature(enable = "avx2")]
fn choose(b: __m256i, c: __m256i, d: __m256i) -> __m256i {
    _mm256_xor_si256(d, _mm256_and_si256(b, _mm256_xor_si256(c, d)))
}

#[inline]
#[target_feature(enable = "avx2")]
fn parity(b: __m256i, c: __m256i, d: __m256i) -> __m256i {
    _mm256_xor_si256(b, _mm256_xor_si256(c, d))
}

#[inline]
#[target_feature(enable = "avx2")]
fn majority(b: __m256i, c: __m256i, d: __m256i) -> __m256i {
    _mm256_or_si256(_mm256_and_si256(b, c), _mm256_and_si256(d, _mm256_or_si256(b, c)))
}
