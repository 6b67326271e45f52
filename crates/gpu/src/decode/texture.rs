//! A frame's blocks in a texture, which the texture unit decodes.

use std::ops::Range;

use rushes_texture::{Format, Layout, PlaneLayout, Tile};
use wgpu::{AstcBlock, AstcChannel, TextureFormat};

use crate::device::Gpu;
use crate::error::GpuError;

/// The alignment of a texture's row in bytes.
const PITCH: usize = wgpu::COPY_BYTES_PER_ROW_ALIGNMENT as usize;

/// A texture of one frame's blocks.
///
/// Its block rows are padded to a multiple of [`PITCH`] bytes, because several rows can be copied
/// together only with this alignment. Through OpenGL, only rows without gaps can be copied at all,
/// because `wgpu` otherwise passes the wrong number of bytes to the driver. The padding is never
/// shown.
#[derive(Debug)]
pub(crate) struct BlockTexture {
    texture: wgpu::Texture,
    view: wgpu::TextureView,
    plane: PlaneLayout,
    /// Pixels and bytes of a block.
    block: rushes_texture::Block,
    /// Bytes of a padded block row.
    pitch: usize,
    /// Buffer in which rows are padded, if they need padding.
    padded: Option<wgpu::Buffer>,
}

impl BlockTexture {
    /// Creates a texture for frames of a layout.
    ///
    /// # Errors
    ///
    /// [`GpuError::Unsupported`] if the device does not support the blocks, or not in this size.
    pub(crate) fn new(gpu: &Gpu, layout: &Layout) -> Result<Self, GpuError> {
        let format = format_of(layout.format()).filter(|&at| is_possible(gpu, layout, at));
        let (Some(format), [plane]) = (format, layout.planes()) else {
            let (width, height) = (layout.width(), layout.height());
            let what = format!("textures of {} for {width}×{height} pixels", layout.format());
            return Err(GpuError::Unsupported { driver: gpu.driver(), what });
        };
        let size = size(layout);
        let pitch = plane.row_bytes.next_multiple_of(PITCH);
        // OpenGL has no views in other formats.
        let flags = gpu.adapter.get_downlevel_capabilities().flags;
        let has_views = flags.contains(wgpu::DownlevelFlags::VIEW_FORMATS);
        let views = [format.add_srgb_suffix()];
        let texture = gpu.device.create_texture(&wgpu::TextureDescriptor {
            label: Some("frame"),
            size,
            mip_level_count: 1,
            sample_count: 1,
            dimension: wgpu::TextureDimension::D2,
            format,
            usage: wgpu::TextureUsages::TEXTURE_BINDING | wgpu::TextureUsages::COPY_DST,
            view_formats: if has_views { &views } else { &[] },
        });
        let view = texture.create_view(&wgpu::TextureViewDescriptor::default());
        let padded = (pitch != plane.row_bytes).then(|| {
            gpu.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("padded rows"),
                size: pitch as u64 * u64::from(plane.rows),
                usage: wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::COPY_SRC,
                mapped_at_creation: false,
            })
        });
        let block = layout.format().planes()[0].block;
        Ok(Self { texture, view, plane: *plane, block, pitch, padded })
    }

    /// Returns the texture.
    pub(crate) fn texture(&self) -> &wgpu::Texture {
        &self.texture
    }

    /// Returns the view that a shader loads from.
    pub(crate) fn view(&self) -> &wgpu::TextureView {
        &self.view
    }

    /// Copies the whole block rows of a frame's bytes into the texture, through memory of the
    /// driver.
    pub(crate) fn write(&self, gpu: &Gpu, octets: &[u8]) {
        let rows = (octets.len() / self.plane.row_bytes).min(self.plane.rows as usize);
        if rows == 0 {
            return;
        }
        let across = self.plane.blocks * self.block.width;
        gpu.queue.write_texture(
            self.texture.as_image_copy(),
            &octets[..rows * self.plane.row_bytes],
            wgpu::TexelCopyBufferLayout {
                offset: 0,
                bytes_per_row: Some(self.plane.row_bytes as u32),
                rows_per_image: None,
            },
            wgpu::Extent3d { width: across, ..self.extent(rows as u32) },
        );
    }

    /// Records the copy of a tile from `staging`, where its first byte is at `offset`.
    ///
    /// `offset` must be a multiple of the bytes of a block.
    pub(crate) fn copy_tile(
        &self,
        recorder: &mut wgpu::CommandEncoder,
        (staging, offset): (&wgpu::Buffer, u64),
        tile: &Tile,
    ) {
        let Some(padded) = &self.padded else {
            return self.copy_rows(recorder, staging, offset, &tile.rows);
        };
        let row_bytes = self.plane.row_bytes as u64;
        for row in tile.rows.clone() {
            let from = offset + u64::from(row - tile.rows.start) * row_bytes;
            let to = u64::from(row) * self.pitch as u64;
            recorder.copy_buffer_to_buffer(staging, from, padded, to, row_bytes);
        }
        let start = u64::from(tile.rows.start) * self.pitch as u64;
        self.copy_rows(recorder, padded, start, &tile.rows);
    }

    /// Records the copy of rows that are already padded.
    fn copy_rows(
        &self,
        recorder: &mut wgpu::CommandEncoder,
        from: &wgpu::Buffer,
        offset: u64,
        rows: &Range<u32>,
    ) {
        let layout = wgpu::TexelCopyBufferLayout {
            offset,
            bytes_per_row: Some(self.pitch as u32),
            rows_per_image: None,
        };
        let mut to = self.texture.as_image_copy();
        to.origin.y = rows.start * self.block.height;
        recorder.copy_buffer_to_texture(
            wgpu::TexelCopyBufferInfo { buffer: from, layout },
            to,
            self.extent(rows.end - rows.start),
        );
    }

    /// Returns the size of `rows` block rows of the texture, in pixels.
    fn extent(&self, rows: u32) -> wgpu::Extent3d {
        wgpu::Extent3d { height: rows * self.block.height, ..self.texture.size() }
    }
}

/// Returns the texture size for a layout of one plane: whole blocks, in padded rows.
fn size(layout: &Layout) -> wgpu::Extent3d {
    let (plane, block) = (layout.planes()[0], layout.format().planes()[0].block);
    let blocks = plane.row_bytes.next_multiple_of(PITCH) / block.bytes;
    let (width, height) = (blocks as u32 * block.width, plane.rows * block.height);
    wgpu::Extent3d { width, height, depth_or_array_layers: 1 }
}

/// Returns whether a device supports textures of this format and size.
pub(super) fn is_possible(gpu: &Gpu, layout: &Layout, format: TextureFormat) -> bool {
    let most = gpu.device.limits().max_texture_dimension_2d;
    let size = size(layout);
    gpu.device.features().contains(format.required_features())
        && size.width.max(size.height) <= most
}

/// Returns the texture format of a format's blocks, if there is one.
pub(super) fn format_of(format: Format) -> Option<TextureFormat> {
    let astc = |block| TextureFormat::Astc { block, channel: AstcChannel::Unorm };
    Some(match format {
        Format::Bc1 => TextureFormat::Bc1RgbaUnorm,
        Format::Bc3 | Format::YCoCgBc3 => TextureFormat::Bc3RgbaUnorm,
        // ETC1 blocks are valid ETC2 blocks.
        Format::Etc1 | Format::Etc2Rgb => TextureFormat::Etc2Rgb8Unorm,
        Format::Astc4x4 => astc(AstcBlock::B4x4),
        Format::Astc5x4 => astc(AstcBlock::B5x4),
        Format::Astc5x5 => astc(AstcBlock::B5x5),
        Format::Astc6x5 => astc(AstcBlock::B6x5),
        Format::Astc6x6 => astc(AstcBlock::B6x6),
        Format::Astc8x5 => astc(AstcBlock::B8x5),
        Format::Astc8x6 => astc(AstcBlock::B8x6),
        Format::Astc8x8 => astc(AstcBlock::B8x8),
        Format::Astc10x5 => astc(AstcBlock::B10x5),
        Format::Astc10x6 => astc(AstcBlock::B10x6),
        Format::Astc10x8 => astc(AstcBlock::B10x8),
        Format::Astc10x10 => astc(AstcBlock::B10x10),
        Format::Astc12x10 => astc(AstcBlock::B12x10),
        Format::Astc12x12 => astc(AstcBlock::B12x12),
        _ => return None,
    })
}

/// Returns whether a format is ASTC.
pub(super) fn is_astc(format: Format) -> bool {
    matches!(format_of(format), Some(TextureFormat::Astc { .. }))
}

#[cfg(test)]
mod tests {
    use rushes_texture::Tiling;

    use super::*;
    use crate::decode::{FrameDecoder, Path, Place};
    use crate::device::{GpuOptions, Interface};
    use crate::frame::DeviceFrame;
    use crate::picture::{PICTURE_FORMAT, Picture};

    fn drawn(
        gpu: &Gpu,
        decoder: &FrameDecoder,
        frame: &DeviceFrame,
        mut recorder: wgpu::CommandEncoder,
    ) -> Vec<u8> {
        let layout = decoder.layout();
        let picture = Picture::new(gpu, layout.width(), layout.height());
        decoder.draw(gpu, &mut recorder, frame, picture.target(), &Place::exact(layout));
        picture.read(gpu, recorder).unwrap()
    }

    /// Draws a frame that was copied tile by tile, and the same frame after it was written.
    fn both_ways(gpu: &Gpu, layout: &Layout) -> [Vec<u8>; 2] {
        let octets: Vec<u8> = (0..layout.bytes()).map(|at| (at * at / 7 + at) as u8).collect();
        let path = Path::Texture;
        let decoder = FrameDecoder::with_path(gpu, layout, PICTURE_FORMAT, path).unwrap();
        let written = decoder.frame(gpu).unwrap();
        written.write(gpu, &octets);

        // The bytes are not at the start of their buffer.
        let before = layout.format().planes()[0].block.bytes as u64;
        let staging = gpu.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: before + octets.len() as u64,
            usage: wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        gpu.queue.write_buffer(&staging, before, &octets);
        let copied = decoder.frame(gpu).unwrap();
        let mut recorder = gpu.recorder();
        for tile in Tiling::balanced(layout, 3).tiles().iter().rev() {
            let from = before + tile.bytes.start as u64;
            copied.copy_tile(&mut recorder, (&staging, from), tile, true);
        }
        let copied = drawn(gpu, &decoder, &copied, recorder);
        [copied, drawn(gpu, &decoder, &written, gpu.recorder())]
    }

    #[test]
    fn tiles_copied_from_a_buffer_make_the_frame_that_was_written() {
        let required = std::env::var("RUSHES_INTEROP").is_ok_and(|value| value == "require");
        for interface in [Interface::Vulkan, Interface::Gl] {
            let gpu = match Gpu::open(GpuOptions { interface, validate: true }) {
                Ok(gpu) => gpu,
                Err(error) if required => panic!("{interface:?}: {error}"),
                Err(_) => continue,
            };
            for format in [Format::Bc1, Format::YCoCgBc3, Format::Etc2Rgb, Format::Astc6x5] {
                // The sizes have rows that need padding, rows that do not, and a single block.
                for (width, height) in [(66, 37), (256, 40), (192, 30), (1, 1)] {
                    let layout = Layout::new(format, width, height).unwrap();
                    if !Path::Texture.is_supported(&gpu, &layout) {
                        continue;
                    }
                    let [copied, written] = both_ways(&gpu, &layout);
                    let name = gpu.name();
                    assert!(copied == written, "{name}: {format} {width}×{height}");
                    assert!(written.iter().any(|&octet| octet != written[0]), "{format}");
                }
            }
            assert_eq!(gpu.first_error(), None, "{}", gpu.name());
        }
    }
}
