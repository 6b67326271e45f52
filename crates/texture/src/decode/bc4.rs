//! The block of one channel.

/// The sixteen values of a block, row by row.
pub(super) fn values(block: [u8; 8]) -> [u8; 16] {
    let palette = palette(block[0], block[1]);
    let codes = u64::from_le_bytes(block) >> 16;
    let mut values = [0; 16];
    for (n, value) in values.iter_mut().enumerate() {
        *value = palette[(codes >> (3 * n) & 7) as usize];
    }
    values
}

/// The ends, then six values between them; or four, nothing and all, where the first is not greater.
fn palette(first: u8, second: u8) -> [u8; 8] {
    let between = |n: u16, parts: u16| {
        ((u16::from(first) * (parts - n) + u16::from(second) * n + 1) / parts) as u8
    };
    let seventh = |n| between(n, 7);
    let fifth = |n| between(n, 5);
    if first > second {
        let [a, b, c, d, e, f] = [1, 2, 3, 4, 5, 6].map(seventh);
        [first, second, a, b, c, d, e, f]
    } else {
        let [a, b, c, d] = [1, 2, 3, 4].map(fifth);
        [first, second, a, b, c, d, 0, 255]
    }
}
