//! Frames drawn by the graphics processor equal those that the main processor decodes.
#![allow(clippy::unwrap_used, reason = "a test may")]

mod common;

use rushes_gpu::{DeviceFrame, FrameDecoder, Gpu, PICTURE_FORMAT, Path, Picture, Place};
use rushes_texture::{Colour, ColourRange, Decoder, Format, Layout, Matrix, Siting};

/// Sizes with incomplete blocks and odd strides, with whole blocks, and of one pixel.
const SIZES: [(u32, u32); 6] = [(37, 23), (130, 6), (64, 32), (1, 1), (5, 129), (258, 66)];

const ASTC: [Format; 14] = [
    Format::Astc4x4,
    Format::Astc5x4,
    Format::Astc5x5,
    Format::Astc6x5,
    Format::Astc6x6,
    Format::Astc8x5,
    Format::Astc8x6,
    Format::Astc8x8,
    Format::Astc10x5,
    Format::Astc10x6,
    Format::Astc10x8,
    Format::Astc10x10,
    Format::Astc12x10,
    Format::Astc12x12,
];

/// Returns the sizes for a format: one for ASTC, whose shader takes a second with software
/// drivers.
fn sizes(format: Format) -> &'static [(u32, u32)] {
    if ASTC.contains(&format) { &SIZES[..1] } else { &SIZES }
}

fn decoded(layout: &Layout, octets: &[u8]) -> Vec<u8> {
    let decoder = Decoder::of(*layout, Format::Rgba8).unwrap();
    let mut pixels = vec![0; decoder.output().bytes()];
    decoder.decode(octets, &mut pixels).unwrap();
    pixels
}

fn drawn(gpu: &Gpu, layout: &Layout, octets: &[u8]) -> Vec<u8> {
    let decoder = FrameDecoder::new(gpu, layout, PICTURE_FORMAT).unwrap();
    let frame = DeviceFrame::new(gpu, layout);
    frame.write(gpu, octets);
    let picture = Picture::new(gpu, layout.width(), layout.height());
    let mut recorder = gpu.recorder();
    decoder.draw(gpu, &mut recorder, &frame, picture.target(), &Place::exact(layout));
    picture.read(gpu, recorder).unwrap()
}

#[test]
fn every_format_is_decoded_as_by_the_main_processor() {
    for gpu in common::devices() {
        for format in Format::ALL {
            for &(width, height) in sizes(format) {
                let layout = Layout::new(format, width, height).unwrap();
                let octets = common::noise(&layout);
                let have = drawn(&gpu, &layout, &octets);
                let (most, worst) = common::worst(&have, &decoded(&layout, &octets), width);
                assert!(most <= 1, "{}: {format} {width}×{height}: {worst}", gpu.name());
            }
        }
        assert_eq!(gpu.first_error(), None, "{}", gpu.name());
    }
}

#[test]
fn colours_and_sitings_are_decoded_as_by_the_main_processor() {
    let colour = |matrix, range, siting| Colour { matrix, range, siting, ..Colour::default() };
    let colours = [
        colour(Matrix::Bt601, ColourRange::Limited, Siting::Left),
        colour(Matrix::Bt2020, ColourRange::Full, Siting::TopLeft),
        colour(Matrix::Bt709, ColourRange::Full, Siting::Centre),
    ];
    for gpu in common::devices() {
        for format in [Format::Yuv420, Format::Yuv422] {
            for colour in colours {
                let layout = Layout::new(format, 37, 23).unwrap().with_colour(colour);
                let octets = common::noise(&layout);
                let have = drawn(&gpu, &layout, &octets);
                let (most, worst) = common::worst(&have, &decoded(&layout, &octets), 37);
                assert!(most <= 1, "{}: {format} {colour:?}: {worst}", gpu.name());
            }
        }
        assert_eq!(gpu.first_error(), None, "{}", gpu.name());
    }
}

/// A target of sRGB is given linear light and encodes it to the same display values.
#[test]
fn a_target_of_srgb_has_the_same_octets() {
    for gpu in common::devices() {
        for format in [Format::Rgb24, Format::Yuv420, Format::Bc1, Format::YCoCgBc3] {
            let layout = Layout::new(format, 37, 23).unwrap();
            let octets = common::blocks(&layout);
            let target = wgpu::TextureFormat::Rgba8UnormSrgb;
            let decoder = FrameDecoder::with_path(&gpu, &layout, target, Path::Octets).unwrap();
            let frame = DeviceFrame::new(&gpu, &layout);
            frame.write(&gpu, &octets);
            let picture = Picture::with_format(&gpu, (37, 23), target);
            let mut recorder = gpu.recorder();
            decoder.draw(&gpu, &mut recorder, &frame, picture.target(), &Place::exact(&layout));
            let have = picture.read(&gpu, recorder).unwrap();
            let (most, worst) = common::worst(&have, &decoded(&layout, &octets), 37);
            assert!(most <= 1, "{}: {format}: {worst}", gpu.name());
        }
        assert_eq!(gpu.first_error(), None, "{}", gpu.name());
    }
}

#[test]
fn a_frame_is_fitted_into_a_larger_target_between_black() {
    for gpu in common::devices() {
        let layout = Layout::new(Format::Rgb24, 3, 3).unwrap();
        let frame = DeviceFrame::new(&gpu, &layout);
        frame.write(&gpu, &[200; 27]);
        let decoder = FrameDecoder::new(&gpu, &layout, PICTURE_FORMAT).unwrap();
        let picture = Picture::new(&gpu, 40, 20);
        let mut recorder = gpu.recorder();
        let place = Place::fitted((3, 3), (40, 20));
        decoder.draw(&gpu, &mut recorder, &frame, picture.target(), &place);
        let octets = picture.read(&gpu, recorder).unwrap();
        for (at, pixel) in octets.as_chunks::<4>().0.iter().enumerate() {
            let x = at % 40;
            let want = if (10..30).contains(&x) { [200, 200, 200, 255] } else { [0, 0, 0, 255] };
            assert_eq!(*pixel, want, "{}: {x}, {}", gpu.name(), at / 40);
        }
    }
}

/// Few random ASTC blocks are legal, but all blocks of this test are.
#[test]
fn every_kind_of_astc_block_is_decoded_as_by_the_main_processor() {
    for gpu in common::devices() {
        for format in ASTC {
            let layout = Layout::new(format, 301, 203).unwrap();
            let octets = common::legal_astc(&layout);
            let kinds = octets.as_chunks::<16>().0.iter().map(|block| {
                let one_colour = block[0] == 0xfc && block[1] & 1 == 1;
                (!one_colour).then_some((block[1] >> 3 & 3) + 1)
            });
            for kind in [None, Some(1), Some(2), Some(3), Some(4)] {
                assert!(kinds.clone().any(|found| found == kind), "{format}: partitions {kind:?}");
            }
            let want = decoded(&layout, &octets);
            let pixels = want.as_chunks::<4>().0;
            let magenta = pixels.iter().filter(|&&pixel| pixel == common::MAGENTA).count();
            assert!(magenta < pixels.len() / 100, "{format}: {magenta} pixels of the error colour");
            let have = drawn(&gpu, &layout, &octets);
            let (most, worst) = common::worst(&have, &want, layout.width());
            assert!(most <= 1, "{}: {format}: {worst}", gpu.name());
        }
        assert_eq!(gpu.first_error(), None, "{}", gpu.name());
    }
}
