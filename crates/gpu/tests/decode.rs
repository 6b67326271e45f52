//! Frames drawn by the graphics processor equal those that the main processor decodes.
#![allow(clippy::unwrap_used, reason = "a test may")]

mod common;

use rushes_gpu::{DeviceFrame, FrameDecoder, Gpu, PICTURE_FORMAT, Path, Picture, Place};
use rushes_texture::{
    Colour, ColourHint, ColourRange, Decoder, Format, Layout, Matrix, Primaries, Siting, Transfer,
};

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

/// Returns the light of a value of the perceptual quantiser in cd/m² (BT.2100 table 4).
fn luminance(value: f64) -> f64 {
    let (m1, m2) = (2610.0 / 16384.0, 2523.0 / 4096.0 * 128.0);
    let (c1, c2, c3) = (3424.0 / 4096.0, 2413.0 / 4096.0 * 32.0, 2392.0 / 4096.0 * 32.0);
    let root = value.powf(1.0 / m2);
    10_000.0 * ((root - c1).max(0.0) / (c2 - c3 * root)).powf(1.0 / m1)
}

/// Returns a pixel of HDR as 8-bit sRGB: BT.2390 section 5.4, for light up to 1 000 cd/m² on a display of 203, then
/// the matrix of BT.2407 if its primaries are those of BT.2020.
fn tone_mapped(pixel: [u8; 3], is_wide: bool) -> [f64; 3] {
    let values = pixel.map(|octet| f64::from(octet) / 255.0);
    let brightest = values.iter().copied().fold(0.0, f64::max);
    let (source, target) = (0.751_827, 0.580_689);
    assert!((luminance(source) - 1_000.0).abs() < 0.1 && (luminance(target) - 203.0).abs() < 0.1);
    let (e1, most) = ((brightest / source).min(1.0), target / source);
    let ks = 1.5 * most - 0.5;
    let e2 = if e1 < ks {
        e1
    } else {
        let t = (e1 - ks) / (1.0 - ks);
        let (t2, t3) = (t * t, t * t * t);
        (2.0 * t3 - 3.0 * t2 + 1.0) * ks
            + (t3 - 2.0 * t2 + t) * (1.0 - ks)
            + (3.0 * t2 - 2.0 * t3) * most
    };
    let scale = luminance(e2 * source) / luminance(brightest).max(1e-6) / 203.0;
    let light = values.map(|value| luminance(value) * scale);
    let rows = [[1.6605, -0.5876, -0.0728], [-0.1246, 1.1329, -0.0083], [-0.0182, -0.1006, 1.1187]];
    let narrowed = rows.map(|row: [f64; 3]| row.iter().zip(light).map(|(a, b)| a * b).sum());
    let light: [f64; 3] = if is_wide { narrowed } else { light };
    light.map(|light| {
        let light = light.clamp(0.0, 1.0);
        let curved = 1.055 * light.powf(1.0 / 2.4) - 0.055;
        255.0 * if light <= 0.003_130_8 { 12.92 * light } else { curved }
    })
}

#[test]
fn hdr_is_tone_mapped_for_displays_of_standard_range() {
    // All greys, then colours.
    let greys = (0..=255).map(|value| [value; 3]);
    let colour = |at: u32| [0, 8, 16].map(|shift| (at.wrapping_mul(2_654_435_761) >> shift) as u8);
    let pixels: Vec<[u8; 3]> = greys.chain((0..768).map(colour)).collect();
    for gpu in common::devices() {
        for (primaries, target) in [
            (Primaries::Bt2020, PICTURE_FORMAT),
            (Primaries::Bt709, PICTURE_FORMAT),
            (Primaries::Bt2020, wgpu::TextureFormat::Rgba8UnormSrgb),
        ] {
            let colour = Colour { transfer: Transfer::Pq, primaries, ..Colour::default() };
            let layout = Layout::new(Format::Rgb24, 32, 32).unwrap().with_colour(colour);
            let frame = DeviceFrame::new(&gpu, &layout);
            frame.write(&gpu, pixels.as_flattened());
            let decoder = FrameDecoder::new(&gpu, &layout, target).unwrap();
            let picture = Picture::with_format(&gpu, (32, 32), target);
            let mut recorder = gpu.recorder();
            decoder.draw(&gpu, &mut recorder, &frame, picture.target(), &Place::exact(&layout));
            let have = picture.read(&gpu, recorder).unwrap();
            for (have, pixel) in have.as_chunks::<4>().0.iter().zip(&pixels) {
                let expected = tone_mapped(*pixel, primaries == Primaries::Bt2020);
                let off = have.iter().zip(expected).map(|(a, b)| (f64::from(*a) - b).abs());
                let context = || format!("{}: {pixel:?} {expected:?} {have:?}", gpu.name());
                assert!(off.fold(0.0, f64::max) < 2.0, "{}", context());
            }
            // Light below the knee is as on any display, and the brightest is white.
            assert_eq!(have[..4], [0, 0, 0, 255]);
            assert!(have[4 * 112].abs_diff(135) <= 1 && have[4 * 192] == 255, "{}", have[4 * 112]);
        }
        assert_eq!(gpu.first_error(), None, "{}", gpu.name());
    }
}

/// HDR10 films are YUV: the picture is that of the RGB that they stand for.
#[test]
fn hdr_of_yuv_is_tone_mapped_as_its_rgb_is() {
    let hint = ColourHint { transfer: Some(Transfer::Pq), ..ColourHint::default() };
    let colour = Colour::of_file(32, hint);
    assert_eq!((colour.matrix, colour.primaries), (Matrix::Bt2020, Primaries::Bt2020));
    for format in [Format::Yuv420, Format::Yuv422] {
        let layout = Layout::new(format, 64, 32).unwrap().with_colour(colour);
        // Each plane is a ramp of its own: chroma stays near grey.
        let mut octets = vec![0; layout.bytes()];
        for (plane, (from, to)) in layout.planes().iter().zip([(16, 235), (100, 156), (156, 100)]) {
            let end = plane.offset + plane.row_bytes * plane.rows as usize;
            let values = &mut octets[plane.offset..end];
            let last = values.len() - 1;
            for (at, value) in values.iter_mut().enumerate() {
                *value = ((from * (last - at) + to * at) / last) as u8;
            }
        }
        // The values as they are.
        let pixels = decoded(&layout, &octets);
        for gpu in common::devices() {
            let have = drawn(&gpu, &layout, &octets);
            for (have, pixel) in have.as_chunks::<4>().0.iter().zip(pixels.as_chunks::<4>().0) {
                let expected = tone_mapped([pixel[0], pixel[1], pixel[2]], true);
                let off = have.iter().zip(expected).map(|(a, b)| (f64::from(*a) - b).abs());
                // The shader tone-maps before R'G'B' is rounded: where the curve is steep, half a value is more.
                let context =
                    || format!("{format} {}: {pixel:?} {expected:?} {have:?}", gpu.name());
                assert!(off.fold(0.0, f64::max) < 4.0, "{}", context());
            }
            assert_eq!(gpu.first_error(), None, "{}", gpu.name());
        }
    }
}

#[test]
fn colours_of_bt2020_are_shown_on_displays_of_bt709() {
    let colour = Colour { primaries: Primaries::Bt2020, ..Colour::default() };
    let layout = Layout::new(Format::Rgb24, 4, 1).unwrap().with_colour(colour);
    for gpu in common::devices() {
        let octets = [200, 200, 200, 0, 255, 0, 128, 64, 64, 255, 0, 0];
        let have = drawn(&gpu, &layout, &octets);
        // Greys stay; what BT.709 does not have is its most saturated colour.
        let expected = [[200, 200, 200], [0, 255, 0], [154, 49, 62], [255, 0, 0]];
        for (have, expected) in have.as_chunks::<4>().0.iter().zip(expected) {
            let off = have.iter().zip(expected).map(|(a, b)| a.abs_diff(b)).max();
            assert!(off <= Some(1), "{}: {have:?} {expected:?}", gpu.name());
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
