//! The colours of blocks: two, and octets that pixels add to one of them or subtract.
#![allow(
    clippy::inline_always,
    reason = "a loop is compiled for each set only where it is inlined"
)]
#![allow(clippy::needless_range_loop, reason = "a loop has the lanes of several arrays")]

use crate::decode::lanes;
use crate::decode::lanes::{BLOCKS, Octets, Words, either, mask};

/// Returns red, green and blue of the same value, the first of them in the lowest octet.
const fn each(octet: u32) -> u32 {
    octet * 0x01_01_01
}

/// The smaller and the larger modifier of each table.
const MODIFIERS: [[u8; 2]; 8] =
    [[2, 8], [5, 17], [9, 29], [13, 42], [18, 60], [24, 80], [33, 106], [47, 183]];

/// The distances of T and H blocks.
const DISTANCES: [u8; 8] = [3, 6, 11, 16, 23, 32, 41, 64];

/// What pixels select from in each block. T and H blocks are not divided: they have the first half only.
pub(super) struct Colours {
    /// Red, green and blue of the pixels at the upper left and right, and at the lower left and right.
    bases: [[Octets; 3]; 4],
    /// What they add or subtract if the lower bit of their index is 0, and if it is 1.
    modifiers: [[Octets; 2]; 4],
    /// The second colour of T and H blocks.
    second: [Octets; 3],
    /// Masks of T and H blocks.
    is_t: Octets,
    is_h: Octets,
}

impl Colours {
    /// Takes the first word of each block: octets of red, green, blue and control, from the lowest up.
    #[inline(always)]
    pub(super) fn new<const ALL_MODES: bool>(heads: &Words) -> Self {
        let mut ends = halves(heads);
        let mut tables = [[[0; BLOCKS]; 2]; 2];
        modifiers(&lanes::octets(heads, 29), &mut tables[0]);
        modifiers(&lanes::octets(heads, 26), &mut tables[1]);
        let [mut is_t, mut is_h] = [[0; BLOCKS]; 2];
        if ALL_MODES {
            let overflows = overflows(heads);
            for at in 0..BLOCKS {
                let (red, green) = (overflows[at] as u8, (overflows[at] >> 8) as u8);
                is_t[at] = mask(red != 0);
                is_h[at] = mask(red == 0 && green != 0);
            }
            let others = [t_ends(heads), h_ends(heads)];
            for (is, others) in [&is_t, &is_h].into_iter().zip(&others) {
                for end in 0..2 {
                    for at in 0..BLOCKS {
                        let is = u32::from(is[at]) * 0x01_01_01_01;
                        ends[end][at] = others[end][at] & is | ends[end][at] & !is;
                    }
                }
            }
            distances(&distance_numbers(heads, &is_h, &ends), (&is_t, &is_h), &mut tables[0]);
        }
        let mut colours = [[[0; BLOCKS]; 3]; 2];
        for end in 0..2 {
            for channel in 0..3 {
                colours[end][channel] = lanes::octets(&ends[end], 8 * channel as u32);
            }
        }
        let (mut bases, mut modifiers) = ([[[0; BLOCKS]; 3]; 4], [[[0; BLOCKS]; 2]; 4]);
        for quarter in 0..4 {
            let is_second = seconds(heads, (&is_t, &is_h), quarter);
            choose(&is_second, &colours, &mut bases[quarter]);
            choose(&is_second, &tables, &mut modifiers[quarter]);
        }
        let [_, second] = colours;
        Self { bases, modifiers, second, is_t, is_h }
    }

    /// Returns red, green and blue of a pixel of each block; a bit of two octets is its index, the upper
    /// one first.
    #[inline(always)]
    pub(super) fn select<const ALL_MODES: bool>(
        &self,
        (x, y): (usize, usize),
        [upper, lower]: [&Octets; 2],
        bit: u8,
    ) -> [Octets; 3] {
        let (bases, modifiers) =
            (&self.bases[y / 2 * 2 + x / 2], &self.modifiers[y / 2 * 2 + x / 2]);
        let mut colour = [[0; BLOCKS]; 3];
        for at in 0..BLOCKS {
            let [upper, lower] = [mask(upper[at] & bit != 0), mask(lower[at] & bit != 0)];
            let modifier = either(lower, modifiers[1][at], modifiers[0][at]);
            let [mut is_less, mut is_second] = [upper, 0];
            if ALL_MODES {
                is_less = either(self.is_h[at], lower, upper);
                is_second = (self.is_t[at] | self.is_h[at]) & upper | self.is_t[at] & lower;
            }
            let [more, less] = [modifier & !is_less, modifier & is_less];
            for channel in 0..3 {
                let mut base = bases[channel][at];
                if ALL_MODES {
                    base = either(is_second, self.second[channel][at], base);
                }
                colour[channel][at] = base.saturating_add(more).saturating_sub(less);
            }
        }
        colour
    }
}

/// Returns the colours of both halves of individual and differential blocks.
#[inline(always)]
fn halves(heads: &Words) -> [Words; 2] {
    let mut ends = [[0; BLOCKS]; 2];
    for at in 0..BLOCKS {
        let head = heads[at];
        let is_differential = (head >> 25 & 1).wrapping_neg();
        let [five, sum] = [head >> 3 & each(0x1f), sums(head) & each(0x1f)];
        let [upper, lower] = [head >> 4 & each(0x0f), head & each(0x0f)];
        let eight = |five: u32| five << 3 | five >> 2 & each(0x07);
        let either = |one: u32, other: u32| one & is_differential | other & !is_differential;
        ends[0][at] = either(eight(five), upper * 17);
        ends[1][at] = either(eight(sum), lower * 17);
    }
    ends
}

/// Returns the sums of colours and differences, plus 32 in each octet.
#[inline(always)]
fn sums(head: u32) -> u32 {
    // A difference has three bits, of which the highest is the sign.
    (head >> 3 & each(0x1f)) + ((head & each(0x07)) ^ each(0x04)) + each(0x1c)
}

/// Returns whether a difference overflows in any block.
#[inline(always)]
pub(super) fn any_overflows(heads: &Words) -> bool {
    let mut any = 0;
    for overflow in overflows(heads) {
        any |= overflow;
    }
    any != 0
}

/// Returns words of which the octets of red, green and blue are not 0 where the difference overflows.
#[inline(always)]
pub(super) fn overflows(heads: &Words) -> Words {
    let mut overflows = [0; BLOCKS];
    for at in 0..BLOCKS {
        let is_differential = (heads[at] >> 25 & 1).wrapping_neg();
        overflows[at] = (sums(heads[at]) ^ each(0x20)) & each(0x60) & is_differential;
    }
    overflows
}

/// Finds the modifiers of tables, whose numbers are the lowest three bits.
#[inline(always)]
fn modifiers(tables: &Octets, modifiers: &mut [Octets; 2]) {
    for (table, [smaller, larger]) in (0..).zip(MODIFIERS) {
        for at in 0..BLOCKS {
            let is = mask(tables[at] & 7 == table);
            modifiers[0][at] |= smaller & is;
            modifiers[1][at] |= larger & is;
        }
    }
}

/// Returns colours from four bits each, of which the lowest are those of blue.
#[inline(always)]
fn of_twelve(bits: u32) -> u32 {
    (bits >> 8 & 15 | (bits & 0xf0) << 4 | (bits & 15) << 16) * 17
}

/// Returns the two colours of T blocks.
#[inline(always)]
fn t_ends(heads: &Words) -> [Words; 2] {
    let mut ends = [[0; BLOCKS]; 2];
    for at in 0..BLOCKS {
        let head = heads[at].swap_bytes();
        ends[0][at] = of_twelve((head >> 27 & 3) << 10 | (head >> 24 & 3) << 8 | head >> 16 & 0xff);
        ends[1][at] = of_twelve(head >> 4);
    }
    ends
}

/// Returns the two colours of H blocks.
#[inline(always)]
fn h_ends(heads: &Words) -> [Words; 2] {
    let mut ends = [[0; BLOCKS]; 2];
    for at in 0..BLOCKS {
        let head = heads[at].swap_bytes();
        let upper = (head >> 27 & 15) << 8 | (head >> 24 & 7) << 5;
        ends[0][at] = of_twelve(upper | (head >> 19 & 3) << 3 | head >> 15 & 7);
        ends[1][at] = of_twelve(head >> 3);
    }
    ends
}

/// Returns the numbers of the distances of T and H blocks. The lowest bit of those of H blocks is the
/// order of the colours.
#[inline(always)]
fn distance_numbers(heads: &Words, is_h: &Octets, [first, second]: &[Words; 2]) -> Octets {
    let mut distances = [0; BLOCKS];
    for at in 0..BLOCKS {
        let control = (heads[at] >> 24) as u8;
        // Red counts most.
        let is_first = first[at].swap_bytes() >= second[at].swap_bytes();
        let of_h = control & 4 | (control & 1) << 1 | u8::from(is_first);
        distances[at] = either(is_h[at], of_h, control >> 1 & 6 | control & 1);
    }
    distances
}

/// Replaces modifiers by distances. The pixels of a T block with its second colour have none.
#[inline(always)]
fn distances(numbers: &Octets, (is_t, is_h): (&Octets, &Octets), modifiers: &mut [Octets; 2]) {
    let mut distances = [0; BLOCKS];
    for (number, distance) in (0..).zip(DISTANCES) {
        for at in 0..BLOCKS {
            distances[at] |= distance & mask(numbers[at] == number);
        }
    }
    for at in 0..BLOCKS {
        modifiers[0][at] = either(is_t[at] | is_h[at], distances[at] & is_h[at], modifiers[0][at]);
        modifiers[1][at] = either(is_t[at] | is_h[at], distances[at], modifiers[1][at]);
    }
}

/// Returns masks of the blocks of which a quarter belongs to the second half.
#[inline(always)]
fn seconds(heads: &Words, (is_t, is_h): (&Octets, &Octets), quarter: usize) -> Octets {
    let (below, right) = (mask(quarter / 2 == 1), mask(quarter % 2 == 1));
    let mut is_second = lanes::octets(heads, 24);
    for at in 0..BLOCKS {
        let is_flipped = mask(is_second[at] & 1 != 0);
        is_second[at] = either(is_flipped, below, right) & !(is_t[at] | is_h[at]);
    }
    is_second
}

/// Selects one of two values of each block.
#[inline(always)]
fn choose<const N: usize>(is_second: &Octets, ends: &[[Octets; N]; 2], out: &mut [Octets; N]) {
    for n in 0..N {
        for at in 0..BLOCKS {
            out[n][at] = either(is_second[at], ends[1][n][at], ends[0][n][at]);
        }
    }
}
