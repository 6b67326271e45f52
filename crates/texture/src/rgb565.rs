//! Colours of 5, 6 and 5 bits: to them and back, rounded to the nearest.

/// The 5-bit value nearest to an octet.
pub(crate) fn five_bits(octet: u8) -> u16 {
    (u16::from(octet) * 249 + 1014) >> 11
}

/// The 6-bit value nearest to an octet.
pub(crate) fn six_bits(octet: u8) -> u16 {
    (u16::from(octet) * 253 + 505) >> 10
}

/// The octet nearest to a 5-bit value.
pub(crate) fn from_five_bits(value: u16) -> u8 {
    ((value * 527 + 23) >> 6) as u8
}

/// The octet nearest to a 6-bit value.
pub(crate) fn from_six_bits(value: u16) -> u8 {
    ((value * 259 + 33) >> 6) as u8
}

/// Red, green and blue of a packed colour, in its 5, 6 and 5 bits.
pub(crate) fn channels(colour: u16) -> [u16; 3] {
    [colour >> 11, colour >> 5 & 0x3f, colour & 0x1f]
}

/// The octets nearest to the mean of so many colours, of which these are the sums.
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

    #[test]
    fn every_value_is_the_nearest() {
        for octet in 0..=255_u8 {
            let exact = f64::from(octet) / 255.0;
            assert_eq!(f64::from(five_bits(octet)), (exact * 31.0).round());
            assert_eq!(f64::from(six_bits(octet)), (exact * 63.0).round());
        }
        for value in 0..64_u16 {
            let exact = f64::from(value) * 255.0;
            assert_eq!(f64::from(from_six_bits(value)), (exact / 63.0).round());
            if value < 32 {
                assert_eq!(f64::from(from_five_bits(value)), (exact / 31.0).round());
            }
        }
    }
}
