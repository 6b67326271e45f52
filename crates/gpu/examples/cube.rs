//! One scene is streamed into another, as the texture of a cube.
//!
//!     cargo run --release -p rushes-gpu --example cube [cube.png]
//!
//! The first scene is rendered to textures and encoded where they are. The second one has a device of its
//! own, receives the frames into its memory over UDP, and draws a cube with the last one on each
//! side. A program with a window does the same with its surface instead of a `Picture`.

use std::error::Error;
use std::fs::File;
use std::io::BufWriter;
use std::sync::Arc;
use std::time::Duration;

use rushes::texture::{ClientOptions, ServerOptions, TextureClient, TextureServer};
use rushes_gpu::{
    FrameDecoder, Gpu, GpuOptions, GpuSink, PICTURE_FORMAT, Picture, Place, ReceivedFrame,
    RenderedFrames, RenderedSource, Upload, wgpu,
};
use rushes_texture::{Format, Rate};

/// Width and height in pixels of the scenes.
const SIZE: (u32, u32) = (512, 512);

/// Frames of the first scene.
const FRAMES: u32 = 30;

/// The frame's format; each device encodes it with a shader.
const FORMAT: Format = Format::YCoCgBc3;

const WAIT: Duration = Duration::from_secs(20);

const DISC: &str = "
    @group(0) @binding(0) var<uniform> turn: vec4f;
    @vertex fn corner(@builtin(vertex_index) at: u32) -> @builtin(position) vec4f {
        return vec4f(f32(at & 1u) * 4.0 - 1.0, f32(at >> 1u) * 4.0 - 1.0, 0.0, 1.0);
    }
    @fragment fn colour(@builtin(position) at: vec4f) -> @location(0) vec4f {
        let place = at.xy / 256.0 - 1.0;
        let angle = atan2(place.y, place.x) + turn.x;
        let rays = step(0.0, sin(8.0 * angle)) * step(length(place), 0.9);
        return vec4f(mix(vec3f(0.1, 0.2, 0.5), vec3f(1.0, 0.7, 0.1), rays), 1.0);
    }";

const CUBE: &str = "
    @group(0) @binding(0) var frame: texture_2d<f32>;
    @group(0) @binding(1) var smooth_sampler: sampler;
    struct Corner { @builtin(position) place: vec4f, @location(0) on_side: vec2f, @location(1) light: f32 }
    @vertex fn corner(@builtin(vertex_index) at: u32) -> Corner {
        // Three sides of the cube face the viewer; each is two triangles.
        var order = array<u32, 6>(0u, 1u, 2u, 2u, 1u, 3u);
        let side = at / 6u;
        let number = order[at % 6u];
        let on_side = vec2f(f32(number & 1u), f32(number >> 1u));
        let flat = on_side * 2.0 - 1.0;
        var place = vec3f(flat.x, -flat.y, -1.0);
        if side == 1u { place = vec3f(-1.0, -flat.y, -flat.x); }
        if side == 2u { place = vec3f(flat.x, 1.0, -flat.y); }
        let turned = vec3f(
            0.77 * place.x - 0.64 * place.z,
            place.y,
            0.64 * place.x + 0.77 * place.z,
        );
        let seen = vec3f(turned.x, 0.87 * turned.y + 0.5 * turned.z, 0.87 * turned.z - 0.5 * turned.y);
        let away = seen.z + 5.0;
        return Corner(vec4f(seen.xy * 2.4, 0.5 * away, away), on_side, array(1.0, 0.75, 0.9)[side]);
    }
    @fragment fn colour(corner: Corner) -> @location(0) vec4f {
        return vec4f(textureSample(frame, smooth_sampler, corner.on_side).rgb * corner.light, 1.0);
    }";

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "cube.png".to_owned());

    // The first scene's program.
    let gpu = Gpu::open(GpuOptions::default())?;
    let rate = Rate::new(30, 1)?;
    let (frames, source) = RenderedSource::new(&gpu, SIZE, PICTURE_FORMAT, FORMAT, rate)?;
    let server = TextureServer::serve("127.0.0.1:0".parse()?, source, ServerOptions::default())?;

    // The second scene's program: its device is the application's own.
    let (adapter, device, queue) = own_device()?;
    let own = Gpu::from_wgpu(&adapter, &device, &queue)?;
    let (sender, received) = std::sync::mpsc::channel();
    let sink = Arc::new(GpuSink::new(&own, Upload::Ring, move |frame: &ReceivedFrame| {
        // The receiver is dropped after the last frame.
        let _ = sender.send(frame.clone());
    }));
    let client = TextureClient::connect(server.local_address(), sink, ClientOptions::default())?;

    render_disc(&gpu, &frames, rate)?;
    let frame = received.recv_timeout(WAIT)?;
    drop(frames);
    client.wait(WAIT);
    let frame = received.try_iter().last().unwrap_or(frame);
    println!("{} drew frame {} of {}", own.name(), frame.number, gpu.name());

    let octets = draw_cube(&own, &frame)?;
    let mut encoder = png::Encoder::new(BufWriter::new(File::create(&path)?), SIZE.0, SIZE.1);
    encoder.set_color(png::ColorType::Rgba);
    encoder.write_header()?.write_image_data(&octets)?;
    println!("wrote {path}");
    Ok(())
}

/// Opens a device as an application does that knows nothing of this library.
fn own_device() -> Result<(wgpu::Adapter, wgpu::Device, wgpu::Queue), Box<dyn Error>> {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
    let adapter =
        pollster::block_on(instance.request_adapter(&wgpu::RequestAdapterOptions::default()))?;
    let asked = wgpu::DeviceDescriptor {
        required_features: adapter.features() & wgpu::Features::TEXTURE_COMPRESSION_BC,
        required_limits: adapter.limits(),
        ..Default::default()
    };
    let (device, queue) = pollster::block_on(adapter.request_device(&asked))?;
    Ok((adapter, device, queue))
}

/// Creates a pipeline that draws `corner` and `colour` of a shader.
fn pipeline(device: &wgpu::Device, shader: &str) -> wgpu::RenderPipeline {
    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: None,
        source: wgpu::ShaderSource::Wgsl(shader.into()),
    });
    device.create_render_pipeline(&wgpu::RenderPipelineDescriptor {
        label: None,
        layout: None,
        vertex: wgpu::VertexState {
            module: &module,
            entry_point: Some("corner"),
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            buffers: &[],
        },
        primitive: wgpu::PrimitiveState::default(),
        depth_stencil: None,
        multisample: wgpu::MultisampleState::default(),
        fragment: Some(wgpu::FragmentState {
            module: &module,
            entry_point: Some("colour"),
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            targets: &[Some(PICTURE_FORMAT.into())],
        }),
        multiview_mask: None,
        cache: None,
    })
}

/// Draws triangles of a pipeline on a target that is cleared first.
fn draw(
    recorder: &mut wgpu::CommandEncoder,
    pipeline: &wgpu::RenderPipeline,
    group: &wgpu::BindGroup,
    target: &wgpu::TextureView,
    corners: u32,
) {
    let mut pass = recorder.begin_render_pass(&wgpu::RenderPassDescriptor {
        color_attachments: &[Some(wgpu::RenderPassColorAttachment {
            view: target,
            depth_slice: None,
            resolve_target: None,
            ops: wgpu::Operations {
                load: wgpu::LoadOp::Clear(wgpu::Color { r: 0.03, g: 0.03, b: 0.05, a: 1.0 }),
                store: wgpu::StoreOp::Store,
            },
        })],
        ..Default::default()
    });
    pass.set_pipeline(pipeline);
    pass.set_bind_group(0, group, &[]);
    pass.draw(0..corners, 0..1);
}

/// Renders the first scene, a disc that turns, and sends its frames.
fn render_disc(gpu: &Gpu, frames: &RenderedFrames, rate: Rate) -> Result<(), Box<dyn Error>> {
    let pipeline = pipeline(gpu.device(), DISC);
    let turn = gpu.device().create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: 16,
        usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
        mapped_at_creation: false,
    });
    let group = gpu.device().create_bind_group(&wgpu::BindGroupDescriptor {
        label: None,
        layout: &pipeline.get_bind_group_layout(0),
        entries: &[wgpu::BindGroupEntry { binding: 0, resource: turn.as_entire_binding() }],
    });
    for number in 0..FRAMES {
        let canvas = frames.canvas();
        let angle = (number as f32 * 0.05).to_le_bytes();
        gpu.queue().write_buffer(&turn, 0, &[angle, [0; 4], [0; 4], [0; 4]].concat());
        let mut recorder = gpu.recorder();
        draw(&mut recorder, &pipeline, &group, canvas.view(), 3);
        gpu.submit(recorder);
        if !canvas.send() {
            return Err("the server ended".into());
        }
        std::thread::sleep(rate.interval());
    }
    Ok(())
}

/// Draws the second scene, with a frame as a texture, and reads it back.
fn draw_cube(gpu: &Gpu, frame: &ReceivedFrame) -> Result<Vec<u8>, Box<dyn Error>> {
    // A frame in any format becomes an RGB texture of the application; one in BC1 or BC3 could also
    // be sampled itself: `frame.frame.texture()`.
    let device = gpu.device();
    let texture = device.create_texture(&wgpu::TextureDescriptor {
        label: None,
        size: wgpu::Extent3d { width: SIZE.0, height: SIZE.1, depth_or_array_layers: 1 },
        mip_level_count: 1,
        sample_count: 1,
        dimension: wgpu::TextureDimension::D2,
        format: PICTURE_FORMAT,
        usage: wgpu::TextureUsages::RENDER_ATTACHMENT | wgpu::TextureUsages::TEXTURE_BINDING,
        view_formats: &[],
    });
    let view = texture.create_view(&wgpu::TextureViewDescriptor::default());
    let path = frame.frame.path();
    let decoder = FrameDecoder::with_path(gpu, &frame.layout, texture.format(), path)?;
    let mut recorder = gpu.recorder();
    decoder.draw(gpu, &mut recorder, &frame.frame, &view, &Place::exact(&frame.layout));

    let pipeline = pipeline(device, CUBE);
    let sampler = device.create_sampler(&wgpu::SamplerDescriptor {
        mag_filter: wgpu::FilterMode::Linear,
        min_filter: wgpu::FilterMode::Linear,
        ..Default::default()
    });
    let group = device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: None,
        layout: &pipeline.get_bind_group_layout(0),
        entries: &[
            wgpu::BindGroupEntry {
                binding: 0,
                resource: wgpu::BindingResource::TextureView(&view),
            },
            wgpu::BindGroupEntry { binding: 1, resource: wgpu::BindingResource::Sampler(&sampler) },
        ],
    });
    let picture = Picture::new(gpu, SIZE.0, SIZE.1);
    draw(&mut recorder, &pipeline, &group, picture.target(), 18);
    Ok(picture.read(gpu, recorder)?)
}
