//! The search, in chunks that are searched exactly and blocks that are skipped quickly.

use std::ops::Range;

/// Octets that are searched together where a start code may be near.
pub(crate) const CHUNK_LEN: usize = 64;

/// Octets that are skipped together: enough for vectors of the compiler to be worthwhile.
const BLOCK_LEN: usize = 512;

/// Octets after those of a chunk or a block that the start codes which begin in it may take.
const REST_LEN: usize = 2;

/// A chunk with what follows it.
pub(crate) type Chunk = [u8; CHUNK_LEN + REST_LEN];

/// A block with what follows it.
type Block = [u8; BLOCK_LEN + REST_LEN];

/// Returns the position of the first start code. `starts` returns where start codes begin in a
/// chunk, a bit for each octet, the lowest for the first.
#[inline(always)]
#[allow(clippy::inline_always, reason = "it must be compiled for its caller's instruction set")]
pub(crate) fn find(octets: &[u8], starts: impl Fn(&Chunk) -> u64 + Copy) -> Option<usize> {
    let (Some(first), Some(last)) = (octets.first_chunk(), octets.last_chunk()) else {
        // Filled up with octets that are in no start code.
        let mut chunk = [u8::MAX; CHUNK_LEN + REST_LEN];
        chunk.get_mut(..octets.len())?.copy_from_slice(octets);
        return first_bit(starts(&chunk));
    };
    // Units are often short, and the first block begins within this chunk.
    if let Some(found) = first_bit(starts(first)) {
        return Some(found);
    }
    // Pairs are read from the second octet of a block on, at multiples of the length of a vector,
    // because a vector across two cache lines costs twice as much.
    let mut at = octets[1..].as_ptr().align_offset(CHUNK_LEN).min(CHUNK_LEN);
    while let Some(block) = octets.get(at..).and_then(<[u8]>::first_chunk) {
        if may_have(block)
            && let Some(found) = find_in_chunks(octets, at..at + BLOCK_LEN, starts)
        {
            return Some(found);
        }
        at += BLOCK_LEN;
    }
    // The last chunk may begin within the one before it.
    find_in_chunks(octets, at..octets.len(), starts)
        .or_else(|| Some(octets.len() - last.len() + first_bit(starts(last))?))
}

/// Returns the position of the first start code in the whole chunks of `range`.
#[inline(always)]
#[allow(clippy::inline_always, reason = "it must be compiled for its caller's instruction set")]
fn find_in_chunks(
    octets: &[u8],
    range: Range<usize>,
    starts: impl Fn(&Chunk) -> u64,
) -> Option<usize> {
    for at in range.step_by(CHUNK_LEN) {
        if let Some(found) = first_bit(starts(octets.get(at..)?.first_chunk()?)) {
            return Some(at + found);
        }
    }
    None
}

/// Returns the position of the lowest bit.
#[inline]
fn first_bit(bits: u64) -> Option<usize> {
    (bits != 0).then_some(bits.trailing_zeros() as usize)
}

/// Returns whether a block may contain a start code. If the octets are grouped in pairs, every
/// start code contains one whole pair: its beginning, `00 00`, or, if it begins in the middle of a
/// pair, its end, `00 01`.
#[inline(always)]
#[allow(clippy::inline_always, reason = "it must be compiled for its caller's instruction set")]
fn may_have(block: &Block) -> bool {
    let (pairs, _) = block[1..=BLOCK_LEN].as_chunks::<2>();
    // The loop has no early exit, so that the compiler vectorises it.
    let begins = |pair: &[u8; 2]| u16::from(u16::from_le_bytes(*pair) & 0xfeff == 0);
    pairs.iter().fold(0, |any, pair| any | begins(pair)) != 0
}

/// Returns where start codes begin in a chunk, with the features that all processors have.
#[inline]
pub(crate) fn starts(chunk: &Chunk) -> u64 {
    let begins = |n: usize| chunk[n] | chunk[n + 1] | (chunk[n + 2] ^ 1) == 0;
    if (0..CHUNK_LEN).fold(0, |any, n| any | u8::from(begins(n))) == 0 {
        return 0;
    }
    (0..CHUNK_LEN).rev().fold(0, |bits, n| bits << 1 | u64::from(begins(n)))
}
