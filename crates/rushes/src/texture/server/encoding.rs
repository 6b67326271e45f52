//! Encoding of pictures into the stripes of a shape.

use std::ops::Range;
use std::time::Duration;

use rushes_delivery::Stripe;
use rushes_texture::source::GrowingFrame;
use rushes_texture::{CodecError, Encoder, Frame, Layout};

use super::super::error::TextureError;
use super::super::shape::TextureShape;

/// The octets of one picture, shared by the threads that encode it.
#[derive(Clone, Debug)]
pub(super) enum Picture {
    /// All octets are available.
    Whole(Frame),
    /// More octets follow.
    Growing {
        frame: GrowingFrame,
        /// How long recent pictures took to grow, if there were any.
        takes: Option<Duration>,
    },
}

impl Picture {
    /// Returns the number of octets available, from the beginning.
    fn so_far(&self) -> usize {
        match self {
            Self::Whole(frame) => frame.len(),
            Self::Growing { frame, .. } => frame.so_far(),
        }
    }

    /// Returns the octets of its memory.
    pub(super) fn memory(&self) -> usize {
        match self {
            Self::Whole(frame) => frame.len(),
            Self::Growing { frame, .. } => frame.bytes(),
        }
    }

    /// Returns all octets, or an empty slice while the picture still grows.
    fn whole(&self) -> &[u8] {
        match self {
            Self::Whole(frame) => frame,
            Self::Growing { frame, .. } => frame.whole().unwrap_or_default(),
        }
    }
}

/// Encodes pictures to frames of one shape.
pub(super) struct Encoding {
    shape: TextureShape,
    encoder: Encoder,
    passes_through: bool,
}

impl Encoding {
    /// Encodes pictures of the layout `input` to frames of the shape.
    pub(super) fn new(input: Layout, shape: TextureShape) -> Result<Self, TextureError> {
        let encoder = Encoder::between(input, *shape.layout())?;
        Ok(Self { passes_through: input == *shape.layout(), encoder, shape })
    }

    pub(super) fn shape(&self) -> &TextureShape {
        &self.shape
    }

    /// Returns whether pictures are sent as they are.
    pub(super) fn passes_through(&self) -> bool {
        self.passes_through
    }

    /// Returns whether enough of the picture is available for the stripe.
    pub(super) fn is_ready(&self, picture: &Picture, stripe: &Stripe) -> bool {
        let so_far = picture.so_far();
        let tile = self.shape.tiling().tiles().get(stripe.unit);
        let end = tile.filter(|_| self.passes_through).map(|it| it.bytes.start + stripe.bytes.end);
        so_far >= end.unwrap_or_else(|| self.encoder.input().bytes())
    }

    /// Returns the octets of a ready stripe.
    ///
    /// They are in the picture itself if it needs no encoding, otherwise in `scratch`.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the picture has the wrong size.
    pub(super) fn stripe<'a>(
        &self,
        picture: &'a Picture,
        stripe: &Stripe,
        scratch: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], CodecError> {
        self.part(picture, (stripe.unit, stripe.bytes.clone()), scratch)
    }

    /// Returns a range of octets of a unit, as [`stripe`](Self::stripe): only their rows are encoded.
    pub(super) fn part<'a>(
        &self,
        picture: &'a Picture,
        (unit, bytes): (usize, Range<usize>),
        scratch: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], CodecError> {
        let Some(tile) = self.shape.tiling().tiles().get(unit) else { return Ok(&[]) };
        if self.passes_through {
            let range = tile.bytes.start + bytes.start..tile.bytes.start + bytes.end;
            let octets = match picture {
                Picture::Whole(frame) => frame.get(range),
                Picture::Growing { frame, .. } => frame.get(range, scratch),
            };
            return Ok(octets.unwrap_or_default());
        }
        let row_bytes = (tile.bytes.len() / tile.rows.len().max(1)).max(1);
        let rows = bytes.start / row_bytes..bytes.end.div_ceil(row_bytes).min(tile.rows.len());
        scratch.resize(rows.len() * row_bytes, 0);
        let first = tile.rows.start + rows.start as u32;
        let encoded = first..first + rows.len() as u32;
        self.encoder.encode_rows(picture.whole(), tile.plane, encoded, scratch)?;
        let start = bytes.start - rows.start * row_bytes;
        Ok(scratch.get(start..start + bytes.len()).unwrap_or_default())
    }
}
