//! ASTC of low dynamic range, by `texture2ddecoder` after a check of each block.
//!
//! `texture2ddecoder` does not validate blocks; illegal ones make it overflow or read out of
//! bounds. [`is_legal`] rejects these blocks and those of high dynamic range, which are decoded to
//! the error colour as in `KHR_texture_compression_astc_hdr` sections C.2.24 and C.2.25. Section
//! numbers below refer to that document.

use texture2ddecoder::decode_astc_block;

use crate::decode::texels;
use crate::format::Block;

/// Opaque magenta.
const ERROR: [u8; 4] = [255, 0, 255, 255];

/// The endpoint modes of high dynamic range, as a bit set.
const HIGH_RANGE: u16 = 1 << 2 | 1 << 3 | 1 << 7 | 1 << 11 | 1 << 14 | 1 << 15;

/// Decodes blocks of 16 bytes to rows of RGBA pixels, `stride` bytes apart.
///
/// Rows of a block that are beyond the end of `rgba` are left out.
pub(super) fn decode_block_row(shape: Block, blocks: &[u8], rgba: &mut [u8], stride: usize) {
    let [width, height] = [shape.width as usize, shape.height as usize];
    for (at, block) in blocks.as_chunks::<16>().0.iter().enumerate() {
        // The largest block has 12×12 pixels.
        let mut pixels = [u32::from_le_bytes([ERROR[2], ERROR[1], ERROR[0], ERROR[3]]); 144];
        if is_legal(u128::from_le_bytes(*block), shape) {
            decode_astc_block(block, width, height, &mut pixels);
        }
        for (row, pixels) in pixels.chunks_exact(width).take(height).enumerate() {
            let start = row * stride + at * width * 4;
            let Some(out) = rgba.get_mut(start..start + width * 4) else { break };
            for (to, &pixel) in out.as_chunks_mut().0.iter_mut().zip(pixels) {
                *to = texels::rgba(pixel);
            }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;

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

    fn pixels(format: Format, block: u128) -> Vec<[u8; 4]> {
        let shape = format.planes()[0].block;
        let mut rgba = vec![0; (shape.width * shape.height * 4) as usize];
        decode_block_row(shape, &block.to_le_bytes(), &mut rgba, shape.width as usize * 4);
        rgba.as_chunks().0.to_vec()
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
        for (mode, fits) in [
            (0x004, (12, 2)),
            (0x084 | 1 << 5, (3, 12)),
            (0x184, (6, 10)),
            (0x184 | 1 << 5, (10, 6)),
        ] {
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
        let reserved = [0, 0x1c0, 0x1e0, 0x1c4 | 1 << 6];
        let too_wide = gradient() & !0x60 | 3 << 5;
        let high_range_void = 0x0000_0000_0000_0000_ffff_ffff_ffff_fffc;
        let empty_void = 0xfdfc;
        let high_range_luminance = gradient() | 2 << 13;
        let illegal = [too_wide, high_range_void, empty_void, high_range_luminance];
        for block in illegal.into_iter().chain(reserved).chain([dual_with_four_partitions]) {
            assert_eq!(pixels(Format::Astc4x4, block), [ERROR; 16], "{block:#x}");
        }
    }

    #[test]
    fn no_block_makes_the_decoder_panic() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            u128::from(state)
        };
        let mut legal = 0;
        for _ in 0..250_000 {
            let block = next() << 64 | next();
            for format in FORMATS {
                let shape = format.planes()[0].block;
                legal += u32::from(is_legal(block, shape));
                assert_eq!(pixels(format, block).len() as u32, shape.width * shape.height);
            }
        }
        assert!(legal > 100_000, "only {legal} blocks reached the decoder");
    }

    #[test]
    fn every_block_mode_is_safe_with_any_rest() {
        let mut rest = 0x0123_4567_89ab_cdef_u64;
        for settings in 0..1_u128 << 17 {
            rest = rest.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let block = settings | u128::from(rest) << 17 | u128::from(rest.reverse_bits()) << 64;
            assert_eq!(pixels(Format::Astc8x8, block).len(), 64);
            assert_eq!(pixels(Format::Astc12x12, block).len(), 144);
        }
    }
}
