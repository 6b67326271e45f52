//! Texture video in the memory of a graphics processor, and that memory for other graphics interfaces.

#[cfg(not(all(feature = "gpu", unix)))]
mod absent;
#[cfg(all(feature = "gpu", unix))]
mod graphics;

#[cfg(not(all(feature = "gpu", unix)))]
use absent as graphics;

use std::ffi::{CString, c_char, c_void};
use std::sync::Arc;

use super::client::{Frames, TextureClient};
use super::options::{TextureOptions, settings};
use crate::error::{Failure, Status};
use crate::guard::{guard, guard_with};
use crate::handle::handle_type;
use crate::hook::{Callback, GpuHook, Release};
use crate::options::argument;
use crate::{handle, pointer};

pub(super) use graphics::{Canvases, Sink};

/// A graphics processor, used through Vulkan.
#[derive(Debug)]
pub struct Gpu(pub(super) graphics::Device);
handle_type!(Gpu, 10, "graphics processor");

/// A frame in the memory of a graphics processor, held by the application: a received frame, or a canvas.
#[derive(Debug)]
pub struct GpuFrame {
    pub(super) frame: graphics::Frame,
    format: CString,
}
handle_type!(GpuFrame, 0, "frame of a graphics processor");

/// How the memory of frames is passed to other graphics interfaces.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(i32)]
pub enum MemoryHandle {
    /// A descriptor that Vulkan, OpenGL (GL_EXT_memory_object_fd) and CUDA import, with a driver of the same
    /// version for the same device.
    OpaqueFd = 0,
    /// A dma_buf of Linux, which other drivers and devices import, too.
    DmaBuf = 1,
}

impl GpuFrame {
    pub(super) fn new(frame: graphics::Frame) -> Result<Self, Failure> {
        let format = CString::new(frame.view()?.1).unwrap_or_default();
        Ok(Self { frame, format })
    }
}

pub(super) fn memory_handle(value: i32) -> Result<MemoryHandle, Failure> {
    match value {
        0 => Ok(MemoryHandle::OpaqueFd),
        1 => Ok(MemoryHandle::DmaBuf),
        other => Err(argument(format!("{other} is not a rushes_memory_handle"))),
    }
}

/// A graphics processor's properties. Later versions may add fields at the end.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct GpuDescription {
    /// The driver's name for it.
    pub name: [c_char; 256],
    /// Its identifier: VkPhysicalDeviceIDProperties.deviceUUID, GL_DEVICE_UUID_EXT.
    pub device_uuid: [u8; 16],
    /// The identifier of its driver, in its version.
    pub driver_uuid: [u8; 16],
    /// Whether it is emulated by the main processor.
    pub is_software: bool,
}

/// A frame's properties. Later versions may add fields at the end.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct GpuFrameView {
    /// The number of octets of the frame, in the order of the tiles of its format.
    pub len: usize,
    /// Its number in the stream, from 0. In a canvas it has no meaning, and neither have the packets and the time.
    pub number: u64,
    /// Its format, such as "bc1"; valid until rushes_gpu_frame_release().
    pub format: *const c_char,
    /// Pixels in a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// Packets that did not arrive in time; their octets were replaced with the previous frame's.
    pub packets_missing: u32,
    /// Nanoseconds from its first packet until it was complete.
    pub took: u64,
    /// What its values stand for, as in rushes_texture_frame.
    pub colour: [u8; 4],
    /// A number of its memory that no other memory of this process has. The same memory is used again for later
    /// frames, so import it once for each number.
    pub memory: u64,
}

/// A frame's memory, as other graphics interfaces import it. Later versions may add fields at the end.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct GpuMemory {
    /// Octets of the memory, from its start. An import must name this size.
    pub size: u64,
    /// Octets of the buffer to which the memory is bound, at its start. It was created with the usage
    /// VK_BUFFER_USAGE_STORAGE_BUFFER_BIT, _TRANSFER_SRC_BIT and _TRANSFER_DST_BIT, which an import of dedicated
    /// memory must name.
    pub buffer_size: u64,
    /// The descriptor, which belongs to the application: an import takes it over, otherwise close() it. Programs
    /// that this one starts do not inherit it, unless another thread starts one during this call.
    pub fd: i32,
    /// The index of the memory's kind in Vulkan, which an import of an opaque descriptor by Vulkan must name.
    pub memory_type: u32,
    /// Whether an import must say that the memory is dedicated to a buffer (VkMemoryDedicatedAllocateInfo,
    /// GL_DEDICATED_MEMORY_OBJECT_EXT).
    pub is_dedicated: bool,
}

/// Opens the fastest graphics processor that has Vulkan; close it with rushes_gpu_close(). Returns
/// RUSHES_ERROR_UNSUPPORTED if there is none, or if the library was installed without `--gpu`.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_gpu_open(gpu: *mut *mut Gpu) -> Status {
    guard(|| {
        pointer::write(gpu, std::ptr::null_mut())?;
        pointer::write(gpu, handle::insert(Gpu(graphics::Device::open()?))?)
    })
}

/// Gets a graphics processor's properties; `size` is sizeof(rushes_gpu_description).
#[unsafe(no_mangle)]
pub extern "C" fn rushes_gpu_describe(
    gpu: *const Gpu,
    description: *mut GpuDescription,
    size: usize,
) -> Status {
    guard(|| {
        let of = handle::get(gpu)?.0.describe()?;
        pointer::write_prefix(description, size, of)
    })
}

/// Closes a graphics processor. Clients and frames that use it remain.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_gpu_close(gpu: *mut Gpu) -> Status {
    guard(|| handle::remove(gpu).map(drop))
}

/// Connects to the server at `address` as rushes_texture_connect() does, and receives frames into memory of a
/// graphics processor that other graphics interfaces import as `memory`, a rushes_memory_handle.
///
/// `hook` (may be NULL) is called, with `user`, for each new frame, which rushes_texture_client_last() then returns;
/// it must not throw. `release` (may be NULL) is called when the hook will not be called any more.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_texture_connect_gpu(
    address: *const c_char,
    options: *const TextureOptions,
    gpu: *const Gpu,
    memory: i32,
    hook: GpuHook,
    user: *mut c_void,
    release: Release,
    client: *mut *mut TextureClient,
) -> Status {
    let callback = Arc::new(Callback::new(hook, user, release));
    guard(|| {
        pointer::write(client, std::ptr::null_mut())?;
        let gpu = handle::get(gpu)?;
        let memory = memory_handle(memory)?;
        let server = super::address(pointer::text(address)?)?;
        let sink = Sink::new(&gpu.0, memory, callback)?;
        let new = sink.connect(server, settings(options)?.client)?;
        let new = TextureClient::new(new, Frames::Device(sink));
        pointer::write(client, handle::insert(new)?)
    })
}

/// Gets the last complete frame of a client of rushes_texture_connect_gpu(), or returns RUSHES_TIMEOUT before
/// the first. The frame's octets do not change until rushes_gpu_frame_release().
#[unsafe(no_mangle)]
pub extern "C" fn rushes_texture_client_last(
    client: *const TextureClient,
    frame: *mut *mut GpuFrame,
) -> Status {
    guard_with(|| {
        pointer::write(frame, std::ptr::null_mut())?;
        let client = handle::get(client)?;
        let Frames::Device(sink) = client.frames() else {
            let message = "the client receives into memory of the main processor";
            return Err(Failure::new(Status::Unsupported, message));
        };
        let Some(last) = sink.last() else { return Ok(Status::Timeout) };
        pointer::write(frame, handle::insert(GpuFrame::new(last)?)?)?;
        Ok(Status::Ok)
    })
}

/// Gets a frame's properties; `size` is sizeof(rushes_gpu_frame_view).
#[unsafe(no_mangle)]
pub extern "C" fn rushes_gpu_frame_look(
    frame: *const GpuFrame,
    view: *mut GpuFrameView,
    size: usize,
) -> Status {
    guard(|| {
        let held = handle::get(frame)?;
        let of = GpuFrameView { format: held.format.as_ptr(), ..held.frame.view()?.0 };
        pointer::write_prefix(view, size, of)
    })
}

/// Gets a frame's memory; `size` is sizeof(rushes_gpu_memory). The graphics processor has written all octets of
/// a received frame: there is no fence to wait for. The memory remains until all importers have freed it.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_gpu_frame_export(
    frame: *const GpuFrame,
    memory: *mut GpuMemory,
    size: usize,
) -> Status {
    guard(|| {
        pointer::check(memory)?;
        let least = std::mem::offset_of!(GpuMemory, is_dedicated) + 1;
        if size < least {
            return Err(Failure::new(Status::Buffer, "the memory's description does not fit"));
        }
        pointer::write_prefix(memory, size, handle::get(frame)?.frame.export()?)
    })
}

/// Returns a frame's memory to its client or server, which uses it again for later frames. All work that reads or
/// writes the memory must be done. The frame may be released after these were closed, and on any thread.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_gpu_frame_release(frame: *mut GpuFrame) -> Status {
    guard(|| handle::remove(frame).map(drop))
}
