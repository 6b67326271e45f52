//! BC1 without transparency: the corners of the bounding box of a block's colours, moved inwards.
//!
//! After J.M.P. van Waveren, "Real-Time DXT Compression", 2006. The nearest of the four colours is
//! found by projection on the box's diagonal, which starts and ends at the quantised corners.

mod portable;

pub(super) use portable::block;

use crate::InstructionSet;
use crate::encode::strip;

/// Encodes four rows of `blocks` × 4 RGBA pixels, `stride` octets apart, as `blocks` × 8 octets.
///
/// Alpha is ignored. Nothing is written where `rgba` or `out` is too short.
pub(crate) fn encode_block_row(
    _set: InstructionSet,
    rgba: &[u8],
    stride: usize,
    blocks: usize,
    out: &mut [u8],
) {
    let Some(strip) = strip::strip(rgba, stride, blocks) else { return };
    let Some(out) = out.get_mut(..blocks.saturating_mul(8)) else { return };
    portable::encode(strip, out);
}
