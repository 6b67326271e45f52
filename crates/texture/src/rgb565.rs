//! Conversion to colours of 5, 6 and 5 bits and back, rounded to nearest.

/// Returns the 5-bit value nearest to an 8-bit value.
pub(crate) fn five_bits(octet: u8) -> u16 {
    (u16::from(octet) * 249 + 1014) >> 11
}

/// Returns the 6-bit value nearest to an 8-bit value.
pub(crate) fn six_bits(octet: u8) -> u16 {
    (u16::from(octet) * 253 + 505) >> 10
}

/// Returns the 8-bit value nearest to a 5-bit value.
pub(crate) fn from_five_bits(value: u16) -> u8 {
    ((value * 527 + 23) >> 6) as u8
}

/// Returns the 8-bit value nearest to a 6-bit value.
pub(crate) fn from_six_bits(value: u16) -> u8 {
    ((value * 259 + 33) >> 6) as u8
}

/// Returns red, green and blue of a packed colour, in their 5, 6 and 5 bits.
#[inline(always)]
#[allow(clippy::inline_always, reason = "a loop is compiled for each set only where it is inlined")]
pub(crate) fn channels(colour: u16) -> [u16; 3] {
    [colour >> 11, colour >> 5 & 0x3f, colour & 0x1f]
}

/// Returns the 8-bit values, to the nearest, of a third of the sums of three colours' channels, in loops
/// that the compiler vectorises.
#[inline(always)]
#[allow(clippy::inline_always, reason = "a loop is compiled for each set only where it is inlined")]
pub(crate) fn third([red, green, blue]: [u16; 3]) -> [u16; 3] {
    [(red * 170 + 31) / 62, (green * 170 + 63) / 126, (blue * 170 + 31) / 62]
}

/// Like [`third`], of half of the sums of two colours' channels.
#[inline(always)]
#[allow(clippy::inline_always, reason = "a loop is compiled for each set only where it is inlined")]
pub(crate) fn half([red, green, blue]: [u16; 3]) -> [u16; 3] {
    [(red * 255 + 31) / 62, (green * 255 + 63) / 126, (blue * 255 + 31) / 62]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the 8-bit colour nearest to the mean of `count` colours, given the sums of their
    /// channels.
    fn mean([red, green, blue]: [u16; 3], count: u16) -> [u8; 3] {
        let octet = |sum: u16, steps: u16| {
            let steps = u32::from(steps * count);
            ((u32::from(sum) * 510 + steps) / (2 * steps)) as u8
        };
        [octet(red, 31), octet(green, 63), octet(blue, 31)]
    }

    #[test]
    fn thirds_and_halves_are_the_nearest_to_the_mean() {
        for value in 0..=189_u16 {
            let sums = [value.min(93), value, value.min(93)];
            assert_eq!(third(sums), mean(sums, 3).map(u16::from));
            let sums = [value.min(62), value.min(126), value.min(62)];
            assert_eq!(half(sums), mean(sums, 2).map(u16::from));
        }
    }

    /// Returns the integer nearest to a quotient, which must not be halfway between two integers.
    fn nearest(dividend: u16, divisor: u16) -> u16 {
        (2 * dividend + divisor) / (2 * divisor)
    }

    #[test]
    fn every_value_is_the_nearest() {
        for octet in 0..=255 {
            let nearest = |steps| nearest(u16::from(octet) * steps, 255);
            assert_eq!([five_bits(octet), six_bits(octet)], [31, 63].map(nearest));
        }
        for value in 0..64 {
            let octet = |steps| nearest(value * 255, steps);
            assert_eq!(u16::from(from_six_bits(value)), octet(63));
            assert!(value > 31 || u16::from(from_five_bits(value)) == octet(31));
        }
    }

    #[test]
    fn the_mean_of_one_colour_is_that_colour() {
        for value in 0..64 {
            let five = value.min(31);
            let [red, green, blue] = third([five, value, five].map(|value| 3 * value));
            let octets = (from_five_bits(five).into(), from_six_bits(value).into(), red);
            assert_eq!((red, green, blue), octets);
        }
    }
}
