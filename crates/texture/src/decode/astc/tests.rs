//! Tests of the decoder, and a plain check of blocks, without which `texture2ddecoder` overflows or reads
//! out of bounds.
#![allow(clippy::unwrap_used, reason = "a test may")]

use proptest::collection::vec;
use proptest::prelude::*;
use texture2ddecoder::decode_astc_block;

use super::*;
use crate::Format;

/// The endpoint modes of high dynamic range, as a bit set.
const HIGH_RANGE: u16 = 1 << 2 | 1 << 3 | 1 << 7 | 1 << 11 | 1 << 14 | 1 << 15;

const FORMATS: [Format; 14] = [
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

/// Decodes a block, of which every instruction set must have the same pixels.
fn pixels(format: Format, block: u128) -> Vec<[u8; 4]> {
    let shape = format.planes()[0].block;
    let [portable, others @ ..] = InstructionSet::ALL.map(|set| {
        let mut rgba = vec![0; (shape.width * shape.height * 4) as usize];
        let stride = shape.width as usize * 4;
        decode_block_row((set, shape), &block.to_le_bytes(), &mut rgba, stride);
        rgba
    });
    assert!(others.iter().all(|other| *other == portable), "{format} {block:#x}");
    portable.as_chunks().0.to_vec()
}

/// Returns a block with weights of two bits in a grid of 4 by 4, one partition, and luminance
/// from 0 to 255.
fn gradient() -> u128 {
    let mode = 0x42;
    let weights = [0, 1, 2, 3].repeat(4);
    let mut block = mode | 255 << 25;
    for (at, weight) in weights.into_iter().enumerate() {
        let weight: u128 = weight;
        block |= (weight & 1) << (127 - 2 * at) | (weight >> 1) << (126 - 2 * at);
    }
    block
}

#[test]
fn a_void_extent_is_of_one_colour() {
    let block = 0xffff_8080_4040_1010_ffff_ffff_ffff_fdfc;
    for format in FORMATS {
        assert!(pixels(format, block).iter().all(|&pixel| pixel == [16, 64, 128, 255]));
    }
}

#[test]
fn weights_of_two_bits_make_four_steps() {
    let row = [0, 84, 171, 255].map(|grey| [grey, grey, grey, 255]);
    assert_eq!(pixels(Format::Astc4x4, gradient()), row.repeat(4));
}

#[test]
fn weights_of_a_small_grid_are_interpolated_in_a_larger_block() {
    let found = pixels(Format::Astc8x8, gradient());
    let greys: Vec<u8> = found[..8].iter().map(|pixel| pixel[0]).collect();
    assert!(greys.is_sorted() && greys[0] == 0 && greys[7] == 255, "{greys:?}");
}

#[test]
fn weights_of_wide_grids_are_those_of_their_pixels() {
    // Block modes 12×a, a×12, 6×10 and 10×6 with weights of one bit, which are 0.
    for (mode, fits) in
        [(0x004, (12, 2)), (0x084 | 1 << 5, (3, 12)), (0x184, (6, 10)), (0x184 | 1 << 5, (10, 6))]
    {
        for format in FORMATS {
            let shape = format.planes()[0].block;
            let dark = mode | 255 << 25;
            let is_legal = fits.0 <= shape.width && fits.1 <= shape.height;
            let expected = if is_legal { [0, 0, 0, 255] } else { ERROR };
            let found = pixels(format, dark);
            assert!(found.iter().all(|pixel| *pixel == expected), "{format} {fits:?}");
        }
    }
}

#[test]
fn illegal_blocks_have_the_error_colour() {
    let dual_with_four_partitions = 1 << 10 | 3 << 11 | 0x42;
    let reserved = [0, 0x1c0, 0x1e0, 0x1c4, 0x1e4];
    let too_wide = gradient() & !0x60 | 3 << 5;
    let high_range_void = 0x0000_0000_0000_0000_ffff_ffff_ffff_fffc;
    let empty_void = 0xfdfc;
    let high_range_luminance = gradient() | 2 << 13;
    let illegal = [too_wide, high_range_void, empty_void, high_range_luminance];
    for block in illegal.into_iter().chain(reserved).chain([dual_with_four_partitions]) {
        assert_eq!(pixels(Format::Astc4x4, block), [ERROR; 16], "{block:#x}");
    }
}

/// Compares a block with what `texture2ddecoder` has if it is legal, and returns whether it is.
fn check(format: Format, block: u128) -> bool {
    let shape = format.planes()[0].block;
    let found = pixels(format, block);
    if !is_legal(block, shape) {
        assert!(found.iter().all(|pixel| *pixel == ERROR), "{format} {block:#x}: {found:?}");
        return false;
    }
    let mut texels = [0; PIXELS];
    let [width, height] = [shape.width, shape.height].map(|side| side as usize);
    decode_astc_block(&block.to_le_bytes(), width, height, &mut texels);
    let expected: Vec<[u8; 4]> = texels[..found.len()]
        .iter()
        .map(|texel| {
            let [blue, green, red, alpha] = texel.to_le_bytes();
            [red, green, blue, alpha]
        })
        .collect();
    assert!(found == expected, "{format} {block:#x}: {found:?}, not {expected:?}");
    true
}

/// Blocks of each size that astcenc has made of photographs, noise, gradients and two colours: 96 of as many kinds as
/// there were, one size after the other.
const ASTCENC: &[u8] = include_bytes!("astcenc.blocks");

#[test]
fn no_block_of_astcenc_is_refused() {
    let blocks = ASTCENC.as_chunks::<16>().0;
    assert_eq!(blocks.len(), 96 * FORMATS.len());
    for (format, blocks) in FORMATS.into_iter().zip(blocks.chunks(96)) {
        for block in blocks {
            assert!(check(format, u128::from_le_bytes(*block)), "{format} {block:x?}");
        }
    }
}

#[test]
fn noise_decodes_as_by_texture2ddecoder_if_it_is_legal() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        u128::from(state)
    };
    let mut legal = 0;
    for _ in 0..100_000 {
        let block = next() << 64 | next();
        for format in FORMATS {
            legal += u32::from(check(format, block));
        }
    }
    assert!(legal > 50_000, "only {legal} blocks reached the decoder");
}

#[test]
fn every_block_mode_and_endpoint_mode_decodes_as_by_texture2ddecoder_or_is_illegal() {
    let mut rest = 0x0123_4567_89ab_cdef_u64;
    for settings in 0..1_u128 << 17 {
        rest = rest.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let block = settings | u128::from(rest) << 17 | u128::from(rest.reverse_bits()) << 64;
        check(Format::Astc8x8, block);
        check(Format::Astc12x12, block);
        check(FORMATS[settings as usize % FORMATS.len()], block);
    }
}

#[test]
fn every_division_into_partitions_is_that_of_texture2ddecoder() {
    // A grid of 4×4 weights of two bits, and ends of grey.
    for format in FORMATS {
        for more in 1..4 {
            for seed in 0..1024 {
                let block = 0x42 | more << 11 | seed << 13 | 0x1234_5678_9abc_def0 << 29;
                assert!(check(format, block), "{block:#x}");
            }
        }
    }
}

#[test]
fn mixed_channels_are_rounded_as_by_way_of_sixteen_bits() {
    for mixed in 0..=64 * 255_u64 {
        let sixteen = (257 * mixed + 32) >> 6;
        let octet = ((sixteen * 255 + 32_768) >> 16) as u8;
        assert_eq!(rounded(mixed | mixed << 48), [octet, 0, 0, octet]);
    }
}

proptest! {
    #[test]
    fn blocks_of_any_rest_decode_as_by_texture2ddecoder_if_they_are_legal(
        format in 0..FORMATS.len(),
        blocks in vec(any::<u128>(), 64),
    ) {
        for block in blocks {
            check(FORMATS[format], block);
        }
    }
}

/// The weights of a block: the size of their grid, the number of planes, and their range.
struct Weights {
    width: u32,
    height: u32,
    planes: u32,
    /// The number of the range of the weights, 2 to 7 or 10 to 15.
    range: u32,
}

impl Weights {
    /// Decodes a block mode (section C.2.10); returns `None` if it is reserved.
    fn of_mode(mode: u32) -> Option<Self> {
        let field = |at: u32, bits: u32| mode >> at & ((1 << bits) - 1);
        let (a, b) = (field(5, 2), field(7, 2));
        let (mut planes, mut high) = (1 + field(10, 1), field(9, 1));
        let (upper, width, height) = if field(0, 2) != 0 {
            let (width, height) = match (field(2, 2), b) {
                (0, _) => (b + 4, a + 2),
                (1, _) => (b + 8, a + 2),
                (2, _) => (a + 2, b + 8),
                (_, 0 | 1) => (a + 2, b + 6),
                _ => (b, a + 2),
            };
            (field(0, 2), width, height)
        } else {
            let (width, height) = match (b, a) {
                (0, _) => (12, a + 2),
                (1, _) => (a + 2, 12),
                (2, _) => {
                    (planes, high) = (1, 0);
                    (a + 6, field(9, 2) + 6)
                }
                (_, 0) => (6, 10),
                (_, 1) => (10, 6),
                _ => return None,
            };
            (field(2, 2), width, height)
        };
        let range = field(4, 1) | upper << 1;
        (range >= 2).then_some(Self { width, height, planes, range: range | high << 3 })
    }

    /// Returns the number of weights.
    fn count(&self) -> u32 {
        self.width * self.height * self.planes
    }

    /// Returns the number of bits of all weights (section C.2.12).
    fn bits(&self) -> u32 {
        let count = self.count();
        let trits = (8 * count).div_ceil(5);
        let quints = (7 * count).div_ceil(3);
        match self.range {
            2 => count,
            3 => trits,
            4 => 2 * count,
            5 => quints,
            6 => count + trits,
            7 => 3 * count,
            10 => count + quints,
            11 => 2 * count + trits,
            12 => 4 * count,
            13 => 2 * count + quints,
            14 => 3 * count + trits,
            _ => 5 * count,
        }
    }
}

/// Returns whether a block is legal and of low dynamic range (section C.2.24).
fn is_legal(block: u128, shape: Block) -> bool {
    if block % 512 == 0x1fc {
        return is_legal_void_extent(block);
    }
    let Some(weights) = Weights::of_mode((block & 0x7ff) as u32) else { return false };
    let fits = weights.width <= shape.width && weights.height <= shape.height;
    let partitions = (block >> 11 & 3) as u32 + 1;
    let two_of_four = partitions == 4 && weights.planes == 2;
    if !fits || two_of_four || weights.count() > 64 || !(24..=96).contains(&weights.bits()) {
        return false;
    }
    let (modes, mode_bits) = endpoint_modes(block, partitions, weights.bits());
    let modes = &modes[..partitions as usize];
    let values: u32 = modes.iter().map(|mode| (mode >> 2) * 2 + 2).sum();
    let taken = mode_bits + 2 * (weights.planes - 1) + weights.bits();
    let low_range = modes.iter().all(|mode| HIGH_RANGE >> mode & 1 == 0);
    // Endpoints of six levels, the minimum, take 13 bits for every five values.
    low_range && values <= 18 && taken + (13 * values).div_ceil(5) <= 128
}

/// Returns the endpoint mode of each partition and the number of configuration bits (section
/// C.2.11).
///
/// Configuration bits are those before the endpoints, and the rest of the modes below the weights.
fn endpoint_modes(block: u128, partitions: u32, weight_bits: u32) -> ([u32; 4], u32) {
    if partitions == 1 {
        return ([(block >> 13 & 15) as u32; 4], 17);
    }
    let mode_field = (block >> 23 & 63) as u32;
    if mode_field.is_multiple_of(4) {
        return ([mode_field >> 2; 4], 29);
    }
    let extra = 3 * partitions - 4;
    let below_weights = (block >> (128 - weight_bits - extra)) as u32 & ((1 << extra) - 1);
    let mode_field = mode_field | below_weights << 6;
    let modes = [0, 1, 2, 3].map(|partition| {
        let class = (mode_field & 3) - 1 + (mode_field >> (2 + partition) & 1);
        class << 2 | mode_field >> (2 + partitions + 2 * partition) & 3
    });
    (modes, 29 + extra)
}

/// Returns whether a void extent is legal (section C.2.23).
///
/// Its colour must be of low dynamic range, and its extent either absent or not empty.
fn is_legal_void_extent(block: u128) -> bool {
    let coordinate = |at: u32| block >> at & 0x1fff;
    let [left, right, top, bottom] = [12, 25, 38, 51].map(coordinate);
    let not_given = [left, right, top, bottom] == [0x1fff; 4];
    let high_range = block >> 9 & 1 == 1;
    !high_range && block >> 10 & 3 == 3 && (not_given || left < right && top < bottom)
}
