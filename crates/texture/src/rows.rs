//! Coding of single block rows, for tests and benches of each instruction set.

use crate::{InstructionSet, decode, encode};

/// Encodes four pixel rows: instruction set, RGBA, stride in bytes, number of blocks, output.
pub type Encode = fn(InstructionSet, &[u8], usize, usize, &mut [u8]);

/// Decodes a block row: instruction set, blocks, RGBA output, stride of the output in bytes.
pub type Decode = fn(InstructionSet, &[u8], &mut [u8], usize);

/// BC1.
pub const ENCODE_BC1: Encode = encode::bc1::encode_block_row;
/// BC3.
pub const ENCODE_BC3: Encode = encode::bc3::encode_block_row;
/// Scaled YCoCg in BC3.
pub const ENCODE_YCOCG_BC3: Encode = encode::ycocg_bc3::encode_block_row;
/// BC1 with refined ends.
pub const ENCODE_BC1_HIGH: Encode = encode::refined::bc1_block_row;
/// BC3 with refined ends.
pub const ENCODE_BC3_HIGH: Encode = encode::refined::bc3_block_row;
/// Scaled YCoCg in BC3 with refined chroma.
pub const ENCODE_YCOCG_BC3_HIGH: Encode = encode::refined::ycocg_bc3_block_row;
/// BC1.
pub const DECODE_BC1: Decode = decode::bc1::decode_block_row;
/// BC3.
pub const DECODE_BC3: Decode = decode::bc3::decode_block_row;
/// Scaled YCoCg in BC3.
pub const DECODE_YCOCG_BC3: Decode = decode::ycocg_bc3::decode_block_row;
/// ETC1.
pub const DECODE_ETC1: Decode = decode::etc::etc1_block_row;
/// ETC2 without alpha.
pub const DECODE_ETC2: Decode = decode::etc::etc2_block_row;
