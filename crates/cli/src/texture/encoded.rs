//! `rushes texture serve --gpu`: frames encoded by the graphics processor as they are read.

use rushes::texture::Decoder;
use rushes::texture::Format;
use rushes::texture::Layout;
use rushes::texture::Rate;
use rushes::texture::source::Frame;
use rushes::texture::source::Source;
use rushes::texture::source::SourceError;
use rushes_gpu::Gpu;
use rushes_gpu::GpuEncoder;
use rushes_gpu::GpuOptions;

use crate::Usage;

/// Rows of blocks that are encoded at once: enough to do, and little to wait for.
const STRIPE_ROWS: u32 = 68;

/// A source whose frames the graphics processor encodes.
struct Encoded {
    source: Box<dyn Source>,
    /// What makes RGBA8 of frames that are something else.
    decoder: Option<Decoder>,
    pixels: Vec<u8>,
    encoder: GpuEncoder,
}

/// `source` in another format.
pub(super) fn by_gpu(
    source: Box<dyn Source>,
    format: Option<Format>,
) -> anyhow::Result<Box<dyn Source>> {
    let input = *source.layout();
    let Some(format) = format else {
        return Err(Usage("--gpu needs --format".to_owned()).into());
    };
    let (width, height) = (input.width(), input.height());
    let (mut decoder, mut pixels) = (None, Vec::new());
    if input.format() != Format::Rgba8 {
        let made = Decoder::new(input.format(), width, height, Format::Rgba8)?;
        pixels.resize(made.output().bytes(), 0);
        decoder = Some(made);
    }
    let gpu = Gpu::open(GpuOptions::default())?;
    let encoder = GpuEncoder::new(&gpu, format, width, height)?;
    Ok(Box::new(Encoded { source, decoder, pixels, encoder }))
}

impl Source for Encoded {
    fn layout(&self) -> &Layout {
        self.encoder.output()
    }

    fn rate(&self) -> Rate {
        self.source.rate()
    }

    fn length(&self) -> Option<u64> {
        self.source.length()
    }

    fn next_frame(&mut self) -> Result<Option<Frame>, SourceError> {
        let Some(picture) = self.source.next_frame()? else { return Ok(None) };
        let mut frame = Vec::with_capacity(self.encoder.output().bytes());
        let ready = |_, octets: &[u8]| frame.extend_from_slice(octets);
        let failed = |error: &dyn ToString| SourceError::Encoder(error.to_string());
        let pixels = if let Some(decoder) = &self.decoder {
            decoder.decode(&picture, &mut self.pixels).map_err(|error| failed(&error))?;
            &self.pixels[..]
        } else {
            &picture[..]
        };
        let encoded = self.encoder.encode(pixels, STRIPE_ROWS, ready);
        encoded.map_err(|error| failed(&error))?;
        Ok(Some(Frame::new(frame)))
    }

    fn rewind(&mut self) -> Result<(), SourceError> {
        self.source.rewind()
    }
}
