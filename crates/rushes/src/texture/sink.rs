//! The destination of received frames.

use std::fmt;
use std::sync::Mutex;
use std::time::Instant;

use rushes_delivery::{Ending, Gap};

use super::lock;
use super::shape::TextureShape;

/// Memory that a unit's octets are received into: plain, or mapped from a graphics processor.
pub trait Region: Send {
    /// The octets, as many as the unit has.
    fn octets(&mut self) -> &mut [u8];

    /// Called when all octets of this frame's tile are in place.
    ///
    /// Nothing more is written here until [`TextureSink::frame_done`] has returned.
    /// [`TextureSink::tile_ready`] follows. Memory that must be passed to a graphics processor as a
    /// whole is passed now.
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
/// Octets are received directly into the regions that the sink provides; it is notified when a tile
/// is complete, while others still arrive, and when a frame is. The receiving threads make the
/// calls, and at a change and at the end the thread of the control connection: lengthy work belongs
/// on another thread. Within a call the client must be neither stopped nor dropped.
pub trait TextureSink: Send + Sync {
    /// Returns memory for `slots` frames of this shape: a stream begins, or changes.
    ///
    /// Frames of the previous shape have been handed over or given up before.
    ///
    /// # Errors
    ///
    /// A text that explains why there is none; the client stops with it.
    fn begin(&self, shape: &TextureShape, slots: usize) -> Result<Vec<FrameMemory>, String> {
        Ok(plain_memory(shape, slots))
    }

    /// All octets of a unit are in place; the frame may still lack others.
    ///
    /// Tiles of different frames may be reported in any order, and so may those of one frame. A
    /// tile that lacked packets is reported after they were concealed, before `frame_done`.
    fn tile_ready(&self, _slot: usize, _unit: usize) {}

    /// Replaces octets of a frame that did not arrive in time by those of the previous frame.
    ///
    /// The previous frame is in the slot `previous`. No thread uses the memory of either until this
    /// returns. If it returns false, the client copies the octets by [`Region::octets`]. A sink
    /// that wraps another passes the call on. This is for memory of a graphics processor, which the
    /// main processor reads slowly.
    fn conceal(&self, _slot: usize, _previous: usize, _gaps: &[Gap]) -> bool {
        false
    }

    /// A frame is complete, or its missing octets are those of the previous frame.
    ///
    /// Calls follow the order of frames, one at a time; the memory is unchanged until this returns.
    fn frame_done(&self, frame: &TextureFrame<'_>);

    /// The stream has ended: nothing more arrives.
    fn end(&self) {}
}

/// Plain memory for `slots` frames.
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
    /// The frame's number in the stream, from 0.
    pub fn number(&self) -> u64 {
        self.ending.frame
    }

    /// The frame's shape.
    pub fn shape(&self) -> &TextureShape {
        self.shape
    }

    /// The index of its memory in the result of [`TextureSink::begin`].
    pub fn slot(&self) -> usize {
        self.ending.slot
    }

    /// Whether every packet of it arrived.
    pub fn is_whole(&self) -> bool {
        self.ending.whole
    }

    /// Packets that did not arrive in time.
    pub fn packets_missing(&self) -> u32 {
        self.ending.missing
    }

    /// The octets that did not arrive: they are the previous frame's, or 0 if there is none.
    pub fn concealed(&self) -> &[Gap] {
        self.gaps
    }

    /// When its first packet arrived.
    pub fn first_at(&self) -> Instant {
        self.ending.first_at
    }

    /// When its last octets were in place.
    pub fn done_at(&self) -> Instant {
        self.done_at
    }

    /// Calls `read` with one unit's octets; `None` if there is no such unit.
    ///
    /// It must not be called again within `read` for the same unit.
    pub fn with_unit<T>(&self, unit: usize, read: impl FnOnce(&[u8]) -> T) -> Option<T> {
        let mut region = lock(self.memory.get(unit)?);
        Some(read(region.octets()))
    }

    /// Copies the frame's octets, unit after unit in the order of [`TextureShape::layout`].
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
