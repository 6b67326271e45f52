//! The search at the limits of its unsafe code, in few enough steps for Miri (`.ci/miri`).

use rushes_scan::find_start_code;

#[test]
fn reads_stay_within_the_octets() {
    for len in [0_usize, 2, 3, 64, 511, 513, 640, 1100] {
        for (shift, place) in [(0, len / 2), (1, len.saturating_sub(3)), (63, 3 * len / 4)] {
            let mut octets = vec![0x42; len + shift];
            let octets = &mut octets[shift..];
            assert_eq!(find_start_code(octets), None, "{len} {shift}");
            if let Some(code) = octets.get_mut(place..place + 3) {
                code.copy_from_slice(&[0, 0, 1]);
                assert_eq!(find_start_code(octets), Some(place), "{len} {shift}");
            }
        }
    }
}
