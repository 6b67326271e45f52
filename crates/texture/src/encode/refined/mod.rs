//! BC1, alpha, luma and chroma whose ends are refined: the level of [`Quality::High`](crate::Quality::High).
//!
//! The ends begin at opposite corners of the bounding box, those of luma where
//! [`Quality::Fast`](crate::Quality::Fast) has them, and are moved, twice, to where the sum of squared errors is least
//! for the pixels' places on the line. Of BC1, luma and chroma the last line is kept: that it is not always the best of
//! the three costs 0.01 dB, and to compare them would cost a third of the time. Of alpha the best is kept. All
//! instruction sets compute the same numbers in the same order, so that the bytes are equal.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[macro_use]
mod kernel;

mod alpha;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
mod flat;
mod luma;
#[cfg(target_arch = "aarch64")]
pub(crate) mod neon;
mod portable;

use crate::InstructionSet;
use crate::dispatch::{self, Kernel};
use crate::encode::strip::{self, Strip};
use crate::encode::{bc3, ycocg_bc3};

/// How often the ends are moved.
const TURNS: usize = 2;

/// Encodes four rows of `blocks` × 4 RGBA pixels, `stride` bytes apart, as BC1 (`blocks` × 8 bytes).
///
/// Alpha is ignored. Nothing is written where `rgba` or `out` is too short.
pub(crate) fn bc1_block_row(
    set: InstructionSet,
    rgba: &[u8],
    stride: usize,
    blocks: usize,
    out: &mut [u8],
) {
    let Some((strip, out)) = checked::<8>(rgba, stride, blocks, out) else { return };
    let done = dispatch::encode(set, Kernel::RefinedBc1, strip, out);
    portable::encode::<8>(strip::after(strip, done), &mut out[done * 8..]);
}

/// Encodes four rows as BC3, as [`bc1_block_row`].
pub(crate) fn bc3_block_row(
    set: InstructionSet,
    rgba: &[u8],
    stride: usize,
    blocks: usize,
    out: &mut [u8],
) {
    bc3::encode_block_row(set, rgba, stride, blocks, out);
    let Some((strip, out)) = checked::<16>(rgba, stride, blocks, out) else { return };
    alpha::encode(set, strip, out);
    let done = dispatch::encode(set, Kernel::RefinedBc3, strip, out);
    portable::encode::<16>(strip::after(strip, done), &mut out[done * 16..]);
}

/// Encodes four rows as scaled YCoCg in BC3, as [`bc1_block_row`].
pub(crate) fn ycocg_bc3_block_row(
    set: InstructionSet,
    rgba: &[u8],
    stride: usize,
    blocks: usize,
    out: &mut [u8],
) {
    ycocg_bc3::encode_block_row(set, rgba, stride, blocks, out);
    let Some((strip, out)) = checked::<16>(rgba, stride, blocks, out) else { return };
    luma::encode(set, strip, out);
    let done = dispatch::encode(set, Kernel::RefinedYCoCgBc3, strip, out);
    portable::encode_chroma(strip::after(strip, done), &mut out[done * 16..]);
}

/// Returns the rows and the room for their blocks of `SIZE` bytes, if both are long enough.
fn checked<'a, 'b, const SIZE: usize>(
    rgba: &'a [u8],
    stride: usize,
    blocks: usize,
    out: &'b mut [u8],
) -> Option<(Strip<'a>, &'b mut [u8])> {
    Some((strip::strip(rgba, stride, blocks)?, out.get_mut(..blocks.saturating_mul(SIZE))?))
}
