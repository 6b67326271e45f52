//! Conversion of RGBA8 to luma and subsampled chroma and back, for every colour [`Space`].
//!
//! Chroma that is made is sited in the centre of the pixels that share it: it is the chroma of their
//! average. Chroma that is read is interpolated between the nearest samples, by its siting.

use std::marker::PhantomData;

use crate::colour::Siting;
use crate::convert::{Loop, Rgba, SPAN};

/// The sum of the weights with which a pixel's chroma is interpolated: interpolated values have four
/// fractional bits.
pub(crate) const TAPS: i32 = 16;

/// A colour space of luma and two chroma values.
pub(crate) trait Space: Copy {
    /// Returns the luma of a pixel.
    fn luma(self, rgb: [i32; 3]) -> u8;
    /// Returns chroma `WHICH`, 0 or 1, of four pixels whose sum is given.
    fn chroma<const WHICH: usize>(self, sum: [i32; 3]) -> u8;
    /// Returns the offsets of red, green and blue from luma, with [`Space::SCALE`] fractional bits, of
    /// chroma with four fractional bits.
    fn offsets(self, chroma: [i32; 2]) -> [i32; 3];
    /// Returns a luma value with [`Space::SCALE`] fractional bits, including a half for rounding.
    fn level(self, luma: u8) -> i32;
    /// Number of fractional bits.
    const SCALE: u32;
}

#[inline(always)]
fn rgb(pixel: Rgba) -> [i32; 3] {
    [pixel[0].into(), pixel[1].into(), pixel[2].into()]
}

/// The loop that computes the luma of each pixel.
pub(crate) struct Luma<S>(PhantomData<S>);

impl<S: Space> Loop for Luma<S> {
    type Arguments<'a> = (S, &'a [Rgba], &'a mut [u8]);

    #[inline(always)]
    fn run((space, rgba, out): Self::Arguments<'_>) {
        for (to, &from) in out.iter_mut().zip(rgba) {
            *to = space.luma(rgb(from));
        }
    }
}

/// The loop that computes chroma `WHICH` of each 2×2 pixels. If rows do not share chroma, both rows
/// are the same.
///
/// The rows have an even number of pixels; the last pixel is repeated if necessary.
pub(crate) struct Chroma<S, const WHICH: usize>(PhantomData<S>);

impl<S: Space, const WHICH: usize> Loop for Chroma<S, WHICH> {
    type Arguments<'a> = (S, [&'a [Rgba]; 2], &'a mut [u8]);

    #[inline(always)]
    fn run((space, rows, out): Self::Arguments<'_>) {
        let [above, below] = rows.map(|row| row.as_chunks::<2>().0);
        for ((to, above), below) in out.iter_mut().zip(above).zip(below) {
            let four = [above[0], above[1], below[0], below[1]].map(rgb);
            let sum = [0, 1, 2].map(|at| four[0][at] + four[1][at] + four[2][at] + four[3][at]);
            *to = space.chroma::<WHICH>(sum);
        }
    }
}

/// Returns by how many rows the other chroma row lies from the nearest one of row `y`, and the weights of
/// both, in quarters.
pub(crate) fn rows(siting: Siting, y: u32) -> (i32, [u16; 2]) {
    match (siting, y % 2) {
        (Siting::TopLeft, 0) => (1, [4, 0]),
        (Siting::TopLeft, _) => (1, [2, 2]),
        (_, 0) => (-1, [3, 1]),
        (_, _) => (1, [3, 1]),
    }
}

/// One chroma plane's rows for a span: the nearest row and the other one, of equal lengths, with one
/// sample before the span's first and one after its last.
#[derive(Clone, Copy)]
pub(crate) struct ChromaRows<'a> {
    pub(crate) rows: [&'a [u8]; 2],
    /// Weights of the rows, in quarters.
    pub(crate) weights: [u16; 2],
    /// Whether `rows` begin with the sample before the first, and end with the one after the last; it
    /// is repeated at the edges of the plane.
    pub(crate) has_before: bool,
    pub(crate) has_after: bool,
    pub(crate) siting: Siting,
}

/// Interpolated chroma of the pixels of a span.
pub(crate) type Interpolated = [u16; SPAN];

/// The loop that interpolates one plane's chroma for the pixels of a span.
pub(crate) struct Interpolate;

impl Loop for Interpolate {
    type Arguments<'a> = (ChromaRows<'a>, &'a mut Interpolated);

    #[inline(always)]
    fn run((from, out): Self::Arguments<'_>) {
        // The sum of both rows: one sample before the span, its own, and one after.
        let mut mixed = [0; SPAN / 2 + 2];
        let first = usize::from(!from.has_before);
        let both = from.rows[0].iter().zip(from.rows[1]);
        for (to, (&near, &other)) in mixed[first..].iter_mut().zip(both) {
            *to = u16::from(near) * from.weights[0] + u16::from(other) * from.weights[1];
        }
        let end = (first + from.rows[0].len()).min(mixed.len());
        if !from.has_before {
            mixed[0] = mixed[1];
        }
        if !from.has_after && end < mixed.len() {
            mixed[end] = mixed[end - 1];
        }
        let windows = mixed.iter().zip(&mixed[1..]).zip(&mixed[2..]);
        let pairs = out.as_chunks_mut::<2>().0.iter_mut();
        if from.siting == Siting::Centre {
            for (to, ((&before, &own), &after)) in pairs.zip(windows) {
                *to = [3 * own + before, 3 * own + after];
            }
        } else {
            for (to, ((_, &own), &after)) in pairs.zip(windows) {
                *to = [4 * own, 2 * own + 2 * after];
            }
        }
    }
}

/// The loop that computes RGBA pixels from luma and interpolated chroma.
pub(crate) struct ToRgba<S>(PhantomData<S>);

impl<S: Space> Loop for ToRgba<S> {
    type Arguments<'a> = (S, &'a [u8], [&'a Interpolated; 2], &'a mut [Rgba]);

    #[inline(always)]
    fn run((space, luma, chroma, rgba): Self::Arguments<'_>) {
        let both = chroma[0].iter().zip(chroma[1]);
        for ((to, &luma), (&first, &second)) in rgba.iter_mut().zip(luma).zip(both) {
            let level = space.level(luma);
            let offsets = space.offsets([first.into(), second.into()]);
            let [red, green, blue] =
                offsets.map(|offset| ((level + offset) >> S::SCALE).clamp(0, 255));
            *to = [red as u8, green as u8, blue as u8, 255];
        }
    }
}

/// Converts one pixel whose neighbours have the same chroma.
#[cfg(test)]
pub(crate) fn one_pixel<S: Space>(space: S, luma: u8, chroma: [u8; 2]) -> Rgba {
    let mut pixel = [[0; 4]];
    let chroma = chroma.map(|value| [u16::from(value) * TAPS as u16; SPAN]);
    ToRgba::run((space, &[luma], [&chroma[0], &chroma[1]], &mut pixel));
    pixel[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the values at the pixels of four samples in both rows.
    fn interpolated(siting: Siting, is_cut: bool) -> Vec<u16> {
        let row = [0, 40, 80, 200];
        let rows = ChromaRows {
            rows: [&row, &row],
            weights: [3, 1],
            has_before: is_cut,
            has_after: is_cut,
            siting,
        };
        let mut out = [0; SPAN];
        Interpolate::run((rows, &mut out));
        out[..if is_cut { 4 } else { 8 }].iter().map(|value| value / TAPS as u16).collect()
    }

    #[test]
    fn chroma_is_interpolated_by_its_siting_and_repeated_at_the_edges() {
        assert_eq!(interpolated(Siting::Left, false), [0, 20, 40, 60, 80, 140, 200, 200]);
        assert_eq!(interpolated(Siting::Centre, false), [0, 10, 30, 50, 70, 110, 170, 200]);
        // Two samples inside a plane, between its others.
        assert_eq!(interpolated(Siting::Left, true), [40, 60, 80, 140]);
        assert_eq!(interpolated(Siting::Centre, true), [30, 50, 70, 110]);
    }

    #[test]
    fn rows_have_the_neighbour_on_the_side_of_the_pixel() {
        assert_eq!([0, 1].map(|y| rows(Siting::Left, y)), [(-1, [3, 1]), (1, [3, 1])]);
        assert_eq!([6, 7].map(|y| rows(Siting::TopLeft, y)), [(1, [4, 0]), (1, [2, 2])]);
    }
}
