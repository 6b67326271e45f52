//! Conversion of frames from one format to another.

use rushes::texture::{Colour, ColourHint, Decoder, Encoder, Format, Layout, Quality};

/// Returns the layout of files of `format`: YUV that is made of another format has the matrix that other
/// programs assume for its height.
fn written(input: &Layout, format: Format) -> Layout {
    let output = input.in_format(format);
    let is_yuv = |format| matches!(format, Format::Yuv420 | Format::Yuv422);
    if !is_yuv(format) || is_yuv(input.format()) {
        return output;
    }
    let matrix = Colour::of_file(output.height(), ColourHint::default()).matrix;
    output.with_colour(Colour { matrix, ..output.colour() })
}

/// Converts frames of one layout to another format.
pub(crate) struct Converter {
    input: Layout,
    output: Layout,
    way: Way,
}

enum Way {
    Decode(Decoder),
    Encode(Encoder),
    /// Decodes to pictures, which are then encoded.
    Both(Box<(Decoder, Encoder)>, Vec<u8>),
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
        let way = if input == output || is_picture(format) {
            Way::Decode(Decoder::of(input, format)?)
        } else if Encoder::supports(from, format) || !Encoder::supports(Format::Rgba8, format) {
            Way::Encode(Encoder::between(input, output)?)
        } else {
            let decoder = Decoder::of(input, Format::Rgba8)?;
            let picture = vec![0; decoder.output().bytes()];
            let encoder = Encoder::between(*decoder.output(), output)?;
            Way::Both(Box::new((decoder, encoder)), picture)
        };
        Ok(Self { input, output, way })
    }

    /// Selects how near to the frames blocks are.
    pub(crate) fn with_quality(self, quality: Quality) -> Self {
        let way = match self.way {
            Way::Encode(encoder) => Way::Encode(encoder.with_quality(quality)),
            Way::Both(codecs, picture) => {
                let (decoder, encoder) = *codecs;
                Way::Both(Box::new((decoder, encoder.with_quality(quality))), picture)
            }
            way @ Way::Decode(_) => way,
        };
        Self { way, ..self }
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
        match &mut self.way {
            Way::Decode(decoder) => decoder.decode(frame, out)?,
            Way::Encode(encoder) => encoder.encode(frame, out)?,
            Way::Both(codecs, picture) => {
                let (decoder, encoder) = &**codecs;
                decoder.decode(frame, picture)?;
                encoder.encode(picture, out)?;
            }
        }
        Ok(())
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
