//! Frames received into device memory equal those that were sent, and memory does not grow.
#![allow(clippy::unwrap_used, reason = "a test may")]

mod common;
#[path = "../../rushes/tests/texture_world/mod.rs"]
mod texture_world;

use std::sync::{Arc, Mutex, PoisonError, RwLock, mpsc};
use std::time::Duration;

use rushes::Pacing;
use rushes::texture::source::{Frame, Source, SourceError};
use rushes::texture::{
    ClientOptions, Format, Layout, Rate, ServerOptions, TextureClient, TextureServer, TextureShape,
    TextureSink, Timing, Transport,
};
use rushes_gpu::{
    DeviceFrame, FrameDecoder, Gpu, GpuOptions, GpuSink, Interface, PICTURE_FORMAT, Path, Picture,
    Place, ReceivedFrame, Upload,
};
use rushes_texture::{Decoder, Tiling};

use rushes_netsim::{Loss, Path as NetworkPath};
use texture_world::relay::{Between, Weather};

const SECOND: Duration = Duration::from_secs(1);

/// Locked for writing by the test that measures the memory of the whole process.
static MEMORY: RwLock<()> = RwLock::new(());

/// A source of `length` frames, each different from the one before.
struct Changing {
    layout: Layout,
    length: u64,
    next: u64,
}

fn octets_of(layout: &Layout, number: u64) -> Vec<u8> {
    let mut octets = common::noise(layout);
    let shift = (number as usize * 7) % octets.len();
    octets.rotate_left(shift);
    for octet in octets.iter_mut().step_by(97) {
        *octet = octet.wrapping_add(number as u8);
    }
    octets
}

impl Source for Changing {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn rate(&self) -> Rate {
        Rate::new(250, 1).unwrap()
    }

    fn length(&self) -> Option<u64> {
        Some(self.length)
    }

    fn next_frame(&mut self) -> Result<Option<Frame>, SourceError> {
        if self.next == self.length {
            return Ok(None);
        }
        self.next += 1;
        Ok(Some(Frame::new(octets_of(&self.layout, self.next - 1))))
    }

    fn rewind(&mut self) -> Result<(), SourceError> {
        self.next = 0;
        Ok(())
    }
}

struct Trial {
    layout: Layout,
    frames: u64,
    units: usize,
    transport: Transport,
    upload: Upload,
    path: Path,
    is_stepped: bool,
}

/// Streams frames into a sink, and calls `check` for those without missing packets.
fn stream(
    gpu: &Gpu,
    trial: &Trial,
    check: impl Fn(&ReceivedFrame) + Send + Sync + 'static,
) -> Arc<GpuSink> {
    let mut options = ServerOptions::default();
    (options.units, options.transport) = (trial.units, trial.transport);
    let is_tcp = trial.transport == Transport::Tcp;
    options.timing = if is_tcp { Timing::FlatOut } else { Timing::EveryFrame };
    let source = Changing { layout: trial.layout, length: trial.frames, next: 0 };
    let local = "127.0.0.1:0".parse().unwrap();
    let server = TextureServer::serve(local, source, options).unwrap();

    let (sender, frames) = mpsc::channel();
    let sink = GpuSink::new(gpu, trial.upload, move |received: &ReceivedFrame| {
        if received.packets_missing == 0 {
            check(received);
        }
        let _ = sender.send((received.number, received.packets_missing));
    });
    let sink = sink.with_path(trial.path);
    let sink = Arc::new(if trial.is_stepped { sink } else { sink.with_whole_frames() });
    let mut options = ClientOptions::default();
    // Deadlines are long, so that little is lost if threads are delayed. Of many frames over UDP,
    // however, at most a hundred may be in flight, because otherwise their numbers repeat.
    let patience = if is_tcp || trial.frames < 100 { 10 * SECOND } else { SECOND / 10 };
    (options.deadline_min, options.deadline_max) = (patience, patience);
    let client = TextureClient::connect(server.local_address(), sink.clone(), options).unwrap();
    let end = client.wait(60 * SECOND).unwrap();
    assert!(
        end.text.contains("source has ended"),
        "{}: {end}, {:?}",
        gpu.name(),
        client.statistics()
    );
    let seen = client.statistics();
    client.stop();
    let frames: Vec<(u64, u32)> = frames.try_iter().collect();
    assert!(frames.is_sorted_by_key(|&(number, _)| number));
    let whole = frames.iter().filter(|&&(_, missing)| missing == 0).count() as u64;
    // A busy machine may lose some frames over UDP.
    let least = if is_tcp { trial.frames } else { trial.frames * 3 / 4 };
    assert!(whole >= least, "{}: {whole} of {}: {seen:?}", gpu.name(), trial.frames);
    sink
}

fn uploads(gpu: &Gpu) -> &'static [Upload] {
    let name = gpu.name();
    match name.rsplit_once('(') {
        Some((_, "vulkan)")) => &[Upload::Persistent, Upload::Ring],
        Some((_, "gl)")) => &[Upload::Ring],
        _ => panic!("neither Vulkan nor OpenGL: {name}"),
    }
}

/// Tiles begin and end anywhere in a word, and units have one row.
#[test]
fn every_format_and_odd_size_arrives_in_device_memory_as_it_was_sent() {
    let _shared = MEMORY.read().unwrap_or_else(PoisonError::into_inner);
    for gpu in common::devices() {
        for &upload in uploads(&gpu) {
            for (turn, format) in Format::ALL.into_iter().enumerate() {
                let layout = Layout::new(format, 37, 23).unwrap();
                let transport = [Transport::Udp, Transport::Tcp][turn % 2];
                let units = 1 + (turn * 5) % 16;
                let (path, is_stepped) = (Path::Octets, turn % 3 > 0);
                let trial = Trial { layout, frames: 6, units, transport, upload, path, is_stepped };
                let device = gpu.clone();
                stream(&gpu, &trial, move |received| {
                    let octets = received.frame.read(&device).unwrap();
                    assert!(octets == octets_of(&layout, received.number), "{format} {upload:?}");
                });
            }
        }
        assert_eq!(gpu.first_error(), None, "{}", gpu.name());
    }
    assert_eq!(common::driver_errors(), Vec::<String>::new());
}

/// A received frame: its number, missing packets, and its bytes.
type Received = (u64, u32, Vec<u8>);

/// Receives frames over a lossy network, into 3 units, in packets of 501 octets.
///
/// Also returns the number of bytes that the device copied from other frames.
fn lossy(gpu: &Gpu, layout: Layout, upload: Upload, is_stepped: bool) -> (Vec<Received>, u64) {
    let mut options = ServerOptions::default();
    (options.units, options.transport, options.payload) = (3, Transport::Udp, 501);
    (options.timing, options.pacing) = (Timing::EveryFrame, Pacing::Rate(400_000_000));
    let source = Changing { layout, length: 30, next: 0 };
    let server = TextureServer::serve("127.0.0.1:0".parse().unwrap(), source, options).unwrap();
    let path = NetworkPath { loss: Loss::Independent(0.05), ..NetworkPath::default() };
    let weather = Weather { path, seed: 7, ..Weather::default() };
    let relay = Between::new(server.local_address(), weather);

    let (sender, frames) = mpsc::channel();
    let device = gpu.clone();
    let sink = GpuSink::new(gpu, upload, move |received: &ReceivedFrame| {
        let octets = received.frame.read(&device).unwrap();
        let _ = sender.send((received.number, received.packets_missing, octets));
    })
    .with_path(Path::Octets);
    let sink = Arc::new(if is_stepped { sink } else { sink.with_whole_frames() });
    let mut options = ClientOptions::default();
    options.deadline_max = SECOND / 20;
    // Nothing that was lost is sent again.
    options.recovery = false;
    let client = TextureClient::connect(relay.address(), sink.clone(), options).unwrap();
    let plan = client.shape().unwrap().plan().clone();
    assert_eq!(plan.payload(), 501);
    let end = client.wait(60 * SECOND).unwrap();
    assert!(end.text.contains("source has ended"), "{}: {end}", gpu.name());
    client.stop();
    (frames.try_iter().collect(), sink.concealed())
}

#[test]
fn lost_octets_are_those_of_the_previous_frame() {
    let _shared = MEMORY.read().unwrap_or_else(PoisonError::into_inner);
    for gpu in common::devices() {
        for &upload in uploads(&gpu) {
            // Tiles and packets begin anywhere in a word.
            let layout = Layout::new(Format::Rgb24, 103, 61).unwrap();
            let tiling = Tiling::balanced(&layout, 3);
            for is_stepped in [true, false] {
                let (frames, by_device) = lossy(&gpu, layout, upload, is_stepped);
                let (mut mended, mut octets_mended) = (0, 0);
                let mut before = vec![0; layout.bytes()];
                for (number, missing, octets) in frames {
                    let sent = octets_of(&layout, number);
                    let mut concealed = 0;
                    for tile in tiling.tiles() {
                        let packets = octets[tile.bytes.clone()].chunks(501);
                        let sent = sent[tile.bytes.clone()].chunks(501);
                        let before = before[tile.bytes.clone()].chunks(501);
                        for (have, (sent, before)) in packets.zip(sent.zip(before)) {
                            let is_old = have != sent;
                            concealed += u32::from(is_old);
                            octets_mended += if is_old && number > 0 { have.len() } else { 0 };
                            assert!(!is_old || have == before, "{upload:?}: frame {number}");
                        }
                    }
                    assert_eq!(concealed, missing, "{upload:?}: frame {number}");
                    mended += missing;
                    before = octets;
                }
                assert!(mended > 20, "{upload:?}: {mended} packets were lost");
                let wanted = if upload == Upload::Ring { 0 } else { octets_mended as u64 };
                assert_eq!(by_device, wanted, "{upload:?}");
            }
        }
        assert_eq!(gpu.first_error(), None, "{}", gpu.name());
    }
    assert_eq!(common::driver_errors(), Vec::<String>::new());
}

/// Block rows of several lengths: some need padding for copies to textures, and one does not.
#[test]
fn blocks_arrive_in_textures_as_they_were_sent() {
    let _shared = MEMORY.read().unwrap_or_else(PoisonError::into_inner);
    for gpu in common::devices() {
        for &upload in uploads(&gpu) {
            for (format, width) in [(Format::Bc1, 322), (Format::Bc3, 256), (Format::Etc2Rgb, 37)] {
                let layout = Layout::new(format, width, 39).unwrap();
                let path = Path::Texture;
                if !path.is_supported(&gpu, &layout) {
                    continue;
                }
                let transport = Transport::Tcp;
                let (units, is_stepped) = (3, true);
                let trial =
                    Trial { layout, frames: 20, units, transport, upload, path, is_stepped };
                let drawn = Drawn::new(&gpu, layout, path);
                stream(&gpu, &trial, move |received| {
                    drawn.check(&received.frame, received.number);
                });
            }
        }
        assert_eq!(gpu.first_error(), None, "{}", gpu.name());
    }
    assert_eq!(common::driver_errors(), Vec::<String>::new());
}

/// Receiving threads may write to the regions that they still have.
#[test]
fn memory_that_is_received_into_outlives_the_device() {
    let _shared = MEMORY.read().unwrap_or_else(PoisonError::into_inner);
    // Reports a missing driver.
    common::devices();
    let options = GpuOptions { interface: Interface::Vulkan, validate: false };
    let Ok(gpu) = Gpu::open(options) else { return };
    let shape = TextureShape::choose(Format::Bc1, 512, 512, 3, 1_408).unwrap();
    let sink = GpuSink::new(&gpu, Upload::Persistent, |_| ());
    let mut memory = sink.begin(&shape, 2).unwrap();
    gpu.device().destroy();
    let _ = gpu.device().poll(wgpu::PollType::Poll);
    for region in memory.iter_mut().flatten() {
        region.octets().fill(7);
    }
    drop(sink);
    memory[1][2].octets().fill(8);
}

/// Returns the resident memory in KiB, if the system reports it.
fn resident() -> Option<u64> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    Some(pages.split(' ').nth(1)?.parse::<u64>().ok()? * 4)
}

#[test]
fn a_thousand_frames_by_udp_and_tcp_are_drawn_from_every_sink_without_growth() {
    let _alone = MEMORY.write().unwrap_or_else(PoisonError::into_inner);
    for gpu in common::devices() {
        for &upload in uploads(&gpu) {
            for transport in [Transport::Udp, Transport::Tcp] {
                let layout = Layout::new(Format::Bc1, 322, 182).unwrap();
                let trial = Trial {
                    layout,
                    frames: 1_000,
                    units: 3,
                    transport,
                    upload,
                    path: Path::Octets,
                    is_stepped: true,
                };
                let after_some = Arc::new(Mutex::new(None));
                let seen = Arc::clone(&after_some);
                let drawn = Drawn::new(&gpu, layout, Path::Octets);
                let sink = stream(&gpu, &trial, move |received| {
                    if received.number % 100 == 99 {
                        drawn.check(&received.frame, received.number);
                    }
                    if received.number == 200 {
                        *seen.lock().unwrap() = resident();
                    }
                });
                let what = format!("{} {upload:?} {transport}", gpu.name());
                let (tiles, submits) = sink.copies();
                assert!((2_250..=3_000).contains(&tiles) && submits <= tiles, "{what}: {tiles}");
                // As many as a client has in progress, and the one that is drawn.
                assert!(sink.device_frames() <= 9, "{what}: {} frames", sink.device_frames());
                let before = *after_some.lock().unwrap();
                if let (Some(before), Some(now)) = (before, resident()) {
                    assert!(now < before + 16_384, "{what}: from {before} KiB to {now}");
                }
            }
        }
        assert_eq!(gpu.first_error(), None, "{}", gpu.name());
    }
    assert_eq!(common::driver_errors(), Vec::<String>::new());
}

/// Draws frames and compares them with the sent ones, decoded by the main processor.
struct Drawn {
    gpu: Gpu,
    shader: FrameDecoder,
    decoder: Decoder,
    picture: Picture,
}

impl Drawn {
    fn new(gpu: &Gpu, layout: Layout, path: Path) -> Self {
        let (format, width, height) = (layout.format(), layout.width(), layout.height());
        Self {
            gpu: gpu.clone(),
            shader: FrameDecoder::with_path(gpu, &layout, PICTURE_FORMAT, path).unwrap(),
            decoder: Decoder::new(format, width, height, Format::Rgba8).unwrap(),
            picture: Picture::new(gpu, width, height),
        }
    }

    fn check(&self, frame: &DeviceFrame, number: u64) {
        let layout = self.decoder.input();
        let mut recorder = self.gpu.recorder();
        let place = Place::exact(layout);
        self.shader.draw(&self.gpu, &mut recorder, frame, self.picture.target(), &place);
        let have = self.picture.read(&self.gpu, recorder).unwrap();
        let mut want = vec![0; self.decoder.output().bytes()];
        self.decoder.decode(&octets_of(layout, number), &mut want).unwrap();
        let (most, worst) = common::worst(&have, &want, layout.width());
        let is_exact = self.shader.path() == Path::Octets;
        let unit = common::texture_unit_tolerance(&self.gpu, layout.format());
        let tolerance = if is_exact { 1 } else { unit };
        assert!(most <= tolerance, "{}: frame {number}: {worst}", self.gpu.name());
    }
}
