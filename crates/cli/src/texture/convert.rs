//! Conversion of frames from one format to another.

use rushes::texture::{Decoder, Encoder, Format, Layout};

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
        let (from, width, height) = (input.format(), input.width(), input.height());
        let output = Layout::new(format, width, height)?;
        let is_picture = |format| matches!(format, Format::Rgb24 | Format::Rgba8);
        let way = if from == format || is_picture(format) {
            Way::Decode(Decoder::new(from, width, height, format)?)
        } else if Encoder::supports(from, format) || !Encoder::supports(Format::Rgba8, format) {
            Way::Encode(Encoder::new(from, format, width, height)?)
        } else {
            let decoder = Decoder::new(from, width, height, Format::Rgba8)?;
            let picture = vec![0; decoder.output().bytes()];
            let encoder = Encoder::new(Format::Rgba8, format, width, height)?;
            Way::Both(Box::new((decoder, encoder)), picture)
        };
        Ok(Self { input, output, way })
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
    fn an_impossible_conversion_is_an_error_with_advice() {
        let layout = Layout::new(Format::Bc1, 4, 4).unwrap();
        let error = Converter::new(layout, Format::Etc2Rgb).err().unwrap().to_string();
        assert!(error.contains("bc1") && error.contains("passed through"), "{error}");
    }
}
