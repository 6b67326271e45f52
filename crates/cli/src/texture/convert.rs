//! Conversion of frames from one format to another.

use std::num::NonZero;
use std::ops::Range;
use std::panic::resume_unwind;
use std::slice::ChunksMut;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::thread::available_parallelism;

use rushes::texture::{Colour, ColourHint, Decoder, Encoder, Format, Layout, Quality};

/// Returns the layout of files of `format`: YUV that is made of another format has the matrix that goes with its
/// primaries, or that other programs assume for its height.
fn written(input: &Layout, format: Format) -> Layout {
    let output = input.in_format(format);
    let is_yuv = |format| matches!(format, Format::Yuv420 | Format::Yuv422);
    if !is_yuv(format) || is_yuv(input.format()) {
        return output;
    }
    let hint = ColourHint { matrix: None, ..output.colour().into() };
    let matrix = Colour::of_file(output.height(), hint).matrix;
    output.with_colour(Colour { matrix, ..output.colour() })
}

/// Pixels for which a thread is worth while: with fewer, starting it takes longer than it saves.
const PIXELS_MIN: u64 = 1 << 18;

/// Maximum number of threads: more of them wait for memory.
const THREADS_MAX: usize = 16;

/// Converts frames of one layout to another format: in stripes, by as many threads as there are processors.
pub(crate) struct Converter {
    input: Layout,
    output: Layout,
    conversion: Option<Conversion>,
    /// Pixel rows of a stripe.
    stripe: u32,
    /// For each thread, memory for the pixels of a stripe.
    threads: Vec<Vec<u8>>,
}

enum Conversion {
    Decode(Decoder),
    Encode(Encoder),
    ThroughPixels(Box<ThroughPixels>),
}

impl Converter {
    /// Creates a converter from frames of `input` to frames of `format`.
    ///
    /// # Errors
    /// If frames of `input` cannot be converted to `format`.
    pub(crate) fn new(input: Layout, format: Format) -> anyhow::Result<Self> {
        Self::between(input, written(&input, format))
    }

    /// Creates a converter from frames of `input` to frames of `output`, of the same size.
    ///
    /// # Errors
    /// If frames of `input` cannot be converted to `output`.
    pub(crate) fn between(input: Layout, output: Layout) -> anyhow::Result<Self> {
        let (from, format) = (input.format(), output.format());
        let is_picture = |format| matches!(format, Format::Rgb24 | Format::Rgba8);
        // Whole blocks of both formats: encoded ones have four rows, and others those of the input.
        let stripe = 4 * from.planes()[0].block.height.max(4);
        let conversion = if input == output {
            None
        } else if is_picture(format) {
            Some(Conversion::Decode(Decoder::of(input, format)?))
        } else if Encoder::supports(from, format) || !Encoder::supports(Format::Rgba8, format) {
            Some(Conversion::Encode(Encoder::between(input, output)?))
        } else {
            let through = ThroughPixels::new(input, output, stripe)?;
            Some(Conversion::ThroughPixels(Box::new(through)))
        };
        let processors = available_parallelism().map_or(1, NonZero::get);
        let worth = u64::from(input.width()) * u64::from(input.height()) / PIXELS_MIN;
        let threads = (worth as usize).clamp(1, processors.min(THREADS_MAX));
        Ok(Self { input, output, conversion, stripe, threads: vec![Vec::new(); threads] })
    }

    /// Selects how near to the frames blocks are.
    pub(crate) fn with_quality(self, quality: Quality) -> Self {
        let conversion = self.conversion.map(|conversion| conversion.with_quality(quality));
        Self { conversion, ..self }
    }

    pub(crate) fn input(&self) -> &Layout {
        &self.input
    }

    pub(crate) fn output(&self) -> &Layout {
        &self.output
    }

    /// Converts one frame.
    ///
    /// # Errors
    /// If `frame` or `out` has another length than its layout.
    pub(crate) fn convert(&mut self, frame: &[u8], out: &mut [u8]) -> anyhow::Result<()> {
        let Self { input, output, conversion, stripe, threads } = self;
        for (have, layout) in [(frame.len(), &*input), (out.len(), &*output)] {
            let (format, want) = (layout.format(), layout.bytes());
            anyhow::ensure!(have == want, "{have} bytes are no {format} frame of {want} bytes");
        }
        let Some(conversion) = &*conversion else {
            out.copy_from_slice(frame);
            return Ok(());
        };
        let stripes = &Mutex::new(Stripes::new(output, *stripe, out));
        let Some((own, others)) = threads.split_first_mut() else { return Ok(()) };
        thread::scope(|scope| {
            let mut started = Vec::new();
            for pixels in others {
                let builder = thread::Builder::new().name("rushes-convert".to_owned());
                // If the system has no more threads, the others do its work.
                let work = || conversion.work(frame, stripes, pixels);
                started.extend(builder.spawn_scoped(scope, work));
            }
            let mut result = conversion.work(frame, stripes, own);
            for thread in started {
                let other = thread.join().unwrap_or_else(|panic| resume_unwind(panic));
                result = result.and(other);
            }
            result
        })
    }
}

impl Conversion {
    fn with_quality(self, quality: Quality) -> Self {
        match self {
            Self::Decode(decoder) => Self::Decode(decoder),
            Self::Encode(encoder) => Self::Encode(encoder.with_quality(quality)),
            Self::ThroughPixels(through) => {
                let ThroughPixels { decoder, encoders } = *through;
                let encoders = encoders.map(|encoder| encoder.with_quality(quality));
                Self::ThroughPixels(Box::new(ThroughPixels { decoder, encoders }))
            }
        }
    }

    /// Converts stripes until there are no more.
    fn work(
        &self,
        frame: &[u8],
        stripes: &Mutex<Stripes<'_>>,
        pixels: &mut Vec<u8>,
    ) -> anyhow::Result<()> {
        loop {
            let next = stripes.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(stripe) = next else { return Ok(()) };
            match self {
                Self::Decode(decoder) => {
                    let [out, ..] = stripe.planes;
                    decoder.decode_rows(frame, stripe.rows, out)?;
                }
                Self::Encode(encoder) => stripe.encode(encoder, frame, 0)?,
                Self::ThroughPixels(through) => through.convert(frame, stripe, pixels)?,
            }
        }
    }
}

/// Decodes to pixels, which are then encoded while they are in the processor's cache.
struct ThroughPixels {
    decoder: Decoder,
    /// Of a whole stripe, and of the last one.
    encoders: [Encoder; 2],
}

impl ThroughPixels {
    fn new(input: Layout, output: Layout, stripe: u32) -> anyhow::Result<Self> {
        let decoder = Decoder::of(input, Format::Rgba8)?;
        let encoder = |height: u32| -> anyhow::Result<_> {
            let part = |layout: &Layout| -> anyhow::Result<_> {
                let part = Layout::new(layout.format(), layout.width(), height)?;
                Ok(part.with_colour(layout.colour()))
            };
            Ok(Encoder::between(part(decoder.output())?, part(&output)?)?)
        };
        let last = output.height() - (output.height() - 1) / stripe * stripe;
        let encoders = [encoder(stripe)?, encoder(last)?];
        Ok(Self { decoder, encoders })
    }

    fn convert(
        &self,
        frame: &[u8],
        stripe: Stripe<'_>,
        pixels: &mut Vec<u8>,
    ) -> anyhow::Result<()> {
        let [whole, last] = &self.encoders;
        let is_whole = stripe.rows.len() == whole.input().height() as usize;
        let encoder = if is_whole { whole } else { last };
        pixels.resize(encoder.input().bytes(), 0);
        self.decoder.decode_rows(frame, stripe.rows.clone(), pixels)?;
        let first = stripe.rows.start;
        stripe.encode(encoder, pixels, first)
    }
}

/// Pixel rows of a frame, and the memory of their block rows in each plane.
struct Stripe<'a> {
    rows: Range<u32>,
    planes: [&'a mut [u8]; 3],
}

impl Stripe<'_> {
    /// Encodes the rows from a picture that begins with pixel row `first`.
    fn encode(self, encoder: &Encoder, picture: &[u8], first: u32) -> anyhow::Result<()> {
        let output = encoder.output();
        let planes = output.planes().iter().zip(output.format().planes()).zip(self.planes);
        for (plane, ((layout, kind), out)) in planes.enumerate() {
            let start = (self.rows.start - first) / (kind.vertical * kind.block.height);
            let rows = start..start + (out.len() / layout.row_bytes) as u32;
            encoder.encode_rows(picture, plane, rows, out)?;
        }
        Ok(())
    }
}

/// The stripes of a frame, from the top.
struct Stripes<'a> {
    rows: Range<u32>,
    stripe: u32,
    planes: [ChunksMut<'a, u8>; 3],
}

impl<'a> Stripes<'a> {
    fn new(layout: &Layout, stripe: u32, frame: &'a mut [u8]) -> Self {
        let mut planes = [(); 3].map(|()| <&mut [u8]>::default().chunks_mut(1));
        let mut rest = frame;
        let kinds = layout.format().planes();
        for ((to, plane), kind) in planes.iter_mut().zip(layout.planes()).zip(kinds) {
            let octets;
            (octets, rest) = rest.split_at_mut(plane.bytes());
            let rows = stripe / (kind.vertical * kind.block.height);
            *to = octets.chunks_mut(rows as usize * plane.row_bytes);
        }
        Self { rows: 0..layout.height(), stripe, planes }
    }
}

impl<'a> Iterator for Stripes<'a> {
    type Item = Stripe<'a>;

    fn next(&mut self) -> Option<Stripe<'a>> {
        let start = self.rows.start;
        if start == self.rows.end {
            return None;
        }
        self.rows.start = self.rows.end.min(start + self.stripe);
        let planes = self.planes.each_mut().map(|plane| plane.next().unwrap_or_default());
        Some(Stripe { rows: start..self.rows.start, planes })
    }
}

#[cfg(test)]
mod tests {
    use rushes::texture::ColourRange;

    use super::*;

    #[test]
    fn every_format_becomes_every_other_that_can_be_made() {
        for from in Format::ALL {
            let layout = Layout::new(from, 30, 26).unwrap();
            let frame = vec![0; layout.bytes()];
            for to in Format::ALL {
                let made = from == to || Encoder::supports(Format::Rgba8, to);
                let converter = Converter::new(layout, to);
                assert_eq!(converter.is_ok(), made, "{from} to {to}");
                if let Ok(mut converter) = converter {
                    let mut out = vec![1; converter.output().bytes()];
                    converter.convert(&frame, &mut out).unwrap();
                }
            }
        }
    }

    /// Returns deterministic octets.
    fn noise(length: usize) -> Vec<u8> {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let next = |_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        };
        (0..length).map(next).collect()
    }

    /// Converts without stripes and threads.
    fn converted_whole(input: Layout, output: Layout, frame: &[u8]) -> Vec<u8> {
        let mut out = vec![0; output.bytes()];
        if let Ok(encoder) = Encoder::between(input, output) {
            encoder.encode(frame, &mut out).unwrap();
            return out;
        }
        let decoder =
            Decoder::of(input, output.format()).or_else(|_| Decoder::of(input, Format::Rgba8));
        let decoder = decoder.unwrap();
        let mut picture = vec![0; decoder.output().bytes()];
        decoder.decode(frame, &mut picture).unwrap();
        if *decoder.output() == output {
            return picture;
        }
        let encoder = Encoder::between(*decoder.output(), output).unwrap();
        encoder.encode(&picture, &mut out).unwrap();
        out
    }

    #[test]
    fn stripes_by_several_threads_are_the_whole_frame() {
        for (width, height) in [(1, 1), (30, 15), (5, 16), (18, 17), (30, 67), (9, 96), (301, 97)] {
            for from in Format::ALL {
                let colour = Colour { range: ColourRange::Full, ..Colour::default() };
                let plain = Layout::new(from, width, height).unwrap();
                for input in [plain, plain.with_colour(colour)] {
                    let frame = noise(input.bytes());
                    for to in Format::ALL {
                        let output = written(&plain, to);
                        let Ok(mut converter) = Converter::between(input, output) else { continue };
                        let whole = converted_whole(input, output, &frame);
                        for threads in [1, 3] {
                            converter.threads.resize(threads, Vec::new());
                            let mut out = vec![0; output.bytes()];
                            converter.convert(&frame, &mut out).unwrap();
                            assert!(out == whole, "{from} to {to}, {width}×{height}, {threads}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn frames_and_buffers_of_other_lengths_are_refused() {
        let layout = Layout::new(Format::Bc1, 8, 8).unwrap();
        for format in [Format::Bc1, Format::Rgb24, Format::Yuv420] {
            let mut converter = Converter::new(layout, format).unwrap();
            let length = converter.output().bytes();
            assert!(converter.convert(&[0; 31], &mut vec![0; length]).is_err());
            assert!(converter.convert(&[0; 32], &mut vec![0; length - 1]).is_err());
        }
    }

    #[test]
    fn frames_of_other_colours_become_those_of_the_file() {
        let file = Layout::new(Format::Yuv420, 16, 8).unwrap();
        let colour = Colour { range: ColourRange::Full, ..Colour::default() };
        let mut converter = Converter::between(file.with_colour(colour), file).unwrap();
        assert_eq!(*converter.output(), file);
        // White of the full range, and then of the limited range.
        let (mut frame, mut out) = (vec![128; file.bytes()], vec![0; file.bytes()]);
        frame[..128].fill(255);
        converter.convert(&frame, &mut out).unwrap();
        assert_eq!((out[0], out[128]), (235, 128));
        let mut same = Converter::between(file, file).unwrap();
        same.convert(&frame, &mut out).unwrap();
        assert_eq!(out, frame);
    }

    #[test]
    fn the_quality_changes_blocks_that_are_made_of_pictures_and_of_blocks() {
        for from in [Format::Rgb24, Format::Bc3] {
            let layout = Layout::new(from, 8, 4).unwrap();
            let frame: Vec<u8> = (0..layout.bytes()).map(|at| (at * at * 7 % 251) as u8).collect();
            let [fast, high] = Quality::ALL.map(|quality| {
                let converter = Converter::new(layout, Format::Bc1).unwrap();
                let mut converter = converter.with_quality(quality);
                let mut out = vec![0; converter.output().bytes()];
                converter.convert(&frame, &mut out).unwrap();
                out
            });
            assert_ne!(fast, high, "{from}");
        }
    }

    #[test]
    fn an_impossible_conversion_is_an_error_with_advice() {
        let layout = Layout::new(Format::Bc1, 4, 4).unwrap();
        let error = Converter::new(layout, Format::Etc2Rgb).err().unwrap().to_string();
        assert!(error.contains("bc1") && error.contains("passed through"), "{error}");
    }
}
