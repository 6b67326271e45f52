//! Refined lines without vector instructions, one block at a time.
#![allow(clippy::cast_sign_loss, reason = "a number below 0 becomes 0, as in the vector code")]

use crate::encode::refined::{TURNS, flat};
use crate::encode::strip::{Pixels, Strip};
use crate::encode::ycocg_bc3::portable as chroma;
use crate::encode::{bc1, line, strip};

/// Encodes a strip of whole blocks as BC1, in the last eight of each `SIZE` bytes.
pub(super) fn encode<const SIZE: usize>(strip: Strip<'_>, out: &mut [u8]) {
    for (pixels, out) in strip::blocks(strip).zip(out.as_chunks_mut::<SIZE>().0) {
        if let Some(out) = out.last_chunk_mut() {
            *out = block(&pixels);
        }
    }
}

/// Replaces the chroma of scaled YCoCg in BC3.
pub(super) fn encode_chroma(strip: Strip<'_>, out: &mut [u8]) {
    for (pixels, out) in strip::blocks(strip).zip(out.as_chunks_mut::<16>().0) {
        if let Some(out) = out.last_chunk_mut() {
            *out = chroma_block(&pixels.map(chroma::chroma_of));
        }
    }
}

fn block(pixels: &Pixels) -> [u8; 8] {
    let mut ends = bc1::portable::ends(pixels).map(bc1::portable::quantised);
    let colours = pixels.map(|[red, green, blue, _]| [red, green, blue]);
    for _ in 0..TURNS {
        let indices = bc1::portable::nearest(&colours, ends);
        let Some(solved) = solved(&colours, &indices) else {
            return flat::colour_of(totals(&colours));
        };
        let octet = |value: f32| (value + 0.5) as u8;
        ends = solved.map(|end| bc1::portable::quantised(end.map(octet)));
    }
    let indices = bc1::portable::nearest(&colours, ends);
    line::ordered(ends.map(bc1::portable::packed), line::bits(indices))
}

fn chroma_block(chroma: &[[u8; 2]; 16]) -> [u8; 8] {
    let mut ends = chroma::ends(chroma);
    for _ in 0..TURNS {
        let Some(solved) = solved(chroma, &ends.nearest(chroma)) else {
            return flat::chroma_of(totals(chroma), ends.scale);
        };
        let octet = |value: f32| ((value - 128.0) * ends.scale as f32 + 128.5) as u8;
        ends = chroma::Ends::of(solved.map(|end| end.map(octet)), ends.scale);
    }
    line::ordered(ends.packed(), line::bits(ends.nearest(chroma)))
}

/// Returns the sum of each channel.
fn totals<const C: usize>(pixels: &[[u8; C]; 16]) -> [i32; C] {
    let mut totals = [0; C];
    for pixel in pixels {
        for (total, &channel) in totals.iter_mut().zip(pixel) {
            *total += i32::from(channel);
        }
    }
    totals
}

/// Returns the ends of least squared error for pixels with these indices, the greater one first; `None` if all
/// have the same.
fn solved<const C: usize>(pixels: &[[u8; C]; 16], indices: &[u32; 16]) -> Option<[[f32; C]; 2]> {
    // The greater end has the place 3.
    let places = indices.map(|index| [3, 0, 2, 1][index as usize & 3]);
    let sum: i32 = places.iter().sum();
    let greater: i32 = places.iter().map(|place| place * place).sum();
    let both = 3 * sum - greater;
    let lesser = 144 - 3 * sum - both;
    let determinant = greater * lesser - both * both;
    if determinant == 0 {
        return None;
    }
    let totals = totals(pixels);
    let mut weighted = [0; C];
    for (pixel, place) in pixels.iter().zip(places) {
        for (sum, &channel) in weighted.iter_mut().zip(pixel) {
            *sum += place * i32::from(channel);
        }
    }
    let factor = 3.0 / determinant as f32;
    let [greater, both, lesser] = [greater, both, lesser].map(|sum| sum as f32);
    let mut ends = [[0.0; C]; 2];
    for n in 0..C {
        let (weighted, rest) = (weighted[n] as f32, (3 * totals[n] - weighted[n]) as f32);
        ends[0][n] = (weighted * lesser - rest * both) * factor;
        ends[1][n] = (rest * greater - weighted * both) * factor;
    }
    Some(ends)
}
