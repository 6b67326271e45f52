//! Scaled YCoCg in BC3 without vector instructions, one block at a time.

use crate::encode::fit::Fit;
use crate::encode::line::Line;
use crate::encode::strip::{Pixels, Strip};
use crate::encode::{bc4, line, strip};
use crate::rgb565;

/// Encodes a strip of whole blocks.
pub(super) fn encode(strip: Strip<'_>, out: &mut [u8]) {
    for (pixels, out) in strip::blocks(strip).zip(out.as_chunks_mut::<16>().0) {
        let (luma, chroma) = out.split_at_mut(8);
        luma.copy_from_slice(&bc4::fitted(&pixels.map(luma_of)));
        chroma.copy_from_slice(&chroma_block(&pixels));
    }
}

/// Returns (R + B) / 2, rounded down.
fn mean(red: u8, blue: u8) -> u8 {
    red.midpoint(blue)
}

/// Returns half the sum, rounded up, as in the vector code.
fn average(a: u8, b: u8) -> u8 {
    (u16::from(a) + u16::from(b)).div_ceil(2) as u8
}

/// Returns the luma (R + 2 G + B) / 4.
fn luma_of([red, green, blue, _]: [u8; 4]) -> u8 {
    average(mean(red, blue), green)
}

/// Returns the chroma (R − B) / 2 and (2 G − R − B) / 4, around 128.
pub(in crate::encode) fn chroma_of([red, green, blue, _]: [u8; 4]) -> [u8; 2] {
    [average(red, !blue), average(green, !mean(red, blue))]
}

/// The ends of the chroma line, and the factor by which they are multiplied.
pub(in crate::encode) struct Ends {
    /// Co and Cg in 5 and 6 bits.
    first: [u16; 2],
    second: [u16; 2],
    pub(in crate::encode) scale: i32,
}

impl Ends {
    /// Creates ends from scaled chroma.
    pub(in crate::encode) fn of([first, second]: [[u8; 2]; 2], scale: i32) -> Self {
        let steps = |[orange, green]: [u8; 2]| [rgb565::five_bits(orange), rgb565::six_bits(green)];
        Self { first: steps(first), second: steps(second), scale }
    }

    /// Returns the two colours of a block: Co, Cg and the scale.
    pub(in crate::encode) fn packed(&self) -> [u16; 2] {
        let blue = u16::from(self.scale > 1) + 2 * u16::from(self.scale > 2);
        [self.first, self.second].map(|[orange, green]| orange << 11 | green << 5 | blue)
    }

    /// Returns the index of the nearest of the four colours for each pixel; 0 and 1 are the ends.
    pub(in crate::encode) fn nearest(&self, chroma: &[[u8; 2]; 16]) -> [u32; 16] {
        let Self { first, second, scale } = *self;
        let difference = |n: usize| i32::from(first[n]) - i32::from(second[n]);
        let weights = [2 * difference(0), difference(1)];
        let place =
            |[orange, green]: [i32; 2]| (orange - 128) * weights[0] + (green - 128) * weights[1];
        let end = |[orange, green]: [u16; 2]| {
            place([rgb565::from_five_bits(orange).into(), rgb565::from_six_bits(green).into()])
        };
        let line = Line::between(end(first), end(second));
        chroma.map(|chroma| line.index(place(chroma.map(i32::from)) * scale))
    }
}

fn chroma_block(pixels: &Pixels) -> [u8; 8] {
    let chroma = pixels.map(chroma_of);
    let (diagonal, scale) = Diagonal::of(&chroma);
    let indices = chroma.map(|chroma| diagonal.index(chroma));
    // The first end has the place 3.
    let octets = fitted(&chroma, indices.map(|index| [3, 0, 2, 1][index as usize & 3]), scale);
    let ends = Ends::of(octets, scale);
    if ends.first == ends.second {
        let [first, second] = apart(octets);
        let colours = Ends { first, second, scale }.packed();
        return line::ordered(colours, line::bits([2; 16]));
    }
    line::ordered(ends.packed(), line::bits(indices))
}

/// A line between opposite corners of the bounding box.
struct Diagonal {
    /// Of orange and green.
    weights: [i32; 2],
    line: Line,
}

impl Diagonal {
    /// Returns the diagonal on which the channels rise together, or one rises and one falls, and the
    /// scale.
    fn of(chroma: &[[u8; 2]; 16]) -> (Self, i32) {
        let (low, high) = corners(chroma);
        let scale = i32::from(scale_within(low.map(centred), high.map(centred)));
        let [low, high] = [low, high].map(|corner| corner.map(i32::from));
        let range = [high[0] - low[0], high[1] - low[1]];
        // 255 times the sum of both fits in 16 bits.
        let mut weights = range.map(|range| (range * scale) >> 2);
        // A third of the length after both ends moved inwards by a 32nd of it.
        let third = ((weights[0] * range[0] + weights[1] * range[1]) * 20_480) >> 16;
        if covariance(chroma, [0, 1].map(|n| ((low[n] + high[n] + 1) >> 1) as i16 - 128)) < 0 {
            weights[1] = -weights[1];
        }
        let middle = (weights[0] * (low[0] + high[0]) + weights[1] * (low[1] + high[1])) >> 1;
        (Self { weights, line: Line { middle, third } }, scale)
    }

    /// Returns the index of the nearest of the four colours; the first one is the greater end.
    fn index(&self, [orange, green]: [u8; 2]) -> u32 {
        self.line.index(i32::from(orange) * self.weights[0] + i32::from(green) * self.weights[1])
    }
}

/// Returns the ends of least squared error for these places, multiplied by the scale, the greater one
/// first.
fn fitted(chroma: &[[u8; 2]; 16], places: [i32; 16], scale: i32) -> [[u8; 2]; 2] {
    let fits = [0, 1].map(|n| Fit::of(chroma.map(|chroma| i32::from(centred(chroma[n]))), places));
    [3, 0].map(|place| {
        fits.each_ref().map(|fit| {
            let end = (fit.at(place) >> 4).clamp(-0x8000, 0x7fff);
            // In halves, so that the last bit rounds.
            let halves = ((end * scale) >> 6) + 2 * 128 + 1;
            (halves >> 1).clamp(0, 255).cast_unsigned() as u8
        })
    })
}

/// Returns steps of the ends such that the colour next to the first one is nearest to the middle of
/// these octets.
fn apart(octets: [[u8; 2]; 2]) -> [[u16; 2]; 2] {
    let [orange, green] = [0, 1].map(|n| {
        let middle = u32::from(average(octets[0][n], octets[1][n]));
        // The middle in thirds of a step.
        let thirds = ((middle * [93, 189][n] + 128) * 257) >> 16;
        let near = (thirds + 1) / 3;
        [near as u16, (thirds - 2 * near) as u16]
    });
    [0, 1].map(|n| [orange[n], green[n]])
}

pub(in crate::encode) fn ends(chroma: &[[u8; 2]; 16]) -> Ends {
    let (low, high) = corners(chroma);
    let (low, mut high) = (low.map(centred), high.map(centred));
    let scale = scale_within(low, high);
    let middle = [0, 1].map(|n| (low[n] + high[n] + 1) >> 1);
    let mut low = low;
    for channel in 0..2 {
        let (bottom, top) = (low[channel] * scale, high[channel] * scale);
        let inset = (top - bottom) >> 4;
        (low[channel], high[channel]) = (bottom + inset, top - inset);
    }
    let (mut first, mut second) = (quantised(high), quantised(low));
    // If Co is equal at both ends, the line runs along Cg in either direction. The first end then
    // stays the greater one, because some decoders read blocks in the other order as having three
    // colours, as in BC1.
    if covariance(chroma, middle) < 0 && first[0] != second[0] {
        std::mem::swap(&mut first[1], &mut second[1]);
    }
    Ends { first, second, scale: scale.into() }
}

/// Returns the corners of the bounding box: the least values and the greatest.
fn corners(chroma: &[[u8; 2]; 16]) -> ([u8; 2], [u8; 2]) {
    let (mut low, mut high) = ([255; 2], [0; 2]);
    for pixel in chroma {
        for channel in 0..2 {
            low[channel] = pixel[channel].min(low[channel]);
            high[channel] = pixel[channel].max(high[channel]);
        }
    }
    (low, high)
}

fn centred(octet: u8) -> i16 {
    i16::from(octet) - 128
}

/// Returns the greatest factor, 1, 2 or 4, that keeps all chroma of the block within 8 bits.
fn scale_within(low: [i16; 2], high: [i16; 2]) -> i16 {
    match low.into_iter().chain(high).map(i16::abs).fold(0, i16::max) {
        ..32 => 4,
        32..64 => 2,
        _ => 1,
    }
}

/// Returns the covariance of Co and Cg. The sum of any two pixels' products fits in 16 bits.
fn covariance(chroma: &[[u8; 2]; 16], middle: [i16; 2]) -> i32 {
    let product = |&[orange, green]: &[u8; 2]| {
        i32::from(centred(orange) - middle[0]) * i32::from(centred(green) - middle[1])
    };
    chroma.iter().map(product).sum()
}

fn quantised([orange, green]: [i16; 2]) -> [u16; 2] {
    let octet = |value: i16| (value + 128).cast_unsigned() as u8;
    [rgb565::five_bits(octet(orange)), rgb565::six_bits(octet(green))]
}
