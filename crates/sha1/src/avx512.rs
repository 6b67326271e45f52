//! SHA-1 of sixteen lanes in the 512-bit vectors of AVX-512.

use std::arch::x86_64::{
    __m512i, _mm512_add_epi32, _mm512_rol_epi32, _mm512_set1_epi32, _mm512_set4_epi32,
    _mm512_shuffle_epi8, _mm512_shuffle_i32x4, _mm512_ternarylogic_epi32, _mm512_unpackhi_epi32,
    _mm512_unpackhi_epi64, _mm512_unpacklo_epi32, _mm512_unpacklo_epi64, _mm512_xor_si512,
};

use crate::dispatch::{load512, load512_words, store512_words};
use crate::rounds::eighty_rounds;
use crate::schedule::{Block, States};

/// Compresses the first `count` blocks of every lane.
#[target_feature(enable = "avx512f,avx512bw")]
pub(crate) fn compress(states: &mut States<16>, blocks: &[&[Block]; 16], count: usize) {
    let mut state = [constant(0); 5];
    for (vector, words) in state.iter_mut().zip(&states.0) {
        *vector = load512_words(words);
    }
    for n in 0..count {
        let mut words = words(blocks, n);
        let after = eighty_rounds!(state, words);
        for (vector, after) in state.iter_mut().zip(after) {
            *vector = add(*vector, after);
        }
    }
    for (vector, words) in state.iter().zip(&mut states.0) {
        store512_words(words, *vector);
    }
}

/// Returns the words of block `n`: vector w holds word w of all lanes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn words(blocks: &[&[Block]; 16], n: usize) -> [__m512i; 16] {
    let big_endian = _mm512_set4_epi32(0x0c0d_0e0f, 0x0809_0a0b, 0x0405_0607, 0x0001_0203);
    // Four lanes at a time: `quads[q][k]` holds words k, 4 + k, 8 + k, 12 + k of lanes 4q to 4q +
    // 3.
    let mut quads = [[constant(0); 4]; 4];
    for (quad, lanes) in quads.iter_mut().zip(blocks.as_chunks::<4>().0) {
        for (row, lane) in quad.iter_mut().zip(lanes) {
            *row = load512(&lane[n]);
        }
        *quad = transpose(*quad);
    }
    let mut words = [constant(0); 16];
    for k in 0..4 {
        let [first, second, third, fourth] = quads.map(|quad| quad[k]);
        let front_low = _mm512_shuffle_i32x4::<0x44>(first, second);
        let front_high = _mm512_shuffle_i32x4::<0xee>(first, second);
        let back_low = _mm512_shuffle_i32x4::<0x44>(third, fourth);
        let back_high = _mm512_shuffle_i32x4::<0xee>(third, fourth);
        words[k] = _mm512_shuffle_i32x4::<0x88>(front_low, back_low);
        words[4 + k] = _mm512_shuffle_i32x4::<0xdd>(front_low, back_low);
        words[8 + k] = _mm512_shuffle_i32x4::<0x88>(front_high, back_high);
        words[12 + k] = _mm512_shuffle_i32x4::<0xdd>(front_high, back_high);
    }
    for word in &mut words {
        *word = _mm512_shuffle_epi8(*word, big_endian);
    }
    words
}

/// Transposes the 4 × 4 words in each quarter of the vectors.
#[inline]
#[target_feature(enable = "avx512f")]
fn transpose([a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
    let ab_low = _mm512_unpacklo_epi32(a, b);
    let ab_high = _mm512_unpackhi_epi32(a, b);
    let cd_low = _mm512_unpacklo_epi32(c, d);
    let cd_high = _mm512_unpackhi_epi32(c, d);
    [
        _mm512_unpacklo_epi64(ab_low, cd_low),
        _mm512_unpackhi_epi64(ab_low, cd_low),
        _mm512_unpacklo_epi64(ab_high, cd_high),
        _mm512_unpackhi_epi64(ab_high, cd_high),
    ]
}

#[inline]
#[target_feature(enable = "avx512f")]
fn constant(word: u32) -> __m512i {
    _mm512_set1_epi32(word.cast_signed())
}

#[inline]
#[target_feature(enable = "avx512f")]
fn add(a: __m512i, b: __m512i) -> __m512i {
    _mm512_add_epi32(a, b)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn exclusive_or(a: __m512i, b: __m512i) -> __m512i {
    _mm512_xor_si512(a, b)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn rotate<const BITS: i32>(a: __m512i) -> __m512i {
    _mm512_rol_epi32::<BITS>(a)
}

/// Selects `c` where `b` is set, and `d` elsewhere: the constant is the truth table.
#[inline]
#[target_feature(enable = "avx512f")]
fn choose(b: __m512i, c: __m512i, d: __m512i) -> __m512i {
    _mm512_ternarylogic_epi32::<0xca>(b, c, d)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn parity(b: __m512i, c: __m512i, d: __m512i) -> __m512i {
    _mm512_ternarylogic_epi32::<0x96>(b, c, d)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn majority(b: __m512i, c: __m512i, d: __m512i) -> __m512i {
    _mm512_ternarylogic_epi32::<0xe8>(b, c, d)
}
