//! Luma of scaled YCoCg whose ends are moved, twice, to where the sum of squared errors is least.
//!
//! The ends begin where the fast level has them. A lane belongs to a block, as in
//! [`decode::lanes`](crate::decode): loops over the lanes are vectorised by the compiler for every instruction set.
#![allow(
    clippy::inline_always,
    reason = "a loop is compiled for each set only where it is inlined"
)]
#![allow(clippy::needless_range_loop, reason = "a loop has the lanes of several arrays")]

use crate::convert::Loop;
use crate::encode::refined::TURNS;
use crate::encode::strip::{BLOCK, Strip};
use crate::{InstructionSet, dispatch};

/// Blocks of a group.
pub(super) const LANES: usize = 16;

/// A value of each block.
pub(super) type Lanes<T> = [T; LANES];

/// The greatest place between the ends.
const PLACES: i32 = 7;

/// Replaces the luma of the blocks of a strip, which is in the first eight of each sixteen bytes.
pub(super) fn encode(set: InstructionSet, strip: Strip<'_>, out: &mut [u8]) {
    for (at, blocks) in out.as_chunks_mut().0.chunks_mut(LANES).enumerate() {
        let start = at * LANES * BLOCK;
        let rows =
            strip.map(|row| row.get(start..start + blocks.len() * BLOCK).unwrap_or_default());
        dispatch::vectorised::<Groups>(set, Group { rows, blocks });
    }
}

/// Blocks, at most [`LANES`], and their pixels.
struct Group<'a> {
    rows: Strip<'a>,
    blocks: &'a mut [[u8; 16]],
}

struct Groups;

impl Loop for Groups {
    type Arguments<'a> = Group<'a>;

    #[inline(always)]
    fn run(group: Group<'_>) {
        let luma = luma(group.rows);
        let mut ends = [[0; LANES]; 2];
        for (at, block) in group.blocks.iter().enumerate().take(LANES) {
            for (ends, &end) in ends.iter_mut().zip(block) {
                ends[at] = i32::from(end);
            }
        }
        for _ in 0..TURNS {
            ends = moved(&luma, &places(&luma, &ends), &ends);
        }
        write(&ends, &places(&luma, &ends), group.blocks);
    }
}

/// Returns the luma of each pixel, (R + 2 G + B) / 4 as in the fast level; that of missing blocks is 0.
#[inline(always)]
fn luma(rows: Strip<'_>) -> [Lanes<i32>; 16] {
    let mut luma = [[0; LANES]; 16];
    for (y, row) in rows.iter().enumerate() {
        let mut pixels = [0; LANES * BLOCK];
        let len = row.len().min(pixels.len());
        pixels[..len].copy_from_slice(&row[..len]);
        let mut values = [0_u8; LANES * 4];
        for (value, pixel) in values.iter_mut().zip(pixels.as_chunks::<4>().0) {
            let pixel = u32::from_le_bytes(*pixel);
            let [red, green, blue] = [0, 8, 16].map(|shift| pixel >> shift & 0xff);
            *value = ((((red + blue) >> 1) + green + 1) >> 1) as u8;
        }
        // The four pixels of a block in this row are one number.
        let blocks = values.as_chunks::<4>().0;
        for at in 0..LANES {
            for x in 0..4 {
                luma[4 * y + x][at] =
                    (u32::from_le_bytes(blocks[at]) >> (8 * x) & 0xff).cast_signed();
            }
        }
    }
    luma
}

/// Rounds a number from 0 to 255, and others to these; ties go to the even one.
#[inline(always)]
pub(super) fn rounded(value: f32) -> i32 {
    // From here on neighbouring numbers are one apart.
    const WHOLE: f32 = 8_388_608.0;
    ((value.clamp(0.0, 255.0) + WHOLE).to_bits() & 0xff).cast_signed()
}

/// Returns the place of each pixel between the ends: 7 at the greater one, 0 at the lesser one.
#[inline(always)]
fn places(luma: &[Lanes<i32>; 16], [greatest, least]: &[Lanes<i32>; 2]) -> [Lanes<i32>; 16] {
    let mut places = [[0; LANES]; 16];
    for at in 0..LANES {
        let scale = PLACES as f32 / (greatest[at] - least[at]).max(1) as f32;
        for (places, values) in places.iter_mut().zip(luma) {
            let place = rounded((values[at] - least[at]) as f32 * scale);
            places[at] = place.min(PLACES);
        }
    }
    places
}

/// Returns the ends of least squared error for pixels at these places. They stay if all pixels are at one place, or
/// if they would meet.
#[inline(always)]
fn moved(
    luma: &[Lanes<i32>; 16],
    places: &[Lanes<i32>; 16],
    ends: &[Lanes<i32>; 2],
) -> [Lanes<i32>; 2] {
    let mut moved = *ends;
    for at in 0..LANES {
        let [mut sum, mut greater, mut total, mut weighted] = [0; 4];
        for (values, places) in luma.iter().zip(places) {
            sum += places[at];
            greater += places[at] * places[at];
            total += values[at];
            weighted += places[at] * values[at];
        }
        let both = PLACES * sum - greater;
        let lesser = 16 * PLACES * PLACES - PLACES * sum - both;
        let determinant = greater * lesser - both * both;
        let factor = PLACES as f32 / determinant.max(1) as f32;
        let (weight, rest) = (weighted as f32, (PLACES * total - weighted) as f32);
        let [greater, both, lesser] = [greater as f32, both as f32, lesser as f32];
        // Each end is that of least error beside the other one as it was rounded.
        let first = rounded((weight * lesser - rest * both) * factor) as f32;
        let second = rounded((PLACES as f32 * rest - both * first) / lesser.max(1.0));
        let first = rounded((PLACES as f32 * weight - both * second as f32) / greater.max(1.0));
        let is_moved = determinant > 0 && first > second;
        moved[0][at] = if is_moved { first } else { ends[0][at] };
        moved[1][at] = if is_moved { second } else { ends[1][at] };
    }
    moved
}

/// Writes the ends and codes of the blocks.
#[inline(always)]
fn write(ends: &[Lanes<i32>; 2], places: &[Lanes<i32>; 16], blocks: &mut [[u8; 16]]) {
    // Of each half of the pixels, three bits each.
    let mut codes = [[0; LANES]; 2];
    for at in 0..LANES {
        for n in 0..16 {
            // The ends have the codes 0 and 1, and those after them go from the first end to the second.
            let place = places[n][at];
            let is_end = i32::from(place == 0) | i32::from(place == PLACES);
            let code = ((8 - place) & 7) ^ is_end;
            codes[n / 8][at] |= code << (3 * (n % 8));
        }
    }
    for (at, block) in blocks.iter_mut().enumerate().take(LANES) {
        let [first, second] = [ends[0][at], ends[1][at]].map(|end| end.to_le_bytes()[0]);
        block[..2].copy_from_slice(&[first, second]);
        for (n, codes) in codes.iter().enumerate() {
            block[2 + 3 * n..][..3].copy_from_slice(&codes[at].to_le_bytes()[..3]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::bc4;

    fn encoded(luma: [u8; 16]) -> [u8; 8] {
        let rgba: Vec<u8> = luma.iter().flat_map(|&value| [value, value, value, 255]).collect();
        let rows: Vec<&[u8]> = rgba.chunks(16).collect();
        let mut out = [9; 16];
        out[..8].copy_from_slice(&bc4::fitted(&luma));
        encode(InstructionSet::Portable, [rows[0], rows[1], rows[2], rows[3]], &mut out);
        assert_eq!(out[8..], [9; 8], "chroma stays");
        *out.first_chunk().unwrap()
    }

    /// Returns the sum of squared errors of a block.
    fn error(block: [u8; 8], luma: [u8; 16]) -> i32 {
        let [first, second] = [i32::from(block[0]), i32::from(block[1])];
        let codes = u64::from_le_bytes(block) >> 16;
        let errors = luma.iter().enumerate().map(|(n, &value)| {
            let level = match codes >> (3 * n) & 7 {
                0 => first,
                1 => second,
                code => ((8 - code as i32) * first + (code as i32 - 1) * second) / 7,
            };
            (level - i32::from(value)).pow(2)
        });
        errors.sum()
    }

    #[test]
    fn two_levels_and_one_are_exact() {
        for [a, b] in [[0, 255], [13, 200], [90, 91], [77, 77], [255, 255], [0, 0]] {
            for ones in [1_u32, 0x8000, 0x5a5a, 0xfffe] {
                let luma = std::array::from_fn(|n| if ones >> n & 1 == 1 { a } else { b });
                assert_eq!(error(encoded(luma), luma), 0, "{luma:?}");
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn no_block_is_much_worse_than_in_the_fast_level(
            luma: [u8; 16], range in 0_u8..=255
        ) {
            let luma = luma.map(|value| 128_u8.saturating_add(value.min(range)));
            let [before, after] = [bc4::fitted(&luma), encoded(luma)].map(|it| error(it, luma));
            // Ends and levels are rounded.
            proptest::prop_assert!(after <= before + before / 5 + 32, "{before} {after}");
        }
    }
}
