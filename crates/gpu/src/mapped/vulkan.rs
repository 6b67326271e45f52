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

use crate::device::Gpu;

/// Memory that both processors access, mapped for its whole lifetime.
#[derive(Debug)]
pub(crate) struct Persistent {
    // Dropped before the memory is freed.
    buffer: Option<wgpu::Buffer>,
    memory: Memory,
    octets: NonNull<u8>,
    length: usize,
    is_split: std::sync::atomic::AtomicBool,
    gpu: Gpu,
}

/// The Vulkan handles that must be freed.
#[derive(Clone, Copy, Debug)]
struct Memory {
    buffer: vk::Buffer,
    memory: vk::DeviceMemory,
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
        // SAFETY: the handles of the device are only used, and none is destroyed here.
        let hal = unsafe { gpu.device.as_hal::<Vulkan>() };
        let hal = hal.ok_or("the device is not used through Vulkan")?;
        let length = octets as usize;
        let mut made = Err(format!("the device has no {octets} bytes that the processor can map"));
        for (wanted, least) in kinds() {
            made = Memory::new(&hal, octets, wanted);
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
        let (memory, octets_at) = made?;
        // SAFETY: wgpu's buffer is dropped before Vulkan's is destroyed (`Drop`).
        let raw = unsafe {
            wgpu::hal::vulkan::Buffer::from_raw_externally_owned(memory.buffer, Box::new(|| {}))
        };
        let descriptor = wgpu::BufferDescriptor {
            label: Some("received"),
            size: octets,
            usage: wgpu::BufferUsages::COPY_SRC,
            mapped_at_creation: false,
        };
        // SAFETY: the buffer was created by this device with this size and use, and initialised
        // above.
        let imported = unsafe { gpu.device.create_buffer_from_hal::<Vulkan>(raw, &descriptor) };
        drop(hal);
        Ok(Arc::new(Self {
            buffer: Some(imported),
            memory,
            octets: octets_at,
            length,
            is_split: false.into(),
            gpu: gpu.clone(),
        }))
    }

    /// Returns the buffer to copy from.
    pub(crate) fn buffer(&self) -> &wgpu::Buffer {
        // Only `drop` removes the buffer.
        self.buffer.as_ref().unwrap_or_else(|| unreachable!())
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

        // SAFETY: only functions of the device are used; it is not destroyed here.
        let hal = unsafe { self.gpu.device.as_hal::<Vulkan>() }?;
        let (device, none) = (hal.raw_device(), vk::DependencyFlags::empty());
        let (source, destination) = (from.memory.buffer, self.memory.buffer);
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

impl Drop for Persistent {
    fn drop(&mut self) {
        // Submitted copies may still read the memory.
        if self.gpu.wait().is_err() {
            tracing::warn!("the memory of a lost device is not freed");
            return;
        }
        drop(self.buffer.take());
        // When polled, wgpu releases resources that are no longer in use.
        let _ = self.gpu.device.poll(wgpu::PollType::Poll);
        // SAFETY: as above.
        let Some(hal) = (unsafe { self.gpu.device.as_hal::<Vulkan>() }) else { return };
        // SAFETY: no pending work reads the memory, and every slice has been dropped.
        unsafe { self.memory.free(hal.raw_device()) };
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

impl Memory {
    /// Creates a buffer of `octets` bytes in memory of a kind, and maps it.
    fn new(
        hal: &wgpu::hal::vulkan::Device,
        octets: u64,
        wanted: vk::MemoryPropertyFlags,
    ) -> Result<(Self, NonNull<u8>), String> {
        let device = hal.raw_device();
        let failed = |error: vk::Result| format!("Vulkan provides no memory to map: {error}");
        let asked = vk::BufferCreateInfo::default()
            .size(octets)
            .usage(vk::BufferUsageFlags::TRANSFER_SRC | vk::BufferUsageFlags::TRANSFER_DST)
            .sharing_mode(vk::SharingMode::EXCLUSIVE);
        // SAFETY: the size is not 0, the structure is complete and the device is alive.
        let buffer = unsafe { device.create_buffer(&asked, None) }.map_err(failed)?;
        // SAFETY: the buffer is of this device.
        let needs = unsafe { device.get_buffer_memory_requirements(buffer) };
        let made = allocate(hal, needs, wanted).and_then(|memory| {
            map(device, buffer, memory).map_err(|error| {
                // SAFETY: nothing uses the handle yet.
                unsafe { device.free_memory(memory, None) };
                failed(error)
            })
        });
        match made {
            Ok((memory, at)) => Ok((Self { buffer, memory }, at)),
            Err(error) => {
                // SAFETY: nothing uses the handle yet.
                unsafe { device.destroy_buffer(buffer, None) };
                Err(error)
            }
        }
    }

    /// Frees the buffer and its memory.
    ///
    /// # Safety
    ///
    /// The buffer and memory must be of this device, must not be used any more, and must not have
    /// been freed before.
    unsafe fn free(self, device: &ash::Device) {
        // SAFETY: as the caller guarantees.
        unsafe { device.destroy_buffer(self.buffer, None) };
        // SAFETY: as the caller guarantees; freeing unmaps the memory.
        unsafe { device.free_memory(self.memory, None) };
    }
}

/// Allocates memory of a kind for a buffer.
fn allocate(
    hal: &wgpu::hal::vulkan::Device,
    needs: vk::MemoryRequirements,
    wanted: vk::MemoryPropertyFlags,
) -> Result<vk::DeviceMemory, String> {
    let instance = hal.shared_instance().raw_instance();
    // SAFETY: the physical device is one of this instance.
    let memory =
        unsafe { instance.get_physical_device_memory_properties(hal.raw_physical_device()) };
    let kinds = &memory.memory_types[..memory.memory_type_count as usize];
    let fits = |&(at, kind): &(usize, &vk::MemoryType)| {
        needs.memory_type_bits >> at & 1 == 1 && kind.property_flags.contains(wanted)
    };
    for (at, _) in kinds.iter().enumerate().filter(fits) {
        let asked = vk::MemoryAllocateInfo::default()
            .allocation_size(needs.size)
            .memory_type_index(at as u32);
        // SAFETY: the device has this kind of memory, and the size is the one that it requires.
        if let Ok(memory) = unsafe { hal.raw_device().allocate_memory(&asked, None) } {
            return Ok(memory);
        }
    }
    Err(format!("the device has no {} bytes that the processor can map", needs.size))
}

fn map(
    device: &ash::Device,
    buffer: vk::Buffer,
    memory: vk::DeviceMemory,
) -> Result<(vk::DeviceMemory, NonNull<u8>), vk::Result> {
    // SAFETY: the memory was allocated for this buffer, and neither is in use.
    unsafe { device.bind_buffer_memory(buffer, memory, 0) }?;
    let flags = vk::MemoryMapFlags::empty();
    // SAFETY: memory of this kind is visible to the processor, and it is not mapped yet.
    let at = unsafe { device.map_memory(memory, 0, vk::WHOLE_SIZE, flags) }?;
    NonNull::new(at.cast()).map(|at| (memory, at)).ok_or(vk::Result::ERROR_MEMORY_MAP_FAILED)
}
