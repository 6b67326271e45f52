//! Refined lines in vectors of 256 bits.

use std::arch::x86_64::{
    __m256, _CMP_GT_OQ, _mm_cvtsi32_si128, _mm256_and_ps, _mm256_and_si256, _mm256_blendv_ps,
    _mm256_cmp_ps, _mm256_cvtepi32_ps, _mm256_cvttps_epi32, _mm256_set1_epi32, _mm256_srl_epi32,
};
use std::arch::x86_64::{
    _mm256_add_ps as add, _mm256_div_ps as div, _mm256_max_ps as max, _mm256_min_ps as min,
    _mm256_mul_ps as mul, _mm256_set1_ps as splat, _mm256_sub_ps as sub,
};

use crate::dispatch::{load256, store256};
use crate::encode::refined::{TURNS, flat, ordered};
use crate::encode::strip::Strip;

/// Elements of a vector.
const LANES: usize = 8;

type Floats = __m256;

/// Rounds towards zero.
#[inline]
#[target_feature(enable = "avx2")]
fn truncated(values: Floats) -> Floats {
    _mm256_cvtepi32_ps(_mm256_cvttps_epi32(values))
}

/// Returns 1 where the first value is greater, otherwise 0.
#[inline]
#[target_feature(enable = "avx2")]
fn above(a: Floats, b: Floats) -> Floats {
    _mm256_and_ps(_mm256_cmp_ps::<_CMP_GT_OQ>(a, b), splat(1.0))
}

/// Returns the elements of `yes` where the first value is greater, otherwise those of `no`.
#[inline]
#[target_feature(enable = "avx2")]
fn choose([a, b]: [Floats; 2], yes: Floats, no: Floats) -> Floats {
    _mm256_blendv_ps(no, yes, _mm256_cmp_ps::<_CMP_GT_OQ>(a, b))
}

/// Returns one byte of each pixel, that after `SHIFT` bits.
#[inline]
#[target_feature(enable = "avx2")]
fn octet<const SHIFT: i32>(pixels: &[[u8; 4]; LANES]) -> Floats {
    let Some(pixels) = pixels.as_flattened().first_chunk() else { return splat(0.0) };
    let shifted = _mm256_srl_epi32(load256(pixels), _mm_cvtsi32_si128(SHIFT));
    _mm256_cvtepi32_ps(_mm256_and_si256(shifted, _mm256_set1_epi32(0xff)))
}

#[inline]
#[target_feature(enable = "avx2")]
fn integers(values: Floats) -> [u32; LANES] {
    let mut octets = [0; 4 * LANES];
    store256(&mut octets, _mm256_cvttps_epi32(values));
    let mut integers = [0; LANES];
    for (integer, octets) in integers.iter_mut().zip(octets.as_chunks().0) {
        *integer = u32::from_le_bytes(*octets);
    }
    integers
}

kernel!(#[target_feature(enable = "avx2")]);
