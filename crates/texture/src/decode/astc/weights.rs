//! The weights of pixels: those of a grid, interpolated.
#![allow(
    clippy::inline_always,
    reason = "a loop is compiled for each set only where it is inlined"
)]

use crate::decode::astc::PIXELS;
use crate::decode::astc::mode::{Mode, RANGES};
use crate::decode::astc::sequence;
use crate::decode::astc::sequence::{Range, Table, Values};
use crate::format::Block;

/// The weights of the levels of each range (section C.2.17).
static VALUES: [Table; 16] = {
    let mut values = [[0; 256]; 16];
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
    let mut six = 0;
    if range.digits == 1 {
        // The bits are repeated.
        let mut shift = 0;
        while bits > 0 && shift < 6 {
            six |= level << 6 >> (bits + shift);
            shift += bits;
        }
    } else if bits == 0 {
        return (level * 64 / (range.digits as u32 - 1)) as u8;
    } else {
        let (digit, upper) = (level >> bits, (level & ((1 << bits) - 1)) >> 1);
        let sum = match (range.digits, bits) {
            (3, 1) => digit * 50,
            (3, 2) => digit * 23 + (upper << 6 | upper << 2 | upper),
            (3, _) => digit * 11 + (upper << 5 | upper),
            (_, 1) => digit * 28,
            _ => digit * 13 + (upper << 6 | upper << 1),
        };
        // The lowest bit selects the upper half, in which levels count downwards.
        let mirror = if level & 1 == 1 { 0x7f } else { 0 };
        six = mirror & 0x20 | (sum ^ mirror) >> 2;
    }
    (if six > 32 { six + 1 } else { six }) as u8
}

/// Room for the weights of a block.
pub(super) struct Weights {
    /// Those of the grid, in which those of two planes take turns.
    grid: Values,
    /// Those of each pixel, and room for the rest of the last vector.
    planes: [[u8; PIXELS + LANES]; 2],
}

/// Columns that are interpolated at once: at least those of the widest block.
const LANES: usize = 16;

impl Weights {
    pub(super) fn new() -> Self {
        Self { grid: [0; 128], planes: [[0; PIXELS + LANES]; 2] }
    }

    /// Reads the weights of a block and returns those of each pixel in both planes, of which the second one
    /// may be absent.
    #[inline(always)]
    pub(super) fn read(&mut self, block: u128, mode: Mode, shape: Block) -> [&[u8]; 2] {
        let index = usize::from(mode.range) % RANGES.len();
        let count = u32::from(mode.width) * u32::from(mode.height) * u32::from(mode.planes);
        // They begin at the last bit and go backwards.
        let range = (RANGES[index], &VALUES[index]);
        sequence::read(range, block.reverse_bits(), count, &mut self.grid);
        let is_whole =
            shape.width == u32::from(mode.width) && shape.height == u32::from(mode.height);
        match (is_whole, mode.planes) {
            (true, 1) => return [&self.grid, &[]],
            (true, _) => {
                let [first, second] = &mut self.planes;
                let pairs = self.grid.as_chunks::<2>().0;
                for ((pair, first), second) in pairs.iter().zip(first).zip(second) {
                    (*first, *second) = (pair[0], pair[1]);
                }
            }
            (false, 1) => interpolate::<1>(&self.grid, (mode, shape), &mut self.planes),
            (false, _) => interpolate::<2>(&self.grid, (mode, shape), &mut self.planes),
        }
        let [first, second] = &self.planes;
        [first, second]
    }
}

/// Positions between the columns or rows of a grid: the numbers of those before them, and how near those
/// after them are, in sixteenths.
struct Positions {
    before: [usize; LANES],
    parts: [i16; LANES],
}

impl Positions {
    /// Returns the positions of a block's `side` columns or rows in a grid with `count` of them.
    #[inline(always)]
    fn new(side: u32, count: u8) -> Self {
        let step = STEPS[side as usize % STEPS.len()] * (u32::from(count) - 1);
        let mut positions = Self { before: [0; LANES], parts: [0; LANES] };
        for at in 0..(side as usize).min(LANES) {
            let sixteenths = (step * at as u32 + 32) >> 6;
            positions.before[at] = (sixteenths >> 4) as usize;
            positions.parts[at] = (sixteenths & 15).cast_signed() as i16;
        }
        positions
    }
}

/// 1024 divided by one less than a side.
const STEPS: [u32; 13] = {
    let mut steps = [0; 13];
    let mut side = 2;
    while side < 13 {
        steps[side as usize] = (1024 + side / 2) / (side - 1);
        side += 1;
    }
    steps
};

/// A value of each column of a block.
type Row = [i16; LANES];

/// Interpolates between the four nearest weights of a grid (section C.2.18).
#[inline(always)]
fn interpolate<const PLANES: usize>(
    grid: &Values,
    (mode, shape): (Mode, Block),
    planes: &mut [[u8; PIXELS + LANES]; 2],
) {
    let columns = Positions::new(shape.width, mode.width);
    let rows = Positions::new(shape.height, mode.height);
    let [width, grid_width] = [shape.width as usize, usize::from(mode.width)];
    for (plane, out) in planes.iter_mut().take(PLANES).enumerate() {
        // The weights to the left and right of each column, in each row of the grid; those beyond the
        // last one count nothing.
        let mut sides: [[Row; 2]; 13] = [[[0; LANES]; 2]; 13];
        for (y, [left, right]) in sides.iter_mut().take(usize::from(mode.height)).enumerate() {
            for x in 0..width.min(LANES) {
                let at = (y * grid_width + columns.before[x]) * PLANES + plane;
                left[x] = i16::from(grid[at % grid.len()]);
                right[x] = i16::from(grid[(at + PLANES) % grid.len()]);
            }
        }
        for y in 0..shape.height as usize {
            let above = rows.before[y % LANES] % 12;
            let weights =
                between(&sides[above], &sides[above + 1], &columns.parts, rows.parts[y % LANES]);
            if let Some(out) = out.get_mut(y * width..).and_then(|out| out.first_chunk_mut()) {
                *out = weights;
            }
        }
    }
}

/// Returns the weights of a row between two of the grid.
#[inline(always)]
fn between(above: &[Row; 2], below: &[Row; 2], columns: &Row, row: i16) -> [u8; LANES] {
    let mut weights = [0; LANES];
    for x in 0..LANES {
        let both = (columns[x] * row + 8) >> 4;
        let [a, b, c, d] = [above[0][x], above[1][x], below[0][x], below[1][x]];
        let sum = 16 * a + columns[x] * (b - a) + row * (c - a) + both * (a - b - c + d);
        weights[x] = ((sum + 8) >> 4).cast_unsigned() as u8;
    }
    weights
}
