//! BC3: a block of alpha followed by a block of colour as in BC1.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[macro_use]
mod kernel;

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
#[cfg(target_arch = "aarch64")]
pub(crate) mod neon;
mod portable;

use crate::InstructionSet;
use crate::dispatch::{self, Kernel};
use crate::encode::strip;

/// Encodes four rows of `blocks` × 4 RGBA pixels, `stride` bytes apart, as `blocks` × 16 bytes.
///
/// Nothing is written where `rgba` or `out` is too short.
pub(crate) fn encode_block_row(
    set: InstructionSet,
    rgba: &[u8],
    stride: usize,
    blocks: usize,
    out: &mut [u8],
) {
    let Some(strip) = strip::strip(rgba, stride, blocks) else { return };
    let Some(out) = out.get_mut(..blocks.saturating_mul(16)) else { return };
    let done = dispatch::encode(set, Kernel::Bc3, strip, out);
    portable::encode(strip::after(strip, done), &mut out[done * 16..]);
}
