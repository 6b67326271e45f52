//! Decoders to RGBA, one block row at a time.
//!
//! Interpolated values are rounded to nearest, as in `bcdec`.

mod astc;
pub(crate) mod bc1;
pub(crate) mod bc3;
mod bc4;
pub(crate) mod etc;
mod lanes;
pub(crate) mod ycocg_bc3;

use crate::InstructionSet;
use crate::format::Format;

/// Decodes blocks of any block format to rows of RGBA pixels, `stride` bytes apart.
///
/// Stops where `blocks` or one of the rows ends.
pub(crate) fn block_row(
    (set, format): (InstructionSet, Format),
    blocks: &[u8],
    rgba: &mut [u8],
    stride: usize,
) {
    match format {
        Format::Bc1 => bc1::decode_block_row(set, blocks, rgba, stride),
        Format::Bc3 => bc3::decode_block_row(set, blocks, rgba, stride),
        Format::YCoCgBc3 => ycocg_bc3::decode_block_row(set, blocks, rgba, stride),
        Format::Etc1 => etc::etc1_block_row(set, blocks, rgba, stride),
        Format::Etc2Rgb => etc::etc2_block_row(set, blocks, rgba, stride),
        _ => astc::decode_block_row((set, format.planes()[0].block), blocks, rgba, stride),
    }
}
