//! BC4: blocks of one channel.

/// Returns the sixteen values of a block, row by row.
pub(super) fn values(block: [u8; 8]) -> [u8; 16] {
    let palette = palette(block[0], block[1]);
    let codes = u64::from_le_bytes(block) >> 16;
    let mut values = [0; 16];
    for (n, value) in values.iter_mut().enumerate() {
        *value = palette[(codes >> (3 * n) & 7) as usize];
    }
    values
}

/// Returns both ends and six values between them or, if the first end is not greater, four values
/// between them, 0 and 255.
fn palette(first: u8, second: u8) -> [u8; 8] {
    let between = |n: u16, parts: u16| {
        ((u16::from(first) * (parts - n) + u16::from(second) * n + 1) / parts) as u8
    };
    let mut palette = [first, second, 0, 0, 0, 0, 0, 255];
    let (values, parts) = if first > second { (6, 7) } else { (4, 5) };
    for (value, n) in palette[2..2 + values].iter_mut().zip(1..) {
        *value = between(n, parts);
    }
    palette
}
