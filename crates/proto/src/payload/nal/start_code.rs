//! Searching start codes (annex B of ITU-T H.264, H.265 and H.266).

use std::sync::LazyLock;

use memchr::memmem::Finder;

/// The finder is made once: making it costs as much as searching a small packet.
static START_CODE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(&[0, 0, 1]));

/// Where each start code `00 00 01` begins in `octets`; a zero before it may belong to it too.
///
/// `memchr`'s vector search of two octets at once: about 34 GB/s on slices in the cache, 6 GB/s
/// where units have 50 octets. Its worst case, 0.44 GB/s, is nothing but start codes, which hold no
/// units to send. Loops of our own in blocks are at most as fast on slices, three times slower on
/// short units and fifteen times on zeros (`benches/start_code.rs`).
pub fn find_start_codes(octets: &[u8]) -> impl Iterator<Item = usize> {
    START_CODE.find_iter(octets)
}

/// Where the first start code begins, if there is one.
pub(super) fn find_start_code(octets: &[u8]) -> Option<usize> {
    START_CODE.find(octets)
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
            octets in prop::collection::vec(prop_oneof![4 => 0..3_u8, 1 => any::<u8>()], 0..300),
            offset in 0..40_usize,
        ) {
            let octets = &octets[offset.min(octets.len())..];
            prop_assert_eq!(find_start_codes(octets).collect::<Vec<_>>(), naive(octets));
        }
    }
}
