//! Skipping blocks without a start code.

/// Octets that are checked together: enough for vectors of the compiler to be worthwhile.
pub(crate) const BLOCK_LEN: usize = 512;

/// Length in octets of a block with the octet before it and the octet after it.
const VIEW_LEN: usize = BLOCK_LEN + 2;

/// Returns the number of whole blocks before the first one with a start code, which begins at the
/// earliest at the octet before its block, and at the latest at the last octet but one of the
/// block. The first block begins at the second octet of `octets`.
#[inline(always)]
#[allow(clippy::inline_always, reason = "it must be compiled for its caller's instruction set")]
pub(crate) fn blocks_without(octets: &[u8]) -> usize {
    let mut passed = 0;
    while let Some(view) = octets.get(passed * BLOCK_LEN..).and_then(|rest| rest.first_chunk()) {
        if may_have(view) && has(view) {
            break;
        }
        passed += 1;
    }
    passed
}

/// Returns whether a block may contain a start code. If the octets are grouped in pairs, every
/// start code contains one whole pair: its beginning, `00 00`, or, if it begins in the middle of a
/// pair, its end, `00 01`.
#[inline(always)]
#[allow(clippy::inline_always, reason = "it must be compiled for its caller's instruction set")]
fn may_have(view: &[u8; VIEW_LEN]) -> bool {
    let (pairs, _) = view[1..=BLOCK_LEN].as_chunks::<2>();
    // The loop has no early exit, so that the compiler vectorises it.
    let begins = |pair: &[u8; 2]| u16::from(u16::from_le_bytes(*pair) & 0xfeff == 0);
    pairs.iter().fold(0, |any, pair| any | begins(pair)) != 0
}

/// Returns whether a block contains a start code.
#[inline(always)]
#[allow(clippy::inline_always, reason = "it must be compiled for its caller's instruction set")]
fn has(view: &[u8; VIEW_LEN]) -> bool {
    let begins = |n: usize| u8::from(view[n] | view[n + 1] | (view[n + 2] ^ 1) == 0);
    (0..BLOCK_LEN).fold(0, |any, n| any | begins(n)) != 0
}
