//! What a library with graphics does for C.

use std::net::SocketAddr;
use std::os::fd::IntoRawFd;
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

use rushes::texture::{ClientOptions, TextureClient};
use rushes_gpu::{GpuError, GpuOptions, GpuSink, Interface, ReceivedFrame, Upload};

use super::{GpuDescription, GpuFrameView, GpuMemory, MemoryHandle};
use crate::control_event::nanos;
use crate::error::{Failure, Status};
use crate::hook::{Callback, GpuHook};
use crate::pointer::text_array;

#[derive(Debug)]
pub(super) struct Device(rushes_gpu::Gpu);

/// Receives frames for C, and calls its function for each.
#[derive(Debug)]
pub(in crate::texture) struct Sink {
    gpu: rushes_gpu::Gpu,
    frames: Arc<GpuSink>,
    last: Arc<Mutex<Option<ReceivedFrame>>>,
    callback: Arc<Callback<GpuHook>>,
}

/// A frame that C holds.
#[derive(Debug)]
pub(super) struct Frame {
    gpu: rushes_gpu::Gpu,
    received: ReceivedFrame,
}

impl From<GpuError> for Failure {
    fn from(error: GpuError) -> Self {
        let status = match error {
            GpuError::NoDriver(_) | GpuError::NoDevice { .. } | GpuError::Unsupported { .. } => {
                Status::Unsupported
            }
            _ => Status::Texture,
        };
        Self::new(status, error.to_string())
    }
}

impl Device {
    pub(super) fn open() -> Result<Self, Failure> {
        let options = GpuOptions { interface: Interface::Vulkan, ..GpuOptions::default() };
        Ok(Self(rushes_gpu::Gpu::open(options)?))
    }

    pub(super) fn describe(&self) -> Result<GpuDescription, Failure> {
        let uuids = self.0.uuids()?;
        Ok(GpuDescription {
            name: text_array(&self.0.name()),
            device_uuid: uuids.device,
            driver_uuid: uuids.driver,
            is_software: self.0.is_software(),
        })
    }
}

impl Sink {
    pub(super) fn new(
        Device(gpu): &Device,
        memory: MemoryHandle,
        callback: Arc<Callback<GpuHook>>,
    ) -> Result<Self, Failure> {
        let memory = match memory {
            MemoryHandle::OpaqueFd => rushes_gpu::MemoryHandle::OpaqueFd,
            MemoryHandle::DmaBuf => rushes_gpu::MemoryHandle::DmaBuf,
        };
        let last = Arc::<Mutex<Option<ReceivedFrame>>>::default();
        let (newest, called) = (Arc::clone(&last), Arc::clone(&callback));
        // Frames of an old shape and of a new one may be completed at the same time.
        let calling = Mutex::new(());
        let sink = GpuSink::new(gpu, Upload::Best, move |received| {
            let _calling = calling.lock().unwrap_or_else(PoisonError::into_inner);
            *newest.lock().unwrap_or_else(PoisonError::into_inner) = Some(received.clone());
            called.call(|hook, user| {
                if let Some(hook) = hook {
                    hook(user);
                }
            });
        });
        let sink = Arc::new(sink.with_export(memory)?);
        Ok(Self { gpu: gpu.clone(), frames: sink, last, callback })
    }

    pub(super) fn connect(
        &self,
        server: SocketAddr,
        options: ClientOptions,
    ) -> Result<TextureClient, Failure> {
        Ok(TextureClient::connect(server, self.frames.clone(), options)?)
    }

    pub(super) fn last(&self) -> Option<Frame> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Some(Frame { gpu: self.gpu.clone(), received: last? })
    }

    pub(in crate::texture) fn is_running_here(&self) -> bool {
        self.callback.is_running_here()
    }
}

impl Frame {
    /// Returns the properties, and the format's name.
    pub(super) fn view(&self) -> (GpuFrameView, &'static str) {
        let ReceivedFrame { frame, layout, number, packets_missing, .. } = &self.received;
        let took = self.received.received_at.saturating_duration_since(self.received.first_at);
        let view = GpuFrameView {
            len: layout.bytes(),
            number: *number,
            format: ptr::null(),
            width: layout.width(),
            height: layout.height(),
            packets_missing: *packets_missing,
            took: nanos(took),
            colour: layout.colour().code_points(),
            memory: frame.id(),
        };
        (view, layout.format().name())
    }

    pub(super) fn export(&self) -> Result<GpuMemory, Failure> {
        let memory = self.received.frame.export(&self.gpu)?;
        Ok(GpuMemory {
            size: memory.size,
            buffer_size: memory.buffer_size,
            fd: memory.fd.into_raw_fd(),
            memory_type: memory.memory_type,
            is_dedicated: memory.is_dedicated,
        })
    }
}
