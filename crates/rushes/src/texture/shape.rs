//! What both ends know of every frame: its size, its format, its tiles, its packets.

use rushes_proto::delivery::Plan;
use rushes_texture::Format;
use rushes_texture::Layout;
use rushes_texture::Tiling;

use super::error::TextureError;

/// Octets that a stripe should have at most: what a processor's second-level cache holds together
/// with the slab it is sent from.
const STRIPE_BYTES: usize = 256 * 1024;

/// What every frame of a stream looks like, until the stream changes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TextureShape {
    layout: Layout,
    tiling: Tiling,
    stripe_rows: u32,
    plan: Plan,
}

impl TextureShape {
    /// The shape that a server chooses: about `units` tiles of whole block rows.
    ///
    /// `payload` is how many octets a packet carries behind its header.
    ///
    /// # Errors
    ///
    /// [`TextureError::Layout`] and [`TextureError::Plan`] for sizes that cannot be.
    pub fn choose(
        format: Format,
        width: u32,
        height: u32,
        units: usize,
        payload: usize,
    ) -> Result<Self, TextureError> {
        let layout = Layout::new(format, width, height)?;
        let tiling = Tiling::balanced(&layout, units);
        let row_bytes = layout.planes().iter().map(|plane| plane.row_bytes).max().unwrap_or(1);
        let stripe_rows = (STRIPE_BYTES / row_bytes).max(1) as u32;
        Self::new(layout, tiling, stripe_rows, payload)
    }

    /// The shape that a server has told: units of each plane, block rows of a stripe.
    ///
    /// # Errors
    ///
    /// [`TextureError`] for what cannot be.
    pub fn given(
        layout: Layout,
        per_plane: &[u8],
        stripe_rows: u32,
        payload: usize,
    ) -> Result<Self, TextureError> {
        Self::new(layout, Tiling::with_units(&layout, per_plane)?, stripe_rows, payload)
    }

    fn new(
        layout: Layout,
        tiling: Tiling,
        stripe_rows: u32,
        payload: usize,
    ) -> Result<Self, TextureError> {
        let units = tiling.tiles().iter().map(|tile| {
            let row_bytes = layout.planes()[tile.plane].row_bytes;
            (tile.bytes.len(), row_bytes.saturating_mul(stripe_rows as usize))
        });
        let units: Vec<_> = units.collect();
        let plan = Plan::new(&units, payload)?;
        Ok(Self { layout, tiling, stripe_rows, plan })
    }

    /// Where a frame's octets lie.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// How a frame is cut into units.
    pub fn tiling(&self) -> &Tiling {
        &self.tiling
    }

    /// Block rows that are made and sent in one piece.
    pub fn stripe_rows(&self) -> u32 {
        self.stripe_rows
    }

    /// How units are cut into packets.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }
}
