//! The ends of the lines on which the colours of a block lie.
#![allow(
    clippy::inline_always,
    reason = "a loop is compiled for each set only where it is inlined"
)]

use crate::decode::astc::mode::Mode;
use crate::decode::astc::sequence;
use crate::decode::astc::sequence::{Range, Table};

/// The ranges of endpoint values, the largest first.
const RANGES: [Range; 17] = [
    Range::new(1, 8),
    Range::new(3, 6),
    Range::new(5, 5),
    Range::new(1, 7),
    Range::new(3, 5),
    Range::new(5, 4),
    Range::new(1, 6),
    Range::new(3, 4),
    Range::new(5, 3),
    Range::new(1, 5),
    Range::new(3, 3),
    Range::new(5, 2),
    Range::new(1, 4),
    Range::new(3, 2),
    Range::new(5, 1),
    Range::new(1, 3),
    Range::new(3, 1),
];

/// The most values of a block.
const MOST: usize = 18;

/// The index of the largest range with which so many pairs of values have at most so many bits; otherwise
/// the number of ranges.
static FITTING: [[u8; 129]; MOST / 2 + 1] = {
    let mut fitting = [[RANGES.len() as u8; 129]; MOST / 2 + 1];
    let mut pairs = 1;
    while pairs < fitting.len() {
        let mut at = RANGES.len();
        while at > 0 {
            at -= 1;
            let mut bits = RANGES[at].bits_of(2 * pairs as u32) as usize;
            while bits < 129 {
                fitting[pairs][bits] = at as u8;
                bits += 1;
            }
        }
        pairs += 1;
    }
    fitting
};

/// The values from 0 to 255 of the levels of each range (section C.2.13).
static VALUES: [Table; RANGES.len()] = {
    let mut values = [[0; 256]; RANGES.len()];
    let mut at = 0;
    while at < RANGES.len() {
        let mut level = 0;
        while level < RANGES[at].levels() {
            values[at][level] = value(RANGES[at], level as u32);
            level += 1;
        }
        at += 1;
    }
    values
};

const fn value(range: Range, level: u32) -> u8 {
    let bits = range.bits as u32;
    if range.digits == 1 {
        // The bits are repeated.
        let mut value = level << (8 - bits);
        let mut shift = bits;
        while shift < 8 {
            value |= level << (8 - bits) >> shift;
            shift += bits;
        }
        return value as u8;
    }
    let (digit, upper) = (level >> bits, (level & ((1 << bits) - 1)) >> 1);
    let (factor, sum) = match (range.digits, bits) {
        (3, 1) => (204, 0),
        (3, 2) => (93, upper << 8 | upper << 4 | upper << 2 | upper << 1),
        (3, 3) => (44, upper << 7 | upper << 2 | upper),
        (3, 4) => (22, upper << 6 | upper),
        (3, 5) => (11, upper << 5 | upper >> 2),
        (3, _) => (5, upper << 4 | upper >> 4),
        (_, 1) => (113, 0),
        (_, 2) => (54, upper << 8 | upper << 3 | upper << 2),
        (_, 3) => (26, upper << 7 | upper << 1 | upper >> 1),
        (_, 4) => (13, upper << 6 | upper >> 1),
        _ => (6, upper << 5 | upper >> 3),
    };
    // The lowest bit selects the upper half, in which levels count downwards.
    let mirror = if level & 1 == 1 { 0x1ff } else { 0 };
    (mirror & 0x80 | ((digit * factor + sum) ^ mirror) >> 2) as u8
}

/// A line between two colours, of which each channel has 16 bits, those of red being the lowest.
#[derive(Clone, Copy, Default)]
pub(super) struct Line {
    /// The first end, 64 times.
    start: u64,
    /// What a weight adds for each 1/64 of the way to the other end, modulo 2⁶⁴: a weight of the first
    /// plane and one of the second.
    steps: [u64; 2],
}

impl Line {
    /// Takes the ends, and a mask of the channel that has the second plane.
    #[inline]
    fn new(first: u64, second: u64, channel: u64) -> Self {
        let own = (second & channel).wrapping_sub(first & channel);
        let others = second.wrapping_sub(first).wrapping_sub(own);
        Self { start: first << 6, steps: [others, own] }
    }

    /// Returns the channels, 64 times, at a weight of at most 64.
    #[inline(always)]
    pub(super) fn at(self, weight: u8) -> u64 {
        self.start.wrapping_add(self.steps[0].wrapping_mul(u64::from(weight)))
    }

    /// Returns the channels, 64 times, at weights of both planes.
    #[inline(always)]
    pub(super) fn at_both(self, first: u8, second: u8) -> u64 {
        self.at(first).wrapping_add(self.steps[1].wrapping_mul(u64::from(second)))
    }
}

/// Reads the line of each partition, and returns the number of partitions; returns `None` if the block is
/// illegal (section C.2.24) or of high dynamic range.
pub(super) fn read(block: u128, mode: Mode, lines: &mut [Line; 4]) -> Option<usize> {
    let partitions = (block >> 11 & 3) as usize + 1;
    if partitions == 4 && mode.planes == 2 {
        return None;
    }
    let (kinds, extra) = kinds(block, partitions as u32, u32::from(mode.bits));
    let kinds = (0..partitions).map(|n| kinds >> (4 * n) & 15);
    let pairs: u32 = kinds.clone().map(|kind| (kind >> 2) + 1).sum();
    let start = if partitions == 1 { 17 } else { 29 };
    let end = 128 - u32::from(mode.bits) - extra - 2 * (u32::from(mode.planes) - 1);
    let available = end.checked_sub(start)?;
    let range = usize::from(*FITTING.get(pairs as usize)?.get(available as usize)?);
    let range = (*RANGES.get(range)?, VALUES.get(range)?);
    let mut values = [0; 128];
    sequence::read(range, block >> start, 2 * pairs, &mut values);
    let channel = if mode.planes == 2 { 0xffff << (16 * ((block >> end) as u32 & 3)) } else { 0 };
    let mut at = 0;
    for (line, kind) in lines.iter_mut().zip(kinds) {
        let (first, second) = ends_of(kind, |n| i32::from(values[(at + n) % values.len()]))?;
        *line = Line::new(packed(first), packed(second), channel);
        at += 2 * (kind as usize >> 2) + 2;
    }
    Some(partitions)
}

/// Returns the endpoint mode of each partition, in four bits each, and the number of their bits below the
/// weights (section C.2.11).
#[inline]
fn kinds(block: u128, partitions: u32, weight_bits: u32) -> (u32, u32) {
    if partitions == 1 {
        return ((block >> 13 & 15) as u32, 0);
    }
    let field = (block >> 23 & 63) as u32;
    if field.is_multiple_of(4) {
        return ((field >> 2) * 0x1111, 0);
    }
    let extra = 3 * partitions - 4;
    let below_weights = (block >> (128 - weight_bits - extra)) as u32 & ((1 << extra) - 1);
    let field = field | below_weights << 6;
    let mut kinds = 0;
    for partition in 0..partitions {
        let class = (field & 3) - 1 + (field >> (2 + partition) & 1);
        let kind = class << 2 | field >> (2 + partitions + 2 * partition) & 3;
        kinds |= kind << (4 * partition);
    }
    (kinds, extra)
}

/// Red, green, blue and alpha, which may be beyond 0 and 255.
type Colour = [i32; 4];

/// Decodes the ends of a line (section C.2.14) from values, which are read one by one as they were
/// written; returns `None` if they are of high dynamic range.
#[inline]
fn ends_of(kind: u32, v: impl Fn(usize) -> i32) -> Option<(Colour, Colour)> {
    Some(match kind {
        0 => ([v(0), v(0), v(0), 255], [v(1), v(1), v(1), 255]),
        1 => {
            let grey = v(0) >> 2 | v(1) & 0xc0;
            let other = grey + (v(1) & 0x3f);
            ([grey, grey, grey, 255], [other, other, other, 255])
        }
        4 => ([v(0), v(0), v(0), v(2)], [v(1), v(1), v(1), v(3)]),
        5 => {
            let [(grey, more), (alpha, more_alpha)] = [offset(v(0), v(1)), offset(v(2), v(3))];
            let other = grey + more;
            ([grey, grey, grey, alpha], [other, other, other, alpha + more_alpha])
        }
        6 | 10 => {
            let scaled = [0, 1, 2].map(|channel| (v(channel) * v(3)) >> 8);
            let (alpha, other) = if kind == 6 { (255, 255) } else { (v(4), v(5)) };
            ([scaled[0], scaled[1], scaled[2], alpha], [v(0), v(1), v(2), other])
        }
        8 | 12 => {
            let (alpha, other) = if kind == 8 { (255, 255) } else { (v(6), v(7)) };
            let (first, second) = ([v(0), v(2), v(4), alpha], [v(1), v(3), v(5), other]);
            if v(0) + v(2) + v(4) <= v(1) + v(3) + v(5) {
                (first, second)
            } else {
                (contracted(second), contracted(first))
            }
        }
        9 | 13 => {
            let [red, green, blue] = [0, 2, 4].map(|at| offset(v(at), v(at + 1)));
            let alpha = if kind == 9 { (255, 0) } else { offset(v(6), v(7)) };
            let first = [red.0, green.0, blue.0, alpha.0];
            let second = [red, green, blue, alpha].map(|(value, more)| value + more);
            if red.1 + green.1 + blue.1 >= 0 {
                (first, second)
            } else {
                (contracted(second), contracted(first))
            }
        }
        _ => return None,
    })
}

/// Returns a base and an offset from -32 to 31, which takes its highest bit from the base.
#[inline]
fn offset(base: i32, offset: i32) -> (i32, i32) {
    (base >> 1 | offset & 0x80, ((offset >> 1 & 0x3f) ^ 0x20) - 0x20)
}

/// Moves red and green towards blue ("blue contraction").
#[inline]
fn contracted([red, green, blue, alpha]: Colour) -> Colour {
    [(red + blue) >> 1, (green + blue) >> 1, blue, alpha]
}

/// Clamps a colour, and gives each channel 16 bits.
#[inline]
fn packed(colour: Colour) -> u64 {
    let [red, green, blue, alpha] =
        colour.map(|channel| u64::from(channel.clamp(0, 255).cast_unsigned()));
    red | green << 16 | blue << 32 | alpha << 48
}
