//! RGB to YCoCg and back by additions and shifts: luma and two chroma values around 128.

use crate::convert::planar::{Space, TAPS};

/// `Y = (R + 2G + B) / 4`, `Co = (R - B) / 2 + 128`, `Cg = (2G - R - B) / 4 + 128`.
///
/// Full range, 8 bits each, as in the YCoCg of van Waveren and Castaño, 2007.
#[derive(Clone, Copy, Debug)]
pub(crate) struct YCoCg;

impl Space for YCoCg {
    // Chroma values have four fractional bits.
    const SCALE: u32 = 4;

    #[inline(always)]
    fn luma(self, [red, green, blue]: [i32; 3]) -> u8 {
        ((red + 2 * green + blue + 2) >> 2) as u8
    }

    #[inline(always)]
    fn chroma<const WHICH: usize>(self, [red, green, blue]: [i32; 3]) -> u8 {
        let value = if WHICH == 0 {
            (red - blue + (128 << 3) + 4) >> 3
        } else {
            (2 * green - red - blue + (128 << 4) + 8) >> 4
        };
        // Pure red has a Co of 255.5, which rounds to 256.
        value.min(255) as u8
    }

    #[inline(always)]
    fn offsets(self, [orange, green]: [i32; 2]) -> [i32; 3] {
        let (orange, green) = (orange - 128 * TAPS, green - 128 * TAPS);
        [orange - green, green, -orange - green]
    }

    #[inline(always)]
    fn level(self, luma: u8) -> i32 {
        i32::from(luma) * TAPS + TAPS / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convert::planar::one_pixel;

    fn ycocg(rgb: [i32; 3]) -> [u8; 3] {
        let sum = rgb.map(|value| value * 4);
        [YCoCg.luma(rgb), YCoCg.chroma::<0>(sum), YCoCg.chroma::<1>(sum)]
    }

    #[test]
    fn primaries_have_the_values_of_the_formula() {
        assert_eq!(ycocg([0, 0, 0]), [0, 128, 128]);
        assert_eq!(ycocg([255, 255, 255]), [255, 128, 128]);
        assert_eq!(ycocg([255, 0, 0]), [64, 255, 64]);
        assert_eq!(ycocg([0, 255, 0]), [128, 128, 255]);
        assert_eq!(ycocg([0, 0, 255]), [64, 1, 64]);
    }

    #[test]
    fn colours_are_restored_within_two_steps_and_greys_exactly() {
        for at in 0..32_i32.pow(3) {
            let rgb = [at & 31, at >> 5 & 31, at >> 10].map(|value| value * 255 / 31);
            let [luma, orange, green] = ycocg(rgb);
            let pixel = one_pixel(YCoCg, luma, [orange, green]);
            let most = if rgb[0] == rgb[1] && rgb[1] == rgb[2] { 0 } else { 2 };
            for (have, want) in pixel.into_iter().zip(rgb) {
                assert!((i32::from(have) - want).abs() <= most, "{rgb:?} came back with {have}");
            }
        }
    }
}
