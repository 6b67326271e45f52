//! The decoders compared with other implementations, on arbitrary bytes.

use proptest::collection::vec;
use proptest::prelude::*;
use rushes_texture::InstructionSet;
use rushes_texture::rows::{
    DECODE_BC1, DECODE_BC3, DECODE_ETC1, DECODE_ETC2, DECODE_YCOCG_BC3, Decode, ENCODE_BC1,
    ENCODE_BC3, ENCODE_YCOCG_BC3,
};

/// Returns deterministic pseudo-random bytes.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..length).map(|_| next()).collect()
}

/// Decodes a block to rows at a distance in bytes.
type Theirs = fn(&[u8], &mut [u8], usize);

fn compare(size: usize, ours: Decode, theirs: Theirs) {
    let mut blocks = Vec::new();
    let mut expected = vec![0; 50_000 * 64];
    for (n, block) in noise(size * 50_000).chunks(size).enumerate() {
        let mut block = block.to_vec();
        if n % 5 == 0 {
            // Sets equal ends, which noise rarely has.
            let ends = size - 8;
            block.copy_within(ends..ends + 2, ends + 2);
            block[1] = block[0];
        }
        theirs(&block, &mut expected[n * 16..], 50_000 * 16);
        blocks.extend(block);
    }
    for set in InstructionSet::ALL {
        let mut found = vec![0; expected.len()];
        ours(set, &blocks, &mut found, 50_000 * 16);
        let differs = found.iter().zip(&expected).position(|(found, expected)| found != expected);
        let at = differs.map(|at| at % (50_000 * 16) / 16);
        assert_eq!(at, None, "{set:?}: {:?}", at.map(|at| &blocks[at * size..][..size]));
    }
}

#[test]
fn bc1_blocks_of_four_and_three_colours_decode_as_by_bcdec() {
    compare(8, DECODE_BC1, bcdec_rs::bc1);
}

#[test]
fn bc3_blocks_of_eight_and_six_alphas_decode_as_by_bcdec() {
    compare(16, DECODE_BC3, bcdec_rs::bc3);
}

/// Writes the pixels that `texture2ddecoder` has for a block, the lowest byte of which is blue.
fn write_texels(texels: [u32; 16], rgba: &mut [u8], stride: usize) {
    for (row, texels) in rgba.chunks_mut(stride).zip(texels.chunks(4)) {
        for (to, texel) in row.as_chunks_mut().0.iter_mut().zip(texels) {
            let [blue, green, red, alpha] = texel.to_le_bytes();
            *to = [red, green, blue, alpha];
        }
    }
}

fn etc1(block: &[u8], rgba: &mut [u8], stride: usize) {
    let mut texels = [0; 16];
    texture2ddecoder::decode_etc1_block(block, &mut texels);
    write_texels(texels, rgba, stride);
}

fn etc2(block: &[u8], rgba: &mut [u8], stride: usize) {
    let mut texels = [0; 16];
    texture2ddecoder::decode_etc2_rgb_block(block, &mut texels);
    write_texels(texels, rgba, stride);
}

#[test]
fn etc_blocks_of_all_modes_decode_as_by_texture2ddecoder() {
    compare(8, DECODE_ETC1, etc1);
    compare(8, DECODE_ETC2, etc2);
}

/// Returns the first half of a block: an H block of twice the same colour if the rest of its bits is
/// such that red has no overflow and green has one.
fn twice_the_same(colour: u32, rest: u32) -> u32 {
    let first = (colour >> 8) << 27
        | (colour >> 5 & 7) << 24
        | (colour >> 3 & 3) << 19
        | (colour & 7) << 15;
    first | colour << 3 | 2 | rest & 0x80e4_0005
}

proptest! {
    #[test]
    fn few_etc_blocks_decode_as_by_texture2ddecoder(
        blocks in vec((any::<[u8; 8]>(), 0..4_u8, 0..1_u32 << 12), 1..140),
    ) {
        let blocks: Vec<u8> = blocks
            .into_iter()
            .flat_map(|(mut block, kind, colour)| {
                if kind == 0 {
                    let rest = u32::from_be_bytes([block[0], block[1], block[2], block[3]]);
                    block[..4].copy_from_slice(&twice_the_same(colour, rest).to_be_bytes());
                } else if kind == 1 {
                    // Individual.
                    block[3] &= !2;
                }
                block
            })
            .collect();
        let stride = blocks.len() * 2;
        for (ours, theirs) in [(DECODE_ETC1, etc1 as Theirs), (DECODE_ETC2, etc2)] {
            let mut expected = vec![0; stride * 4];
            for (at, block) in blocks.chunks(8).enumerate() {
                theirs(block, &mut expected[at * 16..], stride);
            }
            for set in InstructionSet::ALL {
                let mut found = vec![0; expected.len()];
                ours(set, &blocks, &mut found, stride);
                prop_assert!(found == expected, "{:?}", set);
            }
        }
    }
}

/// Computes the published fragment program for a pixel of BC3, whose scale has an exact reciprocal.
fn published([orange, green, blue, luma]: [u8; 4]) -> [u8; 4] {
    let scale = f64::from(blue >> 3) + 1.0;
    let chroma = |octet: u8| (f64::from(octet) - 128.0) / scale;
    let (luma, orange, green) = (f64::from(luma), chroma(orange), chroma(green));
    let colour = [luma + orange - green, luma + green, luma - orange - green];
    let [red, green, blue] = colour.map(|channel| {
        (0..=255).rev().find(|&octet| f64::from(octet) <= channel + 0.5).unwrap_or(0)
    });
    [red, green, blue, 255]
}

#[test]
fn scaled_ycocg_decodes_as_published() {
    for (n, block) in noise(16 * 3_000).chunks(16).enumerate() {
        let mut block = block.to_vec();
        for end in [8, 10] {
            block[end] = block[end] & 0xe0 | [0, 1, 3][n % 3];
        }
        let (mut found, mut bc3) = ([0; 64], [0; 64]);
        DECODE_YCOCG_BC3(InstructionSet::Portable, &block, &mut found, 16);
        bcdec_rs::bc3(&block, &mut bc3, 16);
        for (found, bc3) in found.as_chunks().0.iter().zip(bc3.as_chunks().0) {
            assert_eq!(*found, published(*bc3), "{bc3:?} of {block:?}");
        }
    }
}

/// Converts a pixel of BC3, with a reciprocal of 16 bits for any scale.
fn converted([orange, green, blue, luma]: [u8; 4]) -> [u8; 4] {
    let scale = i32::from(blue / 8) + 1;
    let (luma, orange, green) = (i32::from(luma), i32::from(orange) - 128, i32::from(green) - 128);
    let [red, green, blue] = [orange - green, green, -orange - green].map(|offset| {
        let offset = (offset * (0x1_0000 / scale) + 0x8000).div_euclid(0x1_0000);
        (luma + offset).clamp(0, 255).cast_unsigned() as u8
    });
    [red, green, blue, 255]
}

#[test]
fn scaled_ycocg_of_every_scale_decodes_as_bc3_whose_pixels_are_converted() {
    compare(16, DECODE_YCOCG_BC3, |block, rgba, stride| {
        bcdec_rs::bc3(block, rgba, stride);
        for row in rgba.chunks_mut(stride).take(4) {
            for pixel in row.as_chunks_mut().0.iter_mut().take(4) {
                *pixel = converted(*pixel);
            }
        }
    });
}

/// Returns blocks of pixels of every contrast: noise in all channels or in one, and flat blocks.
fn contrasts() -> Vec<u8> {
    let mut rgba = Vec::new();
    for (n, pixels) in noise(64 * 60_000).chunks(64).enumerate() {
        let (contrast, channel) = (n % 9, n / 9 % 5);
        let base = pixels[0] / 2;
        let octet = |(at, octet): (usize, &u8)| match channel {
            4 => base + octet.checked_shr(contrast as u32 + 1).unwrap_or(0),
            one if at % 4 == one => octet.checked_shr(contrast as u32).unwrap_or(0),
            _ => base,
        };
        rgba.extend(pixels.iter().enumerate().map(octet));
    }
    rgba
}

#[test]
fn encoded_blocks_look_alike_to_decoders_that_give_bc3_three_colours() {
    let encoders = [("BC1", ENCODE_BC1, 8), ("BC3", ENCODE_BC3, 16)];
    for (name, encode, size) in encoders.into_iter().chain([("YCoCg", ENCODE_YCOCG_BC3, 16)]) {
        for pixels in contrasts().chunks(64) {
            let mut block = vec![0; size];
            encode(InstructionSet::Portable, pixels, 16, 1, &mut block);
            // Only the colour part matters here.
            let colours = &block[size - 8..];
            let (mut by_order, mut four) = ([0; 64], [0; 64]);
            bcdec_rs::bc1(colours, &mut by_order, 16);
            bcdec_rs::bc3(&[&[255; 8], colours].concat(), &mut four, 16);
            assert_eq!(by_order, four, "{name}: {colours:?} of {pixels:?}");
        }
    }
}

#[test]
fn blocks_beyond_the_rows_and_rows_beyond_the_blocks_are_left_alone() {
    let blocks = noise(24);
    let mut rgba = [9; 4 * 48];
    let set = InstructionSet::fastest();
    DECODE_BC1(set, &blocks[..16], &mut rgba, 48);
    assert!(rgba.chunks(48).all(|row| row[..32].iter().any(|&octet| octet != 9)));
    assert!(rgba.chunks(48).all(|row| row[32..] == [9; 16]));
    let mut short = [9; 3 * 16 + 15];
    DECODE_BC1(set, &blocks, &mut short, 16);
    assert_eq!(short, [9; 3 * 16 + 15]);
}
