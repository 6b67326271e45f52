//! Pictures into stripes of a shape.

use rushes_proto::delivery::Stripe;
use rushes_texture::CodecError;
use rushes_texture::Encoder;
use rushes_texture::Format;

use super::super::error::TextureError;
use super::super::shape::TextureShape;

/// The octets of one picture, shared by all who encode it.
pub(super) use rushes_texture::Frame as Picture;

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

    /// The octets of a stripe: of the picture itself where nothing is to be encoded, else in
    /// `scratch`.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the picture is not as large as it should be.
    pub(super) fn stripe<'a>(
        &self,
        picture: &'a [u8],
        stripe: &Stripe,
        scratch: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], CodecError> {
        let Some(tile) = self.shape.tiling().tiles().get(stripe.unit) else { return Ok(&[]) };
        if self.passes_through {
            let start = tile.bytes.start + stripe.bytes.start;
            return Ok(picture.get(start..start + stripe.bytes.len()).unwrap_or_default());
        }
        let first = tile.rows.start + stripe.index as u32 * self.shape.stripe_rows();
        let rows = first..(first + self.shape.stripe_rows()).min(tile.rows.end);
        scratch.resize(stripe.bytes.len(), 0);
        self.encoder.encode_rows(picture, tile.plane, rows, scratch)?;
        Ok(scratch)
    }
}
