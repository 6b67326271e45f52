//! BC3 without vector instructions, one block at a time.

use crate::encode::strip::Strip;
use crate::encode::{bc1, bc4, strip};

/// Encodes a strip of whole blocks.
pub(super) fn encode(strip: Strip<'_>, out: &mut [u8]) {
    for (pixels, out) in strip::blocks(strip).zip(out.as_chunks_mut::<16>().0) {
        let (alpha, colour) = out.split_at_mut(8);
        // Opaque pixels stay opaque in a block with other alphas.
        alpha.copy_from_slice(&bc4::block(&pixels.map(|[_, _, _, alpha]| alpha)));
        colour.copy_from_slice(&bc1::block(&pixels));
    }
}
