//! The operations of 512-bit vectors, with the same names as for other lengths.

use std::arch::x86_64::{
    __m512, __m512i, _mm512_broadcast_i32x4, _mm512_castps_si512, _mm512_castsi512_ps,
    _mm512_cmpeq_epi8_mask, _mm512_cmpgt_epi16_mask, _mm512_cmpgt_epi32_mask,
    _mm512_mask_blend_epi32, _mm512_maskz_set1_epi32, _mm512_movepi8_mask, _mm512_movm_epi8,
    _mm512_movm_epi16, _mm512_permutexvar_epi64, _mm512_set_epi64, _mm512_shuffle_ps,
};
pub(in crate::encode) use std::arch::x86_64::{
    _mm512_abs_epi16 as abs_epi16, _mm512_abs_epi32 as abs_epi32, _mm512_add_epi8 as add_epi8,
    _mm512_add_epi16 as add_epi16, _mm512_add_epi32 as add_epi32, _mm512_add_ps as add_ps,
    _mm512_and_si512 as and, _mm512_avg_epu8 as avg_epu8, _mm512_avg_epu16 as avg_epu16,
    _mm512_cvtepi32_ps as cvtepi32_ps, _mm512_cvttps_epi32 as cvttps_epi32,
    _mm512_div_ps as div_ps, _mm512_dpbusd_epi32 as dpbusd_epi32, _mm512_madd_epi16 as madd_epi16,
    _mm512_maddubs_epi16 as maddubs_epi16, _mm512_max_epi16 as max_epi16,
    _mm512_max_epu8 as max_epu8, _mm512_max_epu16 as max_epu16, _mm512_max_ps as max_ps,
    _mm512_min_epi16 as min_epi16, _mm512_min_epu8 as min_epu8, _mm512_min_epu16 as min_epu16,
    _mm512_mul_ps as mul_ps, _mm512_mulhi_epi16 as mulhi_epi16, _mm512_mulhi_epu16 as mulhi_epu16,
    _mm512_mullo_epi16 as mullo_epi16, _mm512_or_si512 as or, _mm512_packs_epi16 as packs_epi16,
    _mm512_packs_epi32 as packs_epi32, _mm512_packus_epi16 as packus_epi16,
    _mm512_packus_epi32 as packus_epi32, _mm512_permute_ps as permute_ps,
    _mm512_set1_epi8 as set1_epi8, _mm512_set1_epi16 as set1_epi16,
    _mm512_set1_epi32 as set1_epi32, _mm512_set1_ps as set1_ps,
    _mm512_shuffle_epi8 as shuffle_epi8, _mm512_shuffle_epi32 as shuffle_epi32,
    _mm512_slli_epi16 as slli_epi16, _mm512_slli_epi32 as slli_epi32,
    _mm512_srai_epi32 as srai_epi32, _mm512_srli_epi16 as srli_epi16,
    _mm512_srli_epi32 as srli_epi32, _mm512_srli_epi64 as srli_epi64, _mm512_sub_epi8 as sub_epi8,
    _mm512_sub_epi16 as sub_epi16, _mm512_sub_epi32 as sub_epi32, _mm512_sub_ps as sub_ps,
    _mm512_subs_epu8 as subs_epu8, _mm512_unpackhi_epi8 as unpackhi_epi8,
    _mm512_unpackhi_epi32 as unpackhi_epi32, _mm512_unpackhi_epi64 as unpackhi_epi64,
    _mm512_unpacklo_epi8 as unpacklo_epi8, _mm512_unpacklo_epi32 as unpacklo_epi32,
    _mm512_unpacklo_epi64 as unpacklo_epi64, _mm512_xor_si512 as xor,
};

use crate::dispatch::{load128, prefetch};
pub(in crate::encode) use crate::dispatch::{load512 as load, store512 as store};
use crate::encode::vectors::PREFETCH_DISTANCE;

/// A vector: four lanes of 128 bits, each for one block.
pub(in crate::encode) type Vector = __m512i;

/// As many numbers as a vector has groups of 32 bits.
pub(in crate::encode) type Floats = __m512;

/// Bytes of a vector.
pub(in crate::encode) const WIDTH: usize = 64;

/// Repeats the bytes in each lane.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub(in crate::encode) fn lanes(octets: [u8; 16]) -> Vector {
    _mm512_broadcast_i32x4(load128(&octets))
}

/// Joins the first and third 32 bits of each lane of `a` with those of `b`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub(in crate::encode) fn even(a: Vector, b: Vector) -> Vector {
    let (a, b) = (_mm512_castsi512_ps(a), _mm512_castsi512_ps(b));
    _mm512_castps_si512(_mm512_shuffle_ps::<0b10_00_10_00>(a, b))
}

/// Joins the second and fourth 32 bits of each lane of `a` with those of `b`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub(in crate::encode) fn odd(a: Vector, b: Vector) -> Vector {
    let (a, b) = (_mm512_castsi512_ps(a), _mm512_castsi512_ps(b));
    _mm512_castps_si512(_mm512_shuffle_ps::<0b11_01_11_01>(a, b))
}

/// Joins the first and third 32 bits of each lane of `a` with the second and fourth of `b`, in
/// their places.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub(in crate::encode) fn alternating(a: Vector, b: Vector) -> Vector {
    _mm512_mask_blend_epi32(0b1010_1010_1010_1010, a, b)
}

/// Returns whether no bit of a mask is zero.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub(in crate::encode) fn is_all(mask: Vector) -> bool {
    _mm512_movepi8_mask(mask) == u64::MAX
}

/// Moves the lower halves of all lanes before the upper ones.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub(in crate::encode) fn halves_apart(vector: Vector) -> Vector {
    _mm512_permutexvar_epi64(_mm512_set_epi64(7, 5, 3, 1, 6, 4, 2, 0), vector)
}

/// Returns a mask of the bytes that are equal.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub(in crate::encode) fn cmpeq_epi8(a: Vector, b: Vector) -> Vector {
    _mm512_movm_epi8(_mm512_cmpeq_epi8_mask(a, b))
}

/// Returns a mask of the 16-bit elements in which `a` is greater.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub(in crate::encode) fn cmpgt_epi16(a: Vector, b: Vector) -> Vector {
    _mm512_movm_epi16(_mm512_cmpgt_epi16_mask(a, b))
}

/// Returns a mask of the 32-bit elements in which `a` is greater.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub(in crate::encode) fn cmpgt_epi32(a: Vector, b: Vector) -> Vector {
    _mm512_maskz_set1_epi32(_mm512_cmpgt_epi32_mask(a, b), -1)
}

shared!("avx512f,avx512bw,avx512vl,avx512vnni");
