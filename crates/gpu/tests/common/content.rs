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
}

pub(crate) const CONTENTS: [Content; 7] = [
    Content::Noise,
    Content::Faint,
    Content::Gradient,
    Content::Flat([0; 4]),
    Content::Flat([255; 4]),
    Content::Flat([17, 130, 201, 99]),
    Content::Pattern,
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
    }
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
