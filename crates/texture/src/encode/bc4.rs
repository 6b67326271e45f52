//! BC4: blocks of one channel, with two ends and sixteen 3-bit indices between them.

/// The codes of the eight levels from the least to the greatest.
const CODES: [u8; 8] = [1, 7, 6, 5, 4, 3, 2, 0];

/// Encodes sixteen values; both ends move inwards by their distance shifted right by `inset`.
pub(super) fn block(values: &[u8; 16], inset: u32) -> [u8; 8] {
    let (least, greatest) =
        values.iter().fold((255, 0), |(low, high), &value| (value.min(low), value.max(high)));
    let inset = u8::try_from(u32::from(greatest - least) >> inset).unwrap_or(0);
    let (least, greatest) = (least + inset, greatest - inset);
    let scale = levels_per_step(greatest - least);
    let mut codes = 0;
    for &value in values.iter().rev() {
        let place = (u32::from(value.saturating_sub(least)) * scale) >> 8;
        let level = (place + 16) >> 5;
        codes = (codes << 3) | u64::from(CODES[level as usize & 7]);
    }
    let [_, _, codes @ ..] = (codes << 16).to_le_bytes();
    let mut block = [greatest, least, 0, 0, 0, 0, 0, 0];
    block[2..].copy_from_slice(&codes);
    block
}

/// Levels per step of a range, times 2¹³.
fn levels_per_step(range: u8) -> u32 {
    // The vector code computes the same quotient with floating-point numbers and rounds it equally.
    let range = u32::from(range.max(1));
    (2 * 57_344 + range) / (2 * range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_the_nearest_within_a_fiftieth() {
        for range in 1..=255_u8 {
            for value in 0..=range {
                let level = u32::from(value) * levels_per_step(range) / 256;
                let exact = f64::from(value) * 7.0 / f64::from(range);
                assert!((f64::from(level) / 32.0 - exact).abs() < 0.05, "{value} of {range}");
            }
        }
    }

    #[test]
    fn the_ends_have_the_first_two_codes() {
        let mut values = [200; 16];
        values[0] = 10;
        assert_eq!(block(&values, 8), [200, 10, 1, 0, 0, 0, 0, 0]);
    }
}
