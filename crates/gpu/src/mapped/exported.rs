//! Device memory that other programs and interfaces import.

use std::os::fd::{FromRawFd, OwnedFd};

use ash::vk;
use wgpu::hal::api::Vulkan;

use super::memory::{BoundBuffer, Needs, hal};
use crate::device::Gpu;
use crate::export::{DeviceUuids, ExportedMemory, MemoryHandle};

/// A buffer whose memory can be exported.
#[derive(Debug)]
pub(crate) struct Exported {
    /// Keeps the memory.
    buffer: wgpu::Buffer,
    memory: BoundBuffer,
    handle: MemoryHandle,
    is_dedicated: bool,
    gpu: Gpu,
}

/// Returns Vulkan's name for a kind of handle, and the extension that exports it.
fn kind_of(handle: MemoryHandle) -> (vk::ExternalMemoryHandleTypeFlags, &'static std::ffi::CStr) {
    match handle {
        MemoryHandle::OpaqueFd => {
            (vk::ExternalMemoryHandleTypeFlags::OPAQUE_FD, ash::khr::external_memory_fd::NAME)
        }
        MemoryHandle::DmaBuf => (
            vk::ExternalMemoryHandleTypeFlags::DMA_BUF_EXT,
            ash::ext::external_memory_dma_buf::NAME,
        ),
    }
}

/// What the buffers of frames are used for.
const USAGE: vk::BufferUsageFlags = vk::BufferUsageFlags::from_raw(
    vk::BufferUsageFlags::STORAGE_BUFFER.as_raw()
        | vk::BufferUsageFlags::TRANSFER_SRC.as_raw()
        | vk::BufferUsageFlags::TRANSFER_DST.as_raw(),
);

/// Checks that the questions of this file can be asked. The error is a text with the reason.
fn check_version(hal: &wgpu::hal::vulkan::Device) -> Result<(), String> {
    let instance = hal.shared_instance();
    // SAFETY: the physical device is one of this instance.
    let device = unsafe {
        instance.raw_instance().get_physical_device_properties(hal.raw_physical_device())
    };
    let version = device.api_version.min(instance.instance_api_version());
    if version < vk::API_VERSION_1_1 {
        return Err("the driver has Vulkan 1.0 only".to_owned());
    }
    Ok(())
}

/// Returns whether memory that a device exports must know its buffer. The error is a text with the reason why
/// it exports none.
fn is_dedicated(hal: &wgpu::hal::vulkan::Device, handle: MemoryHandle) -> Result<bool, String> {
    check_version(hal)?;
    let (kind, extension) = kind_of(handle);
    for needed in [ash::khr::external_memory_fd::NAME, extension] {
        if !hal.enabled_device_extensions().contains(&needed) {
            return Err(format!("the device lacks {}", needed.to_string_lossy()));
        }
    }
    let asked = vk::PhysicalDeviceExternalBufferInfo::default().usage(USAGE).handle_type(kind);
    let mut answer = vk::ExternalBufferProperties::default();
    // SAFETY: the physical device is one of this instance, and the structures are complete.
    unsafe {
        hal.shared_instance().raw_instance().get_physical_device_external_buffer_properties(
            hal.raw_physical_device(),
            &asked,
            &mut answer,
        );
    }
    let features = answer.external_memory_properties.external_memory_features;
    if !features.contains(vk::ExternalMemoryFeatureFlags::EXPORTABLE) {
        return Err(format!("the device exports no buffers as {handle:?}"));
    }
    Ok(features.contains(vk::ExternalMemoryFeatureFlags::DEDICATED_ONLY))
}

impl Exported {
    /// Bytes of the buffer behind the frame: Mesa's software OpenGL refuses memory that is not larger than its buffer.
    pub(crate) const MORE: u64 = 64;

    /// Checks that a device exports memory by such handles. The error is a text with the reason.
    pub(crate) fn check(gpu: &Gpu, handle: MemoryHandle) -> Result<(), String> {
        let hal = hal(gpu)?;
        is_dedicated(&hal, handle).map(drop)
    }

    /// Allocates `octets` zeroed bytes and a few more, a multiple of four. The error is a text with the reason.
    pub(crate) fn new(gpu: &Gpu, octets: u64, handle: MemoryHandle) -> Result<Self, String> {
        let octets = octets + Self::MORE;
        let hal = hal(gpu)?;
        let is_dedicated = is_dedicated(&hal, handle)?;
        let needs = Needs {
            octets,
            usage: USAGE,
            kind: vk::MemoryPropertyFlags::DEVICE_LOCAL,
            handles: kind_of(handle).0,
            is_dedicated,
        };
        let memory = BoundBuffer::new(&hal, &needs)?;
        drop(hal);
        let descriptor = wgpu::BufferDescriptor {
            label: Some("frame"),
            size: octets,
            usage: wgpu::BufferUsages::STORAGE
                | wgpu::BufferUsages::COPY_DST
                | wgpu::BufferUsages::COPY_SRC,
            mapped_at_creation: false,
        };
        // SAFETY: the buffer was just created by this device with this size and use, and only wgpu frees it. It
        // is cleared before anything else is submitted that uses it.
        let buffer = unsafe { memory.into_wgpu(gpu, &descriptor) };
        let mut recorder = gpu.recorder();
        recorder.clear_buffer(&buffer, 0, None);
        gpu.submit(recorder);
        Ok(Self { buffer, memory, handle, is_dedicated, gpu: gpu.clone() })
    }

    /// Returns the buffer.
    pub(crate) fn buffer(&self) -> &wgpu::Buffer {
        &self.buffer
    }

    /// Makes what others wrote to the memory visible to work that is submitted from here on. The error is a text with
    /// the reason.
    ///
    /// Vulkan released the buffer to its external queue family when it had written; other interfaces need not. It is not
    /// released to them here, because they write all of it anew.
    pub(crate) fn acquire(&self) -> Result<(), String> {
        use vk::PipelineStageFlags as Stage;

        let hal = hal(&self.gpu)?;
        let barrier = vk::BufferMemoryBarrier::default()
            .dst_access_mask(vk::AccessFlags::SHADER_READ | vk::AccessFlags::TRANSFER_READ)
            .src_queue_family_index(vk::QUEUE_FAMILY_EXTERNAL)
            .dst_queue_family_index(hal.queue_family_index())
            .buffer(self.memory.buffer)
            .size(vk::WHOLE_SIZE);
        // SAFETY: the handle of the buffer is only used.
        let kept = unsafe { self.buffer.as_hal::<Vulkan>() };
        // The application may have destroyed the buffer; it cannot while this is held.
        let kept = kept.ok_or("the frame's buffer was destroyed, or the device was lost")?;
        let mut recorder = self.gpu.recorder();
        let record = |encoder: Option<&mut wgpu::hal::vulkan::CommandEncoder>| {
            // SAFETY: wgpu is recording to the encoder, and ends the recording later.
            let commands = unsafe { encoder?.raw_handle() };
            let (before, after) = (Stage::TOP_OF_PIPE, Stage::COMPUTE_SHADER | Stage::TRANSFER);
            let none = vk::DependencyFlags::empty();
            // SAFETY: the commands and the buffer are of this device, and the barrier is complete.
            unsafe {
                hal.raw_device().cmd_pipeline_barrier(
                    commands,
                    before,
                    after,
                    none,
                    &[],
                    &[barrier],
                    &[],
                );
            };
            Some(())
        };
        // SAFETY: only commands are recorded; wgpu ends the recording. The buffer is alive until they are done, because
        // wgpu sees it in the same submission.
        let recorded = unsafe { recorder.as_hal_mut::<Vulkan, _, _>(record) };
        recorded.ok_or("the device is not used through Vulkan")?;
        drop(kept);
        drop(hal);
        let mut seen = self.gpu.recorder();
        let state = wgpu::BufferUses::STORAGE_READ_ONLY;
        let transition = wgpu::BufferTransition { buffer: &self.buffer, state };
        seen.transition_resources(std::iter::once(transition), std::iter::empty());
        self.gpu.queue.submit([recorder.finish(), seen.finish()]);
        Ok(())
    }

    /// Creates a descriptor by which others import the memory. The error is a text with the reason.
    pub(crate) fn export(&self) -> Result<ExportedMemory, String> {
        let hal = hal(&self.gpu)?;
        let instance = hal.shared_instance().raw_instance();
        let functions = ash::khr::external_memory_fd::Device::new(instance, hal.raw_device());
        let asked = vk::MemoryGetFdInfoKHR::default()
            .memory(self.memory.memory)
            .handle_type(kind_of(self.handle).0);
        // SAFETY: the handle of the buffer is only used.
        let kept = unsafe { self.buffer.as_hal::<Vulkan>() };
        // The application may have destroyed the buffer, and the memory with it; it cannot while this is held.
        let _kept = kept.ok_or("the frame's buffer was destroyed, or the device was lost")?;
        // SAFETY: the buffer keeps the memory, which was allocated to be exported by this kind of handle, and
        // the device has the extension.
        let descriptor = unsafe { functions.get_memory_fd(&asked) }
            .map_err(|error| format!("Vulkan does not export the memory: {error}"))?;
        // SAFETY: Vulkan creates a descriptor for each call, which belongs to the caller.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
        // Drivers may leave it open in programs that this one starts; a copy is not.
        let copy = descriptor.try_clone();
        Ok(ExportedMemory {
            fd: copy.map_err(|error| format!("the descriptor cannot be copied: {error}"))?,
            handle: self.handle,
            size: self.memory.size,
            buffer_size: self.buffer.size(),
            memory_type: self.memory.kind,
            is_dedicated: self.is_dedicated,
        })
    }
}

/// Returns the identifiers of a device and its driver. The error is a text with the reason.
pub(crate) fn uuids(gpu: &Gpu) -> Result<DeviceUuids, String> {
    let hal = hal(gpu)?;
    check_version(&hal)?;
    let mut identifiers = vk::PhysicalDeviceIDProperties::default();
    let mut answer = vk::PhysicalDeviceProperties2::default().push_next(&mut identifiers);
    // SAFETY: the physical device is one of this instance, and the structures are complete.
    unsafe {
        hal.shared_instance()
            .raw_instance()
            .get_physical_device_properties2(hal.raw_physical_device(), &mut answer);
    }
    Ok(DeviceUuids { device: identifiers.device_uuid, driver: identifiers.driver_uuid })
}
