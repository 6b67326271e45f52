//! A Vulkan buffer that is mapped once, and read by copies that wgpu records.
//!
//! wgpu does not know that it is mapped. The sinks prevent concurrent writes of the processor and
//! reads of the device: they copy a tile only when its bytes are in place. The device writes only
//! lost bytes, which it copies from the previous frame ([`Persistent::copy_from`]); wgpu does not
//! know about this either.

use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Instant;

use ash::vk;
use wgpu::hal::api::Vulkan;

use super::memory::{BoundBuffer, Needs, hal};
use crate::device::Gpu;

/// Memory that both processors access, mapped for its whole lifetime.
#[derive(Debug)]
pub(crate) struct Persistent {
    buffer: wgpu::Buffer,
    /// Also kept by wgpu while the device uses it. wgpu alone would free it when the device is destroyed.
    memory: Arc<Owned>,
    octets: NonNull<u8>,
    length: usize,
    is_split: std::sync::atomic::AtomicBool,
    // Dropped last.
    gpu: Gpu,
}

/// A buffer and its memory, freed by the last owner.
struct Owned {
    bound: BoundBuffer,
    device: ash::Device,
}

impl std::fmt::Debug for Owned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Owned").field("bound", &self.bound).finish_non_exhaustive()
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: the last owner is wgpu, whose device is alive when it drops its buffer and does not use it any
        // more, or a `Persistent`, which keeps the device alive and whose buffer wgpu has dropped before.
        unsafe { self.bound.free(&self.device) };
    }
}

// SAFETY: the pointer is to memory that is not tied to a thread; only the owners of slices write to
// it, and `slices` gives each part to one owner.
unsafe impl Send for Persistent {}
// SAFETY: a shared reference gives no access to the bytes.
unsafe impl Sync for Persistent {}

/// A part of the memory, with a single owner.
#[derive(Debug)]
pub(crate) struct Slice {
    of: Arc<Persistent>,
    range: Range<usize>,
}

impl Persistent {
    /// Allocates `octets` zeroed bytes. The error is a text with the reason.
    pub(crate) fn new(gpu: &Gpu, octets: u64) -> Result<Arc<Self>, String> {
        let hal = hal(gpu)?;
        let length = octets as usize;
        let mut made = Err(format!("the device has no {octets} bytes that the processor can map"));
        for (wanted, least) in kinds() {
            made = mapped(&hal, octets, wanted);
            let Ok((memory, octets_at)) = made else { continue };
            // SAFETY: the memory was just mapped, with at least this length, and is not used yet.
            let speed = unsafe { clear(octets_at, length, least) };
            if speed >= least {
                break;
            }
            tracing::debug!("{wanted:?} memory is written at only {speed:.0} bytes/us: not used");
            // SAFETY: the memory was just created by this device, and nothing uses it.
            unsafe { memory.free(hal.raw_device()) };
            made = Err(format!("the processor writes {wanted:?} memory too slowly"));
        }
        let (bound, octets_at) = made?;
        let memory = Arc::new(Owned { bound, device: hal.raw_device().clone() });
        drop(hal);
        let of_wgpu = Arc::clone(&memory);
        // SAFETY: `of_wgpu` keeps the buffer and its memory until wgpu has dropped its own.
        let raw = unsafe {
            wgpu::hal::vulkan::Buffer::from_raw_externally_owned(
                bound.buffer,
                Box::new(move || drop(of_wgpu)),
            )
        };
        let descriptor = wgpu::BufferDescriptor {
            label: Some("received"),
            size: octets,
            usage: wgpu::BufferUsages::COPY_SRC,
            mapped_at_creation: false,
        };
        // SAFETY: the buffer was created by this device with this size and use, and initialised
        // above.
        let buffer = unsafe { gpu.device.create_buffer_from_hal::<Vulkan>(raw, &descriptor) };
        Ok(Arc::new(Self {
            buffer,
            memory,
            octets: octets_at,
            length,
            is_split: false.into(),
            gpu: gpu.clone(),
        }))
    }

    /// Returns the buffer to copy from.
    pub(crate) fn buffer(&self) -> &wgpu::Buffer {
        &self.buffer
    }

    /// Copies bytes from the same places of `from` on the device, and waits until they are copied.
    ///
    /// Afterwards the bytes are visible to both processors. Meanwhile nothing else may use these
    /// bytes of either memory.
    pub(crate) fn copy_from(&self, from: &Self, octets: &[Range<usize>]) -> Result<(), String> {
        let most = self.length.min(from.length);
        if octets.iter().any(|part| part.start > part.end || part.end > most) {
            return Err("bytes beyond the end of the memory".to_owned());
        }
        let parts = octets.iter().filter(|part| !part.is_empty()).map(|part| {
            let (at, length) = (part.start as u64, part.len() as u64);
            vk::BufferCopy { src_offset: at, dst_offset: at, size: length }
        });
        let parts: Vec<vk::BufferCopy> = parts.collect();
        if parts.is_empty() {
            return Ok(());
        }
        let mut recorder = self.gpu.recorder();
        // SAFETY: the closure only records commands.
        let recorded = unsafe { self.record(&mut recorder, from, &parts) };
        recorded.ok_or("the device is not used through Vulkan")?;
        let work = self.gpu.queue.submit([recorder.finish()]);
        let wait = wgpu::PollType::Wait { submission_index: Some(work), timeout: None };
        self.gpu.device.poll(wait).map(drop).map_err(|error| error.to_string())
    }

    /// Records the copies between two barriers.
    ///
    /// The first orders them after earlier writes of the device, the second makes them visible to
    /// both processors.
    ///
    /// # Safety
    ///
    /// The parts must be inside both memories, and the recorded work must be done before either
    /// memory is freed.
    unsafe fn record(
        &self,
        recorder: &mut wgpu::CommandEncoder,
        from: &Self,
        parts: &[vk::BufferCopy],
    ) -> Option<()> {
        use vk::{AccessFlags as Access, PipelineStageFlags as Stage};

        let hal = hal(&self.gpu).ok()?;
        let (device, none) = (hal.raw_device(), vk::DependencyFlags::empty());
        let (source, destination) = (from.memory.bound.buffer, self.memory.bound.buffer);
        let by_device = Access::TRANSFER_READ | Access::TRANSFER_WRITE;
        let by_both = by_device | Access::HOST_READ | Access::HOST_WRITE;
        let barrier =
            |to| [vk::MemoryBarrier::default().src_access_mask(by_device).dst_access_mask(to)];
        let record = |encoder: Option<&mut wgpu::hal::vulkan::CommandEncoder>| {
            // SAFETY: wgpu is recording to the encoder, and ends the recording later.
            let commands = unsafe { encoder?.raw_handle() };
            let (copy, both) = (Stage::TRANSFER, Stage::TRANSFER | Stage::HOST);
            let (before, behind) = (barrier(by_device), barrier(by_both));
            // SAFETY: the commands are of this device, and the barrier is complete.
            unsafe { device.cmd_pipeline_barrier(commands, copy, copy, none, &before, &[], &[]) };
            // SAFETY: the buffers were created as source and destination of copies and are bound;
            // the parts are inside them, as the caller guarantees.
            unsafe { device.cmd_copy_buffer(commands, source, destination, parts) };
            // SAFETY: as for the first barrier.
            unsafe { device.cmd_pipeline_barrier(commands, copy, both, none, &behind, &[], &[]) };
            Some(())
        };
        // SAFETY: only commands are recorded; wgpu ends the recording.
        unsafe { recorder.as_hal_mut::<Vulkan, _, _>(record) }
    }

    /// Splits the memory into parts, which must be in order and inside it.
    ///
    /// Succeeds only once; returns `None` for invalid parts and for later calls.
    pub(crate) fn slices(self: &Arc<Self>, parts: &[Range<usize>]) -> Option<Vec<Slice>> {
        let in_order = parts.windows(2).all(|two| two[0].end <= two[1].start);
        let inside = parts.iter().all(|part| part.start <= part.end && part.end <= self.length);
        if !in_order || !inside {
            return None;
        }
        if self.is_split.swap(true, std::sync::atomic::Ordering::Relaxed) {
            return None;
        }
        Some(parts.iter().map(|part| Slice { of: Arc::clone(self), range: part.clone() }).collect())
    }
}

impl Slice {
    pub(crate) fn octets(&mut self) -> &mut [u8] {
        // SAFETY: the range is inside the memory, as checked by `slices`.
        let at = unsafe { self.of.octets.add(self.range.start) };
        let part = NonNull::slice_from_raw_parts(at, self.range.len());
        // SAFETY: the memory stays mapped while `of` exists, and was initialised. No other slice
        // has these bytes, because slices are created once and do not overlap. The device writes
        // here only while it conceals lost bytes; the client does not access the frame at that
        // time.
        unsafe { &mut *part.as_ptr() }
    }
}

/// Returns the kinds of host-visible memory, best first, with minimum write speeds in bytes/µs.
///
/// Bytes received directly into device memory need not be transferred again. Reading them there is
/// very slow but not necessary, because the device copies lost bytes from the previous frame. If
/// writing is very slow, too, as in some virtual machines, memory of the main processor is better.
fn kinds() -> [(vk::MemoryPropertyFlags, f64); 3] {
    use vk::MemoryPropertyFlags as Kind;
    let coherent = Kind::HOST_VISIBLE | Kind::HOST_COHERENT;
    [(coherent | Kind::DEVICE_LOCAL, 1_000.0), (coherent | Kind::HOST_CACHED, 0.0), (coherent, 0.0)]
}

/// Bytes per measurement. The fastest measurement counts, because others may have been interrupted.
const PART: usize = 64 << 10;

/// Zeroes all bytes, and returns the speed in bytes per microsecond.
///
/// Stops early if the speed stays below `least` for 64 parts.
///
/// # Safety
///
/// `octets` must point to `length` bytes that nothing else uses.
unsafe fn clear(octets: NonNull<u8>, length: usize, least: f64) -> f64 {
    let mut fastest: f64 = 0.0;
    for from in (0..length).step_by(PART) {
        if from >= 64 * PART && fastest < least {
            break;
        }
        let part = PART.min(length - from);
        let start = Instant::now();
        // SAFETY: the part is inside the memory, as the caller guarantees.
        let at = unsafe { octets.add(from) };
        // SAFETY: as above.
        unsafe { at.write_bytes(0, part) };
        fastest = fastest.max(part as f64 / start.elapsed().as_secs_f64() / 1e6);
    }
    // So few bytes may be written within one tick of the clock.
    if length < PART { f64::INFINITY } else { fastest }
}

/// Creates a buffer of `octets` bytes in memory of a kind, and maps it.
fn mapped(
    hal: &wgpu::hal::vulkan::Device,
    octets: u64,
    kind: vk::MemoryPropertyFlags,
) -> Result<(BoundBuffer, NonNull<u8>), String> {
    let needs = Needs {
        octets,
        usage: vk::BufferUsageFlags::TRANSFER_SRC | vk::BufferUsageFlags::TRANSFER_DST,
        kind,
        handles: vk::ExternalMemoryHandleTypeFlags::empty(),
        is_dedicated: false,
    };
    let made = BoundBuffer::new(hal, &needs)?;
    let (device, flags) = (hal.raw_device(), vk::MemoryMapFlags::empty());
    // SAFETY: memory of this kind is visible to the processor, and it is not mapped yet.
    let at = unsafe { device.map_memory(made.memory, 0, vk::WHOLE_SIZE, flags) };
    let at = at.and_then(|at| NonNull::new(at.cast()).ok_or(vk::Result::ERROR_MEMORY_MAP_FAILED));
    at.map(|at| (made, at)).map_err(|error| {
        // SAFETY: the memory was just created by this device, and nothing uses it.
        unsafe { made.free(device) };
        format!("Vulkan does not map the memory: {error}")
    })
}
