//! RGB to YUV and back, by the matrix and the range of a [`Colour`](crate::Colour).

use crate::colour::{Colour, Factors, InverseFactors};
use crate::convert::planar::{Space, TAPS};

/// The factors of a matrix and a range, in both directions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Yuv {
    to_rgb: Factors,
    of_rgb: InverseFactors,
}

impl Yuv {
    pub(crate) fn new(colour: Colour) -> Self {
        Self { to_rgb: colour.factors(), of_rgb: colour.inverse_factors() }
    }
}

impl Space for Yuv {
    // Chroma values have four fractional bits, and factors sixteen.
    const SCALE: u32 = 20;

    #[inline(always)]
    fn luma(self, [red, green, blue]: [i32; 3]) -> u8 {
        let of = self.of_rgb;
        let sum = of.red * red + of.green * green + of.blue * blue;
        ((sum + (of.black << 16) + (1 << 15)) >> 16) as u8
    }

    #[inline(always)]
    fn chroma<const WHICH: usize>(self, [red, green, blue]: [i32; 3]) -> u8 {
        let of = self.of_rgb;
        // The factors add up to 0, so that grey has a chroma of exactly 128.
        let value = if WHICH == 0 {
            of.half_chroma * blue - of.cb_red * red - (of.half_chroma - of.cb_red) * green
        } else {
            of.half_chroma * red - of.cr_blue * blue - (of.half_chroma - of.cr_blue) * green
        };
        // In full range, pure blue has a Cb of 255.5, which rounds to 256.
        ((value + (128 << 18) + (1 << 17)) >> 18).min(255) as u8
    }

    #[inline(always)]
    fn offsets(self, [cb, cr]: [i32; 2]) -> [i32; 3] {
        let (cb, cr, to) = (cb - 128 * TAPS, cr - 128 * TAPS, self.to_rgb);
        [to.red_of_cr * cr, -to.green_of_cb * cb - to.green_of_cr * cr, to.blue_of_cb * cb]
    }

    #[inline(always)]
    fn level(self, luma: u8) -> i32 {
        ((i32::from(luma) - self.to_rgb.black) * self.to_rgb.luma + (1 << 15)) * TAPS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::colour::{ColourRange, Matrix};
    use crate::convert::planar::one_pixel;

    const MATRICES: [(Matrix, [f64; 2]); 3] = [
        (Matrix::Bt601, [0.299, 0.114]),
        (Matrix::Bt709, [0.2126, 0.0722]),
        (Matrix::Bt2020, [0.2627, 0.0593]),
    ];

    fn space(matrix: Matrix, range: ColourRange) -> Yuv {
        Yuv::new(Colour { matrix, range, ..Colour::default() })
    }

    fn yuv(space: Yuv, rgb: [i32; 3]) -> [u8; 3] {
        let sum = rgb.map(|value| value * 4);
        [space.luma(rgb), space.chroma::<0>(sum), space.chroma::<1>(sum)]
    }

    fn back(space: Yuv, [y, cb, cr]: [u8; 3]) -> [u8; 4] {
        one_pixel(space, y, [cb, cr])
    }

    #[test]
    fn primaries_have_the_values_of_bt709() {
        // The values are those of the formulas of ITU-R BT.709 in exact arithmetic, rounded.
        let bt709 = space(Matrix::Bt709, ColourRange::Limited);
        assert_eq!(yuv(bt709, [0, 0, 0]), [16, 128, 128]);
        assert_eq!(yuv(bt709, [255, 255, 255]), [235, 128, 128]);
        assert_eq!(yuv(bt709, [255, 0, 0]), [63, 102, 240]);
        assert_eq!(yuv(bt709, [0, 255, 0]), [173, 42, 26]);
        assert_eq!(yuv(bt709, [0, 0, 255]), [32, 240, 118]);
    }

    #[test]
    fn every_value_is_that_of_the_formula() {
        for (matrix, [of_red, of_blue]) in MATRICES {
            for (range, [black, luma_steps, chroma_steps]) in [
                (ColourRange::Limited, [16.0, 219.0, 224.0]),
                (ColourRange::Full, [0.0, 255.0, 255.0]),
            ] {
                for at in 0..16_i32.pow(3) {
                    let rgb = [at & 15, at >> 4 & 15, at >> 8].map(|value| value * 17);
                    let [red, green, blue] = rgb.map(|value| f64::from(value) / 255.0);
                    let luma = of_red * red + (1.0 - of_red - of_blue) * green + of_blue * blue;
                    let chroma = |colour: f64, share: f64| {
                        let value = chroma_steps * (colour - luma) / (2.0 - 2.0 * share);
                        (128.0 + value).min(255.0)
                    };
                    let wanted =
                        [black + luma_steps * luma, chroma(blue, of_blue), chroma(red, of_red)];
                    for (have, want) in yuv(space(matrix, range), rgb).into_iter().zip(wanted) {
                        let error = (f64::from(have) - want).abs();
                        assert!(error < 0.51, "{matrix} {range} {rgb:?}: {have}, not {want}");
                    }
                }
            }
        }
    }

    #[test]
    fn colours_are_restored_within_two_steps_and_greys_within_one() {
        for (matrix, _) in MATRICES {
            for range in [ColourRange::Limited, ColourRange::Full] {
                let space = space(matrix, range);
                for at in 0..32_i32.pow(3) {
                    let rgb = [at & 31, at >> 5 & 31, at >> 10].map(|value| value * 255 / 31);
                    for (have, want) in back(space, yuv(space, rgb)).into_iter().zip(rgb) {
                        let error = (i32::from(have) - want).abs();
                        assert!(error <= 2, "{matrix} {range} {rgb:?} came back with {have}");
                    }
                }
                for grey in 0..=255 {
                    let have = back(space, yuv(space, [grey; 3]))[1];
                    assert!((i32::from(have) - grey).abs() <= 1);
                }
            }
        }
    }

    #[test]
    fn values_out_of_range_end_at_black_and_white() {
        for (matrix, _) in MATRICES {
            let space = space(matrix, ColourRange::Limited);
            assert_eq!(back(space, [0, 128, 128]), [0, 0, 0, 255]);
            assert_eq!(back(space, [255, 128, 128]), [255, 255, 255, 255]);
            assert_eq!(back(space, [235, 255, 255])[0], 255);
        }
    }
}
