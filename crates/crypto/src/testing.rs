//! Helpers for the tests of this module: octets from hexadecimal digits, deterministic entropy.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

/// Returns the octets that `digits` denote.
pub(crate) fn octets(digits: &str) -> Vec<u8> {
    let pairs = (0..digits.len()).step_by(2);
    pairs.map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}

/// Returns a source of octets that count upwards from `start`, over all calls.
pub(crate) fn counting(start: u8) -> impl FnMut(&mut [u8]) {
    let mut next = start;
    move |out| {
        for octet in out {
            *octet = next;
            next = next.wrapping_add(1);
        }
    }
}

/// Returns a source of the same octets at every call, truncated to the requested length.
pub(crate) fn fixed(octets: Vec<u8>) -> impl FnMut(&mut [u8]) {
    move |out| out.copy_from_slice(&octets[..out.len()])
}

#[allow(dead_code, reason = "for the tests of `rushes-zrtp`, which share this file")]
/// Returns a source of the octets of a small generator (`SplitMix64`) with `seed`.
pub(crate) fn random(mut seed: u64) -> impl FnMut(&mut [u8]) {
    move |out| {
        for octet in out {
            seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            *octet = (mixed >> 56) as u8;
        }
    }
}
