//! Which blocks are passed over.

/// Octets that are looked at together: enough for the compiler's vectors to pay.
pub(crate) const BLOCK_LEN: usize = 512;

/// Octets of a block with its neighbours: the last one before it, and the first behind it.
const VIEW_LEN: usize = BLOCK_LEN + 2;

/// How many whole blocks there are before the first with a start code: one that begins at the octet
/// before it at the earliest, and at its last but one at the latest. The first block begins at the
/// second octet of `octets`.
#[inline(always)]
#[allow(clippy::inline_always, reason = "it is compiled for the vectors of its caller")]
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

/// Whether there may be a start code in a block: of its octets in pairs, one pair is what any start
/// code has at its beginning, `00 00`, or, where it begins in the middle of a pair, at its end, `00 01`.
#[inline(always)]
#[allow(clippy::inline_always, reason = "it is compiled for the vectors of its caller")]
fn may_have(view: &[u8; VIEW_LEN]) -> bool {
    let (pairs, _) = view[1..=BLOCK_LEN].as_chunks::<2>();
    // No early end, so that the compiler makes vectors of it.
    let begins = |pair: &[u8; 2]| u16::from(u16::from_le_bytes(*pair) & 0xfeff == 0);
    pairs.iter().fold(0, |any, pair| any | begins(pair)) != 0
}

/// Whether there is one.
#[inline(always)]
#[allow(clippy::inline_always, reason = "it is compiled for the vectors of its caller")]
fn has(view: &[u8; VIEW_LEN]) -> bool {
    let begins = |n: usize| u8::from(view[n] | view[n + 1] | (view[n + 2] ^ 1) == 0);
    (0..BLOCK_LEN).fold(0, |any, n| any | begins(n)) != 0
}
