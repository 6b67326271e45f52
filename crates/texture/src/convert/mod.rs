//! Conversion of raw formats to and from RGBA8, the common format of encoders and decoders.
//!
//! All functions work on spans, which are pixels of one row that stay in the first-level cache.
#![allow(clippy::inline_always, reason = "a loop is compiled for AVX2 only where it is inlined")]
#![allow(clippy::cast_sign_loss, reason = "values are clamped, or bounded by their weights")]

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
mod planar;
mod rgb24;
mod rgb565;
mod ycocg;
mod yuv;

pub(crate) use ycocg::YCoCg;
pub(crate) use yuv::Bt709;

use crate::InstructionSet;
use crate::convert::planar::Colour;
use crate::dispatch::vectorised;
use crate::format::Format;
use crate::layout::Layout;

/// Red, green, blue and alpha.
pub(crate) type Rgba = [u8; 4];

/// Pixels of a span on the stack: a multiple of 4, the width of blocks.
pub(crate) const SPAN: usize = 256;

/// A loop over pixels that is compiled for several instruction sets.
pub(crate) trait Loop {
    /// The input and output.
    type Arguments<'a>;

    /// Runs to the end of the shortest slice. It must always be inlined, to be compiled for each
    /// set.
    fn run(arguments: Self::Arguments<'_>);
}

/// Returns whether a format consists of individual, uncompressed pixels.
pub(crate) fn is_raw(format: Format) -> bool {
    use Format::{Rgb24, Rgb565, Rgba8, YCoCg420, Yuv420, Yuv422};
    matches!(format, Rgb24 | Rgba8 | Rgb565 | Yuv420 | Yuv422 | YCoCg420)
}

/// A raw picture that is read as if its edge pixels repeated endlessly.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Picture<'a> {
    layout: &'a Layout,
    octets: &'a [u8],
    set: InstructionSet,
}

impl<'a> Picture<'a> {
    /// Wraps `octets`, which must have the length of the layout; its format must be raw.
    pub(crate) fn new(layout: &'a Layout, octets: &'a [u8], set: InstructionSet) -> Self {
        Self { layout, octets, set }
    }

    /// Fills a span with the pixels of row `y` from `x` on, which must be even and inside the
    /// picture.
    ///
    /// Pixels to the right of the picture or below it repeat the nearest pixel inside.
    pub(crate) fn read(&self, x: usize, y: u32, span: &mut [Rgba]) {
        let y = y.min(self.layout.height() - 1);
        let inside = span.len().min(self.layout.width() as usize - x);
        let (seen, beyond) = span.split_at_mut(inside);
        self.read_inside(x, y, seen);
        if let Some(&last) = seen.last() {
            beyond.fill(last);
        }
    }

    fn read_inside(&self, x: usize, y: u32, span: &mut [Rgba]) {
        let pixels = span.len();
        let packed = |bytes: usize| self.row(0, y, x * bytes, pixels * bytes);
        match self.layout.format() {
            Format::Rgba8 => span.as_flattened_mut().copy_from_slice(packed(4)),
            Format::Rgb565 => vectorised::<rgb565::Expand>(self.set, (packed(2), span)),
            Format::Yuv420 => self.read_planar::<Bt709>((x, y), y / 2, span),
            Format::Yuv422 => self.read_planar::<Bt709>((x, y), y, span),
            Format::YCoCg420 => self.read_planar::<YCoCg>((x, y), y / 2, span),
            _ => rgb24::expand(self.set, packed(3), span),
        }
    }

    fn read_planar<C: Colour>(&self, at: (usize, u32), chroma_row: u32, span: &mut [Rgba]) {
        let (x, y) = at;
        let luma = self.row(0, y, x, span.len());
        let chroma = [1, 2].map(|at| self.row(at, chroma_row, x / 2, span.len().div_ceil(2)));
        vectorised::<planar::ToRgba<C>>(self.set, (luma, chroma, span));
    }

    fn row(&self, plane: usize, row: u32, at: usize, bytes: usize) -> &'a [u8] {
        let start = self.layout.planes()[plane].row_range(&(row..row)).start + at;
        &self.octets[start..start + bytes]
    }
}

/// Writes a span in a raw format of one plane: RGB24, RGBA8 or RGB565.
pub(crate) fn write(set: InstructionSet, format: Format, span: &[Rgba], out: &mut [u8]) {
    match format {
        Format::Rgba8 => out.copy_from_slice(span.as_flattened()),
        Format::Rgb565 => vectorised::<rgb565::Pack>(set, (span, out)),
        _ => vectorised::<rgb24::Pack>(set, (span, out)),
    }
}

/// Computes the luma of each pixel.
pub(crate) fn luma<C: Colour>(set: InstructionSet, span: &[Rgba], out: &mut [u8]) {
    vectorised::<planar::Luma<C>>(set, (span, out));
}

/// Computes chroma `WHICH`, 0 or 1, of each 2×2 pixels.
pub(crate) fn chroma<C: Colour, const WHICH: usize>(
    set: InstructionSet,
    rows: [&[Rgba]; 2],
    out: &mut [u8],
) {
    vectorised::<planar::Chroma<C, WHICH>>(set, (rows, out));
}
