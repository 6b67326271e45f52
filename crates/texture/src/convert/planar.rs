//! Conversion of RGBA8 to luma and subsampled chroma and back, for every [`Colour`].
//!
//! Chroma is sited in the centre of the pixels that share it, as in JPEG and MPEG-1: it is the
//! chroma of their average. Upsampling repeats it for each of these pixels, which is the exact
//! inverse if they were equal.

use std::marker::PhantomData;

use crate::convert::{Loop, Rgba};

/// A colour space of luma and two chroma values.
pub(crate) trait Colour {
    /// Returns the luma of a pixel.
    fn luma(rgb: [i32; 3]) -> u8;
    /// Returns chroma `WHICH`, 0 or 1, of four pixels whose sum is given.
    fn chroma<const WHICH: usize>(sum: [i32; 3]) -> u8;
    /// Returns the offsets of red, green and blue from luma, with [`Colour::SCALE`] fractional
    /// bits.
    fn offsets(chroma: [u8; 2]) -> [i32; 3];
    /// Returns a luma value with [`Colour::SCALE`] fractional bits, including a half for rounding.
    fn level(luma: u8) -> i32;
    /// Number of fractional bits.
    const SCALE: u32;
}

#[inline(always)]
fn rgb(pixel: Rgba) -> [i32; 3] {
    [pixel[0].into(), pixel[1].into(), pixel[2].into()]
}

/// The loop that computes the luma of each pixel.
pub(crate) struct Luma<C>(PhantomData<C>);

impl<C: Colour> Loop for Luma<C> {
    type Arguments<'a> = (&'a [Rgba], &'a mut [u8]);

    #[inline(always)]
    fn run((rgba, out): Self::Arguments<'_>) {
        for (to, &from) in out.iter_mut().zip(rgba) {
            *to = C::luma(rgb(from));
        }
    }
}

/// The loop that computes chroma `WHICH` of each 2×2 pixels. If rows do not share chroma, both rows
/// are the same.
///
/// The rows have an even number of pixels; the last pixel is repeated if necessary.
pub(crate) struct Chroma<C, const WHICH: usize>(PhantomData<C>);

impl<C: Colour, const WHICH: usize> Loop for Chroma<C, WHICH> {
    type Arguments<'a> = ([&'a [Rgba]; 2], &'a mut [u8]);

    #[inline(always)]
    fn run((rows, out): Self::Arguments<'_>) {
        let [above, below] = rows.map(|row| row.as_chunks::<2>().0);
        for ((to, above), below) in out.iter_mut().zip(above).zip(below) {
            let four = [above[0], above[1], below[0], below[1]].map(rgb);
            let sum = [0, 1, 2].map(|at| four[0][at] + four[1][at] + four[2][at] + four[3][at]);
            *to = C::chroma::<WHICH>(sum);
        }
    }
}

/// The loop that computes RGBA pixels from a luma row, which begins with a whole pair of pixels,
/// and its chroma rows.
pub(crate) struct ToRgba<C>(PhantomData<C>);

impl<C: Colour> Loop for ToRgba<C> {
    type Arguments<'a> = (&'a [u8], [&'a [u8]; 2], &'a mut [Rgba]);

    #[inline(always)]
    fn run((luma, chroma, rgba): Self::Arguments<'_>) {
        let (pairs, odd) = luma.as_chunks::<2>();
        let (pair_pixels, odd_pixels) = rgba.as_chunks_mut::<2>();
        let both = chroma[0].iter().zip(chroma[1]);
        for ((to, from), (&first, &second)) in pair_pixels.iter_mut().zip(pairs).zip(both) {
            let offsets = C::offsets([first, second]);
            *to = [pixel::<C>(from[0], offsets), pixel::<C>(from[1], offsets)];
        }
        let last = [chroma[0], chroma[1]].map(|plane| plane.last().copied().unwrap_or(128));
        for (to, &luma) in odd_pixels.iter_mut().zip(odd) {
            *to = pixel::<C>(luma, C::offsets(last));
        }
    }
}

#[inline(always)]
fn pixel<C: Colour>(luma: u8, offsets: [i32; 3]) -> Rgba {
    let level = C::level(luma);
    let [red, green, blue] = offsets.map(|offset| ((level + offset) >> C::SCALE).clamp(0, 255));
    [red as u8, green as u8, blue as u8, 255]
}
