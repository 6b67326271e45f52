//! Calls the vector code that the processor supports. It contains the only unsafe code.
//!
//! Values of [`Avx2`] and [`Avx512`] exist only if the processor has these instruction sets, so
//! that holding one proves that a call is sound.

use std::arch::x86_64::{
    __m128i, __m256i, __m512i, _MM_HINT_T0, _mm_loadu_si128, _mm_prefetch, _mm256_loadu_si256,
    _mm256_storeu_si256, _mm512_loadu_si512, _mm512_storeu_si512,
};

use crate::convert::{Loop, Rgba};
use crate::encode::strip::Strip;
use crate::encode::{bc1, bc3, refined, strip, ycocg_bc3};
use crate::{InstructionSet, convert};

/// Proof that the processor has AVX2.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx2(());

/// Proof that the processor has AVX-512 F, BW and VL.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx512(());

#[allow(clippy::unused_self, reason = "the value is the proof of the features")]
impl Avx2 {
    pub(crate) fn detect() -> Option<Self> {
        is_x86_feature_detected!("avx2").then_some(Self(()))
    }

    fn bc1(self, strip: Strip<'_>, out: &mut [u8]) {
        // SAFETY: an `Avx2` exists only if `detect` found the function's features.
        unsafe { bc1::avx2::encode(strip, out) }
    }

    fn bc3(self, strip: Strip<'_>, out: &mut [u8]) {
        // SAFETY: an `Avx2` exists only if `detect` found the function's features.
        unsafe { bc3::avx2::encode(strip, out) }
    }

    fn ycocg_bc3(self, strip: Strip<'_>, out: &mut [u8]) {
        // SAFETY: an `Avx2` exists only if `detect` found the function's features.
        unsafe { ycocg_bc3::avx2::encode(strip, out) }
    }

    fn refined_bc1(self, strip: Strip<'_>, out: &mut [u8]) {
        // SAFETY: an `Avx2` exists only if `detect` found the function's features.
        unsafe { refined::avx2::encode::<8>(strip, out) }
    }

    fn refined_bc3(self, strip: Strip<'_>, out: &mut [u8]) {
        // SAFETY: an `Avx2` exists only if `detect` found the function's features.
        unsafe { refined::avx2::encode::<16>(strip, out) }
    }

    fn refined_ycocg_bc3(self, strip: Strip<'_>, out: &mut [u8]) {
        // SAFETY: an `Avx2` exists only if `detect` found the function's features.
        unsafe { refined::avx2::encode_chroma(strip, out) }
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
    pub(crate) fn detect() -> Option<Self> {
        let found = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl");
        found.then_some(Self(()))
    }

    fn bc1(self, strip: Strip<'_>, out: &mut [u8]) {
        // SAFETY: an `Avx512` exists only if `detect` found the function's features.
        unsafe { bc1::avx512::encode(strip, out) }
    }

    fn bc3(self, strip: Strip<'_>, out: &mut [u8]) {
        // SAFETY: an `Avx512` exists only if `detect` found the function's features.
        unsafe { bc3::avx512::encode(strip, out) }
    }

    fn ycocg_bc3(self, strip: Strip<'_>, out: &mut [u8]) {
        // SAFETY: an `Avx512` exists only if `detect` found the function's features.
        unsafe { ycocg_bc3::avx512::encode(strip, out) }
    }

    fn refined_bc1(self, strip: Strip<'_>, out: &mut [u8]) {
        // SAFETY: an `Avx512` exists only if `detect` found the function's features.
        unsafe { refined::avx512::encode::<8>(strip, out) }
    }

    fn refined_bc3(self, strip: Strip<'_>, out: &mut [u8]) {
        // SAFETY: an `Avx512` exists only if `detect` found the function's features.
        unsafe { refined::avx512::encode::<16>(strip, out) }
    }

    fn refined_ycocg_bc3(self, strip: Strip<'_>, out: &mut [u8]) {
        // SAFETY: an `Avx512` exists only if `detect` found the function's features.
        unsafe { refined::avx512::encode_chroma(strip, out) }
    }

    fn run<L: Loop>(self, arguments: L::Arguments<'_>) {
        // SAFETY: an `Avx512` exists only if `detect` found the function's features.
        unsafe { compiled_for_avx512::<L>(arguments) }
    }
}

/// Encodes the blocks that fill whole vectors as BC1, and returns their number.
pub(crate) fn bc1(set: InstructionSet, strip: Strip<'_>, out: &mut [u8]) -> usize {
    encode::<8>(set, strip, out, Avx512::bc1, Avx2::bc1)
}

/// Encodes the blocks that fill whole vectors as BC3, and returns their number.
pub(crate) fn bc3(set: InstructionSet, strip: Strip<'_>, out: &mut [u8]) -> usize {
    encode::<16>(set, strip, out, Avx512::bc3, Avx2::bc3)
}

/// Encodes the blocks that fill whole vectors as scaled YCoCg in BC3, and returns their number.
pub(crate) fn ycocg_bc3(set: InstructionSet, strip: Strip<'_>, out: &mut [u8]) -> usize {
    encode::<16>(set, strip, out, Avx512::ycocg_bc3, Avx2::ycocg_bc3)
}

/// Encodes the blocks that fill whole vectors as refined BC1, and returns their number.
pub(crate) fn refined_bc1(set: InstructionSet, strip: Strip<'_>, out: &mut [u8]) -> usize {
    encode::<8>(set, strip, out, Avx512::refined_bc1, Avx2::refined_bc1)
}

/// Replaces the colours of BC3 that fill whole vectors by refined ones, and returns their number.
pub(crate) fn refined_bc3(set: InstructionSet, strip: Strip<'_>, out: &mut [u8]) -> usize {
    encode::<16>(set, strip, out, Avx512::refined_bc3, Avx2::refined_bc3)
}

/// Replaces the chroma of scaled YCoCg in BC3 that fills whole vectors by a refined one, and returns the number
/// of blocks.
pub(crate) fn refined_ycocg_bc3(set: InstructionSet, strip: Strip<'_>, out: &mut [u8]) -> usize {
    encode::<16>(set, strip, out, Avx512::refined_ycocg_bc3, Avx2::refined_ycocg_bc3)
}

/// Encodes the blocks of `LEN` bytes that fill whole vectors, longest vectors first, and returns
/// their number.
fn encode<const LEN: usize>(
    set: InstructionSet,
    strip: Strip<'_>,
    out: &mut [u8],
    by_avx512: impl Fn(Avx512, Strip<'_>, &mut [u8]),
    by_avx2: impl Fn(Avx2, Strip<'_>, &mut [u8]),
) -> usize {
    let mut done = 0;
    if let Some(kernel) = avx512(set) {
        by_avx512(kernel, strip, out);
        done = strip::whole::<8>(strip);
    }
    if let Some(kernel) = avx2(set) {
        let rest = strip::after(strip, done);
        by_avx2(kernel, rest, &mut out[done * LEN..]);
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

#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
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
    (set != InstructionSet::Portable).then(Avx2::detect).flatten()
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
