//! Decodes frames of any texture format to pictures.

use std::ops::Range;

use crate::convert::{Picture, Rgba, SPAN};
use crate::error::CodecError;
use crate::format::Format;
use crate::layout::Layout;
use crate::{InstructionSet, convert, decode, error};

/// Pixel rows of the tallest block.
const TALLEST: usize = {
    let (mut tallest, mut at) = (0, 0);
    while at < Format::ALL.len() {
        let height = Format::ALL[at].planes()[0].block.height as usize;
        if height > tallest {
            tallest = height;
        }
        at += 1;
    }
    tallest
};

/// Decodes frames of any format to RGB24 or RGBA8, cropped to their size.
///
/// Formats without alpha are decoded as opaque. If the output has the format of the frames, bytes
/// are copied unchanged. YUV is decoded by its matrix and range, and chroma interpolated by its siting.
/// Nothing is allocated after [`Decoder::new`], and several threads may decode different rows of one
/// frame; a call needs 32 KiB of stack.
///
/// No input causes a panic: ASTC blocks that are illegal or of high dynamic range are decoded as
/// magenta, as the specification requires.
///
/// ```
/// use rushes_texture::{Decoder, Format};
///
/// # fn main() -> Result<(), rushes_texture::CodecError> {
/// let decoder = Decoder::new(Format::Etc1, 4, 4, Format::Rgb24)?;
/// let mut picture = vec![0; decoder.output().bytes()];
/// // Base colours of 0x88 in all channels, and the first modifier of the first table, 2.
/// decoder.decode(&[0x88, 0x88, 0x88, 0, 0, 0, 0, 0], &mut picture)?;
/// assert_eq!(picture, vec![0x8a; 48]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Decoder {
    input: Layout,
    output: Layout,
    set: InstructionSet,
}

impl Decoder {
    /// Creates a decoder of frames of `width × height` pixels.
    ///
    /// # Errors
    ///
    /// [`CodecError::Unsupported`] if the output is neither RGB24 nor RGBA8 nor the frames' own
    /// format, [`CodecError::Layout`] if a frame cannot have this size.
    pub fn new(
        format: Format,
        width: u32,
        height: u32,
        output: Format,
    ) -> Result<Self, CodecError> {
        Self::of(Layout::new(format, width, height)?, output)
    }

    /// Creates a decoder of frames of a layout, by its [`Colour`](crate::Colour).
    ///
    /// # Errors
    ///
    /// As [`Decoder::new`].
    pub fn of(input: Layout, output: Format) -> Result<Self, CodecError> {
        if input.format() != output && !is_picture(output) {
            return Err(CodecError::Unsupported { input: input.format(), output });
        }
        let output = input.in_format(output);
        Ok(Self { input, output, set: InstructionSet::fastest() })
    }

    /// Selects another instruction set for tests and measurements. The output does not change.
    #[must_use]
    pub fn with_instruction_set(self, set: InstructionSet) -> Self {
        Self { set, ..self }
    }

    /// Returns the layout of the frames.
    pub fn input(&self) -> &Layout {
        &self.input
    }

    /// Returns the layout of the pictures.
    pub fn output(&self) -> &Layout {
        &self.output
    }

    /// Decodes a whole frame.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the length of `frame` or `out` does not match its layout; nothing is
    /// written in that case.
    pub fn decode(&self, frame: &[u8], out: &mut [u8]) -> Result<(), CodecError> {
        if self.input == self.output {
            error::check_input(self.input.bytes(), frame.len())?;
            error::check_output(self.output.bytes(), out.len())?;
            out.copy_from_slice(frame);
            return Ok(());
        }
        self.decode_rows(frame, 0..self.output.height(), out)
    }

    /// Decodes a range of pixel rows of a whole frame into `out`, which holds exactly these rows.
    ///
    /// Block rows that lie partly inside the range are decoded and cropped.
    ///
    /// # Errors
    ///
    /// [`CodecError::Unsupported`] if the output is neither RGB24 nor RGBA8, [`CodecError`] if a
    /// row does not exist or if `frame` or `out` has the wrong length; nothing is written in that
    /// case.
    pub fn decode_rows(
        &self,
        frame: &[u8],
        rows: Range<u32>,
        out: &mut [u8],
    ) -> Result<(), CodecError> {
        let (input, output) = (self.input.format(), self.output.format());
        if !is_picture(output) {
            return Err(CodecError::Unsupported { input, output });
        }
        error::check_input(self.input.bytes(), frame.len())?;
        error::check_rows(&rows, self.output.height())?;
        let range = self.output.planes()[0].row_range(&rows);
        error::check_output(range.len(), out.len())?;
        if input == output {
            out.copy_from_slice(&frame[range]);
        } else if convert::is_raw(input) {
            self.raw_rows(frame, rows, out);
        } else {
            self.block_rows(frame, rows, out);
        }
        Ok(())
    }

    fn raw_rows(&self, frame: &[u8], rows: Range<u32>, out: &mut [u8]) {
        let picture = Picture::new(&self.input, frame, self.set);
        let plane = self.output.planes()[0];
        let pixel = plane.row_bytes / plane.width as usize;
        let mut span = [[0; 4]; SPAN];
        for (row, out) in rows.zip(out.chunks_exact_mut(plane.row_bytes)) {
            for (at, out) in out.chunks_mut(SPAN * pixel).enumerate() {
                let span = &mut span[..out.len() / pixel];
                picture.read(at * SPAN, row, span);
                convert::write(self.set, self.output.format(), span, out);
            }
        }
    }

    fn block_rows(&self, frame: &[u8], rows: Range<u32>, out: &mut [u8]) {
        let row_bytes = self.output.planes()[0].row_bytes;
        let height = self.input.format().planes()[0].block.height;
        let mut rest = out;
        let mut row = rows.start;
        while row < rows.end {
            let block_row = row / height;
            let end = rows.end.min((block_row + 1) * height);
            let (now, later) = rest.split_at_mut((end - row) as usize * row_bytes);
            let within = (row - block_row * height) as usize;
            let range = self.input.planes()[0].row_range(&(block_row..block_row + 1));
            self.block_row(&frame[range], within, now);
            (rest, row) = (later, end);
        }
    }

    /// Decodes a block row and writes its pixel rows, from `first` on, until `out` is full.
    fn block_row(&self, blocks: &[u8], first: usize, out: &mut [u8]) {
        let format = self.input.format();
        let block = format.planes()[0].block;
        let output = self.output.planes()[0];
        let pixel = output.row_bytes / output.width as usize;
        let done = self.whole_blocks(blocks, out);
        let blocks = &blocks[done * block.bytes..];
        let at_once = SPAN / block.width as usize;
        let mut strip = [[0; 4]; SPAN * TALLEST];
        for (at, blocks) in blocks.chunks(at_once * block.bytes).enumerate() {
            let left = (done + at * at_once) * block.width as usize;
            decode::block_row((self.set, format), blocks, strip.as_flattened_mut(), SPAN * 4);
            let pixels = (at_once * block.width as usize).min(output.width as usize - left);
            let spans = strip.chunks_exact(SPAN).skip(first);
            for (span, out) in spans.zip(out.chunks_exact_mut(output.row_bytes)) {
                let span: &[Rgba] = &span[..pixels];
                let out = &mut out[left * pixel..][..pixels * pixel];
                convert::write(self.set, self.output.format(), span, out);
            }
        }
    }

    /// Decodes the blocks of a row that can be decoded in place, and returns their number.
    fn whole_blocks(&self, blocks: &[u8], out: &mut [u8]) -> usize {
        let (format, output) = (self.input.format(), self.output.planes()[0]);
        let block = format.planes()[0].block;
        let is_whole = out.len() == output.row_bytes * block.height as usize;
        if self.output.format() != Format::Rgba8 || !is_whole {
            return 0;
        }
        let whole = (output.width / block.width) as usize;
        let blocks = &blocks[..whole * block.bytes];
        decode::block_row((self.set, format), blocks, out, output.row_bytes);
        whole
    }
}

fn is_picture(format: Format) -> bool {
    matches!(format, Format::Rgb24 | Format::Rgba8)
}
