//! Finds start codes (annex B of ITU-T H.264, H.265 and H.266).

use rushes_scan::find_start_code;

/// Returns the offset of each start code `00 00 01` in `octets`; a zero before it may belong to it.
pub fn find_start_codes(octets: &[u8]) -> impl Iterator<Item = usize> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let found = at + find_start_code(octets.get(at..)?)?;
        at = found + 3;
        Some(found)
    })
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
