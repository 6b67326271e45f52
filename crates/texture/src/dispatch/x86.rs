//! AVX2 and AVX-512, where the processor has them.
//!
//! Values of [`Avx2`] and [`Avx512`] exist only if the processor has these instruction sets, so
//! that holding one proves that a call is sound.

use std::arch::x86_64::{
    __m128i, __m256i, __m512i, _MM_HINT_T0, _mm_loadu_si128, _mm_prefetch, _mm256_loadu_si256,
    _mm256_storeu_si256, _mm512_loadu_si512, _mm512_storeu_si512,
};

use crate::convert::{Loop, Rgba};
use crate::dispatch::Kernel;
use crate::encode::strip::Strip;
use crate::encode::{bc1, bc3, refined, strip, ycocg_bc3};
use crate::{InstructionSet, convert};

/// Proof that the processor has AVX2.
#[derive(Clone, Copy, Debug)]
struct Avx2(());

/// Proof that the processor has AVX-512 F, BW, VL and VNNI.
#[derive(Clone, Copy, Debug)]
struct Avx512(());

#[allow(clippy::unused_self, reason = "the value is the proof of the features")]
impl Avx2 {
    fn detect() -> Option<Self> {
        is_x86_feature_detected!("avx2").then_some(Self(()))
    }

    fn encode(self, kernel: Kernel, strip: Strip<'_>, out: &mut [u8]) {
        // SAFETY: an `Avx2` exists only if `detect` found the function's features.
        unsafe { encode_by_avx2(kernel, strip, out) }
    }

    fn expand_rgb24(self, rgb: &[u8], rgba: &mut [Rgba]) -> usize {
        // SAFETY: an `Avx2` exists only if `detect` found the function's features.
        unsafe { convert::avx2::expand(rgb, rgba) }
    }

    fn run<L: Loop>(self, arguments: L::Arguments<'_>) {
        // SAFETY: an `Avx2` exists only if `detect` found the function's features.
        unsafe { compiled_for_avx2::<L>(arguments) }
    }
}

#[allow(clippy::unused_self, reason = "the value is the proof of the features")]
impl Avx512 {
    fn detect() -> Option<Self> {
        let found = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vnni");
        found.then_some(Self(()))
    }

    fn encode(self, kernel: Kernel, strip: Strip<'_>, out: &mut [u8]) {
        // SAFETY: an `Avx512` exists only if `detect` found the function's features.
        unsafe { encode_by_avx512(kernel, strip, out) }
    }

    fn run<L: Loop>(self, arguments: L::Arguments<'_>) {
        // SAFETY: an `Avx512` exists only if `detect` found the function's features.
        unsafe { compiled_for_avx512::<L>(arguments) }
    }
}

kernels!(encode_by_avx2, avx2, "avx2");
kernels!(encode_by_avx512, avx512, "avx512f,avx512bw,avx512vl,avx512vnni");

/// Returns whether this processor has an instruction set.
pub(crate) fn has(set: InstructionSet) -> bool {
    match set {
        InstructionSet::Portable => true,
        InstructionSet::Neon => false,
        InstructionSet::Avx2 => Avx2::detect().is_some(),
        InstructionSet::Avx512 => Avx512::detect().is_some(),
    }
}

/// Encodes the blocks that fill whole pairs of vectors, longest vectors first, and returns their
/// number.
pub(crate) fn encode(
    set: InstructionSet,
    kernel: Kernel,
    strip: Strip<'_>,
    out: &mut [u8],
) -> usize {
    let mut done = 0;
    if let Some(avx512) = avx512(set) {
        avx512.encode(kernel, strip, out);
        done = strip::whole::<8>(strip);
    }
    if let Some(avx2) = avx2(set) {
        let rest = strip::after(strip, done);
        avx2.encode(kernel, rest, &mut out[done * kernel.block_bytes()..]);
        done += strip::whole::<4>(rest);
    }
    done
}

/// Expands leading pixels from RGB24 to RGBA8 with vector code, and returns their number.
pub(crate) fn expand_rgb24(set: InstructionSet, rgb: &[u8], rgba: &mut [Rgba]) -> usize {
    avx2(set).map_or(0, |kernel| kernel.expand_rgb24(rgb, rgba))
}

/// Runs a loop that the compiler vectorises, with the longest vectors available.
pub(crate) fn vectorised<L: Loop>(set: InstructionSet, arguments: L::Arguments<'_>) {
    match (avx512(set), avx2(set)) {
        (Some(kernel), _) => kernel.run::<L>(arguments),
        (None, Some(kernel)) => kernel.run::<L>(arguments),
        (None, None) => L::run(arguments),
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
fn compiled_for_avx512<L: Loop>(arguments: L::Arguments<'_>) {
    L::run(arguments);
}

#[target_feature(enable = "avx2")]
fn compiled_for_avx2<L: Loop>(arguments: L::Arguments<'_>) {
    L::run(arguments);
}

fn avx512(set: InstructionSet) -> Option<Avx512> {
    (set == InstructionSet::Avx512).then(Avx512::detect).flatten()
}

fn avx2(set: InstructionSet) -> Option<Avx2> {
    let may = matches!(set, InstructionSet::Avx2 | InstructionSet::Avx512);
    may.then(Avx2::detect).flatten()
}

#[inline]
pub(crate) fn load128(octets: &[u8; 16]) -> __m128i {
    // SAFETY: the reference is to 16 bytes; the load needs no alignment.
    unsafe { _mm_loadu_si128(octets.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn load256(octets: &[u8; 32]) -> __m256i {
    // SAFETY: the reference is to 32 bytes; the load needs no alignment.
    unsafe { _mm256_loadu_si256(octets.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn store256(octets: &mut [u8; 32], vector: __m256i) {
    // SAFETY: the reference is to 32 bytes; the store needs no alignment.
    unsafe { _mm256_storeu_si256(octets.as_mut_ptr().cast(), vector) }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn load512(octets: &[u8; 64]) -> __m512i {
    // SAFETY: the reference is to 64 bytes; the load needs no alignment.
    unsafe { _mm512_loadu_si512(octets.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn store512(octets: &mut [u8; 64], vector: __m512i) {
    // SAFETY: the reference is to 64 bytes; the store needs no alignment.
    unsafe { _mm512_storeu_si512(octets.as_mut_ptr().cast(), vector) }
}

/// Prefetches memory that is likely to be read soon.
#[inline]
pub(crate) fn prefetch(place: *const u8) {
    // SAFETY: a prefetch has no effect that a program can observe, and never faults.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(place.cast()) }
}
