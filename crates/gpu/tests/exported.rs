//! Frames in memory that another program imports, into another graphics interface.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may")]

mod common;

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock, mpsc};
use std::time::Duration;

use rushes::texture::source::{Frame, Source, SourceError};
use rushes::texture::{
    ClientOptions, Format, Layout, Rate, ServerOptions, TextureClient, TextureServer, Timing,
    Transport,
};
use rushes_gpu::{
    DeviceFrame, ExportedMemory, Gpu, GpuEncoder, GpuError, GpuSink, MemoryHandle, ReceivedFrame,
    RenderedSource, Upload,
};

const SECOND: Duration = Duration::from_secs(1);

/// Returns the devices that export memory.
fn devices() -> Vec<Gpu> {
    let mut devices = common::devices();
    devices.retain(|gpu| gpu.name().ends_with("(vulkan)"));
    devices
}

/// Compiles the program that imports a frame; `None` if that is not possible here.
fn importer() -> Option<&'static PathBuf> {
    static IMPORTER: OnceLock<Option<PathBuf>> = OnceLock::new();
    IMPORTER.get_or_init(compiled).as_ref()
}

fn compiled() -> Option<PathBuf> {
    let program = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("import_frame");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../interop/import_frame.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-Wall", "-Wextra", "-Werror", source, "-lEGL", "-lGL", "-o"]).arg(&program);
    match compiler.output() {
        Ok(output) if output.status.success() => Some(program),
        Ok(output) => {
            common::skipped::missing(
                String::from_utf8_lossy(&output.stderr),
                "libegl-dev libgl-dev",
            );
            None
        }
        Err(error) => {
            common::skipped::missing(format!("cc: {error}"), "gcc");
            None
        }
    }
}

/// Returns a frame's bytes as another program has them from its memory.
fn imported(program: &PathBuf, memory: ExportedMemory, length: usize) -> Vec<u8> {
    run(program, memory, length, &[])
}

fn run(program: &PathBuf, memory: ExportedMemory, length: usize, more: &[u32]) -> Vec<u8> {
    let numbers = [memory.size.to_string(), length.to_string()];
    let mut importer = Command::new(program);
    importer.args(numbers).arg(u8::from(memory.is_dedicated).to_string());
    importer.args(more.iter().map(u32::to_string));
    let output = importer.stdin(Stdio::from(memory.fd)).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// A source of frames that differ in all of their bytes.
struct Changing(Layout, u64);

const FRAMES: u64 = 12;

fn octets_of(layout: &Layout, number: u64) -> Vec<u8> {
    let mut octets = common::noise(layout);
    for octet in &mut octets {
        *octet = octet.wrapping_add(number as u8 + 1);
    }
    octets
}

impl Source for Changing {
    fn layout(&self) -> &Layout {
        &self.0
    }

    fn rate(&self) -> Rate {
        Rate::new(250, 1).unwrap()
    }

    fn length(&self) -> Option<u64> {
        Some(FRAMES)
    }

    fn next_frame(&mut self) -> Result<Option<Frame>, SourceError> {
        if self.1 == FRAMES {
            return Ok(None);
        }
        self.1 += 1;
        Ok(Some(Frame::new(octets_of(&self.0, self.1 - 1))))
    }

    fn rewind(&mut self) -> Result<(), SourceError> {
        self.1 = 0;
        Ok(())
    }
}

/// Streams the source into a sink with exported memory, and returns the frames, which remain held.
fn received(gpu: &Gpu, layout: Layout) -> Vec<ReceivedFrame> {
    let mut options = ServerOptions::default();
    (options.units, options.transport, options.timing) = (3, Transport::Tcp, Timing::FlatOut);
    let local = "127.0.0.1:0".parse().unwrap();
    let server = TextureServer::serve(local, Changing(layout, 0), options).unwrap();
    let (sender, frames) = mpsc::channel();
    let sink = GpuSink::new(gpu, Upload::Best, move |frame: &ReceivedFrame| {
        sender.send(frame.clone()).unwrap();
    });
    let sink = Arc::new(sink.with_export(MemoryHandle::OpaqueFd).unwrap());
    let address = server.local_address();
    let client = TextureClient::connect(address, sink, ClientOptions::default()).unwrap();
    client.wait(60 * SECOND).unwrap();
    client.stop();
    frames.try_iter().collect()
}

#[test]
fn another_program_has_every_received_frame_in_opengl() {
    let Some(program) = importer() else { return };
    for gpu in devices() {
        // The second frame does not end with a word.
        for (format, width, height) in [(Format::YCoCgBc3, 320, 180), (Format::Rgb24, 35, 21)] {
            let layout = Layout::new(format, width, height).unwrap();
            let frames = received(&gpu, layout);
            assert_eq!(frames.len() as u64, FRAMES);
            for frame in &frames {
                let memory = frame.frame.export(&gpu).unwrap();
                assert!(
                    memory.size >= layout.bytes() as u64 && memory.handle == MemoryHandle::OpaqueFd
                );
                let theirs = imported(program, memory, layout.bytes());
                assert!(theirs == octets_of(&layout, frame.number), "{format}: {}", frame.number);
            }
            let mut ids: Vec<u64> = frames.iter().map(|frame| frame.frame.id()).collect();
            ids.sort_unstable();
            ids.dedup();
            assert_eq!(ids.len(), frames.len(), "frames that are held have memory of their own");
        }
        assert_eq!(gpu.first_error(), None, "{}", gpu.name());
    }
    assert_eq!(common::driver_errors(), Vec::<String>::new());
}

/// The picture that the other program draws.
fn drawn(width: u32, height: u32) -> Vec<u8> {
    let colours = [[255, 0, 0, 255], [0, 255, 0, 255], [0, 0, 255, 255], [255; 4]];
    let colour = |x, y| colours[usize::from(x >= width / 2) + 2 * usize::from(y >= height / 2)];
    (0..height).flat_map(|y| (0..width).flat_map(move |x| colour(x, y))).collect()
}

#[test]
fn what_another_program_draws_in_opengl_is_encoded() {
    let Some(program) = importer() else { return };
    for gpu in devices() {
        let handle = MemoryHandle::OpaqueFd;
        let (frames, mut source) =
            RenderedSource::exportable(&gpu, (64, 48), handle, Format::Bc1, Rate::DEFAULT).unwrap();
        let mut ids = Vec::new();
        for (number, (width, height)) in [(64, 48), (64, 48), (38, 21)].into_iter().enumerate() {
            frames.resize((width, height)).unwrap();
            let canvas = frames.canvas().unwrap();
            let memory = canvas.frame().export(&gpu).unwrap();
            ids.push(canvas.frame().id());
            let picture = drawn(width, height);
            run(program, memory, picture.len(), &[width, height]);
            assert!(canvas.send());
            let frame = source.next_frame().unwrap().unwrap();
            let mut encoder = GpuEncoder::new(&gpu, Format::Bc1, width, height).unwrap();
            let mut want = Vec::new();
            encoder.encode(&picture, 1, |_, octets| want.extend_from_slice(octets)).unwrap();
            assert!(frame[..] == want[..], "frame {number}");
        }
        assert_eq!(ids[0], ids[1], "memory is used again");
        assert_eq!(gpu.first_error(), None, "{}", gpu.name());
    }
    assert_eq!(common::driver_errors(), Vec::<String>::new());
}

#[test]
fn frames_for_others_are_rendered_only_where_memory_is_exported() {
    for gpu in common::devices() {
        let make = |size, output| {
            let handle = MemoryHandle::OpaqueFd;
            RenderedSource::exportable(&gpu, size, handle, output, Rate::DEFAULT).map(drop)
        };
        let most = gpu.device().limits().max_texture_dimension_2d;
        for refused in [make((8, most + 1), Format::Bc1), make((8, 8), Format::Rgb24)] {
            assert!(matches!(refused, Err(GpuError::Unsupported { .. })), "{refused:?}");
        }
        assert_eq!(make((8, 8), Format::Bc1).is_ok(), gpu.name().ends_with("(vulkan)"));
    }
}

/// The importer keeps the memory, not what it held.
#[test]
fn memory_remains_with_its_importers_and_is_zero_at_first() {
    let Some(program) = importer() else { return };
    for gpu in devices() {
        let layout = Layout::new(Format::Bc1, 64, 64).unwrap();
        let frame = DeviceFrame::exportable(&gpu, &layout, MemoryHandle::OpaqueFd).unwrap();
        let (first, second) = (frame.export(&gpu).unwrap(), frame.export(&gpu).unwrap());
        gpu.wait().unwrap();
        assert!(imported(program, first, layout.bytes()) == vec![0; layout.bytes()]);
        let octets = common::noise(&layout);
        frame.write(&gpu, &octets);
        gpu.submit(gpu.recorder());
        gpu.wait().unwrap();
        drop(frame);
        gpu.wait().unwrap();
        assert!(imported(program, second, layout.bytes()) == octets);
        assert_eq!(gpu.first_error(), None, "{}", gpu.name());
    }
    assert_eq!(common::driver_errors(), Vec::<String>::new());
}

#[test]
fn memory_that_is_not_exported_says_why() {
    for gpu in common::devices() {
        let layout = Layout::new(Format::Bc1, 64, 64).unwrap();
        let plain = DeviceFrame::new(&gpu, &layout).export(&gpu).unwrap_err();
        assert!(plain.to_string().contains("the frame was not created for others"), "{plain}");
        if gpu.name().ends_with("(vulkan)") {
            assert_ne!(gpu.uuids().unwrap().driver, [0; 16]);
            let frame = DeviceFrame::exportable(&gpu, &layout, MemoryHandle::OpaqueFd).unwrap();
            frame.buffer().unwrap().destroy();
            let destroyed = frame.export(&gpu).unwrap_err();
            assert!(destroyed.to_string().contains("was destroyed"), "{destroyed}");
            continue;
        }
        for handle in [MemoryHandle::OpaqueFd, MemoryHandle::DmaBuf] {
            let sink = GpuSink::new(&gpu, Upload::Best, |_| ()).with_export(handle);
            let refused = sink.map(drop).unwrap_err();
            assert!(matches!(refused, GpuError::Unsupported { .. }), "{refused}");
            assert!(refused.to_string().contains("not used through Vulkan"), "{refused}");
        }
        assert!(gpu.uuids().is_err());
    }
    assert_eq!(common::driver_errors(), Vec::<String>::new());
}
