//! BC1 without transparency. The ends are opposite corners of the bounding box of a block's colours,
//! moved inwards.
//!
//! After J.M.P. van Waveren, "Real-Time DXT Compression", 2006, who always takes the diagonal from
//! the darkest to the brightest corner. Text in red on blue lies along another one, so the diagonal
//! is chosen by the channels that rise and fall together. The nearest of the four colours is found by
//! projection onto it.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[macro_use]
mod kernel;

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
#[cfg(target_arch = "aarch64")]
pub(crate) mod neon;
pub(super) mod portable;

pub(super) use portable::block;

use crate::InstructionSet;
use crate::dispatch::{self, Kernel};
use crate::encode::strip;

/// Encodes four rows of `blocks` × 4 RGBA pixels, `stride` bytes apart, as `blocks` × 8 bytes.
///
/// Alpha is ignored. Nothing is written where `rgba` or `out` is too short.
pub(crate) fn encode_block_row(
    set: InstructionSet,
    rgba: &[u8],
    stride: usize,
    blocks: usize,
    out: &mut [u8],
) {
    let Some(strip) = strip::strip(rgba, stride, blocks) else { return };
    let Some(out) = out.get_mut(..blocks.saturating_mul(8)) else { return };
    let done = dispatch::encode(set, Kernel::Bc1, strip, out);
    portable::encode(strip::after(strip, done), &mut out[done * 8..]);
}
