//! The destination of received frames.

use std::fmt;
use std::sync::Mutex;
use std::time::Instant;

use rushes_delivery::{Ending, Gap};

use super::lock;
use super::shape::TextureShape;

/// Memory that a unit's octets are received into: plain, or mapped from a graphics processor.
pub trait Region: Send {
    /// Returns the octets of the unit.
    fn octets(&mut self) -> &mut [u8];

    /// Called when all octets of this frame's tile are in place.
    ///
    /// Nothing more is written here until [`TextureSink::frame_done`] has returned.
    /// [`TextureSink::tile_ready`] follows. A sink that passes memory to a graphics processor as a
    /// whole passes it in this call.
    fn filled(&mut self) {}
}

impl Region for Vec<u8> {
    fn octets(&mut self) -> &mut [u8] {
        self
    }
}

impl Region for Box<[u8]> {
    fn octets(&mut self) -> &mut [u8] {
        self
    }
}

/// Memory for one frame: a region for each unit, in the order of the tiles.
pub type FrameMemory = Vec<Box<dyn Region>>;

/// Receives frames.
///
/// Octets are received directly into the regions that the sink provides. The sink is notified when
/// a tile is complete, while others still arrive, and when a frame is complete. The receiving
/// threads call it, and at a change and at the end also the thread of the control connection, so
/// lengthy work belongs on another thread. Within a call the client must be neither stopped nor
/// dropped.
///
/// To compute lost packets from repair packets ([`ServerOptions::fec`](crate::texture::ServerOptions::fec)), the client
/// reads the octets of up to 256 other packets by [`Region::octets`], which takes longer in memory of a graphics
/// processor that the main processor reads slowly.
pub trait TextureSink: Send + Sync {
    /// Called when a stream begins or changes; returns memory for `slots` frames of this shape.
    ///
    /// All frames of the previous shape have been delivered or dropped before this call.
    ///
    /// # Errors
    ///
    /// A text that explains why there is no memory; the client stops with it as the reason.
    fn begin(&self, shape: &TextureShape, slots: usize) -> Result<Vec<FrameMemory>, String> {
        Ok(plain_memory(shape, slots))
    }

    /// Called when all octets of a unit are in place; other units may still be incomplete.
    ///
    /// Tiles of different frames may be reported in any order, and so may those of one frame. A
    /// tile that lacked packets is reported after they were concealed, before `frame_done`.
    fn tile_ready(&self, _slot: usize, _unit: usize) {}

    /// Copies octets from the previous frame to a frame: those that did not arrive in time, and those that
    /// the server did not send because they are the same (`gaps` has both).
    ///
    /// The previous frame is in the slot `previous`. No thread uses the memory of either until this
    /// returns. If it returns false, the client copies the octets by [`Region::octets`]. A sink
    /// that wraps another must forward the call. The method exists for memory of a graphics
    /// processor, which the main processor reads slowly.
    fn conceal(&self, _slot: usize, _previous: usize, _gaps: &[Gap]) -> bool {
        false
    }

    /// Called when a frame is complete, or its missing octets were replaced with those of the
    /// previous frame.
    ///
    /// Calls follow the order of frames, one at a time. The memory is unchanged until the call for the next
    /// frame returns, or a shape follows ([`begin`](Self::begin)): a sink may leave it to a device or another
    /// thread that long.
    fn frame_done(&self, frame: &TextureFrame<'_>);

    /// Called when the server reports when it captured a frame; `at` is that time by the clock of this machine.
    ///
    /// The report follows the frame, so the call is usually made shortly after `frame_done`, but may come before
    /// it. There is none for frames that were reported before the clocks were compared, but one for frames that
    /// were lost on the way. The error of the comparison is that of [`ClientStatistics::latency_error`](crate::texture::ClientStatistics::latency_error).
    ///
    /// To present a video evenly, show each frame at a fixed time after its capture.
    fn captured(&self, _number: u64, _at: Instant) {}

    /// Called when the stream has ended and nothing more arrives.
    fn end(&self) {}
}

/// Allocates plain memory for `slots` frames.
pub fn plain_memory(shape: &TextureShape, slots: usize) -> Vec<FrameMemory> {
    let frame = || {
        let tiles = shape.tiling().tiles().iter();
        tiles.map(|tile| Box::new(vec![0_u8; tile.bytes.len()]) as Box<dyn Region>).collect()
    };
    (0..slots).map(|_| frame()).collect()
}

/// The memory of one frame, unit by unit: units may be written concurrently.
pub(super) type Slot = Vec<Mutex<Box<dyn Region>>>;

/// A received frame, lent to [`TextureSink::frame_done`].
pub struct TextureFrame<'a> {
    pub(super) shape: &'a TextureShape,
    pub(super) ending: Ending,
    pub(super) gaps: &'a [Gap],
    pub(super) memory: &'a Slot,
    pub(super) done_at: Instant,
}

impl fmt::Debug for TextureFrame<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextureFrame")
            .field("number", &self.ending.frame)
            .field("missing", &self.ending.missing)
            .finish_non_exhaustive()
    }
}

impl TextureFrame<'_> {
    /// Returns the frame's number in the stream, from 0.
    pub fn number(&self) -> u64 {
        self.ending.frame
    }

    /// Returns the frame's shape.
    pub fn shape(&self) -> &TextureShape {
        self.shape
    }

    /// Returns the index of the frame's memory in the result of [`TextureSink::begin`].
    pub fn slot(&self) -> usize {
        self.ending.slot
    }

    /// Returns whether every packet of the frame arrived, and no stripe is stale.
    pub fn is_whole(&self) -> bool {
        self.ending.whole
    }

    /// Returns the number of packets that did not arrive in time; it is 0 only if the frame is whole.
    ///
    /// A stale stripe, which the server reported as unchanged although its octets had not arrived before, counts
    /// as one.
    pub fn packets_missing(&self) -> u32 {
        self.ending.missing.saturating_add(self.ending.stale)
    }

    /// Returns the ranges of octets that did not arrive, or that the server reported as unchanged although they
    /// had not arrived before. They contain the previous frame's octets, or 0 if there is none.
    pub fn concealed(&self) -> &[Gap] {
        self.gaps
    }

    /// Returns when the frame's first packet arrived.
    pub fn first_at(&self) -> Instant {
        self.ending.first_at
    }

    /// Returns when the frame's last octets were in place.
    pub fn done_at(&self) -> Instant {
        self.done_at
    }

    /// Calls `read` with one unit's octets; returns `None` if there is no such unit.
    ///
    /// `read` must not call it again for the same unit.
    pub fn with_unit<T>(&self, unit: usize, read: impl FnOnce(&[u8]) -> T) -> Option<T> {
        let mut region = lock(self.memory.get(unit)?);
        Some(read(region.octets()))
    }

    /// Copies the frame's octets, in the order of [`TextureShape::layout`].
    ///
    /// Units that do not fit into `octets` are left out.
    pub fn copy_to(&self, octets: &mut [u8]) {
        for (tile, region) in self.shape.tiling().tiles().iter().zip(self.memory) {
            if let Some(to) = octets.get_mut(tile.bytes.clone()) {
                to.copy_from_slice(lock(region).octets());
            }
        }
    }
}

/// Receives frames into plain memory, and passes them to a function.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use rushes::texture::{MemorySink, TextureFrame};
///
/// static OCTETS: AtomicU64 = AtomicU64::new(0);
/// let sink = MemorySink::new(|frame: &TextureFrame<'_>| {
///     OCTETS.fetch_add(frame.shape().layout().bytes() as u64, Ordering::Relaxed);
/// });
/// # let _: &dyn rushes::texture::TextureSink = &sink;
/// ```
pub struct MemorySink<F>(F);

impl<F: Fn(&TextureFrame<'_>) + Send + Sync> MemorySink<F> {
    /// Calls `read` for every frame, on a receiving thread.
    pub fn new(read: F) -> Self {
        Self(read)
    }
}

impl<F: Fn(&TextureFrame<'_>) + Send + Sync> TextureSink for MemorySink<F> {
    fn frame_done(&self, frame: &TextureFrame<'_>) {
        (self.0)(frame);
    }
}

impl<F> fmt::Debug for MemorySink<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemorySink").finish_non_exhaustive()
    }
}
