use super::*;
use crate::{Colour, Encoder};

fn scaled(layout: Layout, size: (u32, u32), picture: &[u8]) -> Vec<u8> {
    let scaler = Scaler::new(layout, size.0, size.1).unwrap();
    let mut out = vec![0; scaler.output().bytes()];
    scaler.scale(picture, &mut out).unwrap();
    out
}

#[test]
fn every_format_of_one_value_in_a_byte_keeps_a_plain_colour() {
    for format in Format::ALL {
        let layout = Layout::new(format, 37, 23).unwrap();
        if !Scaler::supports(format) {
            assert!(Scaler::new(layout, 10, 10).is_err(), "{format}");
            continue;
        }
        for value in [0, 1, 127, 254, 255] {
            for size in [(37, 23), (36, 22), (18, 11), (1, 1), (37, 1), (5, 23)] {
                let picture = vec![value; layout.bytes()];
                let out = scaled(layout, size, &picture);
                assert!(out.iter().all(|&it| it == value), "{format} {size:?} {value}: {out:?}");
            }
        }
    }
}

#[test]
fn a_picture_of_its_own_size_is_a_copy() {
    for format in [Format::Rgb24, Format::Yuv420, Format::Yuv422] {
        let layout = Layout::new(format, 13, 7).unwrap();
        let picture: Vec<u8> = (0..layout.bytes()).map(|at| (at * 97) as u8).collect();
        assert_eq!(scaled(layout, (13, 7), &picture), picture);
    }
}

#[test]
fn values_of_a_pixel_are_averaged_by_themselves() {
    let layout = Layout::new(Format::Rgba8, 2, 2).unwrap();
    let picture = [[0, 10, 20, 30], [4, 10, 20, 31], [8, 10, 20, 30], [12, 10, 21, 31]].concat();
    // 30.5 is rounded up, 20.25 down.
    assert_eq!(scaled(layout, (1, 1), &picture), [6, 10, 20, 31]);
}

#[test]
fn chroma_stays_where_it_is_sited() {
    // Values grow by 2 from one column of the picture to the next; chroma has the value of its own place.
    let (width, height) = (64, 16);
    for (siting, halves) in [(Siting::Left, 0), (Siting::Centre, 1), (Siting::TopLeft, 0)] {
        let layout = |width, height| {
            let colour = Colour { siting, ..Colour::default() };
            Layout::new(Format::Yuv420, width, height).unwrap().with_colour(colour)
        };
        let full = layout(width, height);
        let mut picture = vec![0; full.bytes()];
        let plane = full.planes()[1];
        for row in picture[plane.row_range(&(0..plane.rows))].chunks_exact_mut(plane.row_bytes) {
            for (column, value) in (0..).zip(row) {
                *value = 4 * column + halves + 10;
            }
        }
        let out = scaled(full, (32, 8), &picture);
        // Column 8 of the chroma is at column 16, or half a column after it: the middle of what were columns 32 and
        // 33, or 33 and 34.
        let value = out[layout(32, 8).planes()[1].offset + 8];
        assert!(value.abs_diff(75 + 2 * halves) <= 1, "{siting:?}: {value}");
    }
}

#[test]
fn a_side_does_not_grow_and_lengths_are_checked() {
    let layout = Layout::new(Format::Rgb24, 8, 8).unwrap();
    assert!(matches!(Scaler::new(layout, 9, 8), Err(CodecError::Unsupported { .. })));
    assert!(matches!(Scaler::new(layout, 8, 9), Err(CodecError::Unsupported { .. })));
    assert!(matches!(Scaler::new(layout, 0, 8), Err(CodecError::Layout(_))));
    let scaler = Scaler::new(layout, 4, 4).unwrap();
    let (picture, mut out) = ([0; 192], [0; 48]);
    assert!(matches!(scaler.scale(&picture[1..], &mut out), Err(CodecError::Input { .. })));
    assert!(matches!(scaler.scale(&picture, &mut out[1..]), Err(CodecError::Output { .. })));
    let mut part =
        |plane, rows, len: usize| scaler.scale_rows(&picture, plane, rows, &mut out[..len]);
    assert_eq!(part(0, 1..3, 24), Ok(()));
    assert!(matches!(part(0, 1..3, 25), Err(CodecError::Output { .. })));
    assert!(matches!(part(0, 3..5, 24), Err(CodecError::Rows { .. })));
    assert!(matches!(part(1, 0..2, 24), Err(CodecError::Plane { .. })));
}

#[test]
fn scaled_pictures_can_be_encoded() {
    let layout = Layout::new(Format::Yuv420, 33, 19).unwrap();
    let scaler = Scaler::new(layout, 16, 10).unwrap();
    assert_eq!(scaler.output().colour(), layout.colour());
    let out = scaled(layout, (16, 10), &vec![90; layout.bytes()]);
    let encoder =
        Encoder::between(*scaler.output(), scaler.output().in_format(Format::Bc1)).unwrap();
    let mut blocks = vec![0; encoder.output().bytes()];
    encoder.encode(&out, &mut blocks).unwrap();
}
