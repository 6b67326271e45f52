//! The compute shader of a format, and its bindings.

use rushes_texture::{Format, Layout};

use crate::device::Gpu;
use crate::error::GpuError;

const BLOCK: &str = include_str!("block.wgsl");
const ETC: &str = include_str!("etc.wgsl");
const ETC1: &str = include_str!("etc1.wgsl");
const ETC2: &str = include_str!("etc2.wgsl");
const LINE: &str = include_str!("line.wgsl");
const ASTC: &str = include_str!("astc.wgsl");
const BC1: &str = include_str!("bc1.wgsl");
const BC4: &str = include_str!("bc4.wgsl");
const YCOCG_BC3: &str = include_str!("ycocg_bc3.wgsl");

/// Blocks of a row per workgroup, as in the shaders.
const GROUP: u32 = 64;

/// A shader that is ready to run.
#[derive(Debug)]
pub(super) struct Pipeline {
    shader: wgpu::ComputePipeline,
    bindings: wgpu::BindGroupLayout,
    groups: u32,
}

impl Pipeline {
    /// Creates the shader that encodes frames of this layout.
    pub(super) fn new(gpu: &Gpu, output: &Layout) -> Result<Self, GpuError> {
        let unsupported = |what: String| GpuError::Unsupported { driver: gpu.driver(), what };
        let format = output.format();
        let text =
            of_format(format).ok_or_else(|| unsupported(format!("an encoder to {format}")))?;
        let flags = gpu.adapter.get_downlevel_capabilities().flags;
        if !flags.contains(wgpu::DownlevelFlags::COMPUTE_SHADERS) {
            return Err(unsupported("compute shaders".to_owned()));
        }
        let device = &gpu.device;
        let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: Some(format.name()),
            source: wgpu::ShaderSource::Wgsl(text.into()),
        });
        let bindings = bindings(device);
        let blocks = output.planes()[0].blocks;
        let layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: None,
            bind_group_layouts: &[Some(&bindings)],
            immediate_size: 0,
        });
        let shader = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some("encode"),
            layout: Some(&layout),
            module: &module,
            entry_point: Some("encode"),
            compilation_options: wgpu::PipelineCompilationOptions {
                constants: &[("ACROSS", f64::from(blocks))],
                ..Default::default()
            },
            cache: None,
        });
        Ok(Self { shader, bindings, groups: blocks.div_ceil(GROUP) })
    }

    /// Binds the shader to the pixels that it reads and the blocks that it writes.
    pub(super) fn bound(
        &self,
        gpu: &Gpu,
        pixels: &wgpu::Buffer,
        blocks: &wgpu::Buffer,
    ) -> wgpu::BindGroup {
        gpu.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &self.bindings,
            entries: &[
                wgpu::BindGroupEntry { binding: 0, resource: pixels.as_entire_binding() },
                wgpu::BindGroupEntry { binding: 1, resource: blocks.as_entire_binding() },
            ],
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
fn of_format(format: Format) -> Option<String> {
    let pieces: &[&str] = match format {
        Format::Bc1 => &[BLOCK, LINE, BC1],
        Format::YCoCgBc3 => &[BLOCK, LINE, BC4, YCOCG_BC3],
        Format::Etc1 => &[BLOCK, ETC, ETC1],
        Format::Etc2Rgb => &[BLOCK, ETC, ETC2],
        Format::Astc4x4 => &[BLOCK, ASTC],
        _ => return None,
    };
    Some(pieces.concat())
}

fn bindings(device: &wgpu::Device) -> wgpu::BindGroupLayout {
    let entry = |binding, read_only| wgpu::BindGroupLayoutEntry {
        binding,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer {
            ty: wgpu::BufferBindingType::Storage { read_only },
            has_dynamic_offset: false,
            min_binding_size: None,
        },
        count: None,
    };
    device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
        label: Some("encode"),
        entries: &[entry(0, true), entry(1, false)],
    })
}
