//! RGB to YCoCg and back by additions and shifts: luma and two chroma values around 128.

use crate::convert::planar::Colour;

/// `Y = (R + 2G + B) / 4`, `Co = (R - B) / 2 + 128`, `Cg = (2G - R - B) / 4 + 128`.
///
/// Full range, 8 bits each, as in the YCoCg of van Waveren and Castaño, 2007.
pub(crate) struct YCoCg;

impl Colour for YCoCg {
    const SCALE: u32 = 0;

    #[inline(always)]
    fn luma([red, green, blue]: [i32; 3]) -> u8 {
        ((red + 2 * green + blue + 2) >> 2) as u8
    }

    #[inline(always)]
    fn chroma<const WHICH: usize>([red, green, blue]: [i32; 3]) -> u8 {
        let value = if WHICH == 0 {
            (red - blue + (128 << 3) + 4) >> 3
        } else {
            (2 * green - red - blue + (128 << 4) + 8) >> 4
        };
        // Pure red has a Co of 255.5, which rounds to 256.
        value.min(255) as u8
    }

    #[inline(always)]
    fn offsets([orange, green]: [u8; 2]) -> [i32; 3] {
        let (orange, green) = (i32::from(orange) - 128, i32::from(green) - 128);
        [orange - green, green, -orange - green]
    }

    #[inline(always)]
    fn level(luma: u8) -> i32 {
        luma.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convert::Loop;
    use crate::convert::planar::ToRgba;

    fn ycocg(rgb: [i32; 3]) -> [u8; 3] {
        let sum = rgb.map(|value| value * 4);
        [YCoCg::luma(rgb), YCoCg::chroma::<0>(sum), YCoCg::chroma::<1>(sum)]
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
            let mut pixel = [[0; 4]];
            ToRgba::<YCoCg>::run((&[luma], [&[orange], &[green]], &mut pixel));
            let most = if rgb[0] == rgb[1] && rgb[1] == rgb[2] { 0 } else { 2 };
            for (have, want) in pixel[0].into_iter().zip(rgb) {
                assert!((i32::from(have) - want).abs() <= most, "{rgb:?} came back with {have}");
            }
        }
    }
}
