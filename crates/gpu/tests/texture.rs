//! Frames decoded by the texture unit equal those that the main processor decodes.
#![allow(clippy::unwrap_used, reason = "a test may")]

mod common;

use rushes_gpu::{DeviceFrame, FrameDecoder, Gpu, PICTURE_FORMAT, Path, Picture, Place};
use rushes_texture::{Decoder, Encoder, Format, Layout};

/// Sizes with incomplete blocks, with rows that are not aligned, and with aligned rows.
const SIZES: [(u32, u32); 4] = [(37, 23), (1, 1), (258, 67), (128, 64)];

fn decoded(layout: &Layout, octets: &[u8]) -> Vec<u8> {
    let (width, height) = (layout.width(), layout.height());
    let decoder = Decoder::new(layout.format(), width, height, Format::Rgba8).unwrap();
    let mut pixels = vec![0; decoder.output().bytes()];
    decoder.decode(octets, &mut pixels).unwrap();
    pixels
}

fn drawn(gpu: &Gpu, decoder: &FrameDecoder, frame: &DeviceFrame) -> Vec<u8> {
    let layout = decoder.layout();
    let picture = Picture::new(gpu, layout.width(), layout.height());
    let mut recorder = gpu.recorder();
    decoder.draw(gpu, &mut recorder, frame, picture.target(), &Place::exact(layout));
    picture.read(gpu, recorder).unwrap()
}

#[test]
fn blocks_are_decoded_as_by_the_main_processor() {
    let mut formats = 0;
    for gpu in common::devices() {
        for format in Format::ALL {
            for (width, height) in SIZES {
                let layout = Layout::new(format, width, height).unwrap();
                if !Path::Texture.is_supported(&gpu, &layout) {
                    let path = Path::Texture;
                    FrameDecoder::with_path(&gpu, &layout, PICTURE_FORMAT, path).unwrap_err();
                    DeviceFrame::with_path(&gpu, &layout, path).unwrap_err();
                    continue;
                }
                formats += 1;
                let decoder =
                    FrameDecoder::with_path(&gpu, &layout, PICTURE_FORMAT, Path::Texture).unwrap();
                let octets = common::blocks(&layout);
                let frame = decoder.frame(&gpu).unwrap();
                frame.write(&gpu, &octets);
                let have = drawn(&gpu, &decoder, &frame);
                let (most, worst) = common::worst(&have, &decoded(&layout, &octets), width);
                let within = most <= common::texture_unit_tolerance(&gpu, format);
                assert!(within, "{}: {format} {width}×{height}: {worst}", gpu.name());
            }
        }
        assert_eq!(gpu.first_error(), None, "{}", gpu.name());
        assert_eq!(common::driver_errors(), Vec::<String>::new());
    }
    let tried = common::devices().len();
    assert!(formats >= 3 * SIZES.len() * tried, "only {formats}: every device must support BC");
}

/// Returns a smooth picture with some grain, as RGBA.
fn picture(width: u32, height: u32) -> Vec<u8> {
    let grain = common::noise(&Layout::new(Format::Rgba8, width, height).unwrap());
    let pixels = (0..width * height).zip(grain.as_chunks::<4>().0);
    let pixel = |(at, grain): (u32, &[u8; 4])| {
        let (x, y) = (at % width, at / width);
        let level = |value: u32, grain: u8| (value % 256 / 2 + 40) as u8 + grain % 16;
        [level(x, grain[0]), level(x + y, grain[1]), level(y * 2, grain[2]), 255]
    };
    pixels.flat_map(pixel).collect()
}

/// Returns the PSNR of the colours without alpha, in decibels.
fn psnr(have: &[u8], want: &[u8]) -> f64 {
    let pairs = have.as_chunks::<4>().0.iter().zip(want.as_chunks::<4>().0);
    let squares = pairs.flat_map(|(have, want)| [0, 1, 2].map(|at| have[at].abs_diff(want[at])));
    let squares: Vec<f64> = squares.map(|one| f64::from(one).powi(2)).collect();
    let mean = squares.iter().sum::<f64>() / squares.len() as f64;
    10.0 * (255.0_f64.powi(2) / mean).log10()
}

#[test]
fn a_picture_is_as_good_by_either_path() {
    let (width, height) = (256, 128);
    let original = picture(width, height);
    for gpu in common::devices() {
        for format in [Format::Bc1, Format::YCoCgBc3] {
            let encoder = Encoder::new(Format::Rgba8, format, width, height).unwrap();
            let mut octets = vec![0; encoder.output().bytes()];
            encoder.encode(&original, &mut octets).unwrap();
            let layout = *encoder.output();
            let [by_octets, by_texture] = [Path::Octets, Path::Texture].map(|path| {
                let decoder = FrameDecoder::with_path(&gpu, &layout, PICTURE_FORMAT, path).unwrap();
                let frame = decoder.frame(&gpu).unwrap();
                frame.write(&gpu, &octets);
                psnr(&drawn(&gpu, &decoder, &frame), &original)
            });
            println!(
                "{}: {format}: {by_octets:.3} dB by the shader, {by_texture:.3} by the texture unit",
                gpu.name()
            );
            // Mesa's software drivers round down more often than up.
            let apart = (by_octets - by_texture).abs();
            assert!(by_octets > 25.0, "{}: {format}: {by_octets} dB", gpu.name());
            assert!(apart < 0.15, "{}: {format}: {by_octets} and {by_texture} dB", gpu.name());
        }
    }
}
