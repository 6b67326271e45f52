//! Pixels of any raw format as RGBA8, and back: the one currency of encoders and decoders.
//!
//! All of it works on spans, some pixels of one row, that stay in the first-level cache.

mod planar;
mod rgb24;
mod rgb565;
mod ycocg;
mod yuv;

pub(crate) use planar::chroma;
pub(crate) use planar::luma;
pub(crate) use planar::to_rgba;
pub(crate) use ycocg::YCoCg;
pub(crate) use yuv::Bt709;

use crate::format::Format;
use crate::layout::Layout;

/// Red, green, blue and alpha.
pub(crate) type Rgba = [u8; 4];

/// Pixels of a span that is kept on the stack: even, and whole blocks of every width of four.
pub(crate) const SPAN: usize = 256;

/// Whether the pixels of a format lie there one by one, uncompressed.
pub(crate) fn is_raw(format: Format) -> bool {
    use Format::{Rgb24, Rgb565, Rgba8, YCoCg420, Yuv420, Yuv422};
    matches!(format, Rgb24 | Rgba8 | Rgb565 | Yuv420 | Yuv422 | YCoCg420)
}

/// A raw picture, read as if its edges went on for ever.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Picture<'a> {
    layout: &'a Layout,
    octets: &'a [u8],
}

impl<'a> Picture<'a> {
    /// `octets` are exactly those of the layout, whose format is raw.
    pub(crate) fn new(layout: &'a Layout, octets: &'a [u8]) -> Self {
        Self { layout, octets }
    }

    /// Fills a span with the pixels right of `x` (even, inside the picture) of row `y`.
    ///
    /// What is right of the picture or below it repeats the nearest pixel inside.
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
            Format::Rgb565 => rgb565::expand(packed(2), span),
            Format::Yuv420 => to_rgba::<Bt709>(packed(1), self.both_chroma(x, y / 2, pixels), span),
            Format::Yuv422 => to_rgba::<Bt709>(packed(1), self.both_chroma(x, y, pixels), span),
            Format::YCoCg420 => {
                to_rgba::<YCoCg>(packed(1), self.both_chroma(x, y / 2, pixels), span);
            }
            _ => rgb24::expand(packed(3), span),
        }
    }

    fn both_chroma(&self, x: usize, row: u32, pixels: usize) -> [&'a [u8]; 2] {
        [1, 2].map(|plane| self.row(plane, row, x / 2, pixels.div_ceil(2)))
    }

    fn row(&self, plane: usize, row: u32, at: usize, bytes: usize) -> &'a [u8] {
        let start = self.layout.planes()[plane].row_range(&(row..row)).start + at;
        &self.octets[start..start + bytes]
    }
}

/// Writes a span as pixels of a format of one raw plane: RGB24, RGBA8 or RGB565.
pub(crate) fn write(format: Format, span: &[Rgba], out: &mut [u8]) {
    match format {
        Format::Rgba8 => out.copy_from_slice(span.as_flattened()),
        Format::Rgb565 => rgb565::pack(span, out),
        _ => rgb24::pack(span, out),
    }
}
