//! Code shared by all drawing: one triangle over a whole target.

/// Begins to draw on a target, which is cleared or keeps its contents.
pub(crate) fn begin<'a>(
    recorder: &'a mut wgpu::CommandEncoder,
    target: &wgpu::TextureView,
    load: wgpu::LoadOp<wgpu::Color>,
) -> wgpu::RenderPass<'a> {
    recorder.begin_render_pass(&wgpu::RenderPassDescriptor {
        color_attachments: &[Some(wgpu::RenderPassColorAttachment {
            view: target,
            depth_slice: None,
            resolve_target: None,
            ops: wgpu::Operations { load, store: wgpu::StoreOp::Store },
        })],
        ..Default::default()
    })
}

/// Creates a pipeline of a module's `corners` and of a fragment function.
///
/// Without `bindings`, the layout is derived from the module.
pub(crate) fn pipeline(
    device: &wgpu::Device,
    (module, fragment): (&wgpu::ShaderModule, &str),
    bindings: Option<&wgpu::BindGroupLayout>,
    target: wgpu::ColorTargetState,
) -> wgpu::RenderPipeline {
    let layout = bindings.map(|bindings| {
        device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: None,
            bind_group_layouts: &[Some(bindings)],
            immediate_size: 0,
        })
    });
    device.create_render_pipeline(&wgpu::RenderPipelineDescriptor {
        label: Some(fragment),
        layout: layout.as_ref(),
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
            entry_point: Some(fragment),
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            targets: &[Some(target)],
        }),
        multiview_mask: None,
        cache: None,
    })
}
