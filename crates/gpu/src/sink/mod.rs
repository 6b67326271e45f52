//! Received frames in device memory: tiles are copied when they arrive, frames are drawn when
//! complete.

mod hand_over;
mod pool;
mod ring;
mod staging;
mod written;

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Instant;

use rushes::texture::{FrameMemory, Gap, TextureFrame, TextureShape, TextureSink};

use rushes_texture::Layout;

use crate::decode::Path;
use crate::device::Gpu;
use crate::error::GpuError;
use crate::export::MemoryHandle;
use crate::frame::{DeviceFrame, not_exported};
use crate::mapped::Exported;
use hand_over::{HandOver, Submitted};
use pool::{Kind, Pool};
use staging::Staging;

pub use staging::Upload;
pub use written::WrittenFrames;

/// A frame that is complete in device memory.
#[derive(Clone, Debug)]
pub struct ReceivedFrame {
    /// The memory. It is reused when all clones are dropped, after all work submitted until then.
    pub frame: Arc<DeviceFrame>,
    /// The layout of the frame.
    pub layout: Layout,
    /// The number of the frame in the stream, from 0.
    pub number: u64,
    /// Packets that did not arrive in time.
    pub packets_missing: u32,
    /// When the frame's first packet arrived.
    pub first_at: Instant,
    /// When the frame's last bytes were in mapped memory.
    pub received_at: Instant,
    /// When the device had copied all bytes.
    pub copied_at: Instant,
}

/// Receives a [`TextureClient`](rushes::texture::TextureClient)'s frames into device memory.
///
/// Units are received directly into memory that the device reads. The device copies each tile as
/// soon as it is complete, while others are still being received; tiles that become complete
/// together are copied by one submit. The main processor copies nothing, except, with
/// [`Upload::Ring`], up to 3 bytes at the ends of tiles that are not whole words. A thread of the
/// sink waits for the device, and passes frames on: receiving threads wait only if it is still busy
/// with the frame before. A frame does not change while it is held.
///
/// During `frame_done`, [`TextureFrame::copy_to`] yields zeros with [`Upload::Ring`], because the
/// frame's bytes then belong to the device. With [`Upload::Persistent`] it may be very slow,
/// because the memory may be device memory. Lost bytes are copied from the previous frame: by the
/// device with [`Upload::Persistent`], and by the main processor with [`Upload::Ring`], which may
/// be very slow, too.
pub struct GpuSink {
    gpu: Gpu,
    upload: Upload,
    kind: Option<Kind>,
    is_stepped: bool,
    hand_over: HandOver,
    stream: Mutex<Option<Arc<Stream>>>,
    submits: AtomicU64,
    tiles: AtomicU64,
    concealed: AtomicU64,
}

/// State that is kept until the stream's shape changes.
struct Stream {
    shape: Arc<TextureShape>,
    slots: Vec<Staging>,
    state: Mutex<State>,
    /// Complete tiles that are not copied yet, as slot and unit.
    complete_tiles: Mutex<Vec<(usize, usize)>>,
}

struct State {
    pool: Pool,
    /// The device frame that each slot is being copied to.
    frames: Vec<Option<Arc<DeviceFrame>>>,
}

impl GpuSink {
    /// Creates a sink that receives into the memory of a device.
    ///
    /// `on_frame` is called for each frame, in order, when the whole frame is in device memory. The
    /// thread that calls it is the sink's own; the next frame waits until it returns.
    /// It must neither stop nor drop the client. If it panics, the client ends with that as the reason.
    pub fn new(
        gpu: &Gpu,
        upload: Upload,
        on_frame: impl Fn(&ReceivedFrame) + Send + Sync + 'static,
    ) -> Self {
        Self {
            gpu: gpu.clone(),
            upload,
            kind: None,
            is_stepped: true,
            hand_over: HandOver::new(gpu, Arc::new(on_frame)),
            stream: Mutex::new(None),
            submits: AtomicU64::new(0),
            tiles: AtomicU64::new(0),
            concealed: AtomicU64::new(0),
        }
    }

    /// Uses this path instead of [`Path::best`] to draw frames, which are not exported then.
    #[must_use]
    pub fn with_path(self, path: Path) -> Self {
        Self { kind: Some(Kind::Drawn(path)), ..self }
    }

    /// Receives frames into memory that other programs and graphics interfaces import
    /// ([`DeviceFrame::export`]), and draws them with [`Path::Octets`].
    ///
    /// # Errors
    ///
    /// [`GpuError::Unsupported`] if the device exports no memory by such handles.
    pub fn with_export(self, handle: MemoryHandle) -> Result<Self, GpuError> {
        Exported::check(&self.gpu, handle).map_err(|reason| not_exported(&self.gpu, &reason))?;
        Ok(Self { kind: Some(Kind::Exported(handle)), ..self })
    }

    /// Copies frames when they are complete instead of tile by tile, for comparison.
    #[must_use]
    pub fn with_whole_frames(self) -> Self {
        Self { is_stepped: false, ..self }
    }

    /// Returns the number of copied tiles, and of the submits for them.
    pub fn copies(&self) -> (u64, u64) {
        (self.tiles.load(Ordering::Relaxed), self.submits.load(Ordering::Relaxed))
    }

    /// Returns the number of bytes that the device copied from the previous frame: those that did not arrive
    /// in time, and those of stripes that the server reported as unchanged.
    pub fn concealed(&self) -> u64 {
        self.concealed.load(Ordering::Relaxed)
    }

    /// Returns the number of frames in device memory, for the current shape.
    pub fn device_frames(&self) -> usize {
        let stream = lock(&self.stream).clone();
        stream.map_or(0, |stream| lock(&stream.state).pool.len())
    }

    /// Records and submits the copies of all complete tiles, unless another thread is doing so.
    fn copy_complete_tiles(&self, stream: &Stream) {
        loop {
            let state = match stream.state.try_lock() {
                Ok(state) => state,
                Err(TryLockError::Poisoned(state)) => state.into_inner(),
                // The other thread checks for further tiles when it is done.
                Err(TryLockError::WouldBlock) => return,
            };
            self.copy_with(stream, state);
            if lock(&stream.complete_tiles).is_empty() {
                return;
            }
        }
    }

    fn copy_with(&self, stream: &Stream, mut state: MutexGuard<'_, State>) {
        let tiles = std::mem::take(&mut *lock(&stream.complete_tiles));
        if tiles.is_empty() {
            return;
        }
        let mut recorder = self.gpu.recorder();
        for &(slot, unit) in &tiles {
            let Some(tile) = stream.shape.tiling().tiles().get(unit) else { continue };
            let State { pool, frames, .. } = &mut *state;
            let Some(frame) = frames.get_mut(slot) else { continue };
            if frame.is_none() {
                *frame = pool.take();
            }
            let Some(frame) = frame else { continue };
            stream.slots[slot].copy(&mut recorder, (unit, tile), frame);
        }
        self.gpu.queue.submit([recorder.finish()]);
        self.submits.fetch_add(1, Ordering::Relaxed);
        self.tiles.fetch_add(tiles.len() as u64, Ordering::Relaxed);
    }

    /// Submits what is left of a slot's copies; returns the frame, and what to wait for.
    fn finish(
        &self,
        stream: &Stream,
        slot: usize,
    ) -> Option<(Arc<DeviceFrame>, wgpu::SubmissionIndex)> {
        let state = lock(&stream.state);
        self.copy_with(stream, state);
        let mut state = lock(&stream.state);
        let staging = stream.slots.get(slot)?;
        let Some(frame) = state.frames.get_mut(slot)?.take() else {
            drop(state);
            staging.reuse(&self.gpu);
            return None;
        };
        staging.finish(&self.gpu, &frame);
        // Submits the writes of `finish` if no other work has submitted them yet.
        let submitted = self.gpu.queue.submit([]);
        drop(state);
        // Tiles of other frames that became complete meanwhile need not wait for this frame.
        if self.is_stepped {
            self.copy_complete_tiles(stream);
        }
        Some((frame, submitted))
    }

    fn current_stream(&self) -> Option<Arc<Stream>> {
        lock(&self.stream).clone()
    }
}

impl TextureSink for GpuSink {
    fn begin(&self, shape: &TextureShape, slots: usize) -> Result<Vec<FrameMemory>, String> {
        self.hand_over.start()?;
        let best = || Kind::Drawn(Path::best(&self.gpu, shape.layout()));
        let kind = self.kind.unwrap_or_else(best);
        let path = match kind {
            Kind::Drawn(path) => path,
            Kind::Exported(_) => Path::Octets,
        };
        if !path.is_supported(&self.gpu, shape.layout()) {
            let (format, octets) = (shape.layout().format(), shape.layout().bytes());
            return Err(format!(
                "{} cannot read {octets} bytes of {format} at once",
                self.gpu.name()
            ));
        }
        let mut stagings = Vec::new();
        let mut memory = Vec::new();
        for _ in 0..slots {
            let (staging, regions) = staging::new(&self.gpu, shape, self.upload)?;
            stagings.push(staging);
            memory.push(regions);
        }
        let state =
            State { pool: Pool::new(&self.gpu, shape.layout(), kind), frames: vec![None; slots] };
        *lock(&self.stream) = Some(Arc::new(Stream {
            shape: Arc::new(shape.clone()),
            slots: stagings,
            state: Mutex::new(state),
            complete_tiles: Mutex::new(Vec::new()),
        }));
        Ok(memory)
    }

    fn tile_ready(&self, slot: usize, unit: usize) {
        let Some(stream) = self.current_stream() else { return };
        lock(&stream.complete_tiles).push((slot, unit));
        if self.is_stepped {
            self.copy_complete_tiles(&stream);
        }
    }

    fn conceal(&self, slot: usize, previous: usize, gaps: &[Gap]) -> bool {
        let Some(stream) = self.current_stream() else { return false };
        // Until then the bytes of the previous frame belong to the device.
        self.hand_over.wait();
        let (Some(to), Some(from)) = (stream.slots.get(slot), stream.slots.get(previous)) else {
            return false;
        };
        let tiles = stream.shape.tiling().tiles();
        let lost = gaps.iter().filter_map(|gap| {
            let start = tiles.get(gap.unit)?.bytes.start;
            Some(start + gap.bytes.start..start + gap.bytes.end)
        });
        let lost: Vec<Range<usize>> = lost.collect();
        let is_copied = to.copy_from(from, &lost);
        if is_copied {
            let octets: usize = lost.iter().map(Range::len).sum();
            self.concealed.fetch_add(octets as u64, Ordering::Relaxed);
        }
        is_copied
    }

    fn frame_done(&self, frame: &TextureFrame<'_>) {
        let Some(stream) = self.current_stream() else { return };
        // This is a late frame of a previous shape.
        if *stream.shape != *frame.shape() {
            return;
        }
        let slot = frame.slot();
        let finished = self.finish(&stream, slot);
        // The memory of the frame before may be used again when this call returns.
        let Some((device_frame, submission)) = finished else { return self.hand_over.wait() };
        let received = ReceivedFrame {
            frame: device_frame,
            layout: *stream.shape.layout(),
            number: frame.number(),
            packets_missing: frame.packets_missing(),
            first_at: frame.first_at(),
            received_at: frame.done_at(),
            copied_at: Instant::now(),
        };
        self.hand_over.give(Submitted { stream, slot, submission, received });
    }

    fn end(&self) {
        self.hand_over.wait();
    }
}

impl fmt::Debug for GpuSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GpuSink").field("upload", &self.upload).finish_non_exhaustive()
    }
}

/// Locks a mutex, even a poisoned one: the data is consistent between calls.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
