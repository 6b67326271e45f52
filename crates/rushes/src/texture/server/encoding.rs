//! Encoding of pictures into the stripes of a shape.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use rushes_delivery::Stripe;
use rushes_texture::source::GrowingFrame;
use rushes_texture::{CodecError, Encoder, Frame, Layout, Quality, Scaler};

use super::super::error::TextureError;
use super::super::shape::TextureShape;
use super::scaled::{ScaledPicture, Scaling};

/// Rows of the picture around those of a stripe that count as its own. Encoded blocks have 4 rows of pixels,
/// of which the last one may reach beyond the picture.
const MARGIN_ROWS: usize = 8;

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
    /// A picture of another size, which is made when it is needed.
    Scaled(Arc<ScaledPicture>),
}

impl Picture {
    /// Returns the number of octets available, from the beginning.
    pub(super) fn so_far(&self) -> usize {
        match self {
            Self::Whole(frame) => frame.len(),
            Self::Growing { frame, .. } => frame.so_far(),
            Self::Scaled(scaled) => {
                if scaled.is_ready() {
                    scaled.layout().bytes()
                } else {
                    0
                }
            }
        }
    }

    /// Returns the octets of its memory.
    pub(super) fn memory(&self) -> usize {
        match self {
            Self::Whole(frame) => frame.len(),
            Self::Growing { frame, .. } => frame.bytes(),
            Self::Scaled(scaled) => scaled.memory(),
        }
    }

    /// Returns whether both pictures are complete and have the same octets in this range.
    fn is_same(&self, other: &Self, range: Range<usize>) -> bool {
        let own = self.whole().get(range.clone());
        own.is_some_and(|own| other.whole().get(range) == Some(own))
    }

    /// Returns all octets, or an empty slice while the picture still grows.
    pub(super) fn whole(&self) -> &[u8] {
        match self {
            Self::Whole(frame) => frame,
            Self::Growing { frame, .. } => frame.whole().unwrap_or_default(),
            Self::Scaled(scaled) => scaled.octets(),
        }
    }
}

/// Encodes pictures to frames of one shape.
pub(super) struct Encoding {
    shape: TextureShape,
    encoder: Encoder,
    passes_through: bool,
    /// Of which version of the source's layout the pictures are.
    version: u64,
    /// What makes smaller pictures of the source's, if the client requested them.
    scaling: Option<Arc<Scaling>>,
}

impl Encoding {
    /// Encodes pictures of the layout `input` to frames of the shape.
    pub(super) fn new(input: Layout, shape: TextureShape) -> Result<Self, TextureError> {
        let encoder = Encoder::between(input, *shape.layout())?;
        let passes_through = input == *shape.layout();
        Ok(Self { passes_through, encoder, shape, version: 0, scaling: None })
    }

    /// Encodes what the scaler makes of the source's pictures, if there is one.
    pub(super) fn with_scaler(self, scaler: Option<Scaler>) -> Self {
        Self { scaling: scaler.map(Scaling::new).map(Arc::new), ..self }
    }

    /// Returns what makes smaller pictures of the source's, if they are sent so.
    pub(super) fn scaling(&self) -> Option<&Arc<Scaling>> {
        self.scaling.as_ref()
    }

    /// Returns the picture to encode for one of the source's; `scaled` is what is shared of it with other sessions, if
    /// it has the right size.
    pub(super) fn prepare(&self, source: Picture, scaled: Option<Arc<ScaledPicture>>) -> Picture {
        let Some(scaling) = &self.scaling else { return source };
        let scaled = scaled.filter(|scaled| scaled.layout() == scaling.output());
        let own = || Arc::new(ScaledPicture::new(scaling.clone(), source));
        Picture::Scaled(scaled.unwrap_or_else(own))
    }

    /// Encodes pictures of this version of the source's layout.
    pub(super) fn with_version(self, version: u64) -> Self {
        Self { version, ..self }
    }

    /// Returns of which version of the source's layout the pictures are.
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    /// Selects how near to the pictures blocks are.
    pub(super) fn with_quality(self, quality: Quality) -> Self {
        Self { encoder: self.encoder.with_quality(quality), ..self }
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

    /// Returns whether a ready stripe is made of the same octets in both pictures: those of its rows, and
    /// of a few around them, from which colours may be interpolated.
    pub(super) fn is_same(&self, picture: &Picture, before: &Picture, stripe: &Stripe) -> bool {
        let Some(tile) = self.shape.tiling().tiles().get(stripe.unit) else { return false };
        if self.passes_through {
            let start = tile.bytes.start;
            let range = start + stripe.bytes.start..start + stripe.bytes.end;
            return picture.is_same(before, range);
        }
        let output = self.shape.layout().planes();
        let Some(plane) = output.get(tile.plane).filter(|plane| plane.rows > 0) else {
            return false;
        };
        let row_bytes = plane.row_bytes.max(1);
        let first = tile.rows.start as usize + stripe.bytes.start / row_bytes;
        let end = tile.rows.start as usize + stripe.bytes.end.div_ceil(row_bytes);
        let rows = plane.rows as usize;
        self.encoder.input().planes().iter().all(|input| {
            let all = input.rows as usize;
            // Rows of both planes cover the same height; the last one of either may reach beyond it.
            let first = (first * all / rows).saturating_sub(MARGIN_ROWS);
            let end = ((end * all).div_ceil(rows) + MARGIN_ROWS).min(all);
            let at = |row: usize| input.offset + row * input.row_bytes;
            picture.is_same(before, at(first)..at(end))
        })
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
                Picture::Scaled(scaled) => scaled.octets().get(range),
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
