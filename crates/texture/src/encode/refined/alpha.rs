//! Alpha of BC3, as blocks of eight levels between two ends or of six, and 0 and 255.
//!
//! The ends of either kind are moved, twice, to where the sum of squared errors is least. Of these blocks and that
//! of the fast level, the one of least error is kept. A lane belongs to a block, as in [`luma`](super::luma).
#![allow(
    clippy::inline_always,
    reason = "a loop is compiled for each set only where it is inlined"
)]
#![allow(clippy::needless_range_loop, reason = "a loop has the lanes of several arrays")]

use crate::convert::Loop;
use crate::encode::refined::TURNS;
use crate::encode::refined::luma::{LANES, Lanes, rounded};
use crate::encode::strip::{BLOCK, Strip};
use crate::{InstructionSet, dispatch};

/// Replaces the alpha of the blocks of a strip, which is in the first eight of each sixteen bytes, where it becomes
/// better.
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
        let alpha = alpha(group.rows);
        let [mut least, mut greatest] = [alpha[0]; 2];
        for values in &alpha {
            for at in 0..LANES {
                least[at] = least[at].min(values[at]);
                greatest[at] = greatest[at].max(values[at]);
            }
        }
        if least == greatest {
            // Blocks of one value are exact.
            return;
        }
        let mut best = Best::NONE;
        let fast = coded(&alpha, group.blocks);
        let ends = [greatest, least];
        best.keep(&ends, &fast);
        let [needs_eight, needs_six] = needs(&fast.error, &ends);
        if needs_eight {
            refine_eight(&alpha, &ends, fast.sums, &mut best);
        }
        if needs_six {
            refine_six(&alpha, &mut best);
        }
        best.write(group.blocks);
    }
}

/// Returns whether blocks of eight levels may become better, and whether those of six may be. The former have other
/// ends than 0 and 255.
#[inline(always)]
fn needs(error: &Lanes<i32>, [greatest, least]: &[Lanes<i32>; 2]) -> [bool; 2] {
    let [mut eight, mut six] = [false; 2];
    for at in 0..LANES {
        let (is_opaque, is_clear) = (greatest[at] == 255, least[at] == 0);
        eight |= error[at] > 0 && !(is_opaque && is_clear);
        six |= error[at] > 0;
    }
    [eight, six]
}

#[inline(always)]
fn refine_eight(
    alpha: &[Lanes<i32>; 16],
    extremes: &[Lanes<i32>; 2],
    mut sums: Sums,
    best: &mut Best,
) {
    let mut ends = *extremes;
    for _ in 0..TURNS {
        ends = moved::<7>(&sums, &ends, Some(extremes));
        let coded = eight(alpha, &ends);
        best.keep(&ends, &coded);
        sums = coded.sums;
    }
}

#[inline(always)]
fn refine_six(alpha: &[Lanes<i32>; 16], best: &mut Best) {
    let mut ends = inner_ends(alpha);
    for turn in 0..=TURNS {
        let coded = six(alpha, &ends);
        best.keep(&[ends[1], ends[0]], &coded);
        if turn < TURNS {
            ends = moved::<5>(&coded.sums, &ends, None);
        }
    }
}

/// Returns the alpha of each pixel; that of missing blocks is 0.
#[inline(always)]
fn alpha(rows: Strip<'_>) -> [Lanes<i32>; 16] {
    let mut alpha = [[0; LANES]; 16];
    for (y, row) in rows.iter().enumerate() {
        let mut pixels = [0; LANES * BLOCK];
        let len = row.len().min(pixels.len());
        pixels[..len].copy_from_slice(&row[..len]);
        let mut values = [0_u8; LANES * 4];
        for (value, pixel) in values.iter_mut().zip(pixels.as_chunks::<4>().0) {
            *value = (u32::from_le_bytes(*pixel) >> 24) as u8;
        }
        // The four pixels of a block in this row are one number.
        let blocks = values.as_chunks::<4>().0;
        for at in 0..LANES {
            for x in 0..4 {
                alpha[4 * y + x][at] =
                    (u32::from_le_bytes(blocks[at]) >> (8 * x) & 0xff).cast_signed();
            }
        }
    }
    alpha
}

/// Sums over the pixels of each block that have a place between its ends.
struct Sums {
    /// Of 1, of the places, and of their squares.
    count: Lanes<i32>,
    places: Lanes<i32>,
    squares: Lanes<i32>,
    /// Of the values, and of their products with the places.
    values: Lanes<i32>,
    weighted: Lanes<i32>,
}

impl Sums {
    #[inline(always)]
    fn new() -> Self {
        let zero = [0; LANES];
        Self { count: zero, places: zero, squares: zero, values: zero, weighted: zero }
    }

    /// Adds a pixel so many times.
    #[inline(always)]
    fn add(&mut self, at: usize, value: i32, place: i32, times: i32) {
        let (place, value) = (place * times, value * times);
        self.count[at] += times;
        self.places[at] += place;
        self.squares[at] += place * place;
        self.values[at] += value;
        self.weighted[at] += place * value;
    }
}

/// The pixels of each block as levels.
struct Coded {
    /// The codes of either half of the pixels, three bits each.
    codes: [Lanes<i32>; 2],
    /// The sum of squared errors.
    error: Lanes<i32>,
    sums: Sums,
}

impl Coded {
    #[inline(always)]
    fn new() -> Self {
        Self { codes: [[0; LANES]; 2], error: [0; LANES], sums: Sums::new() }
    }
}

/// Returns the level at a place, as decoders round it: `STEPS` at the first end, 0 at the second one.
#[inline(always)]
fn level<const STEPS: i32>(first: i32, second: i32, place: i32) -> i32 {
    // 2¹⁶ divided by the steps, rounded up; see the decoder.
    let reciprocal = if STEPS == 7 { 9_363 } else { 13_108 };
    ((second * STEPS + (first - second) * place + 1) * reciprocal) >> 16
}

/// Returns the blocks of eight levels as they were encoded. Missing ones are of pixels at the second end, 0.
#[inline(always)]
fn coded(alpha: &[Lanes<i32>; 16], blocks: &[[u8; 16]]) -> Coded {
    let mut coded = Coded::new();
    let mut ends = [[0; LANES]; 2];
    // Three bits of 1 for each pixel.
    coded.codes = [[0o1111_1111; LANES]; 2];
    for (at, block) in blocks.iter().enumerate().take(LANES) {
        for n in 0..2 {
            let [a, b, c] = [2, 3, 4].map(|from| i32::from(block[from + 3 * n]));
            ends[n][at] = i32::from(block[n]);
            coded.codes[n][at] = a | b << 8 | c << 16;
        }
    }
    for n in 0..16 {
        for at in 0..LANES {
            let code = coded.codes[n / 8][at] >> (3 * (n % 8)) & 7;
            let place = ((8 - code) & 7) ^ (7 * i32::from(code < 2));
            let value = alpha[n][at];
            let error = level::<7>(ends[0][at], ends[1][at], place) - value;
            coded.error[at] += error * error;
            coded.sums.add(at, value, place, 1);
        }
    }
    coded
}

/// Returns the blocks of eight levels with these ends, the greater one first.
#[inline(always)]
fn eight(alpha: &[Lanes<i32>; 16], [greatest, least]: &[Lanes<i32>; 2]) -> Coded {
    let mut coded = Coded::new();
    for n in 0..16 {
        for at in 0..LANES {
            let (value, first, second) = (alpha[n][at], greatest[at], least[at]);
            let scale = 7.0 / (first - second).max(1) as f32;
            let place = rounded((value - second) as f32 * scale).min(7);
            let error = level::<7>(first, second, place) - value;
            // The ends have the codes 0 and 1, and those after them go from the first end to the second.
            let code = ((8 - place) & 7) ^ (i32::from(place == 0) | i32::from(place == 7));
            coded.codes[n / 8][at] |= code << (3 * (n % 8));
            coded.error[at] += error * error;
            coded.sums.add(at, value, place, 1);
        }
    }
    coded
}

/// Returns the blocks of six levels with these ends, the greater one first, and of 0 and 255.
#[inline(always)]
fn six(alpha: &[Lanes<i32>; 16], [greatest, least]: &[Lanes<i32>; 2]) -> Coded {
    let mut coded = Coded::new();
    for n in 0..16 {
        for at in 0..LANES {
            let (value, first, second) = (alpha[n][at], greatest[at], least[at]);
            let scale = 5.0 / (first - second).max(1) as f32;
            let place = rounded((value - second) as f32 * scale).min(5);
            let error = level::<5>(first, second, place) - value;
            let (error, white, black) =
                (error * error, (255 - value) * (255 - value), value * value);
            let is_white = i32::from(white < error && white <= black);
            let is_black = i32::from(black < error && black < white);
            // The lesser end is the first one and has the code 0, the other has 1.
            let code = place + 1 - i32::from(place == 0) - 5 * i32::from(place == 5);
            let is_between = 1 - is_white - is_black;
            let code = 7 * is_white + 6 * is_black + code * is_between;
            coded.codes[n / 8][at] |= code << (3 * (n % 8));
            coded.error[at] += error.min(white).min(black);
            coded.sums.add(at, value, place, is_between);
        }
    }
    coded
}

/// Returns the greatest and the least value of each block apart from 0 and 255.
#[inline(always)]
fn inner_ends(alpha: &[Lanes<i32>; 16]) -> [Lanes<i32>; 2] {
    let [mut greatest, mut least] = [[0; LANES], [255; LANES]];
    for values in alpha {
        for at in 0..LANES {
            let value = values[at];
            greatest[at] = greatest[at].max(if value == 255 { 0 } else { value });
            least[at] = least[at].min(if value == 0 { 255 } else { value });
        }
    }
    for at in 0..LANES {
        least[at] = least[at].min(greatest[at]);
    }
    [greatest, least]
}

/// Returns the ends of least squared error, the greater one first. They stay if all pixels are at one place, or if they
/// would meet. An end of 255 or 0 in `pinned` stays, so that opaque and transparent pixels remain so.
#[inline(always)]
fn moved<const STEPS: i32>(
    sums: &Sums,
    ends: &[Lanes<i32>; 2],
    pinned: Option<&[Lanes<i32>; 2]>,
) -> [Lanes<i32>; 2] {
    let mut moved = *ends;
    let steps = STEPS as f32;
    for at in 0..LANES {
        let (places, greater) = (sums.places[at], sums.squares[at]);
        let both = STEPS * places - greater;
        let lesser = STEPS * STEPS * sums.count[at] - STEPS * places - both;
        let determinant = greater * lesser - both * both;
        let factor = steps / determinant.max(1) as f32;
        let weight = sums.weighted[at] as f32;
        let rest = (STEPS * sums.values[at] - sums.weighted[at]) as f32;
        let [greater, both, lesser] = [greater as f32, both as f32, lesser as f32];
        let [is_opaque, is_clear] =
            pinned.map_or([false; 2], |[greatest, least]| [greatest[at] == 255, least[at] == 0]);
        // Each end is that of least error beside the other one as it was rounded.
        let first = rounded((weight * lesser - rest * both) * factor);
        let first = if is_opaque { 255 } else { first };
        let second = rounded((steps * rest - both * first as f32) / lesser.max(1.0));
        let second = if is_clear { 0 } else { second };
        let first = rounded((steps * weight - both * second as f32) / greater.max(1.0));
        let first = if is_opaque { 255 } else { first };
        let is_moved = determinant > 0 && first > second;
        moved[0][at] = if is_moved { first } else { ends[0][at] };
        moved[1][at] = if is_moved { second } else { ends[1][at] };
    }
    moved
}

/// The block of least error in each lane.
struct Best {
    ends: [Lanes<i32>; 2],
    codes: [Lanes<i32>; 2],
    error: Lanes<i32>,
}

impl Best {
    /// No blocks.
    const NONE: Self =
        Self { ends: [[0; LANES]; 2], codes: [[0; LANES]; 2], error: [i32::MAX; LANES] };

    /// Replaces blocks that have a greater error than these.
    #[inline(always)]
    fn keep(&mut self, ends: &[Lanes<i32>; 2], coded: &Coded) {
        for at in 0..LANES {
            let is_better = coded.error[at] < self.error[at];
            self.error[at] = self.error[at].min(coded.error[at]);
            for n in 0..2 {
                let [end, codes] = [&mut self.ends[n][at], &mut self.codes[n][at]];
                *end = if is_better { ends[n][at] } else { *end };
                *codes = if is_better { coded.codes[n][at] } else { *codes };
            }
        }
    }

    #[inline(always)]
    fn write(&self, blocks: &mut [[u8; 16]]) {
        for (at, block) in blocks.iter_mut().enumerate().take(LANES) {
            for n in 0..2 {
                block[n] = self.ends[n][at].to_le_bytes()[0];
                block[2 + 3 * n..][..3].copy_from_slice(&self.codes[n][at].to_le_bytes()[..3]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::decode::bc3;
    use crate::encode::bc4;

    /// Returns the block of the fast level, and the refined one.
    fn encoded(alpha: [u8; 16]) -> [[u8; 8]; 2] {
        let rgba: Vec<u8> = alpha.iter().flat_map(|&value| [1, 2, 3, value]).collect();
        let rows: Vec<&[u8]> = rgba.chunks(16).collect();
        let fast = bc4::block(&alpha);
        let mut out = [9; 16];
        out[..8].copy_from_slice(&fast);
        encode(InstructionSet::Portable, [rows[0], rows[1], rows[2], rows[3]], &mut out);
        assert_eq!(out[8..], [9; 8], "colour stays");
        [fast, *out.first_chunk().unwrap()]
    }

    /// Returns the alpha of a block.
    fn decoded(block: [u8; 8]) -> [u8; 16] {
        let (mut rgba, block) = ([0; 64], [block, [0; 8]].concat());
        bc3::decode_block_row(InstructionSet::Portable, &block, &mut rgba, 16);
        std::array::from_fn(|n| rgba[4 * n + 3])
    }

    /// Returns the sum of squared errors of a block.
    fn error(block: [u8; 8], alpha: [u8; 16]) -> u32 {
        let pairs = decoded(block).into_iter().zip(alpha);
        pairs.map(|(have, want)| u32::from(have.abs_diff(want)).pow(2)).sum()
    }

    /// The edge of a letter: few values between clear and opaque.
    #[test]
    fn values_beside_clear_and_opaque_pixels_have_six_levels_of_their_own() {
        let alpha = [0, 0, 0, 100, 0, 0, 104, 255, 0, 108, 255, 255, 112, 255, 255, 255];
        let [fast, refined] = encoded(alpha);
        assert!(error(fast, alpha) > 100 && error(refined, alpha) <= 4, "{refined:?}");
        assert!(refined[0] <= refined[1]);
    }

    proptest! {
        #[test]
        fn no_block_is_worse_and_opaque_and_clear_pixels_remain_so(
            alpha: [u8; 16], low: u8, high: u8, clear: u16, opaque: u16,
        ) {
            let (low, span) = (low.min(high), u16::from(low.abs_diff(high)));
            let mut alpha = alpha.map(|value| low + (u16::from(value) * span / 255) as u8);
            for (n, value) in alpha.iter_mut().enumerate() {
                // Some blocks have no such pixels, others have many.
                if clear & 7 > 3 && clear >> n & 1 == 1 {
                    *value = 0;
                }
                if opaque & 7 > 3 && opaque >> n & 1 == 1 {
                    *value = 255;
                }
            }
            let [fast, refined] = encoded(alpha);
            prop_assert!(error(refined, alpha) <= error(fast, alpha), "{fast:?} {refined:?}");
            for (have, want) in decoded(refined).into_iter().zip(alpha) {
                prop_assert!(![0, 255].contains(&want) || have == want, "{have} {want}");
            }
        }
    }
}
