//! Where received frames go.

use std::fmt;
use std::sync::Mutex;
use std::time::Instant;

use rushes_proto::delivery::Ending;
use rushes_proto::delivery::Gap;

use super::lock;
use super::shape::TextureShape;

/// Memory that a unit's octets are received into: plain, or mapped from a graphics processor.
pub trait Region: Send {
    /// The octets, as many as the unit has.
    fn octets(&mut self) -> &mut [u8];

    /// All octets of this frame's tile are in place: nothing more is written here until
    /// [`TextureSink::frame_done`] has returned. [`TextureSink::tile_ready`] follows.
    ///
    /// Memory that must be given to a graphics processor as a whole goes to it now.
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

/// Takes frames as they come in.
///
/// Octets are received straight into the regions that the sink gives; it is told when a tile is
/// whole, while others still come, and when a frame is. The threads that receive make the calls, and
/// at a change and at the end the one of the control connection: what takes long belongs on another
/// thread. Within a call the client must be neither stopped nor dropped.
pub trait TextureSink: Send + Sync {
    /// A stream begins, or changes: the memory for `slots` frames of this shape, please.
    ///
    /// A call for a frame of the shape before that has lasted for a second may still run; frames that
    /// waited behind it are given up.
    ///
    /// # Errors
    ///
    /// A text that says why there is none; the client stops with it.
    fn begin(&self, shape: &TextureShape, slots: usize) -> Result<Vec<FrameMemory>, String> {
        Ok(plain_memory(shape, slots))
    }

    /// All octets of a unit are in place; the frame may still lack others.
    ///
    /// Tiles of different frames may be told in any order, and so may those of one frame. A tile
    /// that lacked packets is told after they were concealed, before `frame_done`.
    fn tile_ready(&self, _slot: usize, _unit: usize) {}

    /// Octets of a frame did not come in time: puts those there that the frame before has, which is
    /// in the slot `previous`. Nobody uses the memory of either until this returns. False leaves it to
    /// the client, which copies them by way of [`Region::octets`]; a sink around another asks that.
    ///
    /// For memory of a graphics processor, which the main processor reads slowly.
    fn conceal(&self, _slot: usize, _previous: usize, _gaps: &[Gap]) -> bool {
        false
    }

    /// A frame is whole, or its missing octets are those of the frame before it.
    ///
    /// Frames come in order and one at a time; the memory stays as it is until this returns.
    fn frame_done(&self, frame: &TextureFrame<'_>);

    /// The stream has ended: nothing more comes.
    fn end(&self) {}
}

/// Memory of the plain kind for so many frames.
pub fn plain_memory(shape: &TextureShape, slots: usize) -> Vec<FrameMemory> {
    let frame = || {
        let tiles = shape.tiling().tiles().iter();
        tiles.map(|tile| Box::new(vec![0_u8; tile.bytes.len()]) as Box<dyn Region>).collect()
    };
    (0..slots).map(|_| frame()).collect()
}

/// The memory of one frame, unit by unit: each may be written while another is.
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

    /// What it looks like.
    pub fn shape(&self) -> &TextureShape {
        self.shape
    }

    /// The memory that it is in: the place in what [`TextureSink::begin`] gave.
    pub fn slot(&self) -> usize {
        self.ending.slot
    }

    /// Whether every packet of it came.
    pub fn is_whole(&self) -> bool {
        self.ending.whole
    }

    /// Packets that did not come in time.
    pub fn packets_missing(&self) -> u32 {
        self.ending.missing
    }

    /// The octets that did not come: they are the previous frame's, or 0 if there is none.
    pub fn concealed(&self) -> &[Gap] {
        self.gaps
    }

    /// When its first packet came.
    pub fn first_at(&self) -> Instant {
        self.ending.first_at
    }

    /// When its last octets were in place.
    pub fn done_at(&self) -> Instant {
        self.done_at
    }

    /// Looks at one unit's octets; `None` if there is no such unit. Not to be called again within
    /// `look` for the same unit.
    pub fn with_unit<T>(&self, unit: usize, look: impl FnOnce(&[u8]) -> T) -> Option<T> {
        let mut region = lock(self.memory.get(unit)?);
        Some(look(region.octets()))
    }

    /// Copies the frame's octets, unit behind unit as they lie in a frame ([`TextureShape::layout`]).
    ///
    /// What does not fit into `octets` is left out.
    pub fn copy_to(&self, octets: &mut [u8]) {
        for (tile, region) in self.shape.tiling().tiles().iter().zip(self.memory) {
            if let Some(to) = octets.get_mut(tile.bytes.clone()) {
                to.copy_from_slice(lock(region).octets());
            }
        }
    }
}

/// Frames in plain memory, looked at by a function.
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
    /// Calls `look` for every frame, on a receiving thread.
    pub fn new(look: F) -> Self {
        Self(look)
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
