//! Drawing of frames from their bytes or blocks, which are decoded when shown.

mod path;
mod place;
mod shader;
mod texture;

use rushes_texture::Layout;

use crate::device::Gpu;
use crate::draw;
use crate::error::GpuError;
use crate::frame::{DeviceFrame, Memory};

pub use path::Path;
pub use place::Place;
pub(crate) use texture::BlockTexture;

/// Draws frames of one layout on targets of one texture format.
///
/// With [`Path::Octets`] the fragment shader reads the received bytes of the frame and decodes the
/// visible pixels, with the integer arithmetic of [`rushes_texture::Decoder`]; nothing is copied to
/// a texture. With [`Path::Texture`] the shader loads texels that the texture unit decodes.
///
/// # Colours
///
/// A frame's values are those of its [`Colour`](rushes_texture::Colour). Values that are encoded for displays of
/// BT.709 are written unchanged to a target without an sRGB format. For a target with an sRGB format they are
/// converted to linear light, which the target converts back. Scaling interpolates the encoded values, not linear
/// light. Formats without alpha are opaque; alpha is written without blending.
///
/// HDR ([`Transfer::Pq`](rushes_texture::Transfer::Pq)) is shown on displays of standard range: white, at
/// 203 cd/m², is theirs, and light from 88 to 1 000 cd/m² is compressed below it (ITU-R BT.2390 section 5.4).
/// Colours of BT.2020 that BT.709 does not have are clipped. A decoder of the same layout with
/// [`Transfer::Sdr`](rushes_texture::Transfer::Sdr) and [`Primaries::Bt709`](rushes_texture::Primaries::Bt709) draws
/// the values as they are, for a program that shows HDR itself.
#[derive(Debug)]
pub struct FrameDecoder {
    layout: Layout,
    path: Path,
    linear: bool,
    pipeline: wgpu::RenderPipeline,
    bindings: wgpu::BindGroupLayout,
    view: wgpu::Buffer,
}

impl FrameDecoder {
    /// Creates a decoder of frames of a layout, with [`Path::Octets`].
    ///
    /// # Errors
    ///
    /// As [`FrameDecoder::with_path`].
    pub fn new(gpu: &Gpu, layout: &Layout, target: wgpu::TextureFormat) -> Result<Self, GpuError> {
        Self::with_path(gpu, layout, target, Path::Octets)
    }

    /// Creates a decoder of frames of a layout, with a path; [`Path::best`] returns the faster one.
    ///
    /// # Errors
    ///
    /// [`GpuError::Unsupported`] if the path does not support the layout, [`GpuError::TooLarge`]
    /// for frames that the device cannot read at once.
    pub fn with_path(
        gpu: &Gpu,
        layout: &Layout,
        target: wgpu::TextureFormat,
        path: Path,
    ) -> Result<Self, GpuError> {
        let text = match path {
            Path::Octets => {
                let octets = layout.bytes() as u64;
                let most = gpu.device.limits().max_storage_buffer_binding_size;
                if octets > most {
                    return Err(GpuError::TooLarge { octets, most, driver: gpu.driver() });
                }
                shader::of_octets(layout.format())
            }
            Path::Texture => {
                path.is_supported(gpu, layout).then(|| shader::of_texture(layout.format()))
            }
        };
        let text = text.ok_or_else(|| GpuError::Unsupported {
            driver: gpu.driver(),
            what: format!("a {path:?} path for {}", layout.format()),
        })?;
        let device = &gpu.device;
        let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: Some(layout.format().name()),
            source: wgpu::ShaderSource::Wgsl(text.into()),
        });
        let bindings = bindings(device, path);
        let pipeline = draw::pipeline(device, (&module, "show"), Some(&bindings), target.into());
        let view = device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("view"),
            size: place::VIEW as u64,
            usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        Ok(Self { layout: *layout, path, linear: target.is_srgb(), pipeline, bindings, view })
    }

    /// Returns the layout of the frames.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the path that decodes.
    pub fn path(&self) -> Path {
        self.path
    }

    /// Creates memory for a frame that this decoder draws.
    ///
    /// # Errors
    ///
    /// As [`DeviceFrame::with_path`].
    pub fn frame(&self, gpu: &Gpu) -> Result<DeviceFrame, GpuError> {
        DeviceFrame::with_path(gpu, &self.layout, self.path)
    }

    /// Draws a frame at a place of a target and clears the rest to black.
    ///
    /// The frame must have the decoder's layout and path; another path causes a device error, which
    /// [`Gpu::first_error`] returns. The work is only recorded; the caller must submit it.
    pub fn draw(
        &self,
        gpu: &Gpu,
        encoder: &mut wgpu::CommandEncoder,
        frame: &DeviceFrame,
        target: &wgpu::TextureView,
        place: &Place,
    ) {
        gpu.queue.write_buffer(&self.view, 0, &place.view(&self.layout, self.linear));
        let source = match frame.memory() {
            Memory::Octets(octets) => octets.as_entire_binding(),
            Memory::Texture(texture) => wgpu::BindingResource::TextureView(texture.view()),
        };
        let group = gpu.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &self.bindings,
            entries: &[
                wgpu::BindGroupEntry { binding: 0, resource: self.view.as_entire_binding() },
                wgpu::BindGroupEntry { binding: 1, resource: source },
            ],
        });
        let mut pass = draw::begin(encoder, target, wgpu::LoadOp::Clear(wgpu::Color::BLACK));
        pass.set_pipeline(&self.pipeline);
        pass.set_bind_group(0, &group, &[]);
        pass.draw(0..3, 0..1);
    }
}

fn bindings(device: &wgpu::Device, path: Path) -> wgpu::BindGroupLayout {
    let buffer = |kind| wgpu::BindingType::Buffer {
        ty: kind,
        has_dynamic_offset: false,
        min_binding_size: None,
    };
    let source = match path {
        Path::Octets => buffer(wgpu::BufferBindingType::Storage { read_only: true }),
        Path::Texture => wgpu::BindingType::Texture {
            sample_type: wgpu::TextureSampleType::Float { filterable: false },
            view_dimension: wgpu::TextureViewDimension::D2,
            multisampled: false,
        },
    };
    let entry = |binding, kind| wgpu::BindGroupLayoutEntry {
        binding,
        visibility: wgpu::ShaderStages::FRAGMENT,
        ty: kind,
        count: None,
    };
    device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
        label: Some("frame"),
        entries: &[entry(0, buffer(wgpu::BufferBindingType::Uniform)), entry(1, source)],
    })
}
