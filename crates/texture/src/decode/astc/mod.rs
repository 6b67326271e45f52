//! ASTC of low dynamic range.
//!
//! Blocks that are illegal or of high dynamic range are decoded to the error colour as in
//! `KHR_texture_compression_astc_hdr` sections C.2.24 and C.2.25. Section numbers below refer to that
//! document. A block's mode, ranges and levels are looked up in tables that are made when the code is
//! compiled, so that only pixels are computed, each with all channels in one word of 64 bits.
#![allow(
    clippy::inline_always,
    reason = "a loop is compiled for each set only where it is inlined"
)]

mod ends;
mod mode;
mod partition;
mod sequence;
mod weights;

use crate::InstructionSet;
use crate::convert::Loop;
use crate::decode::astc::ends::Line;
use crate::decode::astc::mode::MODES;
use crate::decode::astc::weights::Weights;
use crate::dispatch;
use crate::format::Block;

/// The pixels of the largest block.
const PIXELS: usize = 144;

/// Opaque magenta.
const ERROR: [u8; 4] = [255, 0, 255, 255];

/// Decodes blocks of 16 bytes to rows of RGBA pixels, `stride` bytes apart.
///
/// Rows of a block that are beyond the end of `rgba` are left out.
pub(super) fn decode_block_row(
    (set, shape): (InstructionSet, Block),
    blocks: &[u8],
    rgba: &mut [u8],
    stride: usize,
) {
    dispatch::vectorised::<Blocks>(set, (shape, blocks, rgba, stride));
}

/// The loop that decodes blocks. Weights and pixels are computed in vectors; all else is the same for
/// every instruction set.
enum Blocks {}

impl Loop for Blocks {
    type Arguments<'a> = (Block, &'a [u8], &'a mut [u8], usize);

    #[inline(always)]
    fn run((shape, blocks, rgba, stride): Self::Arguments<'_>) {
        let mut scratch = Scratch::new();
        let mut start = 0;
        for block in blocks.as_chunks().0 {
            if scratch.decode(u128::from_le_bytes(*block), shape).is_none() {
                scratch.pixels = [ERROR; PIXELS];
            }
            let Some(rgba) = rgba.get_mut(start..) else { break };
            match shape.width {
                4 => scratch.write::<4>(shape.height, rgba, stride),
                5 => scratch.write::<5>(shape.height, rgba, stride),
                6 => scratch.write::<6>(shape.height, rgba, stride),
                8 => scratch.write::<8>(shape.height, rgba, stride),
                10 => scratch.write::<10>(shape.height, rgba, stride),
                _ => scratch.write::<12>(shape.height, rgba, stride),
            }
            start += shape.width as usize * 4;
        }
    }
}

/// Room for what is known of a block.
struct Scratch {
    /// The line of each partition.
    lines: [Line; 4],
    weights: Weights,
    pixels: [[u8; 4]; PIXELS],
}

impl Scratch {
    fn new() -> Self {
        Self { lines: Default::default(), weights: Weights::new(), pixels: [ERROR; PIXELS] }
    }

    /// Writes the pixels of a block that is `WIDTH` pixels wide, up to the last row that is there.
    fn write<const WIDTH: usize>(&self, height: u32, rgba: &mut [u8], stride: usize) {
        let rows = self.pixels.as_chunks::<WIDTH>().0;
        for (row, pixels) in rows.iter().take(height as usize).enumerate() {
            let start = row * stride;
            let Some(out) = rgba.get_mut(start..start + WIDTH * 4) else { break };
            out.copy_from_slice(pixels.as_flattened());
        }
    }

    /// Decodes a block; returns `None` if it is illegal or of high dynamic range (section C.2.24).
    #[inline(always)]
    fn decode(&mut self, block: u128, shape: Block) -> Option<()> {
        if block % 512 == 0x1fc {
            self.pixels.fill(void_extent(block)?);
            return Some(());
        }
        let mode = MODES[(block % 2048) as usize];
        let is_legal = mode.bits > 0
            && u32::from(mode.width) <= shape.width
            && u32::from(mode.height) <= shape.height;
        if !is_legal {
            return None;
        }
        let partitions = ends::read(block, mode, &mut self.lines)?;
        let [first, second] = self.weights.read(block, mode, shape);
        let count = (shape.width * shape.height) as usize;
        let pixels = self.pixels.iter_mut().take(count).zip(first);
        let lines = &self.lines;
        match (partitions > 1, mode.planes) {
            (false, 1) => {
                for (pixel, &weight) in pixels {
                    *pixel = rounded(lines[0].at(weight));
                }
            }
            (false, _) => {
                for ((pixel, &weight), &second) in pixels.zip(second) {
                    *pixel = rounded(lines[0].at_both(weight, second));
                }
            }
            (true, 1) => {
                let partitions = partition::of_pixels(block, shape);
                for ((pixel, &weight), &n) in pixels.zip(&partitions) {
                    *pixel = rounded(lines[usize::from(n & 3)].at(weight));
                }
            }
            (true, _) => {
                let partitions = partition::of_pixels(block, shape);
                for (((pixel, &weight), &second), &n) in pixels.zip(second).zip(&partitions) {
                    *pixel = rounded(lines[usize::from(n & 3)].at_both(weight, second));
                }
            }
        }
        Some(())
    }
}

/// Returns the octets of channels, each of which has 16 bits and is 64 times as great.
///
/// As the channels have 16 bits in between, exact halves are rounded down from 128 on (section C.2.19).
#[inline(always)]
fn rounded(channels: u64) -> [u8; 4] {
    const EACH: u64 = 0x0001_0001_0001_0001;
    let octets = ((channels + 32 * EACH - (channels >> 13 & EACH)) >> 6) & (255 * EACH);
    let pairs = (octets | octets >> 8) & 0x0000_ffff_0000_ffff;
    ((pairs | pairs >> 16) as u32).to_le_bytes()
}

/// Returns the colour of a void extent (section C.2.23); `None` if it is illegal.
///
/// Its colour must be of low dynamic range, and its extent either absent or not empty. Of each of its channels,
/// which have 16 bits, the upper octet is taken, as in the decode mode `unorm8` and by the shader.
fn void_extent(block: u128) -> Option<[u8; 4]> {
    let coordinate = |at: u32| block >> at & 0x1fff;
    let [left, right, top, bottom] = [12, 25, 38, 51].map(coordinate);
    let not_given = [left, right, top, bottom] == [0x1fff; 4];
    let high_range = block >> 9 & 1 == 1;
    let is_legal =
        !high_range && block >> 10 & 3 == 3 && (not_given || left < right && top < bottom);
    is_legal.then(|| [72, 88, 104, 120].map(|at| (block >> at) as u8))
}

#[cfg(test)]
mod tests;
