//! Conversion of raw formats to and from RGBA8, the common format of encoders and decoders.
//!
//! All functions work on spans, which are pixels of one row that stay in the first-level cache.
#![allow(clippy::inline_always, reason = "a loop is compiled for AVX2 only where it is inlined")]
#![allow(clippy::cast_sign_loss, reason = "values are clamped, or bounded by their weights")]

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "aarch64")]
pub(crate) mod neon;
pub(crate) mod planar;
mod rgb24;
mod rgb565;
mod ycocg;
mod yuv;

pub(crate) use ycocg::YCoCg;
pub(crate) use yuv::Yuv;

use crate::InstructionSet;
use crate::colour::Colour;
use crate::convert::planar::{ChromaRows, Space};
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

    /// Returns the pixels that [`read`](Self::read) gives: in place if the picture has them, and otherwise
    /// in `span`.
    pub(crate) fn span<'s>(&self, x: usize, y: u32, span: &'s mut [Rgba]) -> &'s [Rgba]
    where
        'a: 's,
    {
        let is_inside = x + span.len() <= self.layout.width() as usize && y < self.layout.height();
        if is_inside && self.layout.format() == Format::Rgba8 {
            return self.row(0, y, x * 4, span.len() * 4).as_chunks().0;
        }
        self.read(x, y, span);
        span
    }

    fn read_inside(&self, x: usize, y: u32, span: &mut [Rgba]) {
        let pixels = span.len();
        let packed = |bytes: usize| self.row(0, y, x * bytes, pixels * bytes);
        match self.layout.format() {
            Format::Rgba8 => span.as_flattened_mut().copy_from_slice(packed(4)),
            Format::Rgb565 => vectorised::<rgb565::Expand>(self.set, (packed(2), span)),
            Format::Yuv420 | Format::Yuv422 => {
                self.read_planar(Yuv::new(self.layout.colour()), (x, y), span);
            }
            Format::YCoCg420 => self.read_planar(YCoCg, (x, y), span),
            _ => rgb24::expand(self.set, packed(3), span),
        }
    }

    fn read_planar<S: Space>(&self, space: S, (x, y): (usize, u32), span: &mut [Rgba]) {
        let luma = self.row(0, y, x, span.len());
        let mut chroma = [[0; SPAN]; 2];
        for (plane, out) in (1..).zip(&mut chroma) {
            let rows = self.chroma_rows(plane, (x, y), span.len());
            vectorised::<planar::Interpolate>(self.set, (rows, out));
        }
        let chroma = [&chroma[0], &chroma[1]];
        vectorised::<planar::ToRgba<S>>(self.set, (space, luma, chroma, span));
    }

    /// Returns the chroma samples of `pixels` pixels and their neighbours.
    fn chroma_rows(&self, plane: usize, (x, y): (usize, u32), pixels: usize) -> ChromaRows<'a> {
        let layout = &self.layout.planes()[plane];
        let siting = self.layout.colour().siting;
        let (near, (step, weights)) = if layout.height == self.layout.height() {
            (y, (0, [4, 0]))
        } else {
            (y / 2, planar::rows(siting, y))
        };
        let other = near.saturating_add_signed(step).min(layout.height - 1);
        let first = x / 2;
        let end = first + pixels.div_ceil(2);
        let (has_before, has_after) = (first > 0, end < layout.width as usize);
        let from = first - usize::from(has_before);
        let count = end + usize::from(has_after) - from;
        let rows = [near, other].map(|row| self.row(plane, row, from, count));
        ChromaRows { rows, weights, has_before, has_after, siting }
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

/// Converts pixels of luma, Cb and Cr, which have the same number of samples.
pub(crate) fn from_yuv444(colour: Colour, planes: [&[u8]; 3], span: &mut [Rgba]) {
    let mut chroma = [[0; SPAN]; 2];
    for (plane, to) in planes[1..].iter().zip(&mut chroma) {
        for (to, &from) in to.iter_mut().zip(*plane) {
            *to = u16::from(from) * planar::TAPS as u16;
        }
    }
    let chroma = [&chroma[0], &chroma[1]];
    let set = InstructionSet::fastest();
    vectorised::<planar::ToRgba<Yuv>>(set, (Yuv::new(colour), planes[0], chroma, span));
}

/// Computes the luma of each pixel.
pub(crate) fn luma<S: Space>(set: InstructionSet, space: S, span: &[Rgba], out: &mut [u8]) {
    vectorised::<planar::Luma<S>>(set, (space, span, out));
}

/// Computes the chroma of plane `plane`, 1 or 2, of each 2×2 pixels.
pub(crate) fn chroma<S: Space>(
    set: InstructionSet,
    (space, plane): (S, usize),
    rows: [&[Rgba]; 2],
    out: &mut [u8],
) {
    if plane == 1 {
        vectorised::<planar::Chroma<S, 0>>(set, (space, rows, out));
    } else {
        vectorised::<planar::Chroma<S, 1>>(set, (space, rows, out));
    }
}
