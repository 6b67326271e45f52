//! ASTC from the graphics processor: every mode that its encoder uses, and the quality.
#![allow(clippy::unwrap_used, clippy::cast_sign_loss, reason = "a test may")]

mod common;
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "common/content.rs"]
mod content;
#[allow(clippy::duplicate_mod, reason = "pictures for tests of two crates")]
#[path = "../../texture/tests/quality/picture.rs"]
mod photograph;

use std::collections::{BTreeMap, BTreeSet};

use rushes_gpu::GpuEncoder;
use rushes_texture::{Decoder, Format, Layout, metric};

use content::{Content, encoded, picture};

/// The weights of each number of levels, as the specification expands them.
const WEIGHTS: [&[u32]; 7] = [
    &[0, 5, 11, 17, 23, 28, 36, 41, 47, 53, 59, 64],
    &[0, 4, 8, 12, 17, 21, 25, 29, 35, 39, 43, 47, 52, 56, 60, 64],
    &[0, 3, 6, 9, 13, 16, 19, 23, 26, 29, 35, 38, 41, 45, 48, 51, 55, 58, 61, 64],
    &[0, 2, 5, 8, 11, 13, 16, 19, 22, 24, 27, 30, 34, 37, 40, 42, 45, 48, 51, 53, 56, 59, 62, 64],
    &[
        0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 34, 36, 38, 40, 42, 44, 46, 48,
        50, 52, 54, 56, 58, 60, 62, 64,
    ],
    &[0, 16, 32, 48, 64],
    &[0, 32, 64],
];

/// Returns the weights of this many levels.
fn weights(levels: usize) -> &'static [u32] {
    WEIGHTS.into_iter().find(|weights| weights.len() == levels).unwrap()
}

/// What a block's first bits say.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Kind {
    levels: usize,
    /// The channel of the second plane.
    own: Option<u32>,
    /// The number of the division into two partitions.
    division: Option<u32>,
    grey: bool,
}

impl Kind {
    fn line(levels: usize, grey: bool) -> Self {
        Self { levels, own: None, division: None, grey }
    }

    fn of(block: u128) -> Self {
        let field = |at: u32, bits: u32| (block >> at) as u32 & ((1 << bits) - 1);
        let levels = match field(0, 11) {
            0x251 => 12,
            0x242 => 16,
            0x252 => 20,
            0x243 => 24,
            0x253 => 32,
            0x452 => 5,
            0x051 => 3,
            mode => panic!("the encoder has no mode {mode:#x}"),
        };
        // 32 weights of five levels take 75 bits.
        let own = (levels == 5).then(|| field(51, 2));
        let two = field(11, 2) == 1;
        let colours = if two { field(23, 6) >> 2 } else { field(13, 4) };
        assert!(colours == 8 || colours == 0, "endpoint mode {colours}");
        Self { levels, own, division: two.then(|| field(13, 10)), grey: colours == 0 }
    }
}

/// Returns what a decoder makes of two ends and a weight, which the specification rounds to 16 bits.
fn mixed(first: u32, second: u32, weight: u32) -> u8 {
    let wide = (first * 257 * (64 - weight) + second * 257 * weight + 32) >> 6;
    ((wide * 255 + 32_768) >> 16) as u8
}

/// Returns pseudo-random levels of some pixels, of which the least and the greatest occur.
fn levels(random: &mut impl Iterator<Item = u8>, count: usize, levels: usize) -> Vec<usize> {
    let mut all: Vec<usize> = random.take(count).map(|octet| usize::from(octet) % levels).collect();
    all[0] = 0;
    all[count - 1] = if count > 1 { levels - 1 } else { 0 };
    let turn = usize::from(random.next().unwrap()) % count;
    all.rotate_left(turn);
    all
}

/// Four pixels of the colour of illegal blocks.
const ILLEGAL: [u8; 16] = [255, 0, 255, 255, 255, 0, 255, 255, 255, 0, 255, 255, 255, 0, 255, 255];

type Pixels = [[u8; 4]; 16];

/// Returns a block whose pixels are on a line.
fn on_line(random: &mut impl Iterator<Item = u8>, ends: [[u32; 3]; 2], count: usize) -> Pixels {
    let levels = levels(random, 16, count);
    std::array::from_fn(|pixel| {
        let weight = weights(count)[levels[pixel]];
        let [red, green, blue] =
            std::array::from_fn(|channel| mixed(ends[0][channel], ends[1][channel], weight));
        [red, green, blue, 255]
    })
}

/// Returns a block of which each partition is on a line.
fn on_two_lines(
    random: &mut impl Iterator<Item = u8>,
    second: u32,
    ends: [[[u32; 3]; 2]; 2],
    count: usize,
) -> Pixels {
    let mut out = [[255; 4]; 16];
    for (partition, ends) in ends.into_iter().enumerate() {
        let members: Vec<usize> =
            (0..16).filter(|pixel| (second >> pixel & 1) as usize == partition).collect();
        let levels = levels(random, members.len(), count);
        for (pixel, level) in members.into_iter().zip(levels) {
            for channel in 0..3 {
                let weight = weights(count)[level];
                out[pixel][channel] = mixed(ends[0][channel], ends[1][channel], weight);
            }
        }
    }
    out
}

/// Returns a picture that is one block wide, with the blocks one below the other.
fn column(blocks: &[Pixels]) -> ((u32, u32), Vec<u8>) {
    ((4, 4 * blocks.len() as u32), blocks.as_flattened().as_flattened().to_vec())
}

fn decoded(size: (u32, u32), frame: &[u8]) -> Vec<u8> {
    let decoder = Decoder::new(Format::Astc4x4, size.0, size.1, Format::Rgba8).unwrap();
    let mut picture = vec![0; decoder.output().bytes()];
    decoder.decode(frame, &mut picture).unwrap();
    picture
}

/// Checks that blocks of each kind are encoded in it, without errors.
///
/// Up to a fifth of a kind may be encoded otherwise or with small errors, since the encoder estimates
/// ends from pixels that were rounded.
fn assert_exact(blocks: &[(Kind, Pixels)]) {
    let pixels: Vec<Pixels> = blocks.iter().map(|&(_, pixels)| pixels).collect();
    let (size, picture) = column(&pixels);
    for gpu in common::devices() {
        let mut encoder = GpuEncoder::new(&gpu, Format::Astc4x4, size.0, size.1).unwrap();
        let frame = encoded(&mut encoder, &picture, 68);
        let found = decoded(size, &frame);
        let mut exact: BTreeMap<(usize, Option<u32>, bool), (u32, u32)> = BTreeMap::new();
        for (at, block) in frame.as_chunks::<16>().0.iter().enumerate() {
            let kind = Kind::of(u128::from_le_bytes(*block));
            let (wanted, pixels) = blocks[at];
            let pairs = found[64 * at..][..64].iter().zip(pixels.as_flattened());
            let most = pairs.map(|(found, wanted)| found.abs_diff(*wanted)).max().unwrap();
            assert!(most <= 6, "{}: block {at}: {most} in {kind:?}, not {wanted:?}", gpu.name());
            let counts = exact.entry((wanted.levels, wanted.own, wanted.grey)).or_default();
            counts.0 += u32::from(kind == wanted && most == 0);
            counts.1 += 1;
        }
        for (kind, (exact, all)) in exact {
            assert!(5 * exact >= 4 * all, "{}: {exact} of {all} in {kind:?}", gpu.name());
        }
        assert_eq!(gpu.first_error(), None, "{}", gpu.name());
    }
}

fn random() -> impl Iterator<Item = u8> {
    common::noise(&Layout::new(Format::Rgba8, 512, 512).unwrap()).into_iter()
}

/// Returns the corner of the cube of colours that these bits are for.
fn corner(bits: u32) -> [u32; 3] {
    [0, 1, 2].map(|channel| 255 * (bits >> channel & 1))
}

#[test]
fn lines_are_exact_with_every_number_of_levels() {
    let mut random = random();
    let mut blocks = Vec::new();
    for levels in [16, 20, 24, 32] {
        for bits in (0..8).cycle().take(96) {
            // Black and white alone are grey.
            let grey = bits == 0 || bits == 7;
            let ends = [corner(bits), corner(7 - bits)];
            blocks.push((Kind::line(levels, grey), on_line(&mut random, ends, levels)));
        }
    }
    for shade in 0..96 {
        // Short lines have few levels and ends of eight bits.
        let ends = [[shade, shade + 60, 90], [shade + 23, shade + 83, 113]];
        blocks.push((Kind::line(12, false), on_line(&mut random, ends, 12)));
        // A single grey.
        blocks.push((Kind::line(12, true), [[shade as u8, shade as u8, shade as u8, 255]; 16]));
    }
    assert_exact(&blocks);
}

#[test]
fn a_channel_with_weights_of_its_own_is_exact() {
    let mut random = random();
    let mut blocks = Vec::new();
    for own in [0, 1, 2].into_iter().cycle().take(192) {
        let kind = Kind { own: Some(own), ..Kind::line(5, false) };
        let [first, second] =
            [[corner(0), corner(7)], [corner(1), corner(6)]][usize::from(blocks.len() % 2 == 1)];
        let mut pixels = on_line(&mut random, [first, second], 5);
        let beside = on_line(&mut random, [corner(0), corner(7)], 5);
        for (pixel, beside) in pixels.iter_mut().zip(beside) {
            pixel[own as usize] = beside[own as usize];
        }
        blocks.push((kind, pixels));
    }
    assert_exact(&blocks);
}

/// Returns the divisions that the shader knows: masks of the second partition, and their numbers.
fn divisions() -> Vec<(u32, u32)> {
    let shader = include_str!("../src/encode/astc_partition.wgsl");
    let (_, list) = shader.split_once("fn divisions_like").unwrap();
    let numbers = list.split("vec4<u32>(0x").skip(1).flat_map(|four| {
        four.split(')')
            .next()
            .unwrap()
            .split(", 0x")
            .map(|digits| u32::from_str_radix(digits.trim_end_matches('u'), 16).unwrap())
    });
    numbers.map(|packed| (packed & 0xffff, packed >> 16)).collect()
}

/// Returns whether a pixel is in the second of two partitions, by the hash of section C.2.21.
fn is_second(division: u32, x: u32, y: u32) -> bool {
    let seed = division + 1024;
    let mut hash = seed;
    hash ^= hash >> 15;
    hash = hash.wrapping_mul(0xeede_0891);
    hash ^= hash >> 5;
    hash = hash.wrapping_add(hash << 16);
    hash ^= hash >> 7;
    hash ^= hash >> 3;
    hash ^= hash << 6;
    hash ^= hash >> 17;
    let other = if seed & 2 != 0 { 4 } else { 5 };
    let [across, down] = if seed & 1 != 0 { [other, 5] } else { [5, other] };
    let part = |at: u32, shift: u32| (hash >> at & 15).pow(2) >> shift;
    let place = |first: u32, offset: u32| {
        (part(first, across) * 2 * x + part(first + 4, down) * 2 * y + (hash >> offset)) & 63
    };
    place(8, 10) > place(0, 14)
}

#[test]
fn masks_of_divisions_are_those_of_decoders() {
    let divisions = divisions();
    assert_eq!(divisions.len(), 64);
    for (mask, number) in divisions {
        let wanted = (0..16).filter(|at| is_second(number, at % 4, at / 4));
        assert_eq!(mask, wanted.map(|at| 1 << at).sum::<u32>(), "division {number}");
    }
}

#[test]
fn two_lines_are_exact_in_every_division() {
    let mut random = random();
    let mut blocks = Vec::new();
    for (mask, number) in divisions() {
        let kind = Kind { division: Some(number), ..Kind::line(3, false) };
        // 16 is a level of 64, 65 its octet. Red differs between the partitions.
        let ends = [[[0, 0, 0], [0, 65, 0]], [[255, 0, 0], [255, 0, 65]]];
        blocks.push((kind, on_two_lines(&mut random, mask, ends, 3)));
        // Mean and middle are nearly the same if the partitions are.
        if (6..=10).contains(&mask.count_ones()) {
            let kind = Kind { division: Some(number), ..Kind::line(16, true) };
            let ends = [[[0; 3], [60; 3]], [[195; 3], [255; 3]]];
            blocks.push((kind, on_two_lines(&mut random, mask, ends, 16)));
        }
    }
    assert_exact(&blocks);
}

/// Returns strokes in pairs of colours, whose edges are mixed like those of rendered text.
fn strokes(size: (u32, u32)) -> Vec<u8> {
    let pairs: [[[u8; 3]; 2]; 8] = [
        [[255, 255, 255], [0, 0, 0]],
        [[0, 0, 0], [255, 255, 255]],
        [[255, 0, 0], [0, 0, 255]],
        [[255, 255, 0], [0, 0, 128]],
        [[0, 255, 0], [128, 0, 128]],
        [[0, 160, 255], [40, 40, 40]],
        [[255, 128, 0], [0, 64, 64]],
        [[200, 0, 0], [0, 140, 0]],
    ];
    let pixel = |x: u32, y: u32| {
        let [ink, paper] = pairs[(y * 8 / size.1) as usize];
        // A ring and a slanted stroke in each 12×18 pixels, which move along from one to the next.
        let (column, row) = (x / 12, y / 18);
        let shift = (column * 7 + row * 3) as f32 % 10.0 / 10.0;
        let (left, top) = ((x % 12) as f32 - 5.5 + shift, (y % 18) as f32 - 8.5 - shift);
        let ring = (left.hypot(top) - 4.0).abs();
        let slant = (left * 0.8 + top * (0.6 - shift)).abs();
        let nearest = if (column + row) % 3 == 0 { ring } else { ring.min(slant) };
        let cover = (1.2 - nearest).clamp(0.0, 1.0);
        let mix = |ink: u8, paper: u8| {
            (f32::from(ink) * cover + f32::from(paper) * (1.0 - cover)).round() as u8
        };
        [mix(ink[0], paper[0]), mix(ink[1], paper[1]), mix(ink[2], paper[2]), 255]
    };
    (0..size.1).flat_map(|y| (0..size.0).flat_map(move |x| pixel(x, y))).collect()
}

#[test]
fn photographs_strokes_and_the_pattern_are_near() {
    let small = (640, 360);
    let layout = Layout::new(Format::Rgba8, small.0, small.1).unwrap();
    let whole = (photograph::WIDTH as u32, photograph::HEIGHT as u32);
    let cases = [
        ("photograph", whole, photograph::natural(), 40.0),
        ("strokes", (640, 384), strokes((640, 384)), 44.8),
        ("pattern", small, picture(Content::Pattern, &layout), 61.5),
    ];
    for gpu in common::devices() {
        for (name, size, picture, least) in &cases {
            let mut encoder = GpuEncoder::new(&gpu, Format::Astc4x4, size.0, size.1).unwrap();
            let found = decoded(*size, &encoded(&mut encoder, picture, 68));
            let own = metric::psnr_rgb(&found, picture);
            eprintln!("{}: {name}: {own:.2} dB, not {least}", gpu.name());
            assert!(own > *least, "{}: {name}: {own:.2} dB, not {least}", gpu.name());
            assert!(found.as_chunks::<4>().0.iter().all(|pixel| pixel[3] == 255), "{name}");
        }
        assert_eq!(gpu.first_error(), None, "{}", gpu.name());
    }
}

#[test]
fn blocks_of_noise_are_legal() {
    let size = (512, 512);
    let layout = Layout::new(Format::Rgba8, size.0, size.1).unwrap();
    for gpu in common::devices() {
        let mut kinds = BTreeSet::new();
        for content in [Content::Noise, Content::Faint, Content::Gradient] {
            let mut encoder = GpuEncoder::new(&gpu, Format::Astc4x4, size.0, size.1).unwrap();
            let frame = encoded(&mut encoder, &picture(content, &layout), 68);
            let blocks = frame.as_chunks::<16>().0.iter();
            kinds.extend(blocks.map(|block| Kind::of(u128::from_le_bytes(*block))));
            let found = decoded(size, &frame);
            assert!(!found.as_chunks::<16>().0.contains(&ILLEGAL), "{}: {content:?}", gpu.name());
        }
        let kinds: BTreeSet<_> = kinds.iter().map(|kind| (kind.levels, kind.own)).collect();
        assert!(kinds.len() >= 5, "{}: {kinds:?}", gpu.name());
        assert_eq!(gpu.first_error(), None, "{}", gpu.name());
    }
}
