//! Pictures into stripes of a shape.

use std::time::Duration;

use rushes_proto::delivery::Stripe;
use rushes_texture::CodecError;
use rushes_texture::Encoder;
use rushes_texture::Format;
use rushes_texture::Frame;
use rushes_texture::source::GrowingFrame;

use super::super::error::TextureError;
use super::super::shape::TextureShape;

/// The octets of one picture, shared by all who encode it.
#[derive(Clone, Debug)]
pub(super) enum Picture {
    /// All of them are there.
    Whole(Frame),
    /// More come.
    Growing {
        frame: GrowingFrame,
        /// How long the last ones took to be whole, if there were some.
        takes: Option<Duration>,
    },
}

impl Picture {
    /// Octets that are there, from its beginning.
    fn so_far(&self) -> usize {
        match self {
            Self::Whole(frame) => frame.len(),
            Self::Growing { frame, .. } => frame.so_far(),
        }
    }

    /// All of them; of one that still grows, none.
    fn whole(&self) -> &[u8] {
        match self {
            Self::Whole(frame) => frame,
            Self::Growing { frame, .. } => frame.whole().unwrap_or_default(),
        }
    }
}

/// How pictures become frames of one shape.
pub(super) struct Encoding {
    shape: TextureShape,
    encoder: Encoder,
    passes_through: bool,
}

impl Encoding {
    /// From pictures of the format `input` to frames of the shape.
    pub(super) fn new(input: Format, shape: TextureShape) -> Result<Self, TextureError> {
        let layout = shape.layout();
        let encoder = Encoder::new(input, layout.format(), layout.width(), layout.height())?;
        Ok(Self { passes_through: input == layout.format(), encoder, shape })
    }

    pub(super) fn shape(&self) -> &TextureShape {
        &self.shape
    }

    /// Whether so much of the picture is there that the stripe can be had.
    pub(super) fn is_ready(&self, picture: &Picture, stripe: &Stripe) -> bool {
        let so_far = picture.so_far();
        let tile = self.shape.tiling().tiles().get(stripe.unit);
        let end = tile.filter(|_| self.passes_through).map(|it| it.bytes.start + stripe.bytes.end);
        so_far >= end.unwrap_or_else(|| self.encoder.input().bytes())
    }

    /// The octets of a stripe that is ready: of the picture itself where nothing is to be encoded,
    /// else in `scratch`.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the picture is not as large as it should be.
    pub(super) fn stripe<'a>(
        &self,
        picture: &'a Picture,
        stripe: &Stripe,
        scratch: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], CodecError> {
        let Some(tile) = self.shape.tiling().tiles().get(stripe.unit) else { return Ok(&[]) };
        if self.passes_through {
            let start = tile.bytes.start + stripe.bytes.start;
            let range = start..start + stripe.bytes.len();
            let octets = match picture {
                Picture::Whole(frame) => frame.get(range),
                Picture::Growing { frame, .. } => frame.get(range, scratch),
            };
            return Ok(octets.unwrap_or_default());
        }
        let first = tile.rows.start + stripe.index as u32 * self.shape.stripe_rows();
        let rows = first..(first + self.shape.stripe_rows()).min(tile.rows.end);
        scratch.resize(stripe.bytes.len(), 0);
        self.encoder.encode_rows(picture.whole(), tile.plane, rows, scratch)?;
        Ok(scratch)
    }
}
