//! What a library with graphics does for C.

use std::net::SocketAddr;
use std::os::fd::IntoRawFd;
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

use rushes::texture::source::Source;
use rushes::texture::{ClientOptions, Colour, Format, Rate, TextureClient};
use rushes_gpu::{
    Canvas, DeviceFrame, GpuError, GpuOptions, GpuSink, Interface, ReceivedFrame, RenderedFrames,
    RenderedSource, Upload,
};

use super::{GpuDescription, GpuFrameView, GpuMemory, MemoryHandle};
use crate::control_event::nanos;
use crate::error::{Failure, Status};
use crate::hook::{Callback, GpuHook};
use crate::pointer::text_array;

#[derive(Debug)]
pub(in crate::texture) struct Device(rushes_gpu::Gpu);

/// Receives frames for C, and calls its function for each.
#[derive(Debug)]
pub(in crate::texture) struct Sink {
    gpu: rushes_gpu::Gpu,
    frames: Arc<GpuSink>,
    last: Arc<Mutex<Option<ReceivedFrame>>>,
    callback: Arc<Callback<GpuHook>>,
}

/// The frames that C draws for a server.
#[derive(Debug)]
pub(in crate::texture) struct Canvases {
    gpu: rushes_gpu::Gpu,
    frames: RenderedFrames<DeviceFrame>,
}

/// A frame that C holds.
#[derive(Debug)]
pub(in crate::texture) struct Frame {
    gpu: rushes_gpu::Gpu,
    held: Held,
}

#[derive(Debug)]
enum Held {
    Received(ReceivedFrame),
    /// `None` once it was sent, which other calls may see that began before.
    Canvas(Mutex<Option<Canvas<DeviceFrame>>>),
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

impl From<MemoryHandle> for rushes_gpu::MemoryHandle {
    fn from(handle: MemoryHandle) -> Self {
        match handle {
            MemoryHandle::OpaqueFd => Self::OpaqueFd,
            MemoryHandle::DmaBuf => Self::DmaBuf,
        }
    }
}

impl Device {
    pub(in crate::texture) fn open() -> Result<Self, Failure> {
        let options = GpuOptions { interface: Interface::Vulkan, ..GpuOptions::default() };
        Ok(Self(rushes_gpu::Gpu::open(options)?))
    }

    pub(in crate::texture) fn describe(&self) -> Result<GpuDescription, Failure> {
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
    pub(in crate::texture) fn new(
        Device(gpu): &Device,
        memory: MemoryHandle,
        callback: Arc<Callback<GpuHook>>,
    ) -> Result<Self, Failure> {
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
        let sink = Arc::new(sink.with_export(memory.into())?);
        Ok(Self { gpu: gpu.clone(), frames: sink, last, callback })
    }

    pub(in crate::texture) fn connect(
        &self,
        server: SocketAddr,
        options: ClientOptions,
    ) -> Result<TextureClient, Failure> {
        Ok(TextureClient::connect(server, self.frames.clone(), options)?)
    }

    pub(in crate::texture) fn last(&self) -> Option<Frame> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Some(Frame { gpu: self.gpu.clone(), held: Held::Received(last?) })
    }

    pub(in crate::texture) fn is_running_here(&self) -> bool {
        self.callback.is_running_here()
    }
}

impl Canvases {
    pub(in crate::texture) fn new(
        Device(gpu): &Device,
        memory: MemoryHandle,
        size: (u32, u32),
        output: Format,
        rate: Rate,
    ) -> Result<(Self, Box<dyn Source>), Failure> {
        let (frames, source) = RenderedSource::exportable(gpu, size, memory.into(), output, rate)?;
        Ok((Self { gpu: gpu.clone(), frames }, Box::new(source)))
    }

    pub(in crate::texture) fn canvas(&self) -> Result<Frame, Failure> {
        let canvas = Mutex::new(Some(self.frames.canvas()?));
        Ok(Frame { gpu: self.gpu.clone(), held: Held::Canvas(canvas) })
    }

    pub(in crate::texture) fn resize(&self, size: (u32, u32)) -> Result<(), Failure> {
        Ok(self.frames.resize(size)?)
    }
}

impl Frame {
    /// Calls a function with the memory.
    fn with_memory<T>(&self, act: impl FnOnce(&DeviceFrame) -> T) -> Result<T, Failure> {
        match &self.held {
            Held::Received(received) => Ok(act(&received.frame)),
            Held::Canvas(canvas) => {
                let canvas = canvas.lock().unwrap_or_else(PoisonError::into_inner);
                let sent = || Failure::new(Status::Closed, "the frame was sent");
                Ok(act(canvas.as_ref().ok_or_else(sent)?.frame()))
            }
        }
    }

    /// Returns the properties, and the format's name.
    pub(in crate::texture) fn view(&self) -> Result<(GpuFrameView, &'static str), Failure> {
        let of_memory = |frame: &DeviceFrame| GpuFrameView {
            len: frame.layout().bytes(),
            number: 0,
            format: ptr::null(),
            width: frame.layout().width(),
            height: frame.layout().height(),
            packets_missing: 0,
            took: 0,
            colour: Colour::default().code_points(),
            memory: frame.id(),
        };
        let view = self.with_memory(of_memory)?;
        let Held::Received(received) = &self.held else {
            return Ok((view, Format::Rgba8.name()));
        };
        let took = received.received_at.saturating_duration_since(received.first_at);
        let view = GpuFrameView {
            number: received.number,
            packets_missing: received.packets_missing,
            took: nanos(took),
            colour: received.layout.colour().code_points(),
            ..view
        };
        Ok((view, received.layout.format().name()))
    }

    pub(in crate::texture) fn export(&self) -> Result<GpuMemory, Failure> {
        let memory = self.with_memory(|frame| frame.export(&self.gpu))??;
        Ok(GpuMemory {
            size: memory.size,
            buffer_size: memory.buffer_size,
            fd: memory.fd.into_raw_fd(),
            memory_type: memory.memory_type,
            is_dedicated: memory.is_dedicated,
        })
    }

    /// Returns whether the frame is one that C draws.
    pub(in crate::texture) fn is_canvas(&self) -> bool {
        matches!(self.held, Held::Canvas(_))
    }

    /// Sends a frame that C drew; returns whether its server is still open.
    pub(in crate::texture) fn send(&self) -> bool {
        let Held::Canvas(canvas) = &self.held else { return false };
        let canvas = canvas.lock().unwrap_or_else(PoisonError::into_inner).take();
        canvas.is_some_and(Canvas::send)
    }
}
