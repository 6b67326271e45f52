//! The search, compared with a loop over octets.

use proptest::prelude::*;
use rushes_scan::find_start_code;

fn naive(octets: &[u8]) -> Option<usize> {
    octets.windows(3).position(|window| window == [0, 0, 1])
}

#[test]
fn one_start_code_is_found_wherever_it_begins() {
    for fill in [0x42, 0, 1] {
        for len in [3, 4, 300, 511, 512, 513, 576, 577, 1100, 1600] {
            let mut octets = vec![fill; len + 64];
            for start in (0..=len - 3).filter(|start| len < 1000 || *start > 400) {
                for shift in [0, 1, 2, 63] {
                    octets.fill(fill);
                    octets[shift..shift + len][start..start + 3].copy_from_slice(&[0, 0, 1]);
                    let octets = &octets[shift..shift + len];
                    assert_eq!(find_start_code(octets), naive(octets), "{fill} {len} {start}");
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn the_search_finds_what_a_loop_over_octets_finds(
        octets in prop::collection::vec(prop_oneof![2 => 0..3_u8, 3 => any::<u8>()], 0..3000),
        offset in 0..70_usize,
    ) {
        let mut octets = &octets[offset.min(octets.len())..];
        while let Some(found) = find_start_code(octets) {
            prop_assert_eq!(Some(found), naive(octets));
            octets = &octets[found + 3..];
        }
        prop_assert_eq!(naive(octets), None);
    }

    #[test]
    fn zeros_without_a_one_are_no_start_code(
        octets in prop::collection::vec(prop_oneof![9 => Just(0_u8), 1 => 2..=255_u8], 0..3000),
    ) {
        prop_assert_eq!(find_start_code(&octets), None);
    }
}
