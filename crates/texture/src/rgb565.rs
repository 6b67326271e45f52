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
pub(crate) fn channels(colour: u16) -> [u16; 3] {
    [colour >> 11, colour >> 5 & 0x3f, colour & 0x1f]
}

/// Returns the 8-bit colour nearest to the mean of `count` colours, given the sums of their
/// channels.
pub(crate) fn mean([red, green, blue]: [u16; 3], count: u16) -> [u8; 3] {
    let octet = |sum: u16, steps: u16| {
        let steps = u32::from(steps * count);
        ((u32::from(sum) * 510 + steps) / (2 * steps)) as u8
    };
    [octet(red, 31), octet(green, 63), octet(blue, 31)]
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let [red, green, blue] = mean([five, value, five], 1);
            assert_eq!((red, green, blue), (from_five_bits(five), from_six_bits(value), red));
        }
    }
}
