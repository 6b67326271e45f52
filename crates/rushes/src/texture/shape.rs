//! The size, format, tiles and packets of frames, known to both ends.

use rushes_delivery::Plan;
use rushes_texture::{Format, Layout, Tiling};

use super::error::TextureError;

/// Octets that the kernel takes in one message, those of a packet's headers among them, and packets.
const MESSAGE_BYTES: usize = 65_000;
const HEADERS_BYTES: usize = 32;
const MESSAGE_PACKETS: usize = 64;

/// Messages to the kernel for a stripe, which has messages of its own: full ones, and so many that it fits a
/// processor's second-level cache together with the slab that it is sent from.
const STRIPE_MESSAGES: usize = 4;

/// Octets of a stripe of blocks that may be packed: a small change of the picture costs a small stripe. Blocks take
/// longer to encode than to send.
const PACKED_STRIPE_BYTES: usize = 32 * 1024;

/// The shape of every frame of a stream, until the stream changes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TextureShape {
    layout: Layout,
    tiling: Tiling,
    stripe_rows: u32,
    plan: Plan,
}

impl TextureShape {
    /// Chooses a shape for a server: about `units` tiles of whole block rows.
    ///
    /// `payload` is the number of octets that a packet carries after its header.
    ///
    /// # Errors
    ///
    /// [`TextureError::Layout`] and [`TextureError::Plan`] for invalid sizes.
    pub fn choose(
        format: Format,
        width: u32,
        height: u32,
        units: usize,
        payload: usize,
    ) -> Result<Self, TextureError> {
        Self::choose_for(Layout::new(format, width, height)?, units, payload)
    }

    /// Chooses a shape for frames of a layout, as [`choose`](Self::choose).
    ///
    /// # Errors
    ///
    /// [`TextureError::Plan`] for invalid sizes.
    pub fn choose_for(layout: Layout, units: usize, payload: usize) -> Result<Self, TextureError> {
        let tiling = Tiling::balanced(&layout, units);
        let stripe_rows = rows_in(&layout, stripe_bytes(payload));
        Self::new(layout, tiling, stripe_rows, payload)
    }

    /// Returns the shape with stripes that may be packed: smaller ones of blocks, and the same of pixels.
    pub(super) fn packed(self) -> Result<Self, TextureError> {
        if self.layout.format().planes()[0].block.height == 1 {
            return Ok(self);
        }
        let stripe_rows = rows_in(&self.layout, PACKED_STRIPE_BYTES);
        let payload = self.plan.payload();
        Self::new(self.layout, self.tiling, stripe_rows, payload)
    }

    /// Returns the shape that a server announced, by the units of each plane and the block rows of
    /// a stripe.
    ///
    /// # Errors
    ///
    /// [`TextureError`] for invalid values.
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

    /// Returns where a frame's octets lie.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the division of a frame into units.
    pub fn tiling(&self) -> &Tiling {
        &self.tiling
    }

    /// Returns the number of block rows that are encoded and sent in one piece.
    pub fn stripe_rows(&self) -> u32 {
        self.stripe_rows
    }

    /// Returns the division of units into packets.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }
}

/// Returns the octets that the messages of a stripe have room for, in packets of `payload` octets. Larger packets are
/// those of TCP, which has no messages.
fn stripe_bytes(payload: usize) -> usize {
    let message = match MESSAGE_BYTES / payload.saturating_add(HEADERS_BYTES) {
        0 => MESSAGE_BYTES,
        packets => packets.min(MESSAGE_PACKETS) * payload,
    };
    STRIPE_MESSAGES * message
}

/// Returns the block rows of the widest plane that have about `bytes` octets.
fn rows_in(layout: &Layout, bytes: usize) -> u32 {
    let row_bytes = layout.planes().iter().map(|plane| plane.row_bytes).max().unwrap_or(1);
    (bytes / row_bytes).max(1) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stripes_fill_messages_and_are_no_larger() {
        let octets = [4 * 45 * 1_408, 4 * 64 * 100, 4 * 7 * 8_900];
        assert_eq!([1_408, 100, 8_900].map(stripe_bytes), octets);
        assert_eq!([262_144, 1 << 20, usize::MAX].map(stripe_bytes), [260_000; 3], "TCP");
        // 1 080 rows of 1 920 pixels, in packets that fit Ethernet's.
        let shape = TextureShape::choose(Format::Rgba8, 1_920, 1_080, 4, 1_408).unwrap();
        assert_eq!((shape.stripe_rows(), shape.packed().unwrap().stripe_rows()), (33, 33));
        let shape = TextureShape::choose(Format::Bc1, 1_920, 1_080, 4, 1_408).unwrap();
        assert_eq!((shape.stripe_rows(), shape.packed().unwrap().stripe_rows()), (66, 8));
    }
}
