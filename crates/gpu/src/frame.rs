//! A frame in the memory of the graphics processor.

use rushes_texture::Layout;
use rushes_texture::Tile;

use crate::decode::{BlockTexture, Path};
use crate::device::Gpu;
use crate::error::GpuError;
use crate::picture::read_buffer;

/// Memory of the graphics processor for one frame of a layout.
#[derive(Debug)]
pub struct DeviceFrame {
    memory: Memory,
    length: usize,
}

/// What a frame is read from.
#[derive(Debug)]
pub(crate) enum Memory {
    Octets(wgpu::Buffer),
    Texture(Box<BlockTexture>),
}

impl DeviceFrame {
    /// Memory for a frame that is read by a path, with nothing in it: every octet is 0.
    ///
    /// # Errors
    ///
    /// [`GpuError::Unsupported`] where the device has no texture of the frame's blocks, for
    /// [`Path::Texture`] only.
    pub fn with_path(gpu: &Gpu, layout: &Layout, path: Path) -> Result<Self, GpuError> {
        Ok(match path {
            Path::Octets => Self::new(gpu, layout),
            Path::Texture => {
                let texture = BlockTexture::new(gpu, layout)?;
                Self { memory: Memory::Texture(Box::new(texture)), length: layout.bytes() }
            }
        })
    }

    /// Memory for a frame that is read by [`Path::Octets`], with nothing in it: every octet is 0.
    pub fn new(gpu: &Gpu, layout: &Layout) -> Self {
        let octets = gpu.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("frame"),
            size: padded(layout.bytes()),
            usage: wgpu::BufferUsages::STORAGE
                | wgpu::BufferUsages::COPY_DST
                | wgpu::BufferUsages::COPY_SRC,
            mapped_at_creation: false,
        });
        Self { memory: Memory::Octets(octets), length: layout.bytes() }
    }

    /// What it is read by.
    pub fn path(&self) -> Path {
        match self.memory {
            Memory::Octets(_) => Path::Octets,
            Memory::Texture(_) => Path::Texture,
        }
    }

    /// Copies a frame's octets in, by way of memory of the driver's own, which goes with the next
    /// submit.
    ///
    /// What is behind the frame's end is left out. Of a texture, only whole block rows are written.
    pub fn write(&self, gpu: &Gpu, octets: &[u8]) {
        let octets = &octets[..octets.len().min(self.length)];
        let buffer = match &self.memory {
            Memory::Octets(buffer) => buffer,
            Memory::Texture(texture) => return texture.write(gpu, octets),
        };
        let (whole, rest) = octets.as_chunks::<4>();
        gpu.queue.write_buffer(buffer, 0, whole.as_flattened());
        if !rest.is_empty() {
            let mut last = [0; 4];
            last[..rest.len()].copy_from_slice(rest);
            gpu.queue.write_buffer(buffer, (whole.len() * 4) as u64, &last);
        }
    }

    /// The frame's octets as the device has them, once all that was submitted is done; for tests.
    ///
    /// # Errors
    ///
    /// [`GpuError::Device`] if the device was lost, [`GpuError::Unsupported`] if the frame is a
    /// texture.
    pub fn read(&self, gpu: &Gpu) -> Result<Vec<u8>, GpuError> {
        let Memory::Octets(octets) = &self.memory else {
            let what = "way back for blocks of a texture".to_owned();
            return Err(GpuError::Unsupported { driver: gpu.driver(), what });
        };
        let back = gpu.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("frame read back"),
            size: octets.size(),
            usage: wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::MAP_READ,
            mapped_at_creation: false,
        });
        let mut recorder = gpu.recorder();
        recorder.copy_buffer_to_buffer(octets, 0, &back, 0, octets.size());
        gpu.queue.submit([recorder.finish()]);
        let mut octets = read_buffer(gpu, &back)?;
        octets.truncate(self.length);
        Ok(octets)
    }

    /// Records the copy of a tile from a buffer where its first octet is at `from.1`.
    ///
    /// Devices copy words of four octets. Words that the tile shares with a neighbour are copied
    /// whole with `shared`, where the buffer has the neighbour's octets as well; else left out.
    pub(crate) fn copy_tile(
        &self,
        recorder: &mut wgpu::CommandEncoder,
        from: (&wgpu::Buffer, u64),
        tile: &Tile,
        shared: bool,
    ) {
        let octets = match &self.memory {
            Memory::Octets(octets) => octets,
            // Blocks are whole words: nothing is shared.
            Memory::Texture(texture) => return texture.copy_tile(recorder, from, tile),
        };
        let (start, end) = (tile.bytes.start as u64, tile.bytes.end as u64);
        let words = if shared {
            start - start % 4..end.next_multiple_of(4)
        } else {
            start.next_multiple_of(4)..end - end % 4
        };
        if words.start < words.end {
            let (buffer, first) = from;
            let at = first + words.start - start;
            let count = words.end - words.start;
            recorder.copy_buffer_to_buffer(buffer, at, octets, words.start, count);
        }
    }

    /// Writes a word at an octet that is a multiple of four, with the next submit.
    pub(crate) fn write_word(&self, gpu: &Gpu, at: u64, octets: [u8; 4]) {
        if let Memory::Octets(buffer) = &self.memory {
            gpu.queue.write_buffer(buffer, at, &octets);
        }
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }
}

/// What a buffer must have for so many octets: copies and shaders move words of four.
pub(crate) fn padded(octets: usize) -> u64 {
    (octets as u64).next_multiple_of(4).max(4)
}
