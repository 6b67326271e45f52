//! Devices and test frames that the tests of this crate share.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "each test uses only some items"
)]

#[path = "../../../../interop/skipped.rs"]
pub(crate) mod skipped;

use std::sync::{Mutex, PoisonError};

use rushes_gpu::{Gpu, GpuOptions, Interface};
use rushes_texture::{Decoder, Format, Layout};

/// Returns the devices of this machine, with both interfaces.
///
/// Fails without devices if the tests with other programs are required.
pub(crate) fn devices() -> Vec<Gpu> {
    let _ = log::set_logger(&LISTENER);
    log::set_max_level(log::LevelFilter::Warn);
    let open = |interface| {
        let before = driver_errors().len();
        let gpu = Gpu::open(GpuOptions { interface, validate: true });
        match gpu {
            Ok(gpu) => Some(gpu),
            Err(error) => {
                let packages =
                    "mesa-vulkan-drivers vulkan-validationlayers libegl1 libgl1-mesa-dri";
                skipped::missing(format!("{interface:?}: {error}"), packages);
                // Messages about a device that is not used do not count.
                LISTENER.0.lock().unwrap_or_else(PoisonError::into_inner).truncate(before);
                None
            }
        }
    };
    [Interface::Vulkan, Interface::Gl].into_iter().filter_map(open).collect()
}

/// Returns the maximum difference between colours of a texture unit and of the main processor.
///
/// Texture units interpolate values of 5 or 6 bits, or of 8 after expansion, with or without
/// rounding; NVIDIA's use 5/16 for a third. For `YCoCg` this affects both luma and chroma.
pub(crate) fn texture_unit_tolerance(gpu: &Gpu, format: Format) -> u8 {
    let (software, device) = match format {
        Format::Bc1 | Format::Bc3 => (2, 8),
        Format::YCoCgBc3 => (4, 14),
        _ => (1, 2),
    };
    if gpu.is_software() { software } else { device }
}

/// Returns deterministic pseudo-random bytes, which are a valid frame.
pub(crate) fn noise(layout: &Layout) -> Vec<u8> {
    chance(layout.bytes() as u64).take(layout.bytes()).collect()
}

fn chance(seed: u64) -> impl Iterator<Item = u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64 ^ seed;
    std::iter::from_fn(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        Some((state >> 32) as u8)
    })
}

/// Returns a frame of pseudo-random blocks that all decoders decode equally.
///
/// Blocks of ASTC are legal, those of ETC1 do not overflow, and those of `YCoCg` have one scale.
pub(crate) fn blocks(layout: &Layout) -> Vec<u8> {
    let format = layout.format();
    if format.name().starts_with("astc") {
        return legal_astc(layout);
    }
    let mut octets = noise(layout);
    if format == Format::Etc1 {
        for block in octets.as_chunks_mut::<8>().0 {
            for channel in &mut block[..3] {
                // Differences range from -4 to 3.
                *channel = (*channel >> 3).clamp(4, 28) << 3 | *channel & 7;
            }
        }
    }
    if format == Format::YCoCgBc3 {
        for block in octets.as_chunks_mut::<16>().0 {
            let scale = [0, 1, 3, 3][usize::from(block[8] & 3)];
            for end in [8, 10] {
                block[end] = block[end] & 0xe0 | scale;
            }
        }
    }
    octets
}

/// Returns a frame of pseudo-random legal ASTC blocks, a few of which have a single colour.
pub(crate) fn legal_astc(layout: &Layout) -> Vec<u8> {
    const TRIED: usize = 256;
    let block = layout.format().planes()[0].block;
    let (width, height) = (block.width * TRIED as u32, block.height);
    let decoder = Decoder::new(layout.format(), width, height, Format::Rgba8).unwrap();
    let mut chance = chance(layout.bytes() as u64);
    let mut pixels = vec![0; decoder.output().bytes()];
    let mut legal = Vec::new();
    while legal.len() < layout.bytes() {
        let mut tried: Vec<u8> = chance.by_ref().take(TRIED * 16).collect();
        for one_colour in tried.chunks_exact_mut(16).step_by(64) {
            one_colour[..8].copy_from_slice(&[0xfc, 0xfd, 255, 255, 255, 255, 255, 255]);
        }
        decoder.decode(&tried, &mut pixels).unwrap();
        let first_pixels = pixels.chunks_exact(block.width as usize * 4);
        for (block, pixels) in tried.chunks_exact(16).zip(first_pixels) {
            if pixels.as_chunks::<4>().0.iter().any(|&pixel| pixel != MAGENTA) {
                legal.extend_from_slice(block);
            }
        }
    }
    legal.truncate(layout.bytes());
    legal
}

/// The colour of illegal ASTC blocks.
pub(crate) const MAGENTA: [u8; 4] = [255, 0, 255, 255];

/// Returns the greatest difference between two pictures of a width, and a description of its pixel.
pub(crate) fn worst(have: &[u8], want: &[u8], width: u32) -> (u8, String) {
    assert_eq!(have.len(), want.len());
    let differences = have.iter().zip(want).map(|(have, want)| have.abs_diff(*want));
    let (at, most) =
        differences.enumerate().max_by_key(|&(at, most)| (most, usize::MAX - at)).unwrap();
    let pixel = at / 4;
    let (x, y) = (pixel % width as usize, pixel / width as usize);
    let [have, want] = [have, want].map(|octets| &octets[pixel * 4..][..4]);
    (most, format!("{most} at ({x}, {y}): {have:?}, not {want:?}"))
}

/// Collects the messages of validation layers about calls that reach a driver.
struct Listener(Mutex<Vec<String>>);

static LISTENER: Listener = Listener(Mutex::new(Vec::new()));

impl log::Log for Listener {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        let is_relevant =
            record.level() <= log::Level::Error || record.target().contains("validation");
        let text = format!("{}: {}", record.target(), record.args());
        // Machines without a graphics processor report this while a device is searched for.
        let is_search = text.contains("eglInitialize");
        if is_relevant && !is_search && record.target().starts_with("wgpu") {
            // Printed for tests that fail for another reason.
            eprintln!("{text}");
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(text);
        }
    }

    fn flush(&self) {}
}

/// Returns the errors that drivers and their validation layers have reported so far.
pub(crate) fn driver_errors() -> Vec<String> {
    LISTENER.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
}
