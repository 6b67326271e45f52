//! What an application draws frames on: textures, and memory that it shares with other graphics interfaces.

use std::fmt::Debug;
use std::ops::Range;

use wgpu::TextureFormat;

use super::canvas::{check_texture_size, pixels};
use crate::device::Gpu;
use crate::encode::GpuEncoder;
use crate::encode::memory::STRIPE_ROWS;
use crate::encode::pipeline::Input;
use crate::error::GpuError;
use crate::export::MemoryHandle;
use crate::frame::DeviceFrame;

/// The formats of textures that can be encoded.
const FORMATS: [TextureFormat; 4] = [
    TextureFormat::Rgba8Unorm,
    TextureFormat::Rgba8UnormSrgb,
    TextureFormat::Bgra8Unorm,
    TextureFormat::Bgra8UnormSrgb,
];

/// Returns what a texture is, in words, if it cannot be encoded to frames of a size.
pub(in crate::encode) fn check(texture: &wgpu::Texture, size: (u32, u32)) -> Result<(), String> {
    let (width, height) = (texture.width(), texture.height());
    if (width, height) != size {
        let (wide, high) = size;
        return Err(format!("frames of {wide}×{high} from a texture of {width}×{height}"));
    }
    check_format(texture.format())?;
    let is_plain = texture.dimension() == wgpu::TextureDimension::D2
        && texture.depth_or_array_layers() == 1
        && texture.sample_count() == 1;
    if !is_plain {
        return Err("frames from textures of several layers or samples".to_owned());
    }
    if !texture.usage().contains(wgpu::TextureUsages::TEXTURE_BINDING) {
        return Err("frames from textures without the usage TEXTURE_BINDING".to_owned());
    }
    Ok(())
}

pub(super) fn check_format(format: TextureFormat) -> Result<(), String> {
    if FORMATS.contains(&format) {
        return Ok(());
    }
    Err(format!(
        "frames from textures of {format:?}; Rgba8Unorm and Bgra8Unorm, with or without Srgb, can be \
         encoded"
    ))
}

/// What a frame is drawn on: a [`RenderTarget`], or a [`DeviceFrame`] that others import. Others cannot be added.
pub trait Surface: Debug + Send + Sync + Sealed + 'static {}

/// What sources do with surfaces.
pub trait Sealed {
    /// What all surfaces of a source have in common.
    type Kind: Copy + Debug + Send + Sync;

    /// Returns what a shader reads.
    fn input(kind: Self::Kind) -> Input;

    /// Checks that a device has surfaces of a size, and that they can be encoded.
    fn check_size(gpu: &Gpu, size: (u32, u32)) -> Result<(), GpuError> {
        check_texture_size(gpu, size)
    }

    /// Returns the size in pixels.
    fn size(&self) -> (u32, u32);

    /// Encodes what was drawn.
    fn encode(
        &self,
        encoder: &mut GpuEncoder,
        ready: impl FnMut(Range<u32>, &[u8]),
    ) -> Result<(), GpuError>;
}

/// A texture of the device, and its view.
#[derive(Debug)]
pub struct RenderTarget {
    pub(super) view: wgpu::TextureView,
}

impl RenderTarget {
    pub(super) fn new(gpu: &Gpu, format: TextureFormat, (width, height): (u32, u32)) -> Self {
        let texture = gpu.device.create_texture(&wgpu::TextureDescriptor {
            label: Some("canvas"),
            size: wgpu::Extent3d { width, height, depth_or_array_layers: 1 },
            mip_level_count: 1,
            sample_count: 1,
            dimension: wgpu::TextureDimension::D2,
            format,
            usage: wgpu::TextureUsages::RENDER_ATTACHMENT
                | wgpu::TextureUsages::TEXTURE_BINDING
                | wgpu::TextureUsages::COPY_SRC
                | wgpu::TextureUsages::COPY_DST,
            view_formats: &[],
        });
        Self { view: texture.create_view(&wgpu::TextureViewDescriptor::default()) }
    }
}

impl Surface for RenderTarget {}

impl Sealed for RenderTarget {
    type Kind = TextureFormat;

    fn input(format: TextureFormat) -> Input {
        Input::Texels { srgb: format.is_srgb() }
    }

    fn size(&self) -> (u32, u32) {
        (self.view.texture().width(), self.view.texture().height())
    }

    fn encode(
        &self,
        encoder: &mut GpuEncoder,
        ready: impl FnMut(Range<u32>, &[u8]),
    ) -> Result<(), GpuError> {
        encoder.encode_texture(self.view.texture(), STRIPE_ROWS, ready)
    }
}

impl Surface for DeviceFrame {}

impl Sealed for DeviceFrame {
    type Kind = MemoryHandle;

    fn input(_: MemoryHandle) -> Input {
        Input::Rows
    }

    fn check_size(gpu: &Gpu, (width, height): (u32, u32)) -> Result<(), GpuError> {
        check_texture_size(gpu, (width, height))?;
        let octets = Self::exportable_octets(&pixels(width, height)?);
        let most = gpu.device.limits().max_storage_buffer_binding_size;
        if octets > most {
            return Err(GpuError::TooLarge { octets, most, driver: gpu.driver() });
        }
        Ok(())
    }

    fn size(&self) -> (u32, u32) {
        (self.layout().width(), self.layout().height())
    }

    fn encode(
        &self,
        encoder: &mut GpuEncoder,
        ready: impl FnMut(Range<u32>, &[u8]),
    ) -> Result<(), GpuError> {
        self.acquire(&encoder.gpu)?;
        encoder.encode_frame(self, STRIPE_ROWS, ready)
    }
}
