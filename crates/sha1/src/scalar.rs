//! SHA-1 of one message, for the preparation of keys only (FIPS 180-4 section 6.1).

/// H(0) (FIPS 180-4 section 5.3.1).
pub(crate) const INITIAL: [u32; 5] =
    [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];

/// The constants of rounds 0 to 19, 20 to 39, 40 to 59, 60 to 79 (FIPS 180-4 section 4.2.1).
pub(crate) const CONSTANTS: [u32; 4] = [0x5a82_7999, 0x6ed9_eba1, 0x8f1b_bcdc, 0xca62_c1d6];

/// Returns the state after one more block.
#[allow(clippy::many_single_char_names, reason = "the standard's names")]
pub(crate) fn compress(state: [u32; 5], block: &[u8; 64]) -> [u32; 5] {
    let mut words = [0; 16];
    for (word, octets) in words.iter_mut().zip(block.as_chunks::<4>().0) {
        *word = u32::from_be_bytes(*octets);
    }
    let [mut a, mut b, mut c, mut d, mut e] = state;
    for t in 0..80 {
        if t >= 16 {
            let mixed = words[(t + 13) % 16] ^ words[(t + 8) % 16] ^ words[(t + 2) % 16];
            words[t % 16] = (mixed ^ words[t % 16]).rotate_left(1);
        }
        let function = match t / 20 {
            0 => (b & c) | (!b & d),
            2 => (b & c) | (b & d) | (c & d),
            _ => b ^ c ^ d,
        };
        let next = a
            .rotate_left(5)
            .wrapping_add(function)
            .wrapping_add(e)
            .wrapping_add(CONSTANTS[t / 20])
            .wrapping_add(words[t % 16]);
        (a, b, c, d, e) = (next, a, b.rotate_left(30), c, d);
    }
    let after = [a, b, c, d, e];
    std::array::from_fn(|n| state[n].wrapping_add(after[n]))
}

/// Returns the digest of a message.
pub(crate) fn digest(message: &[u8]) -> [u8; 20] {
    let (blocks, rest) = message.as_chunks::<64>();
    let state = blocks.iter().fold(INITIAL, compress);
    let mut end = [[0; 64]; 2];
    let count = finish(&mut end, rest, [], message.len() as u64);
    let state = end[..count].iter().fold(state, compress);
    octets(state)
}

/// Writes the last blocks of a message: its `rest`, `suffix`, the padding and the length (FIPS
/// 180-4 section 5.1.1).
///
/// `rest` must have fewer than 64 octets and `end` be all zeros; `hashed` is the number of octets
/// of the whole message. Returns the number of blocks.
pub(crate) fn finish<const SUFFIX: usize>(
    end: &mut [[u8; 64]; 2],
    rest: &[u8],
    suffix: [u8; SUFFIX],
    hashed: u64,
) -> usize {
    let marker = rest.len() + SUFFIX;
    let count = if marker < 56 { 1 } else { 2 };
    let octets = end.as_flattened_mut();
    octets[..rest.len()].copy_from_slice(rest);
    octets[rest.len()..marker].copy_from_slice(&suffix);
    octets[marker] = 0x80;
    octets[count * 64 - 8..count * 64].copy_from_slice(&(hashed * 8).to_be_bytes());
    count
}

/// Returns a state as the octets of a digest.
pub(crate) fn octets(state: [u32; 5]) -> [u8; 20] {
    let mut octets = [0; 20];
    for (octets, word) in octets.as_chunks_mut::<4>().0.iter_mut().zip(state) {
        *octets = word.to_be_bytes();
    }
    octets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_gives_the_digest_of_the_reference() {
        let message: Vec<u8> = (0..300_u32).map(|n| (n * 7) as u8).collect();
        for length in 0..=message.len() {
            let algorithm = &aws_lc_rs::digest::SHA1_FOR_LEGACY_USE_ONLY;
            let expected = aws_lc_rs::digest::digest(algorithm, &message[..length]);
            assert_eq!(digest(&message[..length]), expected.as_ref(), "{length} octets");
        }
    }
}
