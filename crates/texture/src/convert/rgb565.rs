//! RGBA8 to RGB565 and back: rounded to the nearest, and widened by repeating the upper bits.

use crate::convert::{Loop, Rgba};
use crate::rgb565;

#[inline(always)]
fn word(pixel: Rgba) -> u16 {
    let [red, green, blue, _] = pixel;
    rgb565::five_bits(red) << 11 | rgb565::six_bits(green) << 5 | rgb565::five_bits(blue)
}

#[inline(always)]
fn pixel(word: u16) -> Rgba {
    let (red, green, blue) = (word >> 11, word >> 5 & 63, word & 31);
    [
        (red << 3 | red >> 2) as u8,
        (green << 2 | green >> 4) as u8,
        (blue << 3 | blue >> 2) as u8,
        255,
    ]
}

/// The loop that widens little-endian words to RGBA8 with an alpha of 255.
pub(crate) enum Expand {}

impl Loop for Expand {
    type Arguments<'a> = (&'a [u8], &'a mut [Rgba]);

    #[inline(always)]
    fn run((words, rgba): Self::Arguments<'_>) {
        for (to, from) in rgba.iter_mut().zip(words.as_chunks::<2>().0) {
            *to = pixel(u16::from_le_bytes(*from));
        }
    }
}

/// The loop that rounds to little-endian words and omits the alpha.
pub(crate) enum Pack {}

impl Loop for Pack {
    type Arguments<'a> = (&'a [Rgba], &'a mut [u8]);

    #[inline(always)]
    fn run((rgba, words): Self::Arguments<'_>) {
        for (to, from) in words.as_chunks_mut::<2>().0.iter_mut().zip(rgba) {
            *to = word(*from).to_le_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primaries_fill_their_own_bits() {
        let mut words = [0; 8];
        Pack::run((&[[255, 0, 0, 9], [0, 255, 0, 9], [0, 0, 255, 9], [255; 4]], &mut words));
        assert_eq!(words, [0x00, 0xf8, 0xe0, 0x07, 0x1f, 0x00, 0xff, 0xff]);
    }

    #[test]
    fn every_word_is_restored_exactly() {
        for value in 0..=u16::MAX {
            assert_eq!(word(pixel(value)), value);
        }
    }

    #[test]
    fn no_value_moves_further_than_half_a_step() {
        for value in 0..=255_u8 {
            let back = pixel(word([value; 4]));
            for (channel, most) in [(0, 4), (1, 2), (2, 4)] {
                assert!(back[channel].abs_diff(value) <= most, "{value} to {}", back[channel]);
            }
        }
    }
}
