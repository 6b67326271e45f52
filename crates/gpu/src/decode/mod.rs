//! Frames drawn from their octets: decoded pixel by pixel when they are shown.

mod place;
mod shader;

use rushes_texture::Layout;

use crate::device::Gpu;
use crate::error::GpuError;
use crate::frame::DeviceFrame;

pub use place::Place;

/// Draws frames of one layout on targets of one texture format.
///
/// The fragment shader reads the octets of the frame as they came and decodes the pixels that are
/// seen, with the integer arithmetic of [`rushes_texture::Decoder`]. Nothing is copied to a texture.
///
/// # Colours
///
/// A frame's values are those of a display: sRGB, or R'G'B' by ITU-R BT.709 of limited range for
/// YUV. They go unchanged to a target that is not an sRGB format, and become linear light for one
/// that is, which turns them back. Where the frame is scaled, neighbours are mixed as they are, not
/// in linear light. Formats without alpha are opaque; alpha is written, not blended.
#[derive(Debug)]
pub struct FrameDecoder {
    layout: Layout,
    linear: bool,
    pipeline: wgpu::RenderPipeline,
    bindings: wgpu::BindGroupLayout,
    view: wgpu::Buffer,
}

impl FrameDecoder {
    /// A decoder of frames of a layout.
    ///
    /// # Errors
    ///
    /// [`GpuError::Unsupported`] for a format that no shader reads, [`GpuError::TooLarge`] for
    /// frames that the device cannot read at once.
    pub fn new(gpu: &Gpu, layout: &Layout, target: wgpu::TextureFormat) -> Result<Self, GpuError> {
        let octets = layout.bytes() as u64;
        let most = gpu.device.limits().max_storage_buffer_binding_size;
        if octets > most {
            return Err(GpuError::TooLarge { octets, most, driver: gpu.driver() });
        }
        let text = shader::of_octets(layout.format()).ok_or_else(|| GpuError::Unsupported {
            driver: gpu.driver(),
            what: format!("shader for {}", layout.format()),
        })?;
        let device = &gpu.device;
        let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: Some(layout.format().name()),
            source: wgpu::ShaderSource::Wgsl(text.into()),
        });
        let bindings = bindings(device);
        let pipeline = pipeline(device, &module, &bindings, target);
        let view = device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("view"),
            size: place::VIEW as u64,
            usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        Ok(Self { layout: *layout, linear: target.is_srgb(), pipeline, bindings, view })
    }

    /// The layout of the frames.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Draws a frame at a place of a target; the rest becomes black.
    ///
    /// The frame has the decoder's layout. The work is recorded, to be submitted by the caller.
    pub fn draw(
        &self,
        gpu: &Gpu,
        encoder: &mut wgpu::CommandEncoder,
        frame: &DeviceFrame,
        target: &wgpu::TextureView,
        place: &Place,
    ) {
        gpu.queue.write_buffer(&self.view, 0, &place.view(&self.layout, self.linear));
        let group = gpu.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &self.bindings,
            entries: &[
                wgpu::BindGroupEntry { binding: 0, resource: self.view.as_entire_binding() },
                wgpu::BindGroupEntry { binding: 1, resource: frame.octets().as_entire_binding() },
            ],
        });
        let mut pass = encoder.begin_render_pass(&wgpu::RenderPassDescriptor {
            label: Some("show"),
            color_attachments: &[Some(wgpu::RenderPassColorAttachment {
                view: target,
                depth_slice: None,
                resolve_target: None,
                ops: wgpu::Operations {
                    load: wgpu::LoadOp::Clear(wgpu::Color::BLACK),
                    store: wgpu::StoreOp::Store,
                },
            })],
            ..Default::default()
        });
        pass.set_pipeline(&self.pipeline);
        pass.set_bind_group(0, &group, &[]);
        pass.draw(0..3, 0..1);
    }
}

fn bindings(device: &wgpu::Device) -> wgpu::BindGroupLayout {
    let entry = |binding, kind| wgpu::BindGroupLayoutEntry {
        binding,
        visibility: wgpu::ShaderStages::FRAGMENT,
        ty: wgpu::BindingType::Buffer {
            ty: kind,
            has_dynamic_offset: false,
            min_binding_size: None,
        },
        count: None,
    };
    device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
        label: Some("frame"),
        entries: &[
            entry(0, wgpu::BufferBindingType::Uniform),
            entry(1, wgpu::BufferBindingType::Storage { read_only: true }),
        ],
    })
}

fn pipeline(
    device: &wgpu::Device,
    module: &wgpu::ShaderModule,
    bindings: &wgpu::BindGroupLayout,
    target: wgpu::TextureFormat,
) -> wgpu::RenderPipeline {
    let layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
        label: None,
        bind_group_layouts: &[Some(bindings)],
        immediate_size: 0,
    });
    device.create_render_pipeline(&wgpu::RenderPipelineDescriptor {
        label: Some("show"),
        layout: Some(&layout),
        vertex: wgpu::VertexState {
            module,
            entry_point: Some("corners"),
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            buffers: &[],
        },
        primitive: wgpu::PrimitiveState::default(),
        depth_stencil: None,
        multisample: wgpu::MultisampleState::default(),
        fragment: Some(wgpu::FragmentState {
            module,
            entry_point: Some("show"),
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            targets: &[Some(target.into())],
        }),
        multiview_mask: None,
        cache: None,
    })
}
