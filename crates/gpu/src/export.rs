//! Frames that other programs and graphics interfaces import.

#[cfg(unix)]
use std::os::fd::OwnedFd;

/// How the memory of frames is passed to other programs and graphics interfaces.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum MemoryHandle {
    /// A descriptor that Vulkan, OpenGL (`GL_EXT_memory_object_fd`) and CUDA import, with a driver of the same
    /// version for the same device ([`DeviceUuids`]).
    OpaqueFd,
    /// A `dma_buf` of Linux, which other drivers and devices import, too.
    DmaBuf,
}

/// The identifiers of a device and its driver, as in Vulkan's `VkPhysicalDeviceIDProperties`, OpenGL's
/// `GL_DEVICE_UUID_EXT` and CUDA's `cuDeviceGetUuid`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct DeviceUuids {
    /// The device.
    pub device: [u8; 16],
    /// The driver, in its version.
    pub driver: [u8; 16],
}

/// The memory of a frame, as others import it.
#[cfg(unix)]
#[derive(Debug)]
#[non_exhaustive]
pub struct ExportedMemory {
    /// The descriptor. Programs that this one starts do not inherit it, unless another thread starts one during the
    /// export. An import by Vulkan, OpenGL or CUDA takes it over; another program receives a copy of it.
    pub fd: OwnedFd,
    /// What the descriptor is.
    pub handle: MemoryHandle,
    /// Bytes of the memory, from its start. The importer must name this size; the frame may be shorter.
    pub size: u64,
    /// Bytes of the buffer to which the memory is bound, at its start. It was created with the usage
    /// `STORAGE_BUFFER | TRANSFER_SRC | TRANSFER_DST`, which an importer of dedicated memory must name.
    pub buffer_size: u64,
    /// The index of the memory's kind in Vulkan, which an importer of [`MemoryHandle::OpaqueFd`] must name.
    pub memory_type: u32,
    /// Whether the importer must say that the memory is dedicated to a buffer
    /// (`VkMemoryDedicatedAllocateInfo`, `GL_DEDICATED_MEMORY_OBJECT_EXT`).
    pub is_dedicated: bool,
}
