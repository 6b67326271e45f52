//! RGB to YUV and back by ITU-R BT.709, limited range: luma 16 to 235, chroma 16 to 240.

use crate::convert::planar::Colour;

/// ITU-R BT.709-6 section 3, quantised to 8 bits as in its section 4.
pub(crate) struct Bt709;

/// Returns `numerator / denominator`, rounded to 16 fractional bits.
const fn share(numerator: i64, denominator: i64) -> i32 {
    ((numerator * 65_536 + denominator / 2) / denominator) as i32
}

const RED: i32 = share(2_126 * 219, 10_000 * 255);
const BLUE: i32 = share(722 * 219, 10_000 * 255);
/// The coefficient of green compensates the rounding errors of red and blue, so that white is
/// exactly 235.
const GREEN: i32 = share(219, 255) - RED - BLUE;

const HALF_CHROMA: i32 = share(112, 255);
const CB_RED: i32 = share(2_126 * 224, 18_556 * 255);
const CR_BLUE: i32 = share(722 * 224, 15_748 * 255);

const LEVEL: i32 = share(255, 219);
const RED_OF_CR: i32 = share(15_748 * 255, 10_000 * 224);
const BLUE_OF_CB: i32 = share(18_556 * 255, 10_000 * 224);
const GREEN_OF_CB: i32 = share(722 * 18_556 * 255, 7_152 * 10_000 * 224);
const GREEN_OF_CR: i32 = share(2_126 * 15_748 * 255, 7_152 * 10_000 * 224);

impl Colour for Bt709 {
    const SCALE: u32 = 16;

    #[inline(always)]
    fn luma([red, green, blue]: [i32; 3]) -> u8 {
        ((RED * red + GREEN * green + BLUE * blue + (16 << 16) + (1 << 15)) >> 16) as u8
    }

    #[inline(always)]
    fn chroma<const WHICH: usize>([red, green, blue]: [i32; 3]) -> u8 {
        // The coefficients add up to 0, so that grey has a chroma of exactly 128.
        let value = if WHICH == 0 {
            HALF_CHROMA * blue - CB_RED * red - (HALF_CHROMA - CB_RED) * green
        } else {
            HALF_CHROMA * red - CR_BLUE * blue - (HALF_CHROMA - CR_BLUE) * green
        };
        ((value + (128 << 18) + (1 << 17)) >> 18) as u8
    }

    #[inline(always)]
    fn offsets([cb, cr]: [u8; 2]) -> [i32; 3] {
        let (cb, cr) = (i32::from(cb) - 128, i32::from(cr) - 128);
        [RED_OF_CR * cr, -GREEN_OF_CB * cb - GREEN_OF_CR * cr, BLUE_OF_CB * cb]
    }

    #[inline(always)]
    fn level(luma: u8) -> i32 {
        (i32::from(luma) - 16) * LEVEL + (1 << 15)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convert::Loop;
    use crate::convert::planar::ToRgba;

    fn yuv(rgb: [i32; 3]) -> [u8; 3] {
        let sum = rgb.map(|value| value * 4);
        [Bt709::luma(rgb), Bt709::chroma::<0>(sum), Bt709::chroma::<1>(sum)]
    }

    fn back([y, cb, cr]: [u8; 3]) -> [u8; 4] {
        let mut pixel = [[0; 4]];
        ToRgba::<Bt709>::run((&[y], [&[cb], &[cr]], &mut pixel));
        pixel[0]
    }

    #[test]
    fn primaries_have_the_values_of_bt709() {
        // The values are those of the formulas of ITU-R BT.709 in exact arithmetic, rounded.
        assert_eq!(yuv([0, 0, 0]), [16, 128, 128]);
        assert_eq!(yuv([255, 255, 255]), [235, 128, 128]);
        assert_eq!(yuv([255, 0, 0]), [63, 102, 240]);
        assert_eq!(yuv([0, 255, 0]), [173, 42, 26]);
        assert_eq!(yuv([0, 0, 255]), [32, 240, 118]);
    }

    #[test]
    fn every_value_is_that_of_the_formula() {
        for at in 0..16_i32.pow(3) {
            let rgb = [at & 15, at >> 4 & 15, at >> 8].map(|value| value * 17);
            let [red, green, blue] = rgb.map(|value| f64::from(value) / 255.0);
            let luma = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
            let wanted = [
                16.0 + 219.0 * luma,
                128.0 + 224.0 * (blue - luma) / 1.8556,
                128.0 + 224.0 * (red - luma) / 1.5748,
            ];
            for (have, want) in yuv(rgb).into_iter().zip(wanted) {
                assert!((f64::from(have) - want).abs() < 0.51, "{rgb:?}: {have}, not {want}");
            }
        }
    }

    #[test]
    fn colours_are_restored_within_two_steps_and_greys_within_one() {
        for at in 0..32_i32.pow(3) {
            let rgb = [at & 31, at >> 5 & 31, at >> 10].map(|value| value * 255 / 31);
            for (have, want) in back(yuv(rgb)).into_iter().zip(rgb) {
                assert!((i32::from(have) - want).abs() <= 2, "{rgb:?} came back with {have}");
            }
        }
        for grey in 0..=255 {
            assert!((i32::from(back(yuv([grey; 3]))[1]) - grey).abs() <= 1);
        }
    }

    #[test]
    fn values_out_of_range_end_at_black_and_white() {
        assert_eq!(back([0, 128, 128]), [0, 0, 0, 255]);
        assert_eq!(back([255, 128, 128]), [255, 255, 255, 255]);
        assert_eq!(back([235, 255, 255])[0], 255);
    }
}
