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
    let colours = pixels.map(|[red, green, blue, _]| [red, green, blue]);
    let ends = ends(pixels).map(quantised);
    line::ordered(ends.map(packed), line::bits(nearest(&colours, ends)))
}

/// Returns opposite corners of the bounding box, moved inwards: the greater end and the lesser.
pub(in crate::encode) fn ends(pixels: &Pixels) -> [[u8; 3]; 2] {
    let falls = falling(pixels);
    let (low, high) = corners(pixels);
    let (mut high, mut low) = (inside(high, low), inside(low, high));
    for channel in [0, 2] {
        if falls[channel / 2] {
            std::mem::swap(&mut high[channel], &mut low[channel]);
        }
    }
    [high, low]
}

/// Returns the index of the nearest of the four colours for each pixel; 0 and 1 are the ends.
pub(in crate::encode) fn nearest(
    pixels: &[[u8; 3]; 16],
    [greater, lesser]: [[u16; 3]; 2],
) -> [u32; 16] {
    let weights = weights(lesser, greater);
    let ends = [greater, lesser].map(|colour| place(expanded(colour), weights));
    let line = Line::between(ends[0], ends[1]);
    pixels.map(|colour| line.index(place(colour, weights)))
}

/// Returns whether red, and whether blue, falls: most pixels that have more of it have less green, or less
/// of the other of the two.
///
/// Of the four diagonals of the bounding box, the one is chosen on whose side of the middle the
/// channels agree for most pixels. Every second pixel is looked at, as on a chessboard.
fn falling(pixels: &Pixels) -> [bool; 2] {
    let (low, high) = corners(pixels);
    let middle = [0, 1, 2].map(|n| low[n].midpoint(high[n]) + (low[n] ^ high[n]) % 2);
    let mut differ = [0; 3];
    for at in [0, 2, 5, 7, 8, 10, 13, 15] {
        let is_above = |n: usize| pixels[at][n] >= middle[n];
        for (n, differ) in differ.iter_mut().enumerate() {
            *differ += i32::from(is_above(n) != is_above((n + 1) % 3));
        }
    }
    // The last two bits decide where the numbers of pixels are equal.
    let both = 4 * (differ[0] + differ[1]) + 2;
    let blue = 4 * (differ[1] + differ[2]);
    let red = 4 * (differ[2] + differ[0]) + 1;
    // None falls unless half of the pixels of both pairs of channels are exceeded.
    let most = both.max(blue).max(red).max(4 * 8 + 3);
    let falls = |alone: i32| most == both || most == alone;
    [falls(red), falls(blue)]
}

/// Returns the corners of the bounding box of all colours.
fn corners<const N: usize>(pixels: &[[u8; N]; 16]) -> ([u8; 3], [u8; 3]) {
    let (mut low, mut high) = ([255; 3], [0; 3]);
    for pixel in pixels {
        for channel in 0..3 {
            low[channel] = pixel[channel].min(low[channel]);
            high[channel] = pixel[channel].max(high[channel]);
        }
    }
    (low, high)
}

/// Returns a corner moved towards the other one by 9/128 of their distance.
fn inside(corner: [u8; 3], other: [u8; 3]) -> [u8; 3] {
    [0, 1, 2].map(|n| {
        let range = corner[n].abs_diff(other[n]);
        let inset = ((range >> 3) + (range >> 6)).div_ceil(2);
        if corner[n] < other[n] { corner[n] + inset } else { corner[n] - inset }
    })
}

pub(in crate::encode) fn quantised([red, green, blue]: [u8; 3]) -> [u16; 3] {
    [rgb565::five_bits(red), rgb565::six_bits(green), rgb565::five_bits(blue)]
}

fn expanded([red, green, blue]: [u16; 3]) -> [u8; 3] {
    [rgb565::from_five_bits(red), rgb565::from_six_bits(green), rgb565::from_five_bits(blue)]
}

pub(in crate::encode) fn packed([red, green, blue]: [u16; 3]) -> u16 {
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
