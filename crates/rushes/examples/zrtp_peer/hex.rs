//! Octets as hexadecimal digits.

use std::fmt::Write as _;

/// Formats each octet as two digits.
pub(crate) fn encode(octets: &[u8]) -> String {
    octets.iter().fold(String::new(), |mut digits, octet| {
        let _ = write!(digits, "{octet:02x}");
        digits
    })
}

/// Parses `digits`; returns `None` if they are not pairs of hexadecimal digits.
pub(crate) fn decode(digits: &str) -> Option<Vec<u8>> {
    let nibbles: Option<Vec<u32>> = digits.chars().map(|digit| digit.to_digit(16)).collect();
    let nibbles = nibbles.filter(|nibbles| nibbles.len() % 2 == 0)?;
    Some(nibbles.chunks_exact(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect())
}

/// Decodes exactly `N` octets.
pub(crate) fn decode_array<const N: usize>(digits: &str) -> Option<[u8; N]> {
    decode(digits)?.try_into().ok()
}
