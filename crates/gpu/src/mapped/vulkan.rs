//! A Vulkan buffer that is mapped once, and read by copies that wgpu records.
//!
//! wgpu does not know that it is mapped; who writes where, and when the device reads, is kept apart
//! by the sinks, which copy a tile only when its octets are in place. The device writes only what was
//! lost, from the frame before ([`Persistent::copy_from`]), which wgpu does not know either.

use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Instant;

use ash::vk;
use wgpu::hal::api::Vulkan;

use crate::device::Gpu;

/// Octets of memory that both processors see, mapped for as long as they are there.
#[derive(Debug)]
pub(crate) struct Persistent {
    // Dropped before the memory is freed.
    buffer: Option<wgpu::Buffer>,
    memory: Memory,
    octets: NonNull<u8>,
    length: usize,
    parts_given: std::sync::atomic::AtomicBool,
    gpu: Gpu,
}

/// What Vulkan must be told to free.
#[derive(Clone, Copy, Debug)]
struct Memory {
    buffer: vk::Buffer,
    memory: vk::DeviceMemory,
}

// SAFETY: the pointer is to memory of no thread's own; who writes which part of it is settled by
// `slices`, which gives each part to one owner.
unsafe impl Send for Persistent {}
// SAFETY: a shared reference gives no access to the octets.
unsafe impl Sync for Persistent {}

/// A part of the memory that nobody else writes to.
#[derive(Debug)]
pub(crate) struct Slice {
    of: Arc<Persistent>,
    range: Range<usize>,
}

impl Persistent {
    /// Memory of so many octets, all 0; a text that says why there is none.
    pub(crate) fn new(gpu: &Gpu, octets: u64) -> Result<Arc<Self>, String> {
        // SAFETY: the device is asked for handles, none of which is destroyed here.
        let hal = unsafe { gpu.device.as_hal::<Vulkan>() };
        let hal = hal.ok_or("the device is not spoken to by Vulkan")?;
        let length = octets as usize;
        let mut made = Err(format!("the device has no {octets} octets that the processor sees"));
        for (wanted, least) in kinds() {
            made = Memory::new(&hal, octets, wanted);
            let Ok((memory, octets_at)) = made else { continue };
            // SAFETY: mapped just now, of at least this length, and nobody else's yet.
            let speed = unsafe { clear(octets_at, length, least) };
            if speed >= least {
                break;
            }
            tracing::debug!("{wanted:?} is written at {speed:.0} octets/us: left alone");
            // SAFETY: made from this device just now, and nothing uses it.
            unsafe { memory.free(hal.raw_device()) };
            made = Err(format!("the processor writes {wanted:?} slowly"));
        }
        let (memory, octets_at) = made?;
        // SAFETY: wgpu's buffer goes before Vulkan's (`Drop`).
        let raw = unsafe {
            wgpu::hal::vulkan::Buffer::from_raw_externally_owned(memory.buffer, Box::new(|| {}))
        };
        let descriptor = wgpu::BufferDescriptor {
            label: Some("received"),
            size: octets,
            usage: wgpu::BufferUsages::COPY_SRC,
            mapped_at_creation: false,
        };
        // SAFETY: made from this device with this size and use, and initialised above.
        let imported = unsafe { gpu.device.create_buffer_from_hal::<Vulkan>(raw, &descriptor) };
        drop(hal);
        Ok(Arc::new(Self {
            buffer: Some(imported),
            memory,
            octets: octets_at,
            length,
            parts_given: false.into(),
            gpu: gpu.clone(),
        }))
    }

    /// The buffer to copy from.
    pub(crate) fn buffer(&self) -> &wgpu::Buffer {
        // It is taken by `drop` only.
        self.buffer.as_ref().unwrap_or_else(|| unreachable!())
    }

    /// Has the device copy octets from the same places of `from`, and waits until they are there for
    /// both processors. Nobody may use the octets of either meanwhile.
    pub(crate) fn copy_from(&self, from: &Self, octets: &[Range<usize>]) -> Result<(), String> {
        let most = self.length.min(from.length);
        if octets.iter().any(|part| part.start > part.end || part.end > most) {
            return Err("octets beyond the memory's end".to_owned());
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
        // SAFETY: only commands are recorded, all of them here.
        let recorded = unsafe { self.record(&mut recorder, from, &parts) };
        recorded.ok_or("the device is not spoken to by Vulkan")?;
        let work = self.gpu.queue.submit([recorder.finish()]);
        let wait = wgpu::PollType::Wait { submission_index: Some(work), timeout: None };
        self.gpu.device.poll(wait).map(drop).map_err(|error| error.to_string())
    }

    /// Records the copies between barriers: behind what the device wrote before, and so that both
    /// processors see what it writes now.
    ///
    /// # Safety
    ///
    /// The parts are inside both memories, and the recorder's work is done before either goes.
    unsafe fn record(
        &self,
        recorder: &mut wgpu::CommandEncoder,
        from: &Self,
        parts: &[vk::BufferCopy],
    ) -> Option<()> {
        use vk::AccessFlags as Access;
        use vk::PipelineStageFlags as Stage;

        // SAFETY: the device is asked for its functions, and not destroyed here.
        let hal = unsafe { self.gpu.device.as_hal::<Vulkan>() }?;
        let (device, none) = (hal.raw_device(), vk::DependencyFlags::empty());
        let (source, destination) = (from.memory.buffer, self.memory.buffer);
        let by_device = Access::TRANSFER_READ | Access::TRANSFER_WRITE;
        let by_both = by_device | Access::HOST_READ | Access::HOST_WRITE;
        let barrier =
            |to| [vk::MemoryBarrier::default().src_access_mask(by_device).dst_access_mask(to)];
        let record = |encoder: Option<&mut wgpu::hal::vulkan::CommandEncoder>| {
            // SAFETY: it is being recorded to by wgpu, whose work ends after this.
            let commands = unsafe { encoder?.raw_handle() };
            let (copy, both) = (Stage::TRANSFER, Stage::TRANSFER | Stage::HOST);
            let (before, behind) = (barrier(by_device), barrier(by_both));
            // SAFETY: the commands are of this device, and the barrier is whole.
            unsafe { device.cmd_pipeline_barrier(commands, copy, copy, none, &before, &[], &[]) };
            // SAFETY: the buffers were made to be copied from and to, are bound, and the parts are
            // inside them, as the caller says.
            unsafe { device.cmd_copy_buffer(commands, source, destination, parts) };
            // SAFETY: as for the one before.
            unsafe { device.cmd_pipeline_barrier(commands, copy, both, none, &behind, &[], &[]) };
            Some(())
        };
        // SAFETY: commands are recorded and nothing else; wgpu ends the recording.
        unsafe { recorder.as_hal_mut::<Vulkan, _, _>(record) }
    }

    /// The memory in parts, which lie in order and inside it; given once, `None` from then on.
    pub(crate) fn slices(self: &Arc<Self>, parts: &[Range<usize>]) -> Option<Vec<Slice>> {
        let in_order = parts.windows(2).all(|two| two[0].end <= two[1].start);
        let inside = parts.iter().all(|part| part.start <= part.end && part.end <= self.length);
        if !in_order || !inside {
            return None;
        }
        if self.parts_given.swap(true, std::sync::atomic::Ordering::Relaxed) {
            return None;
        }
        Some(parts.iter().map(|part| Slice { of: Arc::clone(self), range: part.clone() }).collect())
    }
}

impl Slice {
    pub(crate) fn octets(&mut self) -> &mut [u8] {
        // SAFETY: inside the memory, by `slices`.
        let at = unsafe { self.of.octets.add(self.range.start) };
        let part = NonNull::slice_from_raw_parts(at, self.range.len());
        // SAFETY: the memory stays mapped while `of` is there; no other slice has these octets, for
        // they are given once and without overlap; it was initialised. The device writes here only
        // while it conceals what did not come, when the client leaves the frame alone.
        unsafe { &mut *part.as_ptr() }
    }
}

impl Drop for Persistent {
    fn drop(&mut self) {
        // Copies that were submitted may still read.
        if self.gpu.wait().is_err() {
            tracing::warn!("a lost device keeps its memory");
            return;
        }
        drop(self.buffer.take());
        // wgpu lets go of what has been used once it looks.
        let _ = self.gpu.device.poll(wgpu::PollType::Poll);
        // SAFETY: as above.
        let Some(hal) = (unsafe { self.gpu.device.as_hal::<Vulkan>() }) else { return };
        // SAFETY: no work is left that reads it, and every slice has gone.
        unsafe { self.memory.free(hal.raw_device()) };
    }
}

/// Kinds of memory that the processor sees, the best first, each with the octets in a microsecond
/// at which it must be written at least.
///
/// Octets received straight into the device's memory need not cross to it once more. Reading them
/// there crawls, but nobody does: what was lost the device copies from the frame before. Where
/// writing crawls as well, as it may in virtual machines, memory of the processor's own is better.
fn kinds() -> [(vk::MemoryPropertyFlags, f64); 3] {
    use vk::MemoryPropertyFlags as Kind;
    let coherent = Kind::HOST_VISIBLE | Kind::HOST_COHERENT;
    [(coherent | Kind::DEVICE_LOCAL, 1_000.0), (coherent | Kind::HOST_CACHED, 0.0), (coherent, 0.0)]
}

/// Octets of which the fastest are taken for the speed of all: others may be interrupted.
const PART: usize = 64 << 10;

/// Makes all octets 0; at how many octets a microsecond. If that is less than `least` for a while, it
/// leaves the rest alone.
///
/// # Safety
///
/// `octets` must be so long and nobody else's.
unsafe fn clear(octets: NonNull<u8>, length: usize, least: f64) -> f64 {
    let mut fastest: f64 = 0.0;
    for from in (0..length).step_by(PART) {
        if from >= 64 * PART && fastest < least {
            break;
        }
        let part = PART.min(length - from);
        let start = Instant::now();
        // SAFETY: inside, as the caller says.
        let at = unsafe { octets.add(from) };
        // SAFETY: the same.
        unsafe { at.write_bytes(0, part) };
        fastest = fastest.max(part as f64 / start.elapsed().as_secs_f64() / 1e6);
    }
    // A few octets are written within a tick.
    if length < PART { f64::INFINITY } else { fastest }
}

impl Memory {
    /// A buffer of so many octets in memory of a kind, and where it is mapped.
    fn new(
        hal: &wgpu::hal::vulkan::Device,
        octets: u64,
        wanted: vk::MemoryPropertyFlags,
    ) -> Result<(Self, NonNull<u8>), String> {
        let device = hal.raw_device();
        let failed = |error: vk::Result| format!("Vulkan gives no memory to map: {error}");
        let asked = vk::BufferCreateInfo::default()
            .size(octets)
            .usage(vk::BufferUsageFlags::TRANSFER_SRC | vk::BufferUsageFlags::TRANSFER_DST)
            .sharing_mode(vk::SharingMode::EXCLUSIVE);
        // SAFETY: the size is not 0, the structure is whole and the device is alive.
        let buffer = unsafe { device.create_buffer(&asked, None) }.map_err(failed)?;
        // SAFETY: the buffer is of this device.
        let needs = unsafe { device.get_buffer_memory_requirements(buffer) };
        let made = allocate(hal, needs, wanted).and_then(|memory| {
            map(device, buffer, memory).map_err(|error| {
                // SAFETY: nothing uses it yet.
                unsafe { device.free_memory(memory, None) };
                failed(error)
            })
        });
        match made {
            Ok((memory, at)) => Ok((Self { buffer, memory }, at)),
            Err(error) => {
                // SAFETY: nothing uses it yet.
                unsafe { device.destroy_buffer(buffer, None) };
                Err(error)
            }
        }
    }

    /// Gives it back.
    ///
    /// # Safety
    ///
    /// It is of this device, nothing uses it or will, and this was not called before.
    unsafe fn free(self, device: &ash::Device) {
        // SAFETY: as the caller says.
        unsafe { device.destroy_buffer(self.buffer, None) };
        // SAFETY: the same; freeing unmaps.
        unsafe { device.free_memory(self.memory, None) };
    }
}

/// Memory of a kind for a buffer.
fn allocate(
    hal: &wgpu::hal::vulkan::Device,
    needs: vk::MemoryRequirements,
    wanted: vk::MemoryPropertyFlags,
) -> Result<vk::DeviceMemory, String> {
    let instance = hal.shared_instance().raw_instance();
    // SAFETY: a physical device of this instance.
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
        // SAFETY: a kind of memory that the device has, and the size that it asked for.
        if let Ok(memory) = unsafe { hal.raw_device().allocate_memory(&asked, None) } {
            return Ok(memory);
        }
    }
    Err(format!("the device has no {} octets that the processor sees", needs.size))
}

fn map(
    device: &ash::Device,
    buffer: vk::Buffer,
    memory: vk::DeviceMemory,
) -> Result<(vk::DeviceMemory, NonNull<u8>), vk::Result> {
    // SAFETY: allocated for this buffer, and neither is in use.
    unsafe { device.bind_buffer_memory(buffer, memory, 0) }?;
    let flags = vk::MemoryMapFlags::empty();
    // SAFETY: visible to the processor by its kind, and not mapped yet.
    let at = unsafe { device.map_memory(memory, 0, vk::WHOLE_SIZE, flags) }?;
    NonNull::new(at.cast()).map(|at| (memory, at)).ok_or(vk::Result::ERROR_MEMORY_MAP_FAILED)
}
