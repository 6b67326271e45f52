//! The compute shader of a format, and its bindings.

use rushes_texture::{Format, Layout};

use crate::device::Gpu;
use crate::error::GpuError;

const BLOCK: &str = include_str!("block.wgsl");
const FROM_PIXELS: &str = include_str!("from_pixels.wgsl");
const FROM_ROWS: &str = include_str!("from_rows.wgsl");
const FROM_TEXTURE: &str = include_str!("from_texture.wgsl");
const ETC: &str = include_str!("etc.wgsl");
const ETC1: &str = include_str!("etc1.wgsl");
const ETC2: &str = include_str!("etc2.wgsl");
const LINE: &str = include_str!("line.wgsl");
const ASTC: &str = concat!(
    include_str!("astc_rows.wgsl"),
    include_str!("astc_line.wgsl"),
    include_str!("astc_mode.wgsl"),
    include_str!("astc_partition.wgsl"),
    include_str!("astc_sequence.wgsl"),
    include_str!("astc.wgsl")
);
const BC1: &str = include_str!("bc1.wgsl");
const FIT: &str = include_str!("fit.wgsl");
const BC4: &str = include_str!("bc4.wgsl");
const YCOCG_BC3: &str = include_str!("ycocg_bc3.wgsl");

/// Blocks of a row per workgroup, as in the shaders.
const GROUP: u32 = 64;

/// What a shader reads.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Input {
    /// A buffer of pixels, padded to whole blocks.
    Pixels,
    /// A buffer of a picture's rows, without gaps.
    Rows,
    /// The texels of a texture, which has an sRGB format or not.
    Texels { srgb: bool },
}

/// A shader that is ready to run.
#[derive(Debug)]
pub(super) struct Pipeline {
    input: Input,
    shader: wgpu::ComputePipeline,
    bindings: wgpu::BindGroupLayout,
    groups: u32,
}

impl Pipeline {
    /// Creates the shader that encodes frames of this layout.
    pub(super) fn new(gpu: &Gpu, output: &Layout, input: Input) -> Result<Self, GpuError> {
        let unsupported = |what: String| GpuError::Unsupported { driver: gpu.driver(), what };
        let format = output.format();
        let text = of_format(format, input)
            .ok_or_else(|| unsupported(format!("an encoder to {format}")))?;
        let flags = gpu.adapter.get_downlevel_capabilities().flags;
        if !flags.contains(wgpu::DownlevelFlags::COMPUTE_SHADERS) {
            return Err(unsupported("compute shaders".to_owned()));
        }
        let device = &gpu.device;
        let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: Some(format.name()),
            source: wgpu::ShaderSource::Wgsl(text.into()),
        });
        let bindings = bindings(device, input);
        let blocks = output.planes()[0].blocks;
        let layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: None,
            bind_group_layouts: &[Some(&bindings)],
            immediate_size: 0,
        });
        let linear = f64::from(u8::from(input == Input::Texels { srgb: true }));
        let constants = [("ACROSS", f64::from(blocks)), ("LINEAR", linear)];
        let shader = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some("encode"),
            layout: Some(&layout),
            module: &module,
            entry_point: Some("encode"),
            compilation_options: wgpu::PipelineCompilationOptions {
                constants: match input {
                    Input::Pixels | Input::Rows => &constants[..1],
                    Input::Texels { .. } => &constants,
                },
                ..Default::default()
            },
            cache: None,
        });
        Ok(Self { input, shader, bindings, groups: blocks.div_ceil(GROUP) })
    }

    /// Returns what the shader reads.
    pub(super) fn input(&self) -> Input {
        self.input
    }

    /// Binds the shader to resources: what it reads, the blocks that it writes and, except for pixels,
    /// the place of the stripe.
    pub(super) fn bound(
        &self,
        gpu: &Gpu,
        resources: Vec<wgpu::BindingResource<'_>>,
    ) -> wgpu::BindGroup {
        let entry = |(binding, resource)| wgpu::BindGroupEntry { binding, resource };
        let entries: Vec<_> = (0..).zip(resources).map(entry).collect();
        gpu.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &self.bindings,
            entries: &entries,
        })
    }

    /// Records the encoding of `rows` block rows.
    pub(super) fn record(
        &self,
        recorder: &mut wgpu::CommandEncoder,
        bound: &wgpu::BindGroup,
        rows: u32,
    ) {
        let mut pass = recorder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_pipeline(&self.shader);
        pass.set_bind_group(0, bound, &[]);
        pass.dispatch_workgroups(self.groups, rows, 1);
    }
}

/// Returns the source of the shader that encodes blocks of a format, or `None` if there is none.
fn of_format(format: Format, input: Input) -> Option<String> {
    let pieces: &[&str] = match format {
        Format::Bc1 => &[BLOCK, LINE, BC1],
        Format::YCoCgBc3 => &[BLOCK, LINE, FIT, BC4, YCOCG_BC3],
        Format::Etc1 => &[BLOCK, ETC, ETC1],
        Format::Etc2Rgb => &[BLOCK, ETC, ETC2],
        Format::Astc4x4 => &[BLOCK, ASTC],
        _ => return None,
    };
    let reading = match input {
        Input::Pixels => FROM_PIXELS,
        Input::Rows => FROM_ROWS,
        Input::Texels { .. } => FROM_TEXTURE,
    };
    Some([reading, &pieces.concat()].concat())
}

fn bindings(device: &wgpu::Device, input: Input) -> wgpu::BindGroupLayout {
    let buffer = |kind| wgpu::BindingType::Buffer {
        ty: kind,
        has_dynamic_offset: false,
        min_binding_size: None,
    };
    let storage = |read_only| buffer(wgpu::BufferBindingType::Storage { read_only });
    let place = buffer(wgpu::BufferBindingType::Uniform);
    let texels = wgpu::BindingType::Texture {
        sample_type: wgpu::TextureSampleType::Float { filterable: false },
        view_dimension: wgpu::TextureViewDimension::D2,
        multisampled: false,
    };
    let types = match input {
        Input::Pixels => vec![storage(true), storage(false)],
        Input::Rows => vec![storage(true), storage(false), place],
        Input::Texels { .. } => vec![texels, storage(false), place],
    };
    let entry = |(binding, ty)| wgpu::BindGroupLayoutEntry {
        binding,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty,
        count: None,
    };
    let entries: Vec<_> = (0..).zip(types).map(entry).collect();
    device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
        label: Some("encode"),
        entries: &entries,
    })
}
