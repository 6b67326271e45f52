//! NEON, which every aarch64 processor has: nothing is detected at run time.

use std::arch::aarch64::{
    uint8x16_t, uint8x16x3_t, uint8x16x4_t, vld1q_u8, vld3q_u8, vst1q_u8, vst4q_u8,
};

use crate::convert::{Loop, Rgba};
use crate::dispatch::Kernel;
use crate::encode::strip::Strip;
use crate::encode::{bc1, bc3, refined, strip, ycocg_bc3};
use crate::{InstructionSet, convert};

/// Proof that the processor has NEON.
#[derive(Clone, Copy, Debug)]
struct Neon(());

#[allow(clippy::unused_self, reason = "the value is the proof of the features")]
impl Neon {
    /// Returns the proof if the whole crate is compiled for NEON.
    ///
    /// The kernels assume little-endian elements; other processors use the portable code.
    fn detect() -> Option<Self> {
        let found = cfg!(target_feature = "neon") && cfg!(target_endian = "little");
        found.then_some(Self(()))
    }

    fn encode(self, kernel: Kernel, strip: Strip<'_>, out: &mut [u8]) {
        // SAFETY: a `Neon` exists only if `detect` found the function's features.
        unsafe { encode_by_neon(kernel, strip, out) }
    }

    fn expand_rgb24(self, rgb: &[u8], rgba: &mut [Rgba]) -> usize {
        // SAFETY: a `Neon` exists only if `detect` found the function's features.
        unsafe { convert::neon::expand(rgb, rgba) }
    }
}

kernels!(encode_by_neon, neon, "neon");

/// Returns whether this processor has an instruction set.
pub(crate) fn has(set: InstructionSet) -> bool {
    match set {
        InstructionSet::Portable => true,
        InstructionSet::Neon => Neon::detect().is_some(),
        InstructionSet::Avx2 | InstructionSet::Avx512 => false,
    }
}

/// Encodes the blocks that fill whole pairs of vectors, and returns their number.
pub(crate) fn encode(
    set: InstructionSet,
    kernel: Kernel,
    strip: Strip<'_>,
    out: &mut [u8],
) -> usize {
    let Some(neon) = neon(set) else { return 0 };
    neon.encode(kernel, strip, out);
    strip::whole::<2>(strip)
}

/// Expands leading pixels from RGB24 to RGBA8 with vector code, and returns their number.
pub(crate) fn expand_rgb24(set: InstructionSet, rgb: &[u8], rgba: &mut [Rgba]) -> usize {
    neon(set).map_or(0, |neon| neon.expand_rgb24(rgb, rgba))
}

/// Runs a loop that the compiler vectorises: it is compiled for NEON, as all code for this processor.
pub(crate) fn vectorised<L: Loop>(_: InstructionSet, arguments: L::Arguments<'_>) {
    L::run(arguments);
}

fn neon(set: InstructionSet) -> Option<Neon> {
    (set != InstructionSet::Portable).then(Neon::detect).flatten()
}

#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn load128(octets: &[u8; 16]) -> uint8x16_t {
    // SAFETY: the reference is to 16 bytes; the load needs no alignment.
    unsafe { vld1q_u8(octets.as_ptr()) }
}

#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn store128(octets: &mut [u8; 16], vector: uint8x16_t) {
    // SAFETY: the reference is to 16 bytes; the store needs no alignment.
    unsafe { vst1q_u8(octets.as_mut_ptr(), vector) }
}

/// Loads groups of three bytes: the first bytes of all groups, the second ones, and the third ones.
#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn load_threes(octets: &[u8; 48]) -> uint8x16x3_t {
    // SAFETY: the reference is to 48 bytes; the load needs no alignment.
    unsafe { vld3q_u8(octets.as_ptr()) }
}

/// Stores groups of four bytes, one of each vector.
#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn store_fours(octets: &mut [u8; 64], vectors: uint8x16x4_t) {
    // SAFETY: the reference is to 64 bytes; the store needs no alignment.
    unsafe { vst4q_u8(octets.as_mut_ptr(), vectors) }
}
