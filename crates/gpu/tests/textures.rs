//! Textures of an application are encoded where they are, on its own device.
#![allow(clippy::unwrap_used, reason = "a test may")]

mod common;
#[path = "common/content.rs"]
mod content;

use std::thread;

use rushes_gpu::wgpu::{
    self, Extent3d, TexelCopyBufferLayout, TextureDescriptor, TextureDimension, TextureFormat,
    TextureUsages,
};
use rushes_gpu::{DeviceFrame, Gpu, GpuEncoder, GpuError, RenderedSource};
use rushes_texture::{Format, Layout, Rate, Source};

use content::{CONTENTS, encoded, picture};

const FORMATS: [Format; 5] =
    [Format::Bc1, Format::YCoCgBc3, Format::Etc1, Format::Etc2Rgb, Format::Astc4x4];

/// Sizes of whole blocks, incomplete blocks, and more than a group of blocks.
const SIZES: [(u32, u32); 3] = [(64, 32), (5, 7), (258, 70)];

fn described(format: TextureFormat, (width, height): (u32, u32)) -> TextureDescriptor<'static> {
    TextureDescriptor {
        label: None,
        size: Extent3d { width, height, depth_or_array_layers: 1 },
        mip_level_count: 1,
        sample_count: 1,
        dimension: TextureDimension::D2,
        format,
        usage: TextureUsages::TEXTURE_BINDING | TextureUsages::COPY_DST,
        view_formats: &[],
    }
}

/// Writes a picture of RGBA8 to a texture of the same size.
fn write(gpu: &Gpu, texture: &wgpu::Texture, picture: &[u8]) {
    let mut octets = picture.to_vec();
    if texture.format().remove_srgb_suffix() == TextureFormat::Bgra8Unorm {
        octets.as_chunks_mut::<4>().0.iter_mut().for_each(|pixel| pixel.swap(0, 2));
    }
    let layout = TexelCopyBufferLayout {
        offset: 0,
        bytes_per_row: Some(texture.width() * 4),
        rows_per_image: None,
    };
    gpu.queue().write_texture(texture.as_image_copy(), &octets, layout, texture.size());
}

fn encoded_texture(encoder: &mut GpuEncoder, texture: &wgpu::Texture, rows: u32) -> Vec<u8> {
    let mut frame = Vec::new();
    encoder.encode_texture(texture, rows, |_, octets| frame.extend_from_slice(octets)).unwrap();
    frame
}

/// Formats that tests write textures in; OpenGL has no BGRA textures of sRGB.
fn texture_formats(gpu: &Gpu) -> Vec<TextureFormat> {
    let mut formats = vec![TextureFormat::Rgba8Unorm, TextureFormat::Rgba8UnormSrgb];
    if gpu.name().ends_with("(vulkan)") {
        formats.extend([TextureFormat::Bgra8Unorm, TextureFormat::Bgra8UnormSrgb]);
    }
    formats
}

#[test]
fn a_texture_becomes_the_frame_of_its_pixels() {
    for gpu in common::devices() {
        for (turn, format) in FORMATS.into_iter().enumerate() {
            for size in SIZES {
                let mut of_pixels = GpuEncoder::new(&gpu, format, size.0, size.1).unwrap();
                let mut of_texels = GpuEncoder::new(&gpu, format, size.0, size.1).unwrap();
                let formats = texture_formats(&gpu);
                let texture_format = formats[turn % formats.len()];
                let texture = gpu.device().create_texture(&described(texture_format, size));
                for content in [CONTENTS[0], CONTENTS[6]] {
                    let picture = picture(content, of_pixels.input());
                    write(&gpu, &texture, &picture);
                    let want = encoded(&mut of_pixels, &picture, 3);
                    let have = encoded_texture(&mut of_texels, &texture, 3);
                    let name = gpu.name();
                    assert!(
                        have == want,
                        "{name}: {format} {texture_format:?} {size:?} {content:?}"
                    );
                }
            }
        }
        assert_eq!(gpu.first_error(), None, "{}", gpu.name());
    }
    assert_eq!(common::driver_errors(), Vec::<String>::new());
}

#[test]
fn pixels_in_memory_of_the_device_become_the_frame_of_a_picture() {
    for gpu in common::devices() {
        for format in FORMATS {
            for size in SIZES {
                let mut encoder = GpuEncoder::new(&gpu, format, size.0, size.1).unwrap();
                let mut of_rows = GpuEncoder::new(&gpu, format, size.0, size.1).unwrap();
                let pixels = DeviceFrame::new(&gpu, encoder.input());
                for content in [CONTENTS[0], CONTENTS[6]] {
                    let picture = picture(content, encoder.input());
                    pixels.write(&gpu, &picture);
                    let mut have = Vec::new();
                    let ready = |_, octets: &[u8]| have.extend_from_slice(octets);
                    of_rows.encode_frame(&pixels, 3, ready).unwrap();
                    let want = encoded(&mut encoder, &picture, 3);
                    assert!(have == want, "{}: {format} {size:?} {content:?}", gpu.name());
                }
            }
        }
        let mut encoder = GpuEncoder::new(&gpu, Format::Bc1, 8, 8).unwrap();
        for layout in [(Format::Rgba8, 8, 12), (Format::Rgb24, 8, 8)] {
            let layout = Layout::new(layout.0, layout.1, layout.2).unwrap();
            let refused = encoder.encode_frame(&DeviceFrame::new(&gpu, &layout), 1, |_, _| ());
            let refused = refused.unwrap_err().to_string();
            assert!(refused.contains("where rgba8 of 8×8 is expected"), "{refused}");
        }
        assert_eq!(gpu.first_error(), None, "{}", gpu.name());
    }
    assert_eq!(common::driver_errors(), Vec::<String>::new());
}

#[test]
fn every_stored_value_of_srgb_is_kept() {
    for gpu in common::devices() {
        // Blocks of one grey: their colours in BC1 say which grey it was, to five or six bits.
        let size = (1024, 4);
        let mut encoder = GpuEncoder::new(&gpu, Format::YCoCgBc3, size.0, size.1).unwrap();
        let pixels = (0..4).flat_map(|_| (0..1024_u32).flat_map(|x| [(x / 4) as u8; 4]));
        let picture: Vec<u8> = pixels.collect();
        let want = encoded(&mut encoder, &picture, 1);
        for format in texture_formats(&gpu) {
            let texture = gpu.device().create_texture(&described(format, size));
            write(&gpu, &texture, &picture);
            assert!(
                encoded_texture(&mut encoder, &texture, 1) == want,
                "{}: {format:?}",
                gpu.name()
            );
        }
        // Pictures may follow textures, too.
        assert!(encoded(&mut encoder, &picture, 1) == want);
        assert_eq!(gpu.first_error(), None, "{}", gpu.name());
    }
}

#[test]
fn textures_that_cannot_be_encoded_are_refused_in_words() {
    for gpu in common::devices() {
        let mut encoder = GpuEncoder::new(&gpu, Format::Bc1, 8, 8).unwrap();
        let mut refused = |descriptor: &TextureDescriptor<'_>| {
            let texture = gpu.device().create_texture(descriptor);
            match encoder.encode_texture(&texture, 1, |_, _| panic!("nothing is encoded")) {
                Err(GpuError::Unsupported { what, .. }) => what,
                other => panic!("{other:?}"),
            }
        };
        let good = described(TextureFormat::Rgba8Unorm, (8, 8));
        let size = Extent3d { width: 16, ..good.size };
        assert_eq!(
            refused(&TextureDescriptor { size, ..good.clone() }),
            "frames of 8×8 from a texture of 16×8"
        );
        let format = TextureFormat::Rgba16Float;
        let what = refused(&TextureDescriptor { format, ..good.clone() });
        assert!(what.contains("Rgba16Float") && what.contains("Bgra8Unorm"), "{what}");
        let usage = TextureUsages::COPY_DST;
        let what = refused(&TextureDescriptor { usage, ..good.clone() });
        assert!(what.contains("TEXTURE_BINDING"), "{what}");
        let size = Extent3d { depth_or_array_layers: 2, ..good.size };
        let what = refused(&TextureDescriptor { size, ..good });
        assert!(what.contains("layers"), "{what}");
        let most = gpu.device().limits().max_texture_dimension_2d;
        let good = TextureFormat::Rgba8Unorm;
        for (format, size) in [(TextureFormat::Bc1RgbaUnorm, (8, 8)), (good, (most + 1, 8))] {
            let made = RenderedSource::new(&gpu, size, format, Format::Bc1, Rate::DEFAULT);
            assert!(matches!(made, Err(GpuError::Unsupported { .. })), "{made:?}");
        }
        assert_eq!(gpu.first_error(), None, "{}", gpu.name());
    }
}

/// A canvas that shows one value, which is the frame's number.
fn send_frames(
    gpu: &Gpu,
    frames: &rushes_gpu::RenderedFrames,
    numbers: std::ops::Range<u8>,
) -> bool {
    let mut is_open = true;
    for number in numbers {
        let canvas = frames.canvas();
        write(gpu, canvas.texture(), &vec![number; 8 * 8 * 4]);
        is_open &= canvas.send();
    }
    is_open
}

#[test]
fn a_source_has_the_newest_rendered_frame_and_ends_with_the_renderer() {
    for gpu in common::devices() {
        let format = TextureFormat::Rgba8Unorm;
        let (frames, mut source) =
            RenderedSource::new(&gpu, (8, 8), format, Format::Bc1, Rate::DEFAULT).unwrap();
        let wanted = |number: u8| {
            let mut encoder = GpuEncoder::new(&gpu, Format::Bc1, 8, 8).unwrap();
            encoded(&mut encoder, &[number; 8 * 8 * 4], 68)
        };
        let live = source.live().unwrap();
        assert_eq!(live.captured_at(), None);
        // Of frames that wait, the newest is taken.
        assert!(send_frames(&gpu, &frames, 0..10));
        assert!(source.next_frame().unwrap().unwrap()[..] == wanted(9)[..]);
        assert!(live.captured_at().is_some());
        // A frame that is dropped is not sent.
        drop(frames.canvas());
        let renderer = gpu.clone();
        let sender = thread::spawn(move || (send_frames(&renderer, &frames, 20..21), frames));
        assert!(source.next_frame().unwrap().unwrap()[..] == wanted(20)[..]);
        let (is_open, frames_end) = sender.join().unwrap();
        assert!(is_open);
        let late = frames_end.canvas();
        drop(frames_end);
        assert!(source.next_frame().unwrap().is_none());
        assert!(!late.send());
        assert!(source.rewind().is_err());
        assert_eq!(gpu.first_error(), None, "{}", gpu.name());
    }
}

#[test]
fn canvases_of_another_size_are_frames_of_another_size() {
    for gpu in common::devices() {
        let (format, output) = (TextureFormat::Rgba8Unorm, Format::Bc1);
        let (frames, mut source) =
            RenderedSource::new(&gpu, (8, 8), format, output, Rate::DEFAULT).unwrap();
        let held = frames.canvas();
        let most = gpu.device().limits().max_texture_dimension_2d;
        assert!(matches!(frames.resize((most + 1, 8)), Err(GpuError::Unsupported { .. })));
        assert!(matches!(frames.resize((0, 8)), Err(GpuError::Codec(_))));
        assert_eq!(frames.canvas().texture().width(), 8, "the size remains");
        for (width, height) in [(12, 20), (5, 3), (8, 8)] {
            frames.resize((width, height)).unwrap();
            let canvas = frames.canvas();
            assert_eq!((canvas.texture().width(), canvas.texture().height()), (width, height));
            let octets = vec![77; (width * height * 4) as usize];
            write(&gpu, canvas.texture(), &octets);
            assert!(canvas.send());
            let frame = source.next_frame().unwrap().unwrap();
            let layout = Layout::new(output, width, height).unwrap();
            assert_eq!(*source.layout(), layout);
            let mut encoder = GpuEncoder::new(&gpu, output, width, height).unwrap();
            assert!(frame[..] == encoded(&mut encoder, &octets, 68)[..], "{width}x{height}");
        }
        // One that was taken before has its own size.
        frames.resize((12, 20)).unwrap();
        write(&gpu, held.texture(), &[1; 8 * 8 * 4]);
        assert!(held.send());
        assert_eq!(source.next_frame().unwrap().unwrap().len(), 4 * 8);
        assert_eq!(source.layout().width(), 8);
        assert_eq!(gpu.first_error(), None, "{}", gpu.name());
    }
}

#[test]
fn a_closed_source_wakes_its_reader_and_tells_the_renderer() {
    for gpu in common::devices() {
        let format = TextureFormat::Rgba8UnormSrgb;
        let (frames, mut source) =
            RenderedSource::new(&gpu, (8, 8), format, Format::Bc1, Rate::DEFAULT).unwrap();
        let live = source.live().unwrap();
        let reader = thread::spawn(move || source.next_frame().unwrap().is_none());
        live.close();
        assert!(reader.join().unwrap());
        assert!(!send_frames(&gpu, &frames, 0..1));
    }
}

/// An application's device, with only the limits that it asked for.
fn own_device(backends: wgpu::Backends) -> Option<(wgpu::Adapter, wgpu::Device, wgpu::Queue)> {
    let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    descriptor.backends = backends;
    // The validation layer of Debian 12 does not know the name of the language in debug information.
    descriptor.flags = wgpu::InstanceFlags::empty();
    let instance = wgpu::Instance::new(descriptor);
    let adapter =
        pollster::block_on(instance.request_adapter(&wgpu::RequestAdapterOptions::default()))
            .ok()?;
    let asked = wgpu::DeviceDescriptor {
        required_features: adapter.features() & wgpu::Features::TEXTURE_COMPRESSION_BC,
        ..Default::default()
    };
    let (device, queue) = pollster::block_on(adapter.request_device(&asked)).ok()?;
    Some((adapter, device, queue))
}

#[test]
fn an_application_s_device_encodes_and_holds_frames() {
    // Checks whether devices are required.
    drop(common::devices());
    for backends in [wgpu::Backends::VULKAN, wgpu::Backends::GL] {
        let Some((adapter, device, queue)) = own_device(backends) else { continue };
        let gpu = Gpu::from_wgpu(&adapter, &device, &queue).unwrap();
        let mut encoder = GpuEncoder::new(&gpu, Format::Bc1, 64, 32).unwrap();
        let picture = picture(CONTENTS[6], encoder.input());
        let texture = device.create_texture(&described(TextureFormat::Rgba8Unorm, (64, 32)));
        write(&gpu, &texture, &picture);
        let frame = encoded_texture(&mut encoder, &texture, 68);
        let layout = Layout::new(Format::Bc1, 64, 32).unwrap();
        let held = DeviceFrame::new(&gpu, &layout);
        held.write(&gpu, &frame);
        assert!(held.read(&gpu).unwrap() == frame);
        assert!(held.texture().is_none());
        assert_eq!(held.buffer().unwrap().size(), frame.len() as u64);
        let path = rushes_gpu::Path::Texture;
        if path.is_supported(&gpu, &layout) {
            let held = DeviceFrame::with_path(&gpu, &layout, path).unwrap();
            assert!(held.buffer().is_none());
            let texture = held.texture().unwrap();
            assert_eq!(texture.format(), TextureFormat::Bc1RgbaUnorm);
            assert!(texture.width() >= 64 && texture.height() == 32);
        }
    }
}
