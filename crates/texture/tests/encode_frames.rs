//! Whole frames, rows of frames, their edges, and errors of the encoder.
#![allow(clippy::unwrap_used, reason = "a test may")]

mod pictures;

use pictures::{ODD_SIZES, RAW, noisy, padded};
use rushes_texture::{
    CodecError, Encoder, Format, InstructionSet, Layout, LayoutError, Quality, UnknownQuality,
};

const MADE: [Format; 3] = [Format::Bc1, Format::Bc3, Format::YCoCgBc3];

fn encoded(encoder: &Encoder, picture: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; encoder.output().bytes()];
    encoder.encode(picture, &mut frame).unwrap();
    frame
}

/// Returns every pair of different formats that the encoder supports.
fn pairs() -> impl Iterator<Item = (Format, Format)> {
    let outputs = || RAW.into_iter().chain(MADE);
    let all = RAW.into_iter().flat_map(move |input| outputs().map(move |output| (input, output)));
    all.filter(|(input, output)| input != output)
}

#[test]
fn rows_by_themselves_are_the_rows_of_the_whole_frame() {
    for (width, height) in ODD_SIZES {
        for (input, output) in pairs() {
            let picture = noisy(input, width, height);
            let encoder = Encoder::new(input, output, width, height).unwrap();
            let whole = encoded(&encoder, &picture);
            let mut rows = vec![0; whole.len()];
            for (plane, layout) in encoder.output().planes().iter().enumerate().rev() {
                for row in (0..layout.rows).rev() {
                    let out = &mut rows[layout.row_range(&(row..row + 1))];
                    encoder.encode_rows(&picture, plane, row..row + 1, out).unwrap();
                }
            }
            assert!(rows == whole, "{input} to {output}, {width}×{height}");
        }
    }
}

#[test]
fn threads_may_share_an_encoder() {
    let encoder = Encoder::new(Format::Rgb24, Format::Bc1, 64, 64).unwrap();
    let picture = noisy(Format::Rgb24, 64, 64);
    let whole = encoded(&encoder, &picture);
    let mut frame = vec![0; whole.len()];
    let (above, below) = frame.split_at_mut(whole.len() / 2);
    std::thread::scope(|scope| {
        scope.spawn(|| encoder.encode_rows(&picture, 0, 0..8, above).unwrap());
        scope.spawn(|| encoder.encode_rows(&picture, 0, 8..16, below).unwrap());
    });
    assert_eq!(frame, whole);
}

#[test]
fn blocks_beyond_the_edge_repeat_it() {
    for ([width, height], whole) in [([30, 26], [32, 28]), ([1, 1], [4, 4]), ([517, 5], [520, 8])] {
        for (input, pixel) in [(Format::Rgb24, 3), (Format::Rgba8, 4), (Format::Rgb565, 2)] {
            let picture = noisy(input, width, height);
            let larger = padded(&picture, pixel, [width, height], whole);
            for output in MADE {
                let found = encoded(&Encoder::new(input, output, width, height).unwrap(), &picture);
                let by_hand = Encoder::new(input, output, whole[0], whole[1]).unwrap();
                assert_eq!(found, encoded(&by_hand, &larger), "{input} to {output}");
            }
        }
    }
}

#[test]
fn chroma_of_an_odd_last_column_and_row_is_of_the_repeated_edge() {
    let picture = noisy(Format::Rgb24, 301, 7);
    let larger = padded(&picture, 3, [301, 7], [302, 8]);
    for output in [Format::Yuv420, Format::Yuv422, Format::YCoCg420] {
        let odd = Encoder::new(Format::Rgb24, output, 301, 7).unwrap();
        let even = Encoder::new(Format::Rgb24, output, 302, 8).unwrap();
        let (odd_frame, even_frame) = (encoded(&odd, &picture), encoded(&even, &larger));
        for plane in [1, 2] {
            let of = |encoder: &Encoder, frame: &[u8]| {
                let layout = encoder.output().planes()[plane];
                // If the height is even, 4:2:2 has one more row.
                frame[layout.row_range(&(0..odd.output().planes()[plane].rows))].to_vec()
            };
            assert_eq!(of(&odd, &odd_frame), of(&even, &even_frame), "{output}, plane {plane}");
        }
    }
}

#[test]
fn blocks_are_equal_whether_pixels_are_read_in_place_or_converted() {
    let rgb = noisy(Format::Rgb24, 1_918, 30);
    let widen = Encoder::new(Format::Rgb24, Format::Rgba8, 1_918, 30).unwrap();
    let rgba = encoded(&widen, &rgb);
    for output in MADE {
        let from_rgb = Encoder::new(Format::Rgb24, output, 1_918, 30).unwrap();
        let from_rgba = Encoder::new(Format::Rgba8, output, 1_918, 30).unwrap();
        assert!(encoded(&from_rgb, &rgb) == encoded(&from_rgba, &rgba), "{output}");
    }
}

#[test]
fn every_instruction_set_makes_the_same_octets() {
    for (input, output) in pairs() {
        let picture = noisy(input, 1_001, 9);
        let encoder = Encoder::new(input, output, 1_001, 9).unwrap();
        let frames = InstructionSet::ALL
            .map(|set| encoded(&encoder.clone().with_instruction_set(set), &picture));
        assert!(frames.iter().all(|frame| *frame == frames[0]), "{input} to {output}");
    }
}

#[test]
fn the_quality_changes_the_blocks_that_are_made_and_nothing_else() {
    for (input, output) in pairs() {
        let picture = noisy(input, 41, 9);
        let encoder = Encoder::new(input, output, 41, 9).unwrap();
        let [fast, high] =
            Quality::ALL.map(|quality| encoded(&encoder.clone().with_quality(quality), &picture));
        assert_eq!(fast, encoded(&encoder, &picture), "{input} to {output}");
        assert_eq!(fast != high, MADE.contains(&output), "{input} to {output}");
    }
}

#[test]
fn qualities_are_known_by_their_names() {
    for quality in Quality::ALL {
        assert_eq!(quality.to_string().parse(), Ok(quality));
    }
    assert_eq!("best".parse::<Quality>(), Err(UnknownQuality));
}

#[test]
fn the_same_format_passes_through_whichever_it_is() {
    for format in Format::ALL {
        assert!(Encoder::supports(format, format));
        let picture = noisy(format, 30, 26);
        assert_eq!(encoded(&Encoder::new(format, format, 30, 26).unwrap(), &picture), picture);
    }
}

#[test]
fn etc_and_astc_are_never_made_and_blocks_never_read() {
    for format in &Format::ALL[9..] {
        let error = Encoder::new(Format::Rgb24, *format, 8, 8).unwrap_err();
        assert_eq!(error, CodecError::Unsupported { input: Format::Rgb24, output: *format });
        assert!(error.to_string().contains("passed through"), "{error}");
    }
    for format in &Format::ALL[6..] {
        assert!(!Encoder::supports(*format, Format::Rgb24));
    }
}

#[test]
fn wrong_sizes_planes_and_rows_are_refused() {
    let empty = Encoder::new(Format::Rgb24, Format::Bc1, 0, 8).unwrap_err();
    assert_eq!(empty, CodecError::Layout(LayoutError::Empty));
    let encoder = Encoder::new(Format::Rgb24, Format::Bc1, 8, 8).unwrap();
    let picture = vec![0; Layout::new(Format::Rgb24, 8, 8).unwrap().bytes()];
    let mut out = [7; 16];
    let mut refused = |picture: &[u8], plane, rows: std::ops::Range<u32>, length: usize| {
        encoder.encode_rows(picture, plane, rows, &mut out[..length]).unwrap_err()
    };
    let input = CodecError::Input { want: 192, have: 191 };
    assert_eq!(refused(&picture[1..], 0, 0..1, 16), input);
    assert_eq!(refused(&picture, 1, 0..1, 16), CodecError::Plane { plane: 1, planes: 1 });
    assert_eq!(refused(&picture, 0, 1..3, 16), CodecError::Rows { rows: 1..3, have: 2 });
    #[allow(clippy::reversed_empty_ranges, reason = "such a range must be refused")]
    let backwards = 2..1;
    let rows = CodecError::Rows { rows: backwards.clone(), have: 2 };
    assert_eq!(refused(&picture, 0, backwards, 16), rows);
    assert_eq!(refused(&picture, 0, 0..1, 15), CodecError::Output { want: 16, have: 15 });
    assert_eq!(out, [7; 16]);
}
