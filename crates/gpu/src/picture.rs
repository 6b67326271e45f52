//! Pictures drawn without a window, and read back.

use std::sync::mpsc;

use crate::device::Gpu;
use crate::error::GpuError;

/// The format of pictures that are read back.
pub const PICTURE_FORMAT: wgpu::TextureFormat = wgpu::TextureFormat::Rgba8Unorm;

/// A target of RGBA8 without a window, for tests and screenshots.
#[derive(Debug)]
pub struct Picture {
    texture: wgpu::Texture,
    view: wgpu::TextureView,
    back: wgpu::Buffer,
    row_bytes: u32,
}

impl Picture {
    /// Creates a target of `width × height` pixels.
    pub fn new(gpu: &Gpu, width: u32, height: u32) -> Self {
        Self::with_format(gpu, (width, height), PICTURE_FORMAT)
    }

    /// Creates a target of a format with four bytes per pixel.
    pub fn with_format(
        gpu: &Gpu,
        (width, height): (u32, u32),
        format: wgpu::TextureFormat,
    ) -> Self {
        let texture = gpu.device.create_texture(&wgpu::TextureDescriptor {
            label: Some("picture"),
            size: wgpu::Extent3d { width, height, depth_or_array_layers: 1 },
            mip_level_count: 1,
            sample_count: 1,
            dimension: wgpu::TextureDimension::D2,
            format,
            usage: wgpu::TextureUsages::RENDER_ATTACHMENT | wgpu::TextureUsages::COPY_SRC,
            view_formats: &[],
        });
        let view = texture.create_view(&wgpu::TextureViewDescriptor::default());
        let row_bytes = (width * 4).next_multiple_of(wgpu::COPY_BYTES_PER_ROW_ALIGNMENT);
        let back = gpu.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("picture read back"),
            size: u64::from(row_bytes) * u64::from(height),
            usage: wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::MAP_READ,
            mapped_at_creation: false,
        });
        Self { texture, view, back, row_bytes }
    }

    /// Returns the view to draw on.
    pub fn target(&self) -> &wgpu::TextureView {
        &self.view
    }

    /// Returns the width and height in pixels.
    pub fn size(&self) -> (u32, u32) {
        (self.texture.width(), self.texture.height())
    }

    /// Submits the recorded work, waits for it and reads the picture: RGBA8, in rows without gaps.
    ///
    /// # Errors
    ///
    /// [`GpuError::Device`] if the device was lost.
    pub fn read(&self, gpu: &Gpu, mut encoder: wgpu::CommandEncoder) -> Result<Vec<u8>, GpuError> {
        encoder.copy_texture_to_buffer(
            self.texture.as_image_copy(),
            wgpu::TexelCopyBufferInfo {
                buffer: &self.back,
                layout: wgpu::TexelCopyBufferLayout {
                    offset: 0,
                    bytes_per_row: Some(self.row_bytes),
                    rows_per_image: None,
                },
            },
            self.texture.size(),
        );
        gpu.queue.submit([encoder.finish()]);
        let rows = read_buffer(gpu, &self.back)?;
        let (width, _) = self.size();
        let rows = rows.chunks(self.row_bytes as usize);
        Ok(rows.flat_map(|row| &row[..width as usize * 4]).copied().collect())
    }
}

/// Reads a mappable buffer after all submitted work.
pub(crate) fn read_buffer(gpu: &Gpu, buffer: &wgpu::Buffer) -> Result<Vec<u8>, GpuError> {
    let (sender, mapped) = mpsc::sync_channel(1);
    buffer.map_async(wgpu::MapMode::Read, .., move |result| {
        let _ = sender.send(result);
    });
    gpu.wait()?;
    let lost = |error: String| GpuError::Device(error);
    mapped
        .recv()
        .map_err(|error| lost(error.to_string()))?
        .map_err(|error| lost(error.to_string()))?;
    let octets = {
        let view = buffer.get_mapped_range(..).map_err(|error| lost(error.to_string()))?;
        view.to_vec()
    };
    buffer.unmap();
    Ok(octets)
}
