//! The operations of 256-bit vectors, with the same names as for other lengths.

use std::arch::x86_64::{
    __m256, __m256i, _mm256_blend_epi32, _mm256_broadcastsi128_si256, _mm256_castps_si256,
    _mm256_castsi256_ps, _mm256_movemask_epi8, _mm256_permute4x64_epi64, _mm256_shuffle_ps,
};
pub(in crate::encode) use std::arch::x86_64::{
    _mm256_abs_epi16 as abs_epi16, _mm256_abs_epi32 as abs_epi32, _mm256_add_epi8 as add_epi8,
    _mm256_add_epi16 as add_epi16, _mm256_add_epi32 as add_epi32, _mm256_add_ps as add_ps,
    _mm256_and_si256 as and, _mm256_avg_epu8 as avg_epu8, _mm256_avg_epu16 as avg_epu16,
    _mm256_cmpeq_epi8 as cmpeq_epi8, _mm256_cmpgt_epi16 as cmpgt_epi16,
    _mm256_cmpgt_epi32 as cmpgt_epi32, _mm256_cvtepi32_ps as cvtepi32_ps,
    _mm256_cvttps_epi32 as cvttps_epi32, _mm256_div_ps as div_ps, _mm256_madd_epi16 as madd_epi16,
    _mm256_maddubs_epi16 as maddubs_epi16, _mm256_max_epi16 as max_epi16,
    _mm256_max_epu8 as max_epu8, _mm256_max_epu16 as max_epu16, _mm256_max_ps as max_ps,
    _mm256_min_epi16 as min_epi16, _mm256_min_epu8 as min_epu8, _mm256_min_epu16 as min_epu16,
    _mm256_mul_ps as mul_ps, _mm256_mulhi_epi16 as mulhi_epi16, _mm256_mulhi_epu16 as mulhi_epu16,
    _mm256_mullo_epi16 as mullo_epi16, _mm256_or_si256 as or, _mm256_packs_epi16 as packs_epi16,
    _mm256_packs_epi32 as packs_epi32, _mm256_packus_epi16 as packus_epi16,
    _mm256_packus_epi32 as packus_epi32, _mm256_permute_ps as permute_ps,
    _mm256_set1_epi8 as set1_epi8, _mm256_set1_epi16 as set1_epi16,
    _mm256_set1_epi32 as set1_epi32, _mm256_set1_ps as set1_ps,
    _mm256_shuffle_epi8 as shuffle_epi8, _mm256_shuffle_epi32 as shuffle_epi32,
    _mm256_slli_epi16 as slli_epi16, _mm256_slli_epi32 as slli_epi32,
    _mm256_srai_epi32 as srai_epi32, _mm256_srli_epi16 as srli_epi16,
    _mm256_srli_epi32 as srli_epi32, _mm256_srli_epi64 as srli_epi64, _mm256_sub_epi8 as sub_epi8,
    _mm256_sub_epi16 as sub_epi16, _mm256_sub_epi32 as sub_epi32, _mm256_sub_ps as sub_ps,
    _mm256_subs_epu8 as subs_epu8, _mm256_unpackhi_epi8 as unpackhi_epi8,
    _mm256_unpackhi_epi32 as unpackhi_epi32, _mm256_unpackhi_epi64 as unpackhi_epi64,
    _mm256_unpacklo_epi8 as unpacklo_epi8, _mm256_unpacklo_epi32 as unpacklo_epi32,
    _mm256_unpacklo_epi64 as unpacklo_epi64, _mm256_xor_si256 as xor,
};

use crate::dispatch::{load128, prefetch};
pub(in crate::encode) use crate::dispatch::{load256 as load, store256 as store};
use crate::encode::vectors::PREFETCH_DISTANCE;

/// A vector: two lanes of 128 bits, each for one block.
pub(in crate::encode) type Vector = __m256i;

/// As many numbers as a vector has groups of 32 bits.
pub(in crate::encode) type Floats = __m256;

/// Bytes of a vector.
pub(in crate::encode) const WIDTH: usize = 32;

/// Adds to each 32-bit element the products of four bytes of `a` and four signed bytes of `b`. The sum of two of them
/// must fit in 16 bits.
#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::encode) fn dpbusd_epi32(sums: Vector, a: Vector, b: Vector) -> Vector {
    add_epi32(sums, madd_epi16(maddubs_epi16(a, b), set1_epi16(1)))
}

/// Repeats the bytes in each lane.
#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::encode) fn lanes(octets: [u8; 16]) -> Vector {
    _mm256_broadcastsi128_si256(load128(&octets))
}

/// Joins the first and third 32 bits of each lane of `a` with those of `b`.
#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::encode) fn even(a: Vector, b: Vector) -> Vector {
    let (a, b) = (_mm256_castsi256_ps(a), _mm256_castsi256_ps(b));
    _mm256_castps_si256(_mm256_shuffle_ps::<0b10_00_10_00>(a, b))
}

/// Joins the second and fourth 32 bits of each lane of `a` with those of `b`.
#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::encode) fn odd(a: Vector, b: Vector) -> Vector {
    let (a, b) = (_mm256_castsi256_ps(a), _mm256_castsi256_ps(b));
    _mm256_castps_si256(_mm256_shuffle_ps::<0b11_01_11_01>(a, b))
}

/// Joins the first and third 32 bits of each lane of `a` with the second and fourth of `b`, in
/// their places.
#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::encode) fn alternating(a: Vector, b: Vector) -> Vector {
    _mm256_blend_epi32::<0b1010_1010>(a, b)
}

/// Returns whether no bit of a mask is zero.
#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::encode) fn is_all(mask: Vector) -> bool {
    _mm256_movemask_epi8(mask) == -1
}

/// Moves the lower halves of all lanes before the upper ones.
#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::encode) fn halves_apart(vector: Vector) -> Vector {
    _mm256_permute4x64_epi64::<0b11_01_10_00>(vector)
}

shared!("avx2");
