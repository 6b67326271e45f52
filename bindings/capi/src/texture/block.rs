//! Contiguous frames: the tiles are received into parts of one block, and the hook receives the
//! whole block.

use std::cell::UnsafeCell;
use std::ops::Range;
use std::sync::Arc;

use rushes::texture::{FrameMemory, Region, TextureShape};

/// The octets of one frame, written in parts by the library's units.
///
/// **Invariant:** each part is created once, and parts do not overlap.
pub(super) struct Block(Box<[UnsafeCell<u8>]>);

// SAFETY: each octet is written through one part only, and the whole block is read only while no
// part is being written (`whole`).
unsafe impl Sync for Block {}
// SAFETY: octets are not tied to a thread.
unsafe impl Send for Block {}

/// One tile's part of a block.
struct Part {
    block: Arc<Block>,
    range: Range<usize>,
}

impl Region for Part {
    fn octets(&mut self) -> &mut [u8] {
        let first = self.block.0[self.range.clone()].as_ptr().cast_mut().cast::<u8>();
        // SAFETY: the range lies in the block, which lives as long as this part; no other part has
        // these octets, and this part is borrowed as long as they are.
        unsafe { std::slice::from_raw_parts_mut(first, self.range.len()) }
    }
}

impl Block {
    fn new(len: usize) -> Arc<Self> {
        let octets = vec![0_u8; len].into_iter().map(UnsafeCell::new);
        Arc::new(Self(octets.collect()))
    }

    /// Returns the address of the frame's first octet and the number of octets. C may read them
    /// until the hook that receives them returns; the library does not write to them before.
    pub(super) fn whole(&self) -> (*const u8, usize) {
        (self.0.as_ptr().cast(), self.0.len())
    }
}

/// Allocates memory for `slots` contiguous frames: the blocks, and the parts that cover them.
pub(super) fn memory(shape: &TextureShape, slots: usize) -> (Vec<Arc<Block>>, Vec<FrameMemory>) {
    let frame = || {
        let block = Block::new(shape.layout().bytes());
        let mut end = 0;
        let parts: FrameMemory = shape
            .tiling()
            .tiles()
            .iter()
            .map(|tile| {
                // Tiles are contiguous. If a tile overlapped another, its part would be shortened.
                let start = tile.bytes.start.max(end).min(tile.bytes.end);
                end = tile.bytes.end.min(shape.layout().bytes()).max(start);
                let part = Part { block: block.clone(), range: start..end };
                Box::new(part) as Box<dyn Region>
            })
            .collect();
        (block, parts)
    };
    (0..slots).map(|_| frame()).unzip()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rushes::texture::Format;

    #[test]
    fn parts_cover_a_frame_in_its_order() {
        let shape = TextureShape::choose(Format::Yuv420, 64, 32, 5, 1000).unwrap();
        let (blocks, mut memory) = memory(&shape, 2);
        let mut number = 0;
        for part in &mut memory[1] {
            for octet in part.octets() {
                *octet = number as u8;
                number += 1;
            }
        }
        assert_eq!(number, 64 * 32 * 3 / 2);
        let (first, len) = blocks[1].whole();
        assert_eq!(len, number);
        for (at, part) in memory[1].iter_mut().enumerate() {
            let tile = &shape.tiling().tiles()[at];
            assert_eq!(part.octets().len(), tile.bytes.len());
            assert_eq!(part.octets()[0], tile.bytes.start as u8);
            assert_eq!(part.octets().as_ptr().addr(), first.addr() + tile.bytes.start);
        }
        assert!(memory[0].iter_mut().all(|part| part.octets().iter().all(|octet| *octet == 0)));
    }
}
