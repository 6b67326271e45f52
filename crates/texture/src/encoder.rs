//! Encodes pictures to frames of a texture format, some block rows at a time.

use std::ops::Range;

use crate::convert::{Picture, Rgba, SPAN, YCoCg, Yuv};
use crate::encode::{bc1, bc3, refined, ycocg_bc3};
use crate::error::CodecError;
use crate::format::Format;
use crate::layout::Layout;
use crate::{InstructionSet, Quality, convert, error, resample};

/// Encodes pictures of one format and size to frames of another format.
///
/// Input is RGB24, RGBA8, RGB565, YUV 4:2:0, YUV 4:2:2 or YCoCg 4:2:0; output is one of these, BC1,
/// BC3 or YCoCg-BC3. If input and output have the same format, bytes are copied unchanged. ETC1,
/// ETC2 and ASTC, for which there is no encoder, are supported only in this way.
///
/// # Threads and memory
///
/// Rows are independent of each other, so several threads may encode different rows of one picture
/// through a shared reference. Nothing is allocated after [`Encoder::new`]; a call needs 6 KiB of
/// stack. Whole blocks of RGBA8 are read in place; other pixels are read through spans of 256 pixels
/// that stay in the first-level cache.
///
/// # Quality
///
/// Blocks of BC1, BC3 and YCoCg-BC3 are made in [`Quality::Fast`], for live video, unless
/// [`with_quality`](Encoder::with_quality) selects another.
///
/// # Edges and colours
///
/// Blocks and chroma that extend beyond the edges of a picture repeat the nearest pixel. YUV has the
/// matrix and the range of its layout's [`Colour`](crate::Colour). Chroma that is read is interpolated by
/// its siting; chroma that is made is that of the average of the pixels that share it, and so sited in
/// their centre. Only BC3 and RGBA8 keep the alpha of RGBA8.
///
/// ```
/// use rushes_texture::{Encoder, Format, Tiling};
///
/// # fn main() -> Result<(), rushes_texture::CodecError> {
/// let encoder = Encoder::new(Format::Rgb24, Format::Bc1, 30, 26)?;
/// let picture = vec![90; encoder.input().bytes()];
/// let mut frame = vec![0; encoder.output().bytes()];
/// for tile in Tiling::balanced(encoder.output(), 3).tiles() {
///     let out = &mut frame[tile.bytes.clone()];
///     encoder.encode_rows(&picture, tile.plane, tile.rows.clone(), out)?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Encoder {
    input: Layout,
    output: Layout,
    set: InstructionSet,
    quality: Quality,
}

impl Encoder {
    /// Creates an encoder of pictures of `width × height` pixels, with the fastest instruction set.
    ///
    /// # Errors
    ///
    /// [`CodecError::Unsupported`] if [`Encoder::supports`] is false, [`CodecError::Layout`] if a
    /// frame cannot have this size.
    pub fn new(input: Format, output: Format, width: u32, height: u32) -> Result<Self, CodecError> {
        let input = Layout::new(input, width, height)?;
        Self::between(input, input.in_format(output))
    }

    /// Creates an encoder of pictures of one layout to frames of another one, of the same size.
    ///
    /// Use [`Layout::in_format`] for `output`; with other colours there, YUV is converted to them.
    ///
    /// # Errors
    ///
    /// As [`Encoder::new`]; [`CodecError::Unsupported`] also if the sizes differ.
    pub fn between(input: Layout, output: Layout) -> Result<Self, CodecError> {
        let size = |layout: &Layout| (layout.width(), layout.height());
        if !Self::supports(input.format(), output.format()) || size(&input) != size(&output) {
            let (input, output) = (input.format(), output.format());
            return Err(CodecError::Unsupported { input, output });
        }
        let (set, quality) = (InstructionSet::fastest(), Quality::default());
        Ok(Self { input, output, set, quality })
    }

    /// Selects another instruction set for tests and measurements. The output does not change.
    #[must_use]
    pub fn with_instruction_set(self, set: InstructionSet) -> Self {
        Self { set, ..self }
    }

    /// Selects how near to the pictures BC1, BC3 and YCoCg-BC3 are; [`Quality::Fast`] by default.
    ///
    /// Other formats have one quality only.
    #[must_use]
    pub fn with_quality(self, quality: Quality) -> Self {
        Self { quality, ..self }
    }

    /// Returns whether pictures of format `input` can be encoded to frames of format `output`.
    pub fn supports(input: Format, output: Format) -> bool {
        let made = matches!(output, Format::Bc1 | Format::Bc3 | Format::YCoCgBc3);
        input == output || convert::is_raw(input) && (made || convert::is_raw(output))
    }

    /// Returns the layout of the pictures.
    pub fn input(&self) -> &Layout {
        &self.input
    }

    /// Returns the layout of the frames.
    pub fn output(&self) -> &Layout {
        &self.output
    }

    /// Encodes block rows `rows` of plane `plane` of the frame, from the whole picture.
    ///
    /// `out` must be exactly the memory of these rows:
    /// [`PlaneLayout::row_range`](crate::PlaneLayout::row_range) of the frame.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the plane or a row does not exist, or if `picture` or `out` has the wrong
    /// length; nothing is written in that case.
    pub fn encode_rows(
        &self,
        picture: &[u8],
        plane: usize,
        rows: Range<u32>,
        out: &mut [u8],
    ) -> Result<(), CodecError> {
        error::check_input(self.input.bytes(), picture.len())?;
        let planes = self.output.planes();
        let layout = planes.get(plane).ok_or(CodecError::Plane { plane, planes: planes.len() })?;
        error::check_rows(&rows, layout.rows)?;
        let range = layout.row_range(&rows);
        error::check_output(range.len(), out.len())?;
        if self.copies() {
            out.copy_from_slice(&picture[range]);
            return Ok(());
        }
        for (row, out) in rows.zip(out.chunks_exact_mut(layout.row_bytes)) {
            self.encode_row(picture, plane, row, out);
        }
        Ok(())
    }

    /// Encodes a whole frame: every row of every plane.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the length of `picture` or `frame` does not match its layout.
    pub fn encode(&self, picture: &[u8], frame: &mut [u8]) -> Result<(), CodecError> {
        error::check_output(self.output.bytes(), frame.len())?;
        for (plane, layout) in self.output.planes().iter().enumerate() {
            let rows = 0..layout.rows;
            let out = &mut frame[layout.row_range(&rows)];
            self.encode_rows(picture, plane, rows, out)?;
        }
        Ok(())
    }

    /// Returns whether octets stay as they are. Blocks do even if the layouts have other colours.
    fn copies(&self) -> bool {
        let format = self.input.format();
        self.input == self.output || format == self.output.format() && !convert::is_raw(format)
    }

    fn encode_row(&self, octets: &[u8], plane: usize, row: u32, out: &mut [u8]) {
        let picture = Picture::new(&self.input, octets, self.set);
        let (format, yuv) = (self.output.format(), Yuv::new(self.output.colour()));
        if resample::is_resampled(&self.input, &self.output) {
            return resample::row([&self.input, &self.output], octets, (plane, row), out);
        }
        match (format, plane) {
            (Format::Bc1 | Format::Bc3 | Format::YCoCgBc3, _) => {
                self.block_row(&picture, octets, row, out);
            }
            (Format::Yuv420 | Format::Yuv422 | Format::YCoCg420, 0) => {
                let mut span = [[0; 4]; SPAN];
                for (at, out) in out.chunks_mut(SPAN).enumerate() {
                    let span = picture.span(at * SPAN, row, &mut span[..out.len()]);
                    match format {
                        Format::YCoCg420 => convert::luma(self.set, YCoCg, span, out),
                        _ => convert::luma(self.set, yuv, span, out),
                    }
                }
            }
            (Format::Yuv420 | Format::Yuv422 | Format::YCoCg420, _) => {
                self.chroma_row(&picture, plane, row, out);
            }
            _ => {
                let pixel = format.planes()[0].block.bytes;
                let mut span = [[0; 4]; SPAN];
                for (at, out) in out.chunks_mut(SPAN * pixel).enumerate() {
                    let span = picture.span(at * SPAN, row, &mut span[..out.len() / pixel]);
                    convert::write(self.set, format, span, out);
                }
            }
        }
    }

    fn chroma_row(&self, picture: &Picture<'_>, plane: usize, row: u32, out: &mut [u8]) {
        let (format, yuv) = (self.output.format(), Yuv::new(self.output.colour()));
        let rows = match format {
            Format::Yuv422 => [row; 2],
            _ => [2 * row, 2 * row + 1],
        };
        let mut spans = [[[0; 4]; SPAN]; 2];
        for (at, out) in out.chunks_mut(SPAN / 2).enumerate() {
            let [above, below] = spans.each_mut().map(|span| &mut span[..out.len() * 2]);
            let spans = [(above, rows[0]), (below, rows[1])]
                .map(|(span, row)| picture.span(at * SPAN, row, span));
            match format {
                Format::YCoCg420 => convert::chroma(self.set, (YCoCg, plane), spans, out),
                _ => convert::chroma(self.set, (yuv, plane), spans, out),
            }
        }
    }

    fn block_row(&self, picture: &Picture<'_>, octets: &[u8], row: u32, out: &mut [u8]) {
        let bytes = self.output.format().planes()[0].block.bytes;
        let done = self.whole_blocks(octets, row, out);
        let rest = &mut out[done * bytes..];
        let mut strip = [[0; 4]; SPAN * 4];
        for (at, out) in rest.chunks_mut(SPAN / 4 * bytes).enumerate() {
            let blocks = out.len() / bytes;
            let strip = &mut strip[..blocks * 16];
            for (span, y) in strip.chunks_exact_mut(blocks * 4).zip(row * 4..) {
                picture.read(done * 4 + at * SPAN, y, span);
            }
            self.encode_blocks(strip, blocks, out);
        }
    }

    /// Encodes the blocks of a row that the kernels can read in place, and returns their number.
    fn whole_blocks(&self, octets: &[u8], row: u32, out: &mut [u8]) -> usize {
        if self.input.format() != Format::Rgba8 || (row + 1) * 4 > self.input.height() {
            return 0;
        }
        let stride = self.input.width() as usize * 4;
        let blocks = self.input.width() as usize / 4;
        let start = stride * 4 * row as usize;
        self.encode_kernel(&octets[start..start + stride * 4], stride, blocks, out);
        blocks
    }

    fn encode_blocks(&self, strip: &[Rgba], blocks: usize, out: &mut [u8]) {
        self.encode_kernel(strip.as_flattened(), blocks * 16, blocks, out);
    }

    fn encode_kernel(&self, rgba: &[u8], stride: usize, blocks: usize, out: &mut [u8]) {
        let encode = match (self.output.format(), self.quality) {
            (Format::Bc3, Quality::Fast) => bc3::encode_block_row,
            (Format::Bc3, Quality::High) => refined::bc3_block_row,
            (Format::YCoCgBc3, Quality::Fast) => ycocg_bc3::encode_block_row,
            (Format::YCoCgBc3, Quality::High) => refined::ycocg_bc3_block_row,
            (_, Quality::Fast) => bc1::encode_block_row,
            (_, Quality::High) => refined::bc1_block_row,
        };
        encode(self.set, rgba, stride, blocks, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Colour, Primaries, Transfer};

    #[test]
    fn blocks_are_copied_whatever_colours_their_layouts_have() {
        let sdr = Layout::new(Format::Bc1, 30, 26).unwrap();
        let (transfer, primaries) = (Transfer::Pq, Primaries::Bt2020);
        let hdr = sdr.with_colour(Colour { transfer, primaries, ..Colour::default() });
        let blocks: Vec<u8> = (0..sdr.bytes()).map(|at| at as u8).collect();
        for (input, output) in [(hdr, sdr), (sdr, hdr)] {
            let mut copy = vec![0; blocks.len()];
            Encoder::between(input, output).unwrap().encode(&blocks, &mut copy).unwrap();
            assert_eq!(copy, blocks);
        }
    }
}
