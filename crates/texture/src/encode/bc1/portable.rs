//! BC1 without vector instructions, one block at a time.

use crate::encode::line::Line;
use crate::encode::strip::{Pixels, Strip};
use crate::encode::{line, strip};
use crate::rgb565;

/// Encodes a strip of whole blocks.
pub(super) fn encode(strip: Strip<'_>, out: &mut [u8]) {
    for (pixels, out) in strip::blocks(strip).zip(out.as_chunks_mut().0) {
        *out = block(&pixels);
    }
}

/// Encodes one block.
pub(in crate::encode) fn block(pixels: &Pixels) -> [u8; 8] {
    let (low, high) = corners(pixels);
    let (low, high) = (quantised(low), quantised(high));
    let weights = weights(low, high);
    let ends = [high, low].map(|colour| place(expanded(colour), weights));
    let line = Line::between(ends[0], ends[1]);
    let mut indices = 0;
    for &[red, green, blue, _] in pixels.iter().rev() {
        indices = (indices << 2) | line.index(place([red, green, blue], weights));
    }
    line::block(packed(high), packed(low), indices)
}

/// Returns the corners of the bounding box of all colours, each moved inwards by a sixteenth.
fn corners(pixels: &Pixels) -> ([u8; 3], [u8; 3]) {
    let (mut low, mut high) = ([255; 4], [0; 4]);
    for pixel in pixels {
        for channel in 0..4 {
            low[channel] = pixel[channel].min(low[channel]);
            high[channel] = pixel[channel].max(high[channel]);
        }
    }
    let inset = |channel: usize| (high[channel] - low[channel]) >> 4;
    let inside = |n: usize| (low[n] + inset(n), high[n] - inset(n));
    let [red, green, blue] = [inside(0), inside(1), inside(2)];
    ([red.0, green.0, blue.0], [red.1, green.1, blue.1])
}

fn quantised([red, green, blue]: [u8; 3]) -> [u16; 3] {
    [rgb565::five_bits(red), rgb565::six_bits(green), rgb565::five_bits(blue)]
}

fn expanded([red, green, blue]: [u16; 3]) -> [u8; 3] {
    [rgb565::from_five_bits(red), rgb565::from_six_bits(green), rgb565::from_five_bits(blue)]
}

fn packed([red, green, blue]: [u16; 3]) -> u16 {
    red << 11 | green << 5 | blue
}

/// Returns the direction of the line, in 6-bit steps.
fn weights(low: [u16; 3], high: [u16; 3]) -> [i32; 3] {
    let difference = |n: usize| i32::from(high[n]) - i32::from(low[n]);
    [2 * difference(0), difference(1), 2 * difference(2)]
}

/// Returns the position of a colour on the line.
fn place(colour: [u8; 3], weights: [i32; 3]) -> i32 {
    colour.into_iter().zip(weights).map(|(channel, weight)| i32::from(channel) * weight).sum()
}
