//! One row of blocks by hand: for this crate's tests and benches, with each instruction set.

use crate::InstructionSet;
use crate::decode;
use crate::encode;

/// Encodes four rows of pixels: instructions, RGBA, octets from row to row, blocks, their octets.
pub type Encode = fn(InstructionSet, &[u8], usize, usize, &mut [u8]);

/// Decodes a row of blocks to RGBA whose rows are so many octets apart.
pub type Decode = fn(&[u8], &mut [u8], usize);

/// BC1.
pub const ENCODE_BC1: Encode = encode::bc1::encode_block_row;
/// BC3.
pub const ENCODE_BC3: Encode = encode::bc3::encode_block_row;
/// Scaled YCoCg in BC3.
pub const ENCODE_YCOCG_BC3: Encode = encode::ycocg_bc3::encode_block_row;
/// BC1.
pub const DECODE_BC1: Decode = decode::bc1::decode_block_row;
/// BC3.
pub const DECODE_BC3: Decode = decode::bc3::decode_block_row;
/// Scaled YCoCg in BC3.
pub const DECODE_YCOCG_BC3: Decode = decode::ycocg_bc3::decode_block_row;
