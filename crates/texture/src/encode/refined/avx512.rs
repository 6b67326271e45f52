//! Refined lines in vectors of 512 bits.

use std::arch::x86_64::{
    __m512, _CMP_GT_OQ, _mm_cvtsi32_si128, _mm512_and_si512, _mm512_cmp_ps_mask,
    _mm512_cvtepi32_ps, _mm512_cvttps_epi32, _mm512_mask_blend_ps, _mm512_maskz_mov_ps,
    _mm512_set1_epi32, _mm512_srl_epi32,
};
use std::arch::x86_64::{
    _mm512_add_ps as add, _mm512_div_ps as div, _mm512_max_ps as max, _mm512_min_ps as min,
    _mm512_mul_ps as mul, _mm512_set1_ps as splat, _mm512_sub_ps as sub,
};

use crate::dispatch::{load512, store512};
use crate::encode::refined::{TURNS, flat, ordered};
use crate::encode::strip::Strip;

/// Elements of a vector.
const LANES: usize = 16;

type Floats = __m512;

/// Rounds towards zero.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn truncated(values: Floats) -> Floats {
    _mm512_cvtepi32_ps(_mm512_cvttps_epi32(values))
}

/// Returns 1 where the first value is greater, otherwise 0.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn above(a: Floats, b: Floats) -> Floats {
    _mm512_maskz_mov_ps(_mm512_cmp_ps_mask::<_CMP_GT_OQ>(a, b), splat(1.0))
}

/// Returns the elements of `yes` where the first value is greater, otherwise those of `no`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn choose([a, b]: [Floats; 2], yes: Floats, no: Floats) -> Floats {
    _mm512_mask_blend_ps(_mm512_cmp_ps_mask::<_CMP_GT_OQ>(a, b), no, yes)
}

/// Returns one byte of each pixel, that after `SHIFT` bits.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn octet<const SHIFT: i32>(pixels: &[[u8; 4]; LANES]) -> Floats {
    let Some(pixels) = pixels.as_flattened().first_chunk() else { return splat(0.0) };
    let shifted = _mm512_srl_epi32(load512(pixels), _mm_cvtsi32_si128(SHIFT));
    _mm512_cvtepi32_ps(_mm512_and_si512(shifted, _mm512_set1_epi32(0xff)))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn integers(values: Floats) -> [u32; LANES] {
    let mut octets = [0; 4 * LANES];
    store512(&mut octets, _mm512_cvttps_epi32(values));
    let mut integers = [0; LANES];
    for (integer, octets) in integers.iter_mut().zip(octets.as_chunks().0) {
        *integer = u32::from_le_bytes(*octets);
    }
    integers
}

kernel!(#[target_feature(enable = "avx512f,avx512bw,avx512vl")]);
