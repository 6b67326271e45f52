//! What a package with graphics does for Python.

use std::fmt;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

use rushes::texture::source::Source;
use rushes::texture::{
    Format, FrameMemory, Gap, Layout, Rate, TextureFrame, TextureShape, TextureSink,
};
use rushes_gpu::{
    DeviceFrame, GpuError, GpuOptions, GpuSink, Interface, MemoryHandle, ReceivedFrame,
    RenderedFrames, RenderedSource, Upload,
};

use super::{Exported, Handle, Seen, Uuids};
use crate::error::Failure;
use crate::texture::queue::{Frame, Queue};

#[derive(Debug)]
pub(crate) struct Device(rushes_gpu::Gpu);

/// A received frame, with the device whose memory it is in.
#[derive(Debug)]
pub(in crate::texture) struct Received {
    gpu: rushes_gpu::Gpu,
    received: ReceivedFrame,
}

#[derive(Debug)]
pub(super) struct Descriptor(OwnedFd);

impl From<Handle> for MemoryHandle {
    fn from(handle: Handle) -> Self {
        match handle {
            Handle::OpaqueFd => Self::OpaqueFd,
            Handle::DmaBuf => Self::DmaBuf,
        }
    }
}

impl From<GpuError> for Failure {
    fn from(error: GpuError) -> Self {
        Self::Gpu(error.to_string())
    }
}

impl Device {
    pub(super) fn open() -> Result<Self, Failure> {
        let options = GpuOptions { interface: Interface::Vulkan, ..GpuOptions::default() };
        Ok(Self(rushes_gpu::Gpu::open(options)?))
    }

    pub(super) fn name(&self) -> String {
        self.0.name()
    }

    pub(super) fn uuids(&self) -> Result<Uuids, Failure> {
        let uuids = self.0.uuids()?;
        Ok(Uuids { device: uuids.device, driver: uuids.driver })
    }

    pub(super) fn is_software(&self) -> bool {
        self.0.is_software()
    }

    /// Returns a sink in the device's memory, whose frames go to the queue.
    pub(in crate::texture) fn sink(
        &self,
        handle: Handle,
        queue: Arc<Queue>,
    ) -> Result<Arc<dyn TextureSink>, Failure> {
        let (gpu, frames) = (self.0.clone(), queue.clone());
        let sink = GpuSink::new(&self.0, Upload::Best, move |received| {
            let frame = Received { gpu: gpu.clone(), received: received.clone() };
            frames.push(Frame::Device(Box::new(frame)));
        });
        Ok(Arc::new(Sink { frames: sink.with_export(handle.into())?, queue }))
    }
}

impl Received {
    pub(super) fn seen(&self) -> Seen {
        let ReceivedFrame { frame, layout, number, packets_missing, .. } = &self.received;
        let times: [Instant; 3] =
            [self.received.first_at, self.received.received_at, self.received.copied_at];
        Seen { layout: *layout, number: *number, missing: *packets_missing, times, id: frame.id() }
    }

    pub(super) fn export(&self) -> Result<Exported, Failure> {
        exported(&self.gpu, &self.received.frame)
    }
}

fn exported(gpu: &rushes_gpu::Gpu, frame: &DeviceFrame) -> Result<Exported, Failure> {
    let memory = frame.export(gpu)?;
    Ok(Exported {
        size: memory.size,
        buffer_size: memory.buffer_size,
        memory_type: memory.memory_type,
        is_dedicated: memory.is_dedicated,
        handle: match memory.handle {
            MemoryHandle::DmaBuf => Handle::DmaBuf,
            _ => Handle::OpaqueFd,
        },
        descriptor: Descriptor(memory.fd),
    })
}

/// The frames that Python draws for a server.
#[derive(Debug)]
pub(super) struct Canvases {
    gpu: rushes_gpu::Gpu,
    frames: RenderedFrames<DeviceFrame>,
}

impl Canvases {
    pub(super) fn new(
        Device(gpu): &Device,
        handle: Handle,
        size: (u32, u32),
        output: Format,
        rate: Rate,
    ) -> Result<(Self, Box<dyn Source>), Failure> {
        let (frames, source) = RenderedSource::exportable(gpu, size, handle.into(), output, rate)?;
        Ok((Self { gpu: gpu.clone(), frames }, Box::new(source)))
    }

    pub(super) fn canvas(&self) -> Result<Drawing, Failure> {
        Ok(Drawing { gpu: self.gpu.clone(), canvas: self.frames.canvas()? })
    }

    pub(super) fn resize(&self, size: (u32, u32)) -> Result<(), Failure> {
        Ok(self.frames.resize(size)?)
    }
}

/// A frame that Python draws.
#[derive(Debug)]
pub(super) struct Drawing {
    gpu: rushes_gpu::Gpu,
    canvas: rushes_gpu::Canvas<DeviceFrame>,
}

impl Drawing {
    pub(super) fn layout(&self) -> &Layout {
        self.canvas.frame().layout()
    }

    pub(super) fn id(&self) -> u64 {
        self.canvas.frame().id()
    }

    pub(super) fn export(&self) -> Result<Exported, Failure> {
        exported(&self.gpu, self.canvas.frame())
    }

    /// Sends the frame; returns whether its server is still open.
    pub(super) fn send(self) -> bool {
        self.canvas.send()
    }
}

impl Descriptor {
    pub(super) fn number(&self) -> i32 {
        self.0.as_raw_fd()
    }

    pub(super) fn detach(self) -> i32 {
        self.0.into_raw_fd()
    }
}

/// A sink in graphics memory, at whose end the queue ends.
struct Sink {
    frames: GpuSink,
    queue: Arc<Queue>,
}

impl TextureSink for Sink {
    fn begin(&self, shape: &TextureShape, slots: usize) -> Result<Vec<FrameMemory>, String> {
        self.frames.begin(shape, slots)
    }

    fn tile_ready(&self, slot: usize, unit: usize) {
        self.frames.tile_ready(slot, unit);
    }

    fn conceal(&self, slot: usize, previous: usize, gaps: &[Gap]) -> bool {
        self.frames.conceal(slot, previous, gaps)
    }

    fn frame_done(&self, frame: &TextureFrame<'_>) {
        self.frames.frame_done(frame);
    }

    fn captured(&self, number: u64, at: Instant) {
        self.frames.captured(number, at);
    }

    fn end(&self) {
        // The queue is closed even if a frame before could not be passed on.
        let _close = CloseOnDrop(&self.queue);
        self.frames.end();
    }
}

/// Closes the queue when dropped.
struct CloseOnDrop<'a>(&'a Queue);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sink").field(&self.frames).finish()
    }
}
