//! BC4: blocks of one channel, with two ends and sixteen 3-bit indices between them.

use crate::encode::fit::Fit;

/// The codes of the eight levels from the least to the greatest.
const CODES: [u8; 8] = [1, 7, 6, 5, 4, 3, 2, 0];

/// The shift that moves ends inwards by a 32nd of their distance before they are fitted.
const INSET: u32 = 5;

/// Encodes sixteen values with their extremes as ends.
pub(super) fn block(values: &[u8; 16]) -> [u8; 8] {
    let ends = extremes(values);
    coded(levels(values, ends), ends)
}

/// Encodes sixteen values with ends of least squared error for the levels that they have between their
/// extremes, moved inwards. The levels stay: to round again to those between the new ends would gain
/// 0.06 dB, and take a tenth longer.
pub(super) fn fitted(values: &[u8; 16]) -> [u8; 8] {
    let [least, greatest] = extremes(values);
    let inset = (greatest - least) >> INSET;
    let levels = levels(values, [least + inset, greatest - inset]);
    let fit = Fit::of(values.map(i32::from), levels.map(i32::from));
    let end = |level| ((fit.at(level) + 1024) >> 11).clamp(0, 255).cast_unsigned() as u8;
    coded(levels, [end(0), end(7)])
}

fn extremes(values: &[u8; 16]) -> [u8; 2] {
    values.iter().fold([255, 0], |[low, high], &value| [value.min(low), value.max(high)])
}

/// Returns the level nearest to each value, from 0 to 7.
fn levels(values: &[u8; 16], [least, greatest]: [u8; 2]) -> [u8; 16] {
    let scale = levels_per_step(greatest - least);
    values.map(|value| {
        let place = (u32::from(value.saturating_sub(least)) * scale) >> 8;
        ((place + 16) >> 5) as u8
    })
}

/// Returns the block of these levels and ends.
fn coded(levels: [u8; 16], [least, greatest]: [u8; 2]) -> [u8; 8] {
    let mut codes = 0;
    for level in levels.into_iter().rev() {
        codes = (codes << 3) | u64::from(CODES[usize::from(level & 7)]);
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
    fn fitted_ends_have_eight_levels_between_them() {
        // Blocks whose ends meet have 0 and 255 among their levels.
        for range in 1..=8_u32 {
            for seed in 0..20_000_u32 {
                let noise =
                    |n: usize| seed.wrapping_mul(0x9e37_79b9).rotate_left(2 * n as u32) >> 8;
                let mut values = std::array::from_fn(|n| (100 + noise(n) % (range + 1)) as u8);
                (values[0], values[1]) = (100, 100 + range as u8);
                let [greatest, least, ..] = fitted(&values);
                assert!(greatest > least, "{values:?}");
            }
        }
    }

    #[test]
    fn the_ends_have_the_first_two_codes() {
        let mut values = [200; 16];
        values[0] = 10;
        assert_eq!(block(&values), [200, 10, 1, 0, 0, 0, 0, 0]);
    }
}
