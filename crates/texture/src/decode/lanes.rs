//! What the decoders of BC1, BC3, scaled YCoCg and ETC share: loops over the blocks of a group.
//!
//! A lane belongs to a block. The sixteen pixels are decoded one after the other, each for all blocks of
//! the group, so that the compiler vectorises every loop for every instruction set, and nothing is moved
//! between lanes until a row is written. Functions with loops are called in `for` loops, not in closures of `map`:
//! these are not always inlined, and would then be compiled for the baseline.
#![allow(
    clippy::inline_always,
    reason = "a loop is compiled for each set only where it is inlined"
)]
#![allow(clippy::needless_range_loop, reason = "a loop has the lanes of several arrays")]

use crate::InstructionSet;
use crate::convert::{Loop, SPAN};
use crate::dispatch;

/// Blocks of a group: those of a span.
pub(super) const BLOCKS: usize = SPAN / 4;

/// The four pixels of a block's row.
pub(super) type Row = [u8; 16];

/// A 16-bit value of each block.
pub(super) type Lanes = [u16; BLOCKS];

/// An 8-bit value of each block.
pub(super) type Octets = [u8; BLOCKS];

/// A 32-bit value of each block.
pub(super) type Words = [u32; BLOCKS];

/// A block of `N` words of 32 bits, which are little-endian.
pub(super) type Block<const N: usize> = [[u8; 4]; N];

/// Consecutive blocks, at most [`BLOCKS`], and the four pixel rows to which they are decoded.
pub(super) struct Group<'a, const N: usize> {
    pub(super) blocks: &'a [Block<N>],
    pub(super) rows: [&'a mut [Row]; 4],
}

/// Decodes blocks of `N` words to four rows of RGBA pixels, `stride` bytes apart, with a loop that
/// decodes groups.
///
/// Stops where `blocks` or one of the rows ends; the last row may end with its last block.
pub(super) fn decode<L, const N: usize>(
    set: InstructionSet,
    blocks: &[u8],
    rgba: &mut [u8],
    stride: usize,
) where
    L: for<'a> Loop<Arguments<'a> = Group<'a, N>>,
{
    let Some((a, rest)) = rgba.split_at_mut_checked(stride) else { return };
    let Some((b, rest)) = rest.split_at_mut_checked(stride) else { return };
    let Some((c, d)) = rest.split_at_mut_checked(stride) else { return };
    let blocks = blocks.as_chunks::<4>().0.as_chunks::<N>().0;
    let rows = [a, b, c, d].map(|row| row.as_chunks_mut().0);
    let count = rows.iter().map(|row| row.len()).fold(blocks.len(), usize::min);
    let [a, b, c, d] = rows.map(|row| row[..count].chunks_mut(BLOCKS));
    let groups = blocks[..count].chunks(BLOCKS).zip(a).zip(b).zip(c).zip(d);
    for ((((blocks, a), b), c), d) in groups {
        dispatch::vectorised::<L>(set, Group { blocks, rows: [a, b, c, d] });
    }
}

/// Returns the words of the blocks; those of missing blocks are 0.
#[inline(always)]
pub(super) fn words<const N: usize>(blocks: &[Block<N>]) -> [Words; N] {
    let mut padded = [[[0; 4]; N]; BLOCKS];
    let whole = if let Some(whole) = blocks.first_chunk() {
        whole
    } else {
        padded[..blocks.len()].copy_from_slice(blocks);
        &padded
    };
    let mut words = [[0; BLOCKS]; N];
    for at in 0..BLOCKS {
        for n in 0..N {
            words[n][at] = u32::from_le_bytes(whole[at][n]);
        }
    }
    words
}

/// Returns 16 bits of each word, from bit `shift` on.
#[inline(always)]
pub(super) fn halves(words: &Words, shift: u32) -> Lanes {
    let mut halves = [0; BLOCKS];
    for at in 0..BLOCKS {
        halves[at] = (words[at] >> shift) as u16;
    }
    halves
}

/// Returns 8 bits of each word, from bit `shift` on.
#[inline(always)]
pub(super) fn octets(words: &Words, shift: u32) -> Octets {
    let mut octets = [0; BLOCKS];
    for at in 0..BLOCKS {
        octets[at] = (words[at] >> shift) as u8;
    }
    octets
}

/// Returns eight bits that are set or not.
#[inline(always)]
pub(super) fn mask(is: bool) -> u8 {
    u8::from(is).wrapping_neg()
}

/// Returns `one` where bits of the mask are set, and `other` elsewhere.
#[inline(always)]
pub(super) fn either(mask: u8, one: u8, other: u8) -> u8 {
    one & mask | other & !mask
}

/// Four values of each block, as the indices of pixels select them.
pub(super) struct Palette {
    first: Lanes,
    /// What the lower bit of an index adds to the first value, modulo 2¹⁶; then the upper bit; then
    /// both together, beyond what each adds.
    more: [Lanes; 3],
}

impl Palette {
    #[inline(always)]
    pub(super) fn new(values: &[Lanes; 4]) -> Self {
        let mut more = [[0; BLOCKS]; 3];
        for at in 0..BLOCKS {
            let [a, b, c, d] = [0, 1, 2, 3].map(|n| values[n][at]);
            let (lower, upper) = (b.wrapping_sub(a), c.wrapping_sub(a));
            more[0][at] = lower;
            more[1][at] = upper;
            more[2][at] = d.wrapping_sub(a).wrapping_sub(lower).wrapping_sub(upper);
        }
        Self { first: values[0], more }
    }

    /// Returns the value of block `at` that is selected by masks of [`masks`].
    #[inline(always)]
    pub(super) fn select(&self, at: usize, masks: [u16; 3]) -> u16 {
        let more = [0, 1, 2].map(|n| self.more[n][at] & masks[n]);
        self.first[at].wrapping_add(more[0]).wrapping_add(more[1]).wrapping_add(more[2])
    }
}

/// Returns masks of the lower bit, the upper bit, and both, of index `x` of a row's four indices.
#[inline(always)]
pub(super) fn masks(indices: u16, x: u32) -> [u16; 3] {
    let mask = |bit: u32| ((indices << (15 - bit)).cast_signed() >> 15).cast_unsigned();
    let [lower, upper] = [mask(2 * x), mask(2 * x + 1)];
    [lower, upper, lower & upper]
}

/// Pixels of each block: red and green, and blue and alpha, with the first in the lower octet.
pub(super) type Pixels = [Lanes; 2];

/// Writes a row of each block's pixels; missing blocks are not written.
#[inline(always)]
pub(super) fn write(pixels: &[Pixels; 4], row: &mut [Row]) {
    if let Some(row) = row.first_chunk_mut() {
        write_all(pixels, row);
    } else {
        let mut whole = [[0; 16]; BLOCKS];
        write_all(pixels, &mut whole);
        row.copy_from_slice(&whole[..row.len()]);
    }
}

#[inline(always)]
fn write_all(pixels: &[Pixels; 4], row: &mut [Row; BLOCKS]) {
    for at in 0..BLOCKS {
        for (x, to) in row[at].as_chunks_mut().0.iter_mut().enumerate() {
            let [red_green, blue_alpha] = [0, 1].map(|n| u32::from(pixels[x][n][at]));
            *to = (red_green | blue_alpha << 16).to_le_bytes();
        }
    }
}
