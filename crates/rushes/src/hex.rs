//! Hexadecimal encoding and decoding.

/// Formats each octet as two lower-case digits.
pub(super) fn write(octets: &[u8]) -> String {
    let mut text = String::with_capacity(2 * octets.len());
    push(octets, &mut text);
    text
}

/// Appends two lower-case digits for each octet. If they are secret, `text` must have the capacity:
/// a string that grows leaves its old contents in memory.
pub(super) fn push(octets: &[u8], text: &mut String) {
    let digits = octets.iter().flat_map(|octet| [octet >> 4, octet & 15]);
    text.extend(digits.filter_map(|digit| char::from_digit(u32::from(digit), 16)));
}

/// Parses exactly `2 * N` digits of either case.
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
