//! Searching start codes (annex B of ITU-T H.264, H.265 and H.266).

use std::sync::LazyLock;

use memchr::memmem::Finder;

/// The finder is made once: making it costs as much as searching a small packet.
static START_CODE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(&[0, 0, 1]));

/// Octets that are looked at together: enough for the compiler's vectors to pay.
const BLOCK_LEN: usize = 256;

/// Where each start code `00 00 01` begins in `octets`; a zero before it may belong to it too.
///
/// Two steps: blocks in which no two zeros meet, which is nearly all of a slice, are passed over
/// as fast as memory delivers them; the others go to `memchr`'s search. Either alone is slower
/// somewhere: the search on slices, the blocks on zeros and short units (`benches/start_code.rs`).
pub fn find_start_codes(octets: &[u8]) -> impl Iterator<Item = usize> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let found = at + find_start_code(octets.get(at..)?)?;
        at = found + 3;
        Some(found)
    })
}

/// Where the first start code begins, if there is one.
pub(super) fn find_start_code(octets: &[u8]) -> Option<usize> {
    // A near one is found at once: units are often short.
    let near = octets.len().min(BLOCK_LEN);
    if let Some(found) = START_CODE.find(&octets[..near]) {
        return Some(found);
    }
    let mut at = near.saturating_sub(2);
    while let Some(block) = octets.get(at..).and_then(|rest| rest.first_chunk()) {
        if zeros_meet(block) {
            // With the two octets of a code that begins in the block and ends behind it.
            let end = octets.len().min(at + BLOCK_LEN + 2);
            if let Some(found) = START_CODE.find(&octets[at..end]) {
                return Some(at + found);
            }
        }
        at += BLOCK_LEN;
    }
    START_CODE.find(&octets[at..]).map(|found| at + found)
}

/// Whether two zeros stand side by side, the first of them not in the last place.
#[inline]
fn zeros_meet(block: &[u8; BLOCK_LEN + 1]) -> bool {
    // No early end, so that the compiler makes vectors of it.
    (0..BLOCK_LEN).fold(0, |any, n| any | u8::from(block[n] | block[n + 1] == 0)) != 0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn naive(octets: &[u8]) -> Vec<usize> {
        let is_start_code = |window: &[u8]| window == [0, 0, 1];
        (0..octets.len().saturating_sub(2))
            .filter(|start| is_start_code(&octets[*start..start + 3]))
            .collect()
    }

    proptest! {
        #[test]
        fn the_search_finds_what_a_loop_over_octets_finds(
            octets in prop::collection::vec(prop_oneof![2 => 0..3_u8, 3 => any::<u8>()], 0..1500),
            offset in 0..40_usize,
        ) {
            let octets = &octets[offset.min(octets.len())..];
            prop_assert_eq!(find_start_codes(octets).collect::<Vec<_>>(), naive(octets));
        }
    }
}
