//! A frame in the memory of the graphics processor.

use std::sync::atomic::{AtomicU64, Ordering};

use rushes_texture::{Layout, Tile};

use crate::decode::{BlockTexture, Path};
use crate::device::Gpu;
use crate::error::GpuError;
#[cfg(unix)]
use crate::export::ExportedMemory;
use crate::export::MemoryHandle;
use crate::mapped::Exported;
use crate::picture::read_buffer;

/// Memory of the graphics processor for one frame of a layout.
#[derive(Debug)]
pub struct DeviceFrame {
    memory: Memory,
    layout: Layout,
    id: u64,
    #[cfg_attr(not(unix), allow(dead_code, reason = "nothing is exported"))]
    exported: Option<Exported>,
}

/// The identifiers of frames that were created so far.
static IDS: AtomicU64 = AtomicU64::new(0);

/// The memory that a frame is read from.
#[derive(Debug)]
pub(crate) enum Memory {
    Octets(wgpu::Buffer),
    Texture(Box<BlockTexture>),
}

impl DeviceFrame {
    /// Creates zeroed memory for a frame that is read by `path`.
    ///
    /// # Errors
    ///
    /// [`GpuError::Unsupported`] if the device has no texture of the frame's blocks, for
    /// [`Path::Texture`] only.
    pub fn with_path(gpu: &Gpu, layout: &Layout, path: Path) -> Result<Self, GpuError> {
        Ok(match path {
            Path::Octets => Self::new(gpu, layout),
            Path::Texture => {
                let texture = BlockTexture::new(gpu, layout)?;
                Self::of(Memory::Texture(Box::new(texture)), layout, None)
            }
        })
    }

    /// Creates zeroed memory for a frame that is read by [`Path::Octets`].
    pub fn new(gpu: &Gpu, layout: &Layout) -> Self {
        let octets = gpu.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("frame"),
            size: padded(layout.bytes()),
            usage: wgpu::BufferUsages::STORAGE
                | wgpu::BufferUsages::COPY_DST
                | wgpu::BufferUsages::COPY_SRC,
            mapped_at_creation: false,
        });
        Self::of(Memory::Octets(octets), layout, None)
    }

    /// Creates zeroed memory for a frame that is read by [`Path::Octets`], and that others can import.
    ///
    /// # Errors
    ///
    /// [`GpuError::Unsupported`] if the device exports no memory by such handles.
    pub fn exportable(gpu: &Gpu, layout: &Layout, handle: MemoryHandle) -> Result<Self, GpuError> {
        let exported = Exported::new(gpu, padded(layout.bytes()), handle);
        let exported = exported.map_err(|reason| not_exported(gpu, &reason))?;
        Ok(Self::of(Memory::Octets(exported.buffer().clone()), layout, Some(exported)))
    }

    /// Returns the size of the buffer of such a frame in bytes.
    pub(crate) fn exportable_octets(layout: &Layout) -> u64 {
        padded(layout.bytes()) + Exported::MORE
    }

    fn of(memory: Memory, layout: &Layout, exported: Option<Exported>) -> Self {
        let id = IDS.fetch_add(1, Ordering::Relaxed);
        Self { memory, layout: *layout, id, exported }
    }

    /// Returns the layout of the frame's bytes.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Makes what others wrote to exported memory visible to work that is submitted from here on.
    pub(crate) fn acquire(&self, gpu: &Gpu) -> Result<(), GpuError> {
        let acquired = self.exported.as_ref().map_or(Ok(()), Exported::acquire);
        acquired.map_err(|reason| not_exported(gpu, &reason))
    }

    /// Returns the number of the frame's memory, which no other memory of this process has.
    ///
    /// Later frames use the same memory again, so importers need to import it only once for each number.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns the memory as others import it: the frame's bytes, from its start, in the order of its layout.
    ///
    /// Of a [`Canvas`](crate::Canvas), importers write the bytes until it is sent. The bytes of a received frame do not
    /// change while the frame is held, and the device has written all of them when a sink reports
    /// the frame: there is no fence to wait for. No queue family releases the memory, as all of its bytes are written
    /// again for each frame. Importers must be done with the memory before the frame is dropped, which lets a later
    /// frame use it. The memory itself remains until all importers have freed it.
    ///
    /// This was tested with Mesa's software drivers only.
    ///
    /// # Errors
    ///
    /// [`GpuError::Unsupported`] if the frame was not created by [`DeviceFrame::exportable`] or by a sink
    /// [`with_export`](crate::GpuSink::with_export), or the system has no descriptor left.
    #[cfg(unix)]
    pub fn export(&self, gpu: &Gpu) -> Result<ExportedMemory, GpuError> {
        let exported = self.exported.as_ref().ok_or("the frame was not created for others");
        let memory = exported.map_err(str::to_owned).and_then(Exported::export);
        memory.map_err(|reason| not_exported(gpu, &reason))
    }

    /// Returns the path that reads the frame.
    pub fn path(&self) -> Path {
        match self.memory {
            Memory::Octets(_) => Path::Octets,
            Memory::Texture(_) => Path::Texture,
        }
    }

    /// Returns the buffer of the frame's bytes, for the application's own shaders: the layout of
    /// the frame, padded to words of four bytes. `None` for [`Path::Texture`].
    ///
    /// Its usage is `STORAGE | COPY_DST | COPY_SRC`.
    pub fn buffer(&self) -> Option<&wgpu::Buffer> {
        match &self.memory {
            Memory::Octets(buffer) => Some(buffer),
            Memory::Texture(_) => None,
        }
    }

    /// Returns the texture of the frame's blocks, for the application's own shaders and materials.
    /// `None` for [`Path::Octets`].
    ///
    /// The texture may be wider and higher than the frame, which is its upper left part: texture
    /// coordinates end at the frame's size divided by the texture's. Its values are encoded for
    /// displays, and its usage is `TEXTURE_BINDING | COPY_DST`. Where the adapter has
    /// `DownlevelFlags::VIEW_FORMATS` (OpenGL has not), a view in `Bc1RgbaUnormSrgb` and its like
    /// converts to linear light; elsewhere the shader must. In [`Format::YCoCgBc3`](rushes_texture::Format) texels
    /// are Co, Cg, scale and Y; a [`FrameDecoder`](crate::FrameDecoder) draws them as RGB.
    pub fn texture(&self) -> Option<&wgpu::Texture> {
        match &self.memory {
            Memory::Octets(_) => None,
            Memory::Texture(texture) => Some(texture.texture()),
        }
    }

    /// Copies a frame's bytes into the memory; they reach the device with the next submit.
    ///
    /// Until then the driver buffers them. Bytes beyond the frame's end are ignored. For a texture,
    /// only whole block rows are written.
    pub fn write(&self, gpu: &Gpu, octets: &[u8]) {
        let octets = &octets[..octets.len().min(self.layout.bytes())];
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

    /// Reads the frame's bytes back from the device after all submitted work. It is for tests.
    ///
    /// # Errors
    ///
    /// [`GpuError::Device`] if the device was lost, [`GpuError::Unsupported`] if the frame is a
    /// texture.
    pub fn read(&self, gpu: &Gpu) -> Result<Vec<u8>, GpuError> {
        let Memory::Octets(octets) = &self.memory else {
            let what = "reading back of a texture's blocks".to_owned();
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
        octets.truncate(self.layout.bytes());
        Ok(octets)
    }

    /// Records the copy of a tile from buffer `from.0`, where its first byte is at `from.1`.
    ///
    /// Devices copy words of four bytes. With `shared`, words that the tile shares with a neighbour
    /// are copied, because the buffer also contains the neighbour's bytes; otherwise they are
    /// omitted.
    pub(crate) fn copy_tile(
        &self,
        recorder: &mut wgpu::CommandEncoder,
        from: (&wgpu::Buffer, u64),
        tile: &Tile,
        shared: bool,
    ) {
        let octets = match &self.memory {
            Memory::Octets(octets) => octets,
            // Blocks are whole words, so nothing is shared.
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

    /// Writes a word at byte `at`, a multiple of four, with the next submit.
    pub(crate) fn write_word(&self, gpu: &Gpu, at: u64, octets: [u8; 4]) {
        if let Memory::Octets(buffer) = &self.memory {
            gpu.queue.write_buffer(buffer, at, &octets);
        }
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }
}

/// Returns the error for memory that is not exported.
pub(crate) fn not_exported(gpu: &Gpu, reason: &str) -> GpuError {
    GpuError::Unsupported { driver: gpu.driver(), what: format!("memory for others ({reason})") }
}

/// Returns the size of a buffer for `octets` bytes, because copies and shaders access words of four
/// bytes.
pub(crate) fn padded(octets: usize) -> u64 {
    (octets as u64).next_multiple_of(4).max(4)
}
