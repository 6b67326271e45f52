//! Frames of device memory, used again when nobody looks at them.

use std::sync::Arc;

use rushes_texture::Layout;

use crate::device::Gpu;
use crate::frame::DeviceFrame;

/// Frames of one layout.
#[derive(Debug)]
pub(super) struct Pool {
    gpu: Gpu,
    layout: Layout,
    frames: Vec<Arc<DeviceFrame>>,
}

impl Pool {
    pub(super) fn new(gpu: &Gpu, layout: &Layout) -> Self {
        Self { gpu: gpu.clone(), layout: *layout, frames: Vec::new() }
    }

    /// A frame that nobody else has.
    ///
    /// As many are made as are held at once: those being received, the last one, and those that
    /// viewers have not let go of.
    pub(super) fn take(&mut self) -> Arc<DeviceFrame> {
        if let Some(free) = self.frames.iter().find(|frame| Arc::strong_count(frame) == 1) {
            return Arc::clone(free);
        }
        let frame = Arc::new(DeviceFrame::new(&self.gpu, &self.layout));
        self.frames.push(Arc::clone(&frame));
        frame
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.frames.len()
    }
}
