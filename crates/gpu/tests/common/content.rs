//! Pictures to encode.
#![allow(clippy::unwrap_used, reason = "a test may")]

use rushes_gpu::GpuEncoder;
use rushes_texture::source::{Pattern, PatternSpec};
use rushes_texture::{Format, Layout, Source};

use crate::common;

/// The contents of test pictures.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Content {
    Noise,
    /// Noise with a few values around a middle, so that chroma is scaled.
    Faint,
    Gradient,
    Flat([u8; 4]),
    Pattern,
    /// One to four colours in each block, many of them saturated.
    FewColours,
}

pub(crate) const CONTENTS: [Content; 8] = [
    Content::Noise,
    Content::Faint,
    Content::Gradient,
    Content::Flat([0; 4]),
    Content::Flat([255; 4]),
    Content::Flat([17, 130, 201, 99]),
    Content::Pattern,
    Content::FewColours,
];

pub(crate) fn picture(content: Content, layout: &Layout) -> Vec<u8> {
    let (width, height) = (layout.width(), layout.height());
    match content {
        Content::Noise => common::noise(layout),
        Content::Faint => {
            let noise = common::noise(layout).into_iter();
            // The spread of the noise grows from pixel to pixel.
            noise.enumerate().map(|(at, octet)| 100 + octet % (1 + at / 4 % 61) as u8).collect()
        }
        Content::Gradient => {
            let pixel =
                |x: u32, y: u32| [x * 255 / width, y * 255 / height, (x + y) & 255, x & 255];
            let pixels = (0..height).flat_map(|y| (0..width).map(move |x| pixel(x, y)));
            pixels.flatten().map(|octet| octet as u8).collect()
        }
        Content::Flat(pixel) => pixel.repeat((width * height) as usize),
        Content::Pattern => {
            let spec =
                PatternSpec { format: Format::Rgba8, size: (width, height), ..Default::default() };
            Pattern::new(&spec).unwrap().next_frame().unwrap().unwrap().to_vec()
        }
        Content::FewColours => few_colours(layout),
    }
}

/// Returns a picture whose blocks have one to four colours; half of the channels are 0 or 255, and others are
/// neighbours.
fn few_colours(layout: &Layout) -> Vec<u8> {
    let across = layout.width().div_ceil(4);
    let noise = |block: u32, which: u32| {
        let mut state = (block << 8 | which).wrapping_mul(0x9e37_79b9) ^ 0x85eb_ca6b;
        state ^= state >> 15;
        state = state.wrapping_mul(0x2c1b_3c6d);
        state ^ state >> 13
    };
    let channel = |bits: u32| match bits & 3 {
        0 => 0,
        1 => 255,
        2 => (bits >> 2) as u8,
        _ => 120 + (bits >> 2 & 7) as u8,
    };
    let pixel = |x: u32, y: u32| {
        let block = y / 4 * across + x / 4;
        let colours = 1 + noise(block, 0) % 4;
        let which = 1 + noise(block, 16 + y % 4 * 4 + x % 4) % colours;
        let bits = noise(block, which);
        [bits, bits >> 9, bits >> 18, 255].map(|bits| if bits == 255 { 255 } else { channel(bits) })
    };
    (0..layout.height()).flat_map(|y| (0..layout.width()).flat_map(move |x| pixel(x, y))).collect()
}

/// Returns the frame encoded by the graphics processor; checks the order and length of its stripes.
pub(crate) fn encoded(encoder: &mut GpuEncoder, picture: &[u8], stripe_rows: u32) -> Vec<u8> {
    let plane = encoder.output().planes()[0];
    let (mut frame, mut next) = (Vec::new(), 0);
    encoder
        .encode(picture, stripe_rows, |rows, octets| {
            assert_eq!(rows.start, next);
            let want = stripe_rows.clamp(1, plane.rows - rows.start);
            assert_eq!(rows.end - rows.start, want);
            assert_eq!(octets.len(), plane.row_range(&rows).len());
            frame.extend_from_slice(octets);
            next = rows.end;
        })
        .unwrap();
    assert_eq!(next, plane.rows);
    frame
}
