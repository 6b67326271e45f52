//! Formats that only the graphics processor encodes: decoded frames are close to the original.
#![allow(clippy::unwrap_used, reason = "a test may")]

mod common;
#[path = "common/content.rs"]
mod content;

use rushes_gpu::{Gpu, GpuEncoder};
use rushes_texture::{Decoder, Encoder, Format, Layout, metric};

use content::{CONTENTS, Content, encoded, picture};

const FORMATS: [Format; 3] = [Format::Etc1, Format::Etc2Rgb, Format::Astc4x4];

fn frame(gpu: &Gpu, format: Format, size: (u32, u32), picture: &[u8]) -> Vec<u8> {
    encoded(&mut GpuEncoder::new(gpu, format, size.0, size.1).unwrap(), picture, 7)
}

fn decoded(format: Format, size: (u32, u32), frame: &[u8]) -> Vec<u8> {
    let decoder = Decoder::new(format, size.0, size.1, Format::Rgba8).unwrap();
    let mut picture = vec![0; decoder.output().bytes()];
    decoder.decode(frame, &mut picture).unwrap();
    picture
}

/// Returns the PSNR of a picture after encoding and decoding, in decibels.
fn nearness(gpu: &Gpu, format: Format, size: (u32, u32), picture: &[u8]) -> f64 {
    metric::psnr_rgb(&decoded(format, size, &frame(gpu, format, size, picture)), picture)
}

/// Returns a picture that is one block wide, with the blocks one below the other.
fn column(blocks: &[[[u8; 4]; 16]]) -> ((u32, u32), Vec<u8>) {
    ((4, 4 * blocks.len() as u32), blocks.as_flattened().as_flattened().to_vec())
}

/// Returns pseudo-random colours.
fn colours(count: u32) -> Vec<[u8; 4]> {
    let octets = common::noise(&Layout::new(Format::Rgba8, count, 1).unwrap());
    octets.as_chunks().0.iter().map(|&[red, green, blue, _]| [red, green, blue, 255]).collect()
}

#[test]
fn the_pattern_is_nearer_than_bc1_has_it() {
    let size = (640, 360);
    let layout = Layout::new(Format::Rgba8, size.0, size.1).unwrap();
    let picture = picture(Content::Pattern, &layout);
    let bc1 = Encoder::new(Format::Rgba8, Format::Bc1, size.0, size.1).unwrap();
    let mut octets = vec![0; bc1.output().bytes()];
    bc1.encode(&picture, &mut octets).unwrap();
    let bc1 = metric::psnr_rgb(&decoded(Format::Bc1, size, &octets), &picture);
    for gpu in common::devices() {
        for format in FORMATS {
            let own = nearness(&gpu, format, size, &picture);
            assert!(own > bc1 + 5.0, "{}: {format}: {own:.2} dB, BC1 {bc1:.2}", gpu.name());
        }
        assert_eq!(gpu.first_error(), None, "{}", gpu.name());
    }
}

#[test]
fn even_noise_is_a_little_like_itself() {
    let size = (128, 128);
    let layout = Layout::new(Format::Rgba8, size.0, size.1).unwrap();
    let [noise, faint] = [Content::Noise, Content::Faint].map(|content| picture(content, &layout));
    for gpu in common::devices() {
        for format in FORMATS {
            for (picture, least) in [(&noise, 13.0), (&faint, 29.5)] {
                let own = nearness(&gpu, format, size, picture);
                assert!(own > least, "{}: {format}: {own:.2} dB, not {least}", gpu.name());
            }
        }
        assert_eq!(gpu.first_error(), None, "{}", gpu.name());
    }
}

/// Pads the picture on the right and at the bottom with its last pixels.
fn padded(picture: &[u8], size: (u32, u32), whole: (u32, u32)) -> Vec<u8> {
    let pixels = picture.as_chunks::<4>().0;
    let at = |x: u32, y: u32| pixels[(y.min(size.1 - 1) * size.0 + x.min(size.0 - 1)) as usize];
    (0..whole.1).flat_map(|y| (0..whole.0).flat_map(move |x| at(x, y))).collect()
}

#[test]
fn devices_agree_and_repeat_the_edge_pixels() {
    let mut before: Option<Vec<Vec<u8>>> = None;
    for gpu in common::devices() {
        let mut frames = Vec::new();
        for format in FORMATS {
            for size in [(5, 7), (37, 23)] {
                let layout = Layout::new(Format::Rgba8, size.0, size.1).unwrap();
                let whole = (size.0.next_multiple_of(4), size.1.next_multiple_of(4));
                let [mut cut, mut uncut] = [size, whole]
                    .map(|size| GpuEncoder::new(&gpu, format, size.0, size.1).unwrap());
                for content in CONTENTS {
                    let picture = picture(content, &layout);
                    let frame = encoded(&mut cut, &picture, 7);
                    let want = encoded(&mut uncut, &padded(&picture, size, whole), 7);
                    assert_eq!(frame, want, "{}: {format} {size:?} {content:?}", gpu.name());
                    frames.push(frame);
                }
            }
        }
        assert!(before.as_ref().is_none_or(|before| *before == frames), "{}", gpu.name());
        before = Some(frames);
        assert_eq!(gpu.first_error(), None, "{}", gpu.name());
    }
}

/// Returns blocks of one or two colours; `second` selects the pixels with the second colour.
fn paired(second: impl Fn(usize, usize) -> bool) -> ((u32, u32), Vec<u8>) {
    let colours = colours(512);
    let pairs = colours.windows(2).enumerate();
    let block = |(which, pair): (usize, &[[u8; 4]])| {
        std::array::from_fn(|pixel| pair[usize::from(second(which, pixel))])
    };
    column(&pairs.map(block).collect::<Vec<_>>())
}

/// Returns the greatest change of a channel of any pixel.
fn worst(gpu: &Gpu, format: Format, (size, picture): &((u32, u32), Vec<u8>)) -> (u8, String) {
    let have = decoded(format, *size, &frame(gpu, format, *size, picture));
    let (most, worst) = common::worst(&have, picture, 4);
    (most, format!("{}: {format}: {worst}", gpu.name()))
}

#[test]
fn astc_keeps_blocks_of_one_or_two_colours() {
    // Each block has the second colour in different pixels, the first block in none.
    let blocks = paired(|which, pixel| (which * 40_503) >> pixel & 1 == 1);
    for gpu in common::devices() {
        let (most, description) = worst(&gpu, Format::Astc4x4, &blocks);
        assert_eq!(most, 0, "{description}");
        assert_eq!(gpu.first_error(), None, "{}", gpu.name());
    }
}

#[test]
fn etc_keeps_the_colours_of_whole_blocks_and_halves() {
    let whole = paired(|_, _| false);
    let beside = paired(|_, pixel| pixel % 4 > 1);
    let above = paired(|_, pixel| pixel > 7);
    for gpu in common::devices() {
        // Planes have six bits for red and blue and seven for green, so that the sum of squares is
        // at most 9; halves have five or four bits per channel, and all channels change together.
        let cases = [
            (Format::Etc2Rgb, &whole, 3),
            (Format::Etc1, &whole, 6),
            (Format::Etc1, &beside, 12),
            (Format::Etc1, &above, 12),
            (Format::Etc2Rgb, &beside, 12),
            (Format::Etc2Rgb, &above, 12),
        ];
        for (format, blocks, allowed) in cases {
            let (most, description) = worst(&gpu, format, blocks);
            assert!(most <= allowed, "{description}");
        }
        assert_eq!(gpu.first_error(), None, "{}", gpu.name());
    }
}

#[test]
fn etc_has_all_eight_pairs_of_amounts() {
    let amounts =
        [(2, 8), (5, 17), (9, 29), (13, 42), (18, 60), (24, 80), (33, 106), (47, 183_i32)];
    // 132 is step 16 of 31. It is the mean of each half, or close to it where values are clamped.
    let block = |(near, far): (i32, i32)| {
        let steps = [near, -near, far, -far, -near, near, -far, far];
        let level = |at: usize| u8::try_from((132 + steps[at % 8]).clamp(0, 255)).unwrap();
        std::array::from_fn(|pixel| [level(pixel), level(pixel), level(pixel), 255])
    };
    let blocks = column(&amounts.map(block));
    for gpu in common::devices() {
        for format in [Format::Etc1, Format::Etc2Rgb] {
            let (most, description) = worst(&gpu, format, &blocks);
            assert_eq!(most, 0, "{description}");
        }
        assert_eq!(gpu.first_error(), None, "{}", gpu.name());
    }
}

/// Returns the squared differences of each block of a picture that is one block wide.
fn errors(have: &[u8], want: &[u8]) -> Vec<u32> {
    let blocks = have.as_chunks::<64>().0.iter().zip(want.as_chunks::<64>().0);
    let squares = |(have, want): (&[u8; 64], &[u8; 64])| {
        let differences = have.iter().zip(want).enumerate().filter(|(at, _)| at % 4 != 3);
        differences.map(|(_, (have, want))| u32::from(have.abs_diff(*want)).pow(2)).sum()
    };
    blocks.map(squares).collect()
}

#[test]
fn no_block_of_etc2_is_farther_than_that_of_etc1() {
    let size = (4, 4096);
    let layout = Layout::new(Format::Rgba8, size.0, size.1).unwrap();
    for gpu in common::devices() {
        for content in [Content::Noise, Content::Faint, Content::Gradient] {
            let picture = picture(content, &layout);
            let [one, two] = [Format::Etc1, Format::Etc2Rgb].map(|format| {
                errors(&decoded(format, size, &frame(&gpu, format, size, &picture)), &picture)
            });
            let pairs = one.iter().zip(&two).enumerate();
            for (at, (one, two)) in pairs.clone() {
                assert!(two <= one, "{}: {content:?}: block {at}: {two} > {one}", gpu.name());
            }
            let nearer = pairs.filter(|(_, (one, two))| two < one).count();
            assert!(nearer > 0, "{}: {content:?}: no block is a plane", gpu.name());
        }
        assert_eq!(gpu.first_error(), None, "{}", gpu.name());
    }
}
