//! YUV of every matrix, range and siting, against the formulas of the recommendations.
#![allow(clippy::unwrap_used, reason = "a test may")]

mod pictures;

use pictures::noise;
use rushes_texture::{Colour, ColourRange, Decoder, Encoder, Format, Layout, Matrix, Siting};

const SIZES: [(u32, u32); 4] = [(1, 1), (7, 5), (30, 26), (519, 3)];

fn colours() -> impl Iterator<Item = Colour> {
    let matrices = [Matrix::Bt601, Matrix::Bt709, Matrix::Bt2020];
    let ranges = [ColourRange::Limited, ColourRange::Full];
    let sitings = [Siting::Left, Siting::Centre, Siting::TopLeft];
    matrices.into_iter().flat_map(move |matrix| {
        ranges.into_iter().flat_map(move |range| {
            let of = move |siting| Colour { matrix, range, siting, ..Colour::default() };
            sitings.into_iter().map(of)
        })
    })
}

/// Returns a plane's value at a place among its samples; those at the edges are repeated.
fn interpolated(frame: &[u8], layout: &Layout, plane: usize, x: f64, y: f64) -> f64 {
    let at = |x: f64, y: f64| {
        let of = layout.planes()[plane];
        let near = |place: f64, end: u32| place.clamp(0.0, f64::from(end - 1)) as i64;
        let column = usize::try_from(near(x, of.width)).unwrap();
        let row = u32::try_from(near(y, of.height)).unwrap();
        f64::from(frame[of.row_range(&(row..row + 1)).start + column])
    };
    let (left, top) = (x.floor(), y.floor());
    let (across, down) = (x - left, y - top);
    let row = |y| at(left, y) * (1.0 - across) + at(left + 1.0, y) * across;
    row(top) * (1.0 - down) + row(top + 1.0) * down
}

/// Returns red, green and blue by the formulas of ITU-R BT.601, BT.709 and BT.2020.
fn rgb([luma, cb, cr]: [f64; 3], colour: Colour) -> [f64; 3] {
    let (red, blue) = match colour.matrix {
        Matrix::Bt601 => (0.299, 0.114),
        Matrix::Bt709 => (0.2126, 0.0722),
        Matrix::Bt2020 => (0.2627, 0.0593),
    };
    let (luma, scale) = match colour.range {
        ColourRange::Limited => ((luma - 16.0) / 219.0, 224.0),
        ColourRange::Full => (luma / 255.0, 255.0),
    };
    let (cb, cr) = ((cb - 128.0) / scale, (cr - 128.0) / scale);
    let (r, b) = (luma + 2.0 * (1.0 - red) * cr, luma + 2.0 * (1.0 - blue) * cb);
    let green = (luma - red * r - blue * b) / (1.0 - red - blue);
    [r, green, b].map(|value| (value * 255.0).clamp(0.0, 255.0))
}

/// Returns the distance of a sample from the centre of its pixels, in pixels.
fn places(format: Format, siting: Siting, x: u32, y: u32) -> (f64, f64) {
    let between = |pixel: u32| (f64::from(pixel) - 0.5) / 2.0;
    let on = |pixel: u32| f64::from(pixel) / 2.0;
    let across = if siting == Siting::Centre { between(x) } else { on(x) };
    let down = match (format, siting) {
        (Format::Yuv422, _) => f64::from(y),
        (_, Siting::TopLeft) => on(y),
        _ => between(y),
    };
    (across, down)
}

#[test]
fn every_matrix_range_and_siting_is_that_of_the_formulas() {
    for (width, height) in SIZES {
        for format in [Format::Yuv420, Format::Yuv422] {
            for colour in colours() {
                let layout = Layout::new(format, width, height).unwrap().with_colour(colour);
                let frame = noise(layout.bytes());
                let decoder = Decoder::of(layout, Format::Rgb24).unwrap();
                let mut picture = vec![0; decoder.output().bytes()];
                decoder.decode(&frame, &mut picture).unwrap();
                for (at, have) in picture.as_chunks::<3>().0.iter().enumerate() {
                    let (x, y) = (at as u32 % width, at as u32 / width);
                    let (across, down) = places(format, colour.siting, x, y);
                    let chroma = |plane| interpolated(&frame, &layout, plane, across, down);
                    let luma = interpolated(&frame, &layout, 0, x.into(), y.into());
                    let want = rgb([luma, chroma(1), chroma(2)], colour);
                    for (have, want) in have.iter().zip(want) {
                        let error = (f64::from(*have) - want).abs();
                        assert!(error < 0.52, "{format} {colour:?} {x},{y}: {have}, not {want}");
                    }
                }
            }
        }
    }
}

#[test]
fn yuv_becomes_yuv_of_another_matrix() {
    let from = Colour { matrix: Matrix::Bt601, ..Colour::default() };
    let layout = Layout::new(Format::Yuv420, 64, 8).unwrap();
    let source = layout.with_colour(from);
    // Red: 81, 90 and 240 by BT.601, 63, 102 and 240 by BT.709.
    let frame = [vec![81; 64 * 8], vec![90; 64 * 2], vec![240; 64 * 2]].concat();
    let encoder = Encoder::between(source, layout).unwrap();
    let mut out = vec![0; layout.bytes()];
    encoder.encode(&frame, &mut out).unwrap();
    let firsts = [0, 64 * 8, 64 * 10].map(|at| i32::from(out[at]));
    for (have, want) in firsts.into_iter().zip([63, 102, 240]) {
        assert!((have - want).abs() <= 1, "{firsts:?}");
    }
    let encoder = Encoder::between(source, source).unwrap();
    encoder.encode(&frame, &mut out).unwrap();
    assert!(out == frame, "the same colours are copied");
}

#[test]
fn only_frames_of_one_size_are_converted() {
    let layout = |width| Layout::new(Format::Rgb24, width, 8).unwrap();
    assert!(Encoder::between(layout(8), layout(9)).is_err());
}
