//! The operations of 128-bit vectors, with the same names as for other lengths.
//!
//! The names are those of x86-64, and so are the results: rounding and saturation are the same. Only
//! `shuffle_epi8` differs, for indices from 16 to 127, which the kernels do not use.

use std::arch::aarch64::{
    float32x4_t, uint8x16_t, vabsq_s16, vabsq_s32, vaddq_u16, vaddq_u32, vbslq_u8, vcgtq_s16,
    vcgtq_s32, vcvtq_f32_s32, vcvtq_s32_f32, vdupq_n_s16, vdupq_n_s32, vdupq_n_u8, vget_high_s8,
    vget_low_s8, vget_low_s16, vget_low_u8, vget_low_u16, vmaxq_s16, vmaxq_u16, vminq_s16,
    vminq_u16, vminvq_u8, vmovl_high_u8, vmovl_s8, vmovl_u8, vmull_high_s16, vmull_high_u16,
    vmull_s16, vmull_u16, vmulq_s16, vpaddq_s32, vqaddq_s16, vqmovn_high_s16, vqmovn_high_s32,
    vqmovn_s16, vqmovn_s32, vqmovun_high_s16, vqmovun_high_s32, vqmovun_s16, vqmovun_s32,
    vreinterpretq_f32_u8, vreinterpretq_s8_u8, vreinterpretq_s16_s32, vreinterpretq_s16_u8,
    vreinterpretq_s32_u8, vreinterpretq_u8_f32, vreinterpretq_u8_s8, vreinterpretq_u8_s16,
    vreinterpretq_u8_s32, vreinterpretq_u8_u16, vreinterpretq_u8_u32, vreinterpretq_u8_u64,
    vreinterpretq_u16_u8, vreinterpretq_u16_u32, vreinterpretq_u32_u8, vreinterpretq_u64_u8,
    vrhaddq_u16, vshlq_n_u16, vshlq_n_u32, vshrq_n_s32, vshrq_n_u16, vshrq_n_u32, vshrq_n_u64,
    vsubq_u16, vsubq_u32, vuzp1q_s16, vuzp1q_u32, vuzp2q_s16, vuzp2q_u16, vuzp2q_u32, vzip1q_u32,
    vzip1q_u64, vzip2q_u32, vzip2q_u64,
};
pub(in crate::encode) use std::arch::aarch64::{
    vaddq_f32 as add_ps, vaddq_u8 as add_epi8, vandq_u8 as and, vceqq_u8 as cmpeq_epi8,
    vdivq_f32 as div_ps, vdupq_n_f32 as set1_ps, veorq_u8 as xor, vmaxq_f32 as max_ps,
    vmaxq_u8 as max_epu8, vminq_u8 as min_epu8, vmulq_f32 as mul_ps, vorrq_u8 as or,
    vqsubq_u8 as subs_epu8, vqtbl1q_u8 as shuffle_epi8, vrhaddq_u8 as avg_epu8,
    vsubq_f32 as sub_ps, vsubq_u8 as sub_epi8, vzip1q_u8 as unpacklo_epi8,
    vzip2q_u8 as unpackhi_epi8,
};

pub(in crate::encode) use crate::dispatch::{load128 as load, store128 as store};
use crate::encode::vectors::PREFETCH_DISTANCE;

/// A vector: one lane of 128 bits, for one block.
pub(in crate::encode) type Vector = uint8x16_t;

/// As many numbers as a vector has groups of 32 bits.
pub(in crate::encode) type Floats = float32x4_t;

/// Bytes of a vector.
pub(in crate::encode) const WIDTH: usize = 16;

/// Takes a vector's bytes as elements of a type.
macro_rules! elements {
    (s8, $vector:expr) => {
        vreinterpretq_s8_u8($vector)
    };
    (s16, $vector:expr) => {
        vreinterpretq_s16_u8($vector)
    };
    (s32, $vector:expr) => {
        vreinterpretq_s32_u8($vector)
    };
    (u16, $vector:expr) => {
        vreinterpretq_u16_u8($vector)
    };
    (u32, $vector:expr) => {
        vreinterpretq_u32_u8($vector)
    };
    (u64, $vector:expr) => {
        vreinterpretq_u64_u8($vector)
    };
}

/// Takes elements of a type as bytes.
macro_rules! bytes {
    (u8, $elements:expr) => {
        $elements
    };
    (s8, $elements:expr) => {
        vreinterpretq_u8_s8($elements)
    };
    (s16, $elements:expr) => {
        vreinterpretq_u8_s16($elements)
    };
    (s32, $elements:expr) => {
        vreinterpretq_u8_s32($elements)
    };
    (u16, $elements:expr) => {
        vreinterpretq_u8_u16($elements)
    };
    (u32, $elements:expr) => {
        vreinterpretq_u8_u32($elements)
    };
    (u64, $elements:expr) => {
        vreinterpretq_u8_u64($elements)
    };
}

/// Defines operations that are intrinsics for elements of a type, with results of another one.
macro_rules! operations {
    ($($name:ident($($argument:ident),+): $from:tt => $to:tt = $intrinsic:ident;)+) => {$(
        #[inline]
        #[target_feature(enable = "neon")]
        pub(in crate::encode) fn $name($($argument: Vector),+) -> Vector {
            bytes!($to, $intrinsic($(elements!($from, $argument)),+))
        }
    )+};
}

/// Defines shifts of elements of a type by a constant.
macro_rules! shifts {
    ($($name:ident: $type:tt = $intrinsic:ident;)+) => {$(
        #[inline]
        #[target_feature(enable = "neon")]
        pub(in crate::encode) fn $name<const N: i32>(vector: Vector) -> Vector {
            bytes!($type, $intrinsic::<N>(elements!($type, vector)))
        }
    )+};
}

/// Defines operations that halve the elements of two vectors, with saturation.
macro_rules! narrowing {
    ($($name:ident: $from:tt => $to:tt = $lower:ident, $upper:ident;)+) => {$(
        #[inline]
        #[target_feature(enable = "neon")]
        pub(in crate::encode) fn $name(a: Vector, b: Vector) -> Vector {
            bytes!($to, $upper($lower(elements!($from, a)), elements!($from, b)))
        }
    )+};
}

/// Defines the upper halves of products of 16-bit numbers.
macro_rules! high_products {
    ($(
        $name:ident: $type:tt = $half:ident, $lower:ident, $upper:ident, $halves:ident, $join:ident;
    )+) => {$(
        #[inline]
        #[target_feature(enable = "neon")]
        pub(in crate::encode) fn $name(a: Vector, b: Vector) -> Vector {
            let (a, b) = (elements!($type, a), elements!($type, b));
            let [lower, upper] = [$lower($half(a), $half(b)), $upper(a, b)];
            bytes!($type, $join($halves(lower), $halves(upper)))
        }
    )+};
}

operations! {
    abs_epi16(a): s16 => s16 = vabsq_s16;
    abs_epi32(a): s32 => s32 = vabsq_s32;
    add_epi16(a, b): u16 => u16 = vaddq_u16;
    add_epi32(a, b): u32 => u32 = vaddq_u32;
    avg_epu16(a, b): u16 => u16 = vrhaddq_u16;
    cmpgt_epi16(a, b): s16 => u16 = vcgtq_s16;
    cmpgt_epi32(a, b): s32 => u32 = vcgtq_s32;
    max_epi16(a, b): s16 => s16 = vmaxq_s16;
    max_epu16(a, b): u16 => u16 = vmaxq_u16;
    min_epi16(a, b): s16 => s16 = vminq_s16;
    min_epu16(a, b): u16 => u16 = vminq_u16;
    mullo_epi16(a, b): s16 => s16 = vmulq_s16;
    sub_epi16(a, b): u16 => u16 = vsubq_u16;
    sub_epi32(a, b): u32 => u32 = vsubq_u32;
    unpackhi_epi32(a, b): u32 => u32 = vzip2q_u32;
    unpackhi_epi64(a, b): u64 => u64 = vzip2q_u64;
    unpacklo_epi32(a, b): u32 => u32 = vzip1q_u32;
    unpacklo_epi64(a, b): u64 => u64 = vzip1q_u64;
    // The first and third 32 bits of `a` and of `b`, and the second and fourth.
    even(a, b): u32 => u32 = vuzp1q_u32;
    odd(a, b): u32 => u32 = vuzp2q_u32;
}

shifts! {
    slli_epi16: u16 = vshlq_n_u16;
    slli_epi32: u32 = vshlq_n_u32;
    srai_epi32: s32 = vshrq_n_s32;
    srli_epi16: u16 = vshrq_n_u16;
    srli_epi32: u32 = vshrq_n_u32;
    srli_epi64: u64 = vshrq_n_u64;
}

narrowing! {
    packs_epi16: s16 => s8 = vqmovn_s16, vqmovn_high_s16;
    packs_epi32: s32 => s16 = vqmovn_s32, vqmovn_high_s32;
    packus_epi16: s16 => u8 = vqmovun_s16, vqmovun_high_s16;
    packus_epi32: s32 => u16 = vqmovun_s32, vqmovun_high_s32;
}

high_products! {
    mulhi_epi16: s16 = vget_low_s16, vmull_s16, vmull_high_s16, vreinterpretq_s16_s32, vuzp2q_s16;
    mulhi_epu16: u16 = vget_low_u16, vmull_u16, vmull_high_u16, vreinterpretq_u16_u32, vuzp2q_u16;
}

/// Adds neighbouring products of 16-bit numbers.
#[inline]
#[target_feature(enable = "neon")]
pub(in crate::encode) fn madd_epi16(a: Vector, b: Vector) -> Vector {
    let (a, b) = (elements!(s16, a), elements!(s16, b));
    let lower = vmull_s16(vget_low_s16(a), vget_low_s16(b));
    bytes!(s32, vpaddq_s32(lower, vmull_high_s16(a, b)))
}

/// Adds neighbouring products of bytes of `a` and signed bytes of `b`, with saturation.
#[inline]
#[target_feature(enable = "neon")]
pub(in crate::encode) fn maddubs_epi16(a: Vector, b: Vector) -> Vector {
    let b = elements!(s8, b);
    let lower = bytes!(u16, vmovl_u8(vget_low_u8(a)));
    let lower = vmulq_s16(elements!(s16, lower), vmovl_s8(vget_low_s8(b)));
    let upper = bytes!(u16, vmovl_high_u8(a));
    let upper = vmulq_s16(elements!(s16, upper), vmovl_s8(vget_high_s8(b)));
    bytes!(s16, vqaddq_s16(vuzp1q_s16(lower, upper), vuzp2q_s16(lower, upper)))
}

/// Adds to each 32-bit element the products of four bytes of `a` and four signed bytes of `b`. The sum of two of them
/// must fit in 16 bits.
#[inline]
#[target_feature(enable = "neon")]
pub(in crate::encode) fn dpbusd_epi32(sums: Vector, a: Vector, b: Vector) -> Vector {
    add_epi32(sums, madd_epi16(maddubs_epi16(a, b), set1_epi16(1)))
}

#[inline]
#[target_feature(enable = "neon")]
pub(in crate::encode) fn cvtepi32_ps(vector: Vector) -> Floats {
    vcvtq_f32_s32(elements!(s32, vector))
}

/// Cuts off fractions. The kernels have no numbers beyond 32 bits, which would differ from those of x86-64.
#[inline]
#[target_feature(enable = "neon")]
pub(in crate::encode) fn cvttps_epi32(numbers: Floats) -> Vector {
    bytes!(s32, vcvtq_s32_f32(numbers))
}

#[inline]
#[target_feature(enable = "neon")]
pub(in crate::encode) fn set1_epi8(value: i8) -> Vector {
    vdupq_n_u8(value.cast_unsigned())
}

#[inline]
#[target_feature(enable = "neon")]
pub(in crate::encode) fn set1_epi16(value: i16) -> Vector {
    bytes!(s16, vdupq_n_s16(value))
}

#[inline]
#[target_feature(enable = "neon")]
pub(in crate::encode) fn set1_epi32(value: i32) -> Vector {
    bytes!(s32, vdupq_n_s32(value))
}

/// The bytes in the lane.
#[inline]
#[target_feature(enable = "neon")]
pub(in crate::encode) fn lanes(octets: [u8; 16]) -> Vector {
    load(&octets)
}

/// Selects each 32 bits by two bits of `ORDER`, the first by the lowest.
#[inline]
#[target_feature(enable = "neon")]
pub(in crate::encode) fn shuffle_epi32<const ORDER: i32>(vector: Vector) -> Vector {
    shuffle_epi8(vector, lanes(const { octets_of_elements(ORDER) }))
}

/// Selects each number by two bits of `ORDER`, the first by the lowest.
#[inline]
#[target_feature(enable = "neon")]
pub(in crate::encode) fn permute_ps<const ORDER: i32>(numbers: Floats) -> Floats {
    vreinterpretq_f32_u8(shuffle_epi32::<ORDER>(vreinterpretq_u8_f32(numbers)))
}

const fn octets_of_elements(order: i32) -> [u8; 16] {
    let mut octets = [0; 16];
    let mut at = 0;
    while at < octets.len() {
        octets[at] = (order >> (2 * (at / 4)) & 3).cast_unsigned() as u8 * 4 + at as u8 % 4;
        at += 1;
    }
    octets
}

/// Joins the first and third 32 bits of `a` with the second and fourth of `b`, in their places.
#[inline]
#[target_feature(enable = "neon")]
pub(in crate::encode) fn alternating(a: Vector, b: Vector) -> Vector {
    vbslq_u8(greater(), b, a)
}

/// Returns whether no bit of a mask is zero.
#[inline]
#[target_feature(enable = "neon")]
pub(in crate::encode) fn is_all(mask: Vector) -> bool {
    vminvq_u8(mask) == u8::MAX
}

/// Changes nothing: the lower half of the only lane is before the upper one.
#[inline]
#[target_feature(enable = "neon")]
pub(in crate::encode) fn halves_apart(vector: Vector) -> Vector {
    vector
}

/// Does nothing: the standard library has no stable prefetch for this processor.
#[inline]
fn prefetch(_: *const u8) {}

shared!("neon");
