//! Frames of device memory, reused when they are no longer held.

use std::sync::Arc;

use rushes_texture::Layout;

use crate::decode::Path;
use crate::device::Gpu;
use crate::frame::DeviceFrame;

/// Frames of one layout.
#[derive(Debug)]
pub(super) struct Pool {
    gpu: Gpu,
    layout: Layout,
    path: Path,
    frames: Vec<Arc<DeviceFrame>>,
}

impl Pool {
    pub(super) fn new(gpu: &Gpu, layout: &Layout, path: Path) -> Self {
        Self { gpu: gpu.clone(), layout: *layout, path, frames: Vec::new() }
    }

    /// Returns a frame that is not held, or `None` if the device has no memory for it.
    ///
    /// The number of frames is the most that were held at the same time: those being received, and
    /// those that the application holds.
    pub(super) fn take(&mut self) -> Option<Arc<DeviceFrame>> {
        if let Some(free) = self.frames.iter().find(|frame| Arc::strong_count(frame) == 1) {
            return Some(Arc::clone(free));
        }
        let made = DeviceFrame::with_path(&self.gpu, &self.layout, self.path);
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
