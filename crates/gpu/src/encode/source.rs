//! A source whose frames the graphics processor encodes.

use std::fmt;
use std::sync::Arc;

use rushes_texture::source::{Live, SourceError, Taker};
use rushes_texture::{Decoder, Format, Frame, Layout, Rate, Source};

use crate::device::Gpu;
use crate::encode::GpuEncoder;
use crate::encode::memory::{Memory, STRIPE_ROWS};
use crate::error::GpuError;

/// A source that encodes the pictures of another source to formats of [`GpuEncoder`].
///
/// A server sends the first rows of such a frame while the device encodes the others. Over UDP and
/// RTP it does so only if encoding takes less than half the time between frames and less than 25
/// ms, because a client considers much later packets lost. Pictures that are not RGBA8 are first
/// converted by the main processor.
///
/// ```no_run
/// use rushes::texture::{ServerOptions, TextureServer};
/// use rushes::texture::source::{RawHint, open};
/// use rushes_gpu::{EncodedSource, Gpu, GpuOptions};
/// use rushes_texture::Format;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let gpu = Gpu::open(GpuOptions::default())?;
/// let pictures = open("pattern:1920x1080@60,rgba8".as_ref(), &RawHint::default())?;
/// let frames = EncodedSource::new(&gpu, pictures, Format::Bc1)?;
/// let server = TextureServer::serve("0.0.0.0:7000".parse()?, frames, ServerOptions::default())?;
/// # Ok(())
/// # }
/// ```
pub struct EncodedSource<S> {
    gpu: Gpu,
    source: S,
    encoding: Encoding,
    memory: Memory,
}

/// The conversion of pictures to frames.
struct Encoding {
    input: Layout,
    /// Converts pictures of other formats to RGBA8.
    decoder: Option<Decoder>,
    pixels: Vec<u8>,
    encoder: GpuEncoder,
}

impl<S> fmt::Debug for EncodedSource<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EncodedSource")
            .field("encoder", &self.encoding.encoder)
            .finish_non_exhaustive()
    }
}

impl<S: Source> EncodedSource<S> {
    /// Creates a source of the pictures of `source`, encoded to `format`.
    ///
    /// # Errors
    ///
    /// The errors of [`GpuEncoder::new`]; [`GpuError::Codec`] also if the source's format cannot be
    /// converted to RGBA8.
    pub fn new(gpu: &Gpu, source: S, format: Format) -> Result<Self, GpuError> {
        let encoding = Encoding::new(gpu, source.layout(), format)?;
        Ok(Self { gpu: gpu.clone(), source, encoding, memory: Memory::default() })
    }

    /// Returns the next picture, whose layout is that of the encoding.
    fn next_picture(&mut self) -> Result<Option<Frame>, SourceError> {
        let Some(picture) = self.source.next_frame()? else { return Ok(None) };
        let input = self.source.layout();
        if *input != self.encoding.input {
            let encoding = Encoding::new(&self.gpu, input, self.layout().format());
            let encoding = encoding.map_err(|error| SourceError::Encoder(error.to_string()))?;
            (self.encoding, self.memory) = (encoding, Memory::default());
        }
        Ok(Some(picture))
    }
}

impl Encoding {
    fn new(gpu: &Gpu, input: &Layout, format: Format) -> Result<Self, GpuError> {
        let (mut decoder, mut pixels) = (None, Vec::new());
        if input.format() != Format::Rgba8 {
            let made = Decoder::of(*input, Format::Rgba8)?;
            pixels.resize(made.output().bytes(), 0);
            decoder = Some(made);
        }
        let encoder = GpuEncoder::of(gpu, input, format)?;
        Ok(Self { input: *input, decoder, pixels, encoder })
    }

    /// Encodes a picture; `ready` is called with each stripe.
    fn encode(&mut self, picture: &[u8], mut ready: impl FnMut(&[u8])) -> Result<(), SourceError> {
        let failed = |error: &dyn ToString| SourceError::Encoder(error.to_string());
        let pixels = if let Some(decoder) = &self.decoder {
            decoder.decode(picture, &mut self.pixels).map_err(|error| failed(&error))?;
            &self.pixels[..]
        } else {
            picture
        };
        let encoded = self.encoder.encode(pixels, STRIPE_ROWS, |_, octets| ready(octets));
        encoded.map_err(|error| failed(&error))
    }
}

impl<S: Source> Source for EncodedSource<S> {
    fn layout(&self) -> &Layout {
        self.encoding.encoder.output()
    }

    fn rate(&self) -> Rate {
        self.source.rate()
    }

    fn length(&self) -> Option<u64> {
        self.source.length()
    }

    fn next_frame(&mut self) -> Result<Option<Frame>, SourceError> {
        let Some(picture) = self.next_picture()? else { return Ok(None) };
        let layout = *self.layout();
        let fill = |frame: &mut Vec<u8>| {
            self.encoding.encode(&picture, |octets| frame.extend_from_slice(octets))
        };
        self.memory.whole(&layout, fill).map(Some)
    }

    fn give_frame(&mut self, to: &mut dyn Taker) -> Result<bool, SourceError> {
        let Some(picture) = self.next_picture()? else { return Ok(false) };
        to.change(self.layout());
        let frame = self.memory.growing(self.encoding.encoder.output());
        to.begin(&frame);
        let mut fits = true;
        self.encoding.encode(&picture, |octets| {
            fits &= frame.add(octets);
            to.grown();
        })?;
        // This fails if the device returned other stripes than requested.
        if fits { Ok(true) } else { Err(SourceError::Encoder("a stripe is missing".to_owned())) }
    }

    fn live(&self) -> Option<Arc<dyn Live>> {
        self.source.live()
    }

    fn rewind(&mut self) -> Result<(), SourceError> {
        self.source.rewind()
    }
}
