//! A frame in the memory of the graphics processor.

use rushes_texture::Layout;

use crate::device::Gpu;

/// Memory of the graphics processor for one frame of a layout.
#[derive(Debug)]
pub struct DeviceFrame {
    octets: wgpu::Buffer,
}

impl DeviceFrame {
    /// Memory for a frame, with nothing in it: every octet is 0.
    pub fn new(gpu: &Gpu, layout: &Layout) -> Self {
        let octets = gpu.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("frame"),
            size: padded(layout.bytes()),
            usage: wgpu::BufferUsages::STORAGE
                | wgpu::BufferUsages::COPY_DST
                | wgpu::BufferUsages::COPY_SRC,
            mapped_at_creation: false,
        });
        Self { octets }
    }

    /// Copies a frame's octets in, by way of memory of the driver's own.
    ///
    /// What is behind the frame's end is left out.
    pub fn write(&self, gpu: &Gpu, octets: &[u8]) {
        let octets = &octets[..octets.len().min(self.octets.size() as usize)];
        let (whole, rest) = octets.as_chunks::<4>();
        gpu.queue.write_buffer(&self.octets, 0, whole.as_flattened());
        if !rest.is_empty() {
            let mut last = [0; 4];
            last[..rest.len()].copy_from_slice(rest);
            gpu.queue.write_buffer(&self.octets, (whole.len() * 4) as u64, &last);
        }
    }

    pub(crate) fn octets(&self) -> &wgpu::Buffer {
        &self.octets
    }
}

/// What a buffer must have for so many octets: copies and shaders move words of four.
pub(crate) fn padded(octets: usize) -> u64 {
    (octets as u64).next_multiple_of(4).max(4)
}
