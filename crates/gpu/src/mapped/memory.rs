//! Buffers that Rushes creates with Vulkan, and passes to wgpu.

use std::ops::Deref;

use ash::vk;
use wgpu::hal::api::Vulkan;

use crate::device::Gpu;

/// Returns wgpu's own handle of a device. The error is a text with the reason why there is none.
pub(super) fn hal(
    gpu: &Gpu,
) -> Result<impl Deref<Target = wgpu::hal::vulkan::Device> + use<'_>, &'static str> {
    // SAFETY: the handles of the device are only used, and the device is not destroyed while it is borrowed.
    let hal = unsafe { gpu.device.as_hal::<Vulkan>() };
    hal.ok_or("the device is not used through Vulkan")
}

/// What a buffer must be like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Needs {
    pub(super) octets: u64,
    pub(super) usage: vk::BufferUsageFlags,
    pub(super) kind: vk::MemoryPropertyFlags,
    /// The handles by which others import the memory; empty if nobody does.
    pub(super) handles: vk::ExternalMemoryHandleTypeFlags,
    /// Whether the memory must know its buffer.
    pub(super) is_dedicated: bool,
}

/// A buffer, and the memory that is allocated and bound for it alone.
///
/// Both must be freed, or passed to wgpu, which frees them when the device no longer uses them.
#[derive(Clone, Copy, Debug)]
pub(super) struct BoundBuffer {
    pub(super) buffer: vk::Buffer,
    pub(super) memory: vk::DeviceMemory,
    /// Bytes of the memory, which may be more than those of the buffer.
    #[cfg_attr(not(unix), allow(dead_code, reason = "nothing is exported"))]
    pub(super) size: u64,
    /// The index of the memory's kind.
    #[cfg_attr(not(unix), allow(dead_code, reason = "nothing is exported"))]
    pub(super) kind: u32,
}

#[cfg_attr(not(unix), allow(dead_code, reason = "nothing is exported"))]
impl BoundBuffer {
    /// Creates a buffer, and memory for it. The error is a text with the reason.
    pub(super) fn new(hal: &wgpu::hal::vulkan::Device, needs: &Needs) -> Result<Self, String> {
        let device = hal.raw_device();
        let mut external =
            vk::ExternalMemoryBufferCreateInfo::default().handle_types(needs.handles);
        let mut asked = vk::BufferCreateInfo::default()
            .size(needs.octets)
            .usage(needs.usage)
            .sharing_mode(vk::SharingMode::EXCLUSIVE);
        if !needs.handles.is_empty() {
            asked = asked.push_next(&mut external);
        }
        // SAFETY: the size is not 0, the structure is complete and the device is alive.
        let buffer = unsafe { device.create_buffer(&asked, None) }
            .map_err(|error| format!("Vulkan provides no buffer: {error}"))?;
        let bound = allocate(hal, buffer, needs).and_then(|made| {
            // SAFETY: the memory was allocated for this buffer, and neither is in use.
            let bound = unsafe { device.bind_buffer_memory(buffer, made.memory, 0) };
            bound.map(|()| made).map_err(|error| {
                // SAFETY: nothing uses the handle yet.
                unsafe { device.free_memory(made.memory, None) };
                format!("Vulkan does not bind the memory: {error}")
            })
        });
        bound.inspect_err(|_| {
            // SAFETY: nothing uses the handle yet.
            unsafe { device.destroy_buffer(buffer, None) };
        })
    }

    /// Passes the buffer and its memory to wgpu.
    ///
    /// # Safety
    ///
    /// They must be of this device, and initialised or cleared before their first use, `descriptor` must say what the buffer was created with, and
    /// nobody may free them afterwards.
    pub(super) unsafe fn into_wgpu(
        self,
        gpu: &Gpu,
        descriptor: &wgpu::BufferDescriptor<'_>,
    ) -> wgpu::Buffer {
        // SAFETY: the memory is bound to the buffer from its start, and the caller passes both on.
        let raw = unsafe {
            wgpu::hal::vulkan::Buffer::from_raw_managed(self.buffer, self.memory, 0, self.size)
        };
        // SAFETY: as the caller guarantees.
        unsafe { gpu.device.create_buffer_from_hal::<Vulkan>(raw, descriptor) }
    }

    /// Frees the buffer and its memory.
    ///
    /// # Safety
    ///
    /// The buffer and memory must be of this device, must not be used any more, and must neither
    /// have been freed before nor belong to wgpu.
    pub(super) unsafe fn free(self, device: &ash::Device) {
        // SAFETY: as the caller guarantees.
        unsafe { device.destroy_buffer(self.buffer, None) };
        // SAFETY: as the caller guarantees; freeing unmaps the memory.
        unsafe { device.free_memory(self.memory, None) };
    }
}

/// Properties of memory that needs no feature of the device.
const KNOWN: vk::MemoryPropertyFlags = vk::MemoryPropertyFlags::from_raw(
    vk::MemoryPropertyFlags::DEVICE_LOCAL.as_raw()
        | vk::MemoryPropertyFlags::HOST_VISIBLE.as_raw()
        | vk::MemoryPropertyFlags::HOST_COHERENT.as_raw()
        | vk::MemoryPropertyFlags::HOST_CACHED.as_raw()
        | vk::MemoryPropertyFlags::LAZILY_ALLOCATED.as_raw(),
);

/// Allocates memory for a buffer.
fn allocate(
    hal: &wgpu::hal::vulkan::Device,
    buffer: vk::Buffer,
    needs: &Needs,
) -> Result<BoundBuffer, String> {
    let device = hal.raw_device();
    // SAFETY: the buffer is of this device.
    let required = unsafe { device.get_buffer_memory_requirements(buffer) };
    let instance = hal.shared_instance().raw_instance();
    // SAFETY: the physical device is one of this instance.
    let all = unsafe { instance.get_physical_device_memory_properties(hal.raw_physical_device()) };
    let kinds = &all.memory_types[..all.memory_type_count as usize];
    let fits = |&(at, kind): &(u32, &vk::MemoryType)| {
        let flags = kind.property_flags;
        required.memory_type_bits >> at & 1 == 1
            && flags.contains(needs.kind)
            && KNOWN.contains(flags)
    };
    for (kind, _) in (0..).zip(kinds).filter(fits) {
        let mut exported = vk::ExportMemoryAllocateInfo::default().handle_types(needs.handles);
        let mut dedicated = vk::MemoryDedicatedAllocateInfo::default().buffer(buffer);
        let mut asked = vk::MemoryAllocateInfo::default()
            .allocation_size(required.size)
            .memory_type_index(kind);
        if !needs.handles.is_empty() {
            asked = asked.push_next(&mut exported);
        }
        if needs.is_dedicated {
            asked = asked.push_next(&mut dedicated);
        }
        // SAFETY: the device has this kind of memory, and the size is the one that it requires.
        if let Ok(memory) = unsafe { device.allocate_memory(&asked, None) } {
            return Ok(BoundBuffer { buffer, memory, size: required.size, kind });
        }
    }
    Err(format!("the device has no {} bytes of {:?} memory", required.size, needs.kind))
}
