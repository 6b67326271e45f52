//! Pictures scaled down: each pixel is the average of the area that it covers.
#![allow(clippy::inline_always, reason = "a loop is compiled for AVX2 only where it is inlined")]

mod fit;
mod spans;

use std::ops::Range;

pub use fit::fitted;

use crate::colour::Siting;
use crate::convert::Loop;
use crate::dispatch::vectorised;
use crate::error::{CodecError, check_input, check_output, check_rows};
use crate::format::Format;
use crate::instruction_set::InstructionSet;
use crate::layout::Layout;

use self::spans::{ONE_BITS, Spans};

/// Scales pictures down.
///
/// Values are averaged as they are stored, alpha like the others. Chroma stays where the layout's
/// [`Colour`](crate::Colour) has it.
///
/// ```
/// use rushes_texture::{Format, Layout, Scaler};
///
/// # fn main() -> Result<(), rushes_texture::CodecError> {
/// let layout = Layout::new(Format::Rgb24, 2, 2)?;
/// let scaler = Scaler::new(layout, 1, 1)?;
/// let mut pixel = [0; 3];
/// scaler.scale(&[0, 10, 100, 20, 10, 100, 0, 10, 100, 20, 10, 200], &mut pixel)?;
/// assert_eq!(pixel, [10, 10, 125]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Scaler {
    input: Layout,
    output: Layout,
    /// The columns and the rows of each plane that the pixels of the output cover.
    planes: Vec<[Spans; 2]>,
    set: InstructionSet,
}

impl Scaler {
    /// Returns whether pictures in this format can be scaled: those without blocks, except RGB 5:6:5.
    pub fn supports(format: Format) -> bool {
        channels(format).is_some()
    }

    /// Creates a scaler of pictures to `width × height` pixels, neither of which is more than they have.
    ///
    /// # Errors
    ///
    /// [`CodecError::Unsupported`] if the format [cannot be scaled](Self::supports) or a side would grow,
    /// [`CodecError::Layout`] if one is 0.
    pub fn new(input: Layout, width: u32, height: u32) -> Result<Self, CodecError> {
        let format = input.format();
        let output = Layout::new(format, width, height)?.with_colour(input.colour());
        if !Self::supports(format) || width > input.width() || height > input.height() {
            return Err(CodecError::Unsupported { input: format, output: format });
        }
        let siting = input.colour().siting;
        let both = format.planes().iter().zip(input.planes()).zip(output.planes());
        let planes = both.map(|((plane, from), to)| {
            let is_left = plane.horizontal > 1 && siting != Siting::Centre;
            let is_top = plane.vertical > 1 && siting == Siting::TopLeft;
            let ratio = (input.width(), width);
            let columns = Spans::new(ratio, (from.width, to.width), is_left);
            [columns, Spans::new((input.height(), height), (from.height, to.height), is_top)]
        });
        Ok(Self { input, output, planes: planes.collect(), set: InstructionSet::fastest() })
    }

    /// Returns the layout of pictures.
    pub fn input(&self) -> &Layout {
        &self.input
    }

    /// Returns the layout of scaled pictures, which have the colours of those that they are made of.
    pub fn output(&self) -> &Layout {
        &self.output
    }

    /// Scales a picture into `out`.
    ///
    /// # Errors
    ///
    /// [`CodecError::Input`] or [`CodecError::Output`] if one of them has another length than its layout.
    pub fn scale(&self, picture: &[u8], out: &mut [u8]) -> Result<(), CodecError> {
        check_output(self.output.bytes(), out.len())?;
        for (plane, to) in self.output.planes().iter().enumerate() {
            let out = &mut out[to.row_range(&(0..to.rows))];
            self.scale_rows(picture, plane, 0..to.rows, out)?;
        }
        Ok(())
    }

    /// Scales the part of a picture that some rows of a plane cover, into `out`.
    ///
    /// # Errors
    ///
    /// [`CodecError::Input`] or [`CodecError::Output`] if the picture has another length than its layout or `out` than
    /// the rows; [`CodecError::Plane`] or [`CodecError::Rows`] if there is no such plane or row.
    pub fn scale_rows(
        &self,
        picture: &[u8],
        plane: usize,
        rows: Range<u32>,
        out: &mut [u8],
    ) -> Result<(), CodecError> {
        check_input(self.input.bytes(), picture.len())?;
        let planes = self.planes.len();
        let sides = self.planes.get(plane).ok_or(CodecError::Plane { plane, planes })?;
        let (from, to) = (&self.input.planes()[plane], &self.output.planes()[plane]);
        check_rows(&rows, to.rows)?;
        check_output(to.row_range(&rows).len(), out.len())?;
        let octets = &picture[from.row_range(&(0..from.rows))];
        let part = Part { row_bytes: [from.row_bytes, to.row_bytes], octets, sides, rows, out };
        match channels(self.input.format()) {
            Some(3) => vectorised::<Average<3>>(self.set, part),
            Some(4) => vectorised::<Average<4>>(self.set, part),
            _ => vectorised::<Average<1>>(self.set, part),
        }
        Ok(())
    }
}

/// Returns the octets of a pixel in each plane, of formats that have one for each value.
fn channels(format: Format) -> Option<usize> {
    match format {
        Format::Rgb24 => Some(3),
        Format::Rgba8 => Some(4),
        Format::Yuv420 | Format::Yuv422 | Format::YCoCg420 => Some(1),
        _ => None,
    }
}

/// The loop that scales rows of a plane whose pixels have `C` values.
struct Average<const C: usize>;

/// Rows of a scaled plane, and what they are made of.
struct Part<'a> {
    /// Octets in a row of the plane before and after.
    row_bytes: [usize; 2],
    /// The plane.
    octets: &'a [u8],
    /// The spans of its columns and rows.
    sides: &'a [Spans; 2],
    rows: Range<u32>,
    out: &'a mut [u8],
}

impl<const C: usize> Loop for Average<C> {
    type Arguments<'a> = Part<'a>;

    #[inline(always)]
    fn run(part: Part<'_>) {
        let Part { row_bytes: [from, to], octets, sides: [columns, spans], rows, out } = part;
        let mut sums = vec![0_u32; from];
        for (row, out) in rows.zip(out.chunks_exact_mut(to)) {
            sums.fill(0);
            let (first, weights) = spans.get(row as usize);
            let covered = octets.chunks_exact(from).skip(first);
            for (&weight, values) in weights.iter().zip(covered) {
                for (sum, &value) in sums.iter_mut().zip(values) {
                    *sum += u32::from(value) * u32::from(weight);
                }
            }
            let (pixels, out) = (sums.as_chunks::<C>().0, out.as_chunks_mut::<C>().0);
            match columns.len {
                1 => average::<C, 1>(pixels, columns, out),
                2 => average::<C, 2>(pixels, columns, out),
                3 => average::<C, 3>(pixels, columns, out),
                4 => average::<C, 4>(pixels, columns, out),
                _ => {
                    for (column, out) in out.iter_mut().enumerate() {
                        let (first, weights) = columns.get(column);
                        *out = weighted(&pixels[first..], weights);
                    }
                }
            }
        }
    }
}

/// Averages the pixels of a row, of which each of the output covers `N`.
#[inline(always)]
fn average<const C: usize, const N: usize>(
    pixels: &[[u32; C]],
    columns: &Spans,
    out: &mut [[u8; C]],
) {
    for (out, (first, weights)) in out.iter_mut().zip(columns.all::<N>()) {
        *out = weighted(&pixels[first..first + N], weights);
    }
}

/// Returns the average of pixels that are multiplied by 2<sup>12</sup>. With the weights 255 becomes less than
/// 2<sup>32</sup>.
#[inline(always)]
fn weighted<const C: usize>(pixels: &[[u32; C]], weights: &[u16]) -> [u8; C] {
    let mut sums = [1 << (2 * ONE_BITS - 1); C];
    for (pixel, &weight) in pixels.iter().zip(weights) {
        for (sum, &value) in sums.iter_mut().zip(pixel) {
            *sum += value * u32::from(weight);
        }
    }
    sums.map(|sum| (sum >> (2 * ONE_BITS)) as u8)
}

#[cfg(test)]
mod tests;
