//! Octets as hexadecimal digits, and back.

/// Two lower-case digits for each octet.
pub(super) fn write(octets: &[u8]) -> String {
    let digits = octets.iter().flat_map(|octet| [octet >> 4, octet & 15]);
    digits.filter_map(|digit| char::from_digit(u32::from(digit), 16)).collect()
}

/// The octets of exactly `2 * N` digits of either case.
pub(super) fn read<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut octets = [0; N];
    if text.len() != 2 * N || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    for (n, octet) in octets.iter_mut().enumerate() {
        *octet = u8::from_str_radix(&text[2 * n..2 * n + 2], 16).ok()?;
    }
    Some(octets)
}
