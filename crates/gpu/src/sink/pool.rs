//! Frames of device memory, reused when they are no longer held.

use std::sync::Arc;

use rushes_texture::Layout;

use crate::decode::Path;
use crate::device::Gpu;
use crate::export::MemoryHandle;
use crate::frame::DeviceFrame;

/// What the frames of a pool are for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// To be drawn by this path.
    Drawn(Path),
    /// To be imported by others, too.
    Exported(MemoryHandle),
}

/// Frames of one layout.
#[derive(Debug)]
pub(super) struct Pool {
    gpu: Gpu,
    layout: Layout,
    kind: Kind,
    frames: Vec<Arc<DeviceFrame>>,
}

impl Pool {
    pub(super) fn new(gpu: &Gpu, layout: &Layout, kind: Kind) -> Self {
        Self { gpu: gpu.clone(), layout: *layout, kind, frames: Vec::new() }
    }

    /// Returns a frame that is not held, or `None` if the device has no memory for it.
    ///
    /// The number of frames is the most that were held at the same time: those being received, and
    /// those that the application holds.
    pub(super) fn take(&mut self) -> Option<Arc<DeviceFrame>> {
        if let Some(free) = self.frames.iter().find(|frame| Arc::strong_count(frame) == 1) {
            return Some(Arc::clone(free));
        }
        let made = match self.kind {
            Kind::Drawn(path) => DeviceFrame::with_path(&self.gpu, &self.layout, path),
            Kind::Exported(handle) => DeviceFrame::exportable(&self.gpu, &self.layout, handle),
        };
        let frame = made.inspect_err(|error| tracing::error!("{error}")).ok()?;
        let frame = Arc::new(frame);
        self.frames.push(Arc::clone(&frame));
        Some(frame)
    }

    /// Returns the number of frames.
    pub(super) fn len(&self) -> usize {
        self.frames.len()
    }
}
