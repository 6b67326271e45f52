//! Frames decoded to pictures and cropped, and noise as frames of every format.
#![allow(clippy::unwrap_used, reason = "a test may")]

mod pictures;

use pictures::{ODD_SIZES, RAW, noise, noisy};
use proptest::prelude::*;
use rushes_texture::{CodecError, Decoder, Encoder, Format, InstructionSet};

fn decoded(decoder: &Decoder, frame: &[u8]) -> Vec<u8> {
    // What is not written stays visible.
    let mut picture = vec![0xa5; decoder.output().bytes()];
    decoder.decode(frame, &mut picture).unwrap();
    picture
}

fn encoded(input: Format, output: Format, size: (u32, u32), picture: &[u8]) -> Vec<u8> {
    let encoder = Encoder::new(input, output, size.0, size.1).unwrap();
    let mut frame = vec![0; encoder.output().bytes()];
    encoder.encode(picture, &mut frame).unwrap();
    frame
}

#[test]
fn a_frame_of_the_pictures_format_is_the_picture() {
    for (width, height) in ODD_SIZES {
        for format in Format::ALL {
            let frame = noisy(format, width, height);
            let decoder = Decoder::new(format, width, height, format).unwrap();
            assert!(decoded(&decoder, &frame) == frame, "{format}, {width}×{height}");
        }
    }
}

#[test]
fn rgb_comes_back_from_rgba_and_rgba_without_its_alpha_from_rgb() {
    for size in ODD_SIZES {
        let rgb = noisy(Format::Rgb24, size.0, size.1);
        let rgba = encoded(Format::Rgb24, Format::Rgba8, size, &rgb);
        assert!(rgba.iter().skip(3).step_by(4).all(|&alpha| alpha == 255));
        let back = Decoder::new(Format::Rgba8, size.0, size.1, Format::Rgb24).unwrap();
        assert!(decoded(&back, &rgba) == rgb);
        let widen = Decoder::new(Format::Rgb24, size.0, size.1, Format::Rgba8).unwrap();
        assert!(decoded(&widen, &rgb) == rgba);
    }
}

#[test]
fn one_colour_comes_back_from_every_format_that_is_made() {
    let formats = || RAW.into_iter().chain([Format::Bc1, Format::Bc3, Format::YCoCgBc3]);
    for size in ODD_SIZES {
        for colour in [[200, 40, 90], [0, 0, 0], [255, 255, 255]] {
            let picture = colour.repeat((size.0 * size.1) as usize);
            for format in formats() {
                let frame = encoded(Format::Rgb24, format, size, &picture);
                let decoder = Decoder::new(format, size.0, size.1, Format::Rgb24).unwrap();
                let found = decoded(&decoder, &frame);
                let near = found.iter().zip(&picture).all(|(&a, &b)| a.abs_diff(b) <= 4);
                assert!(near, "{format} {size:?}: {colour:?} came as {:?}", &found[..3]);
            }
        }
    }
}

#[test]
fn some_rows_are_those_of_the_whole_picture() {
    for format in Format::ALL {
        for output in [Format::Rgb24, Format::Rgba8] {
            let decoder = Decoder::new(format, 301, 27, output).unwrap();
            let frame = noise(decoder.input().bytes());
            let whole = decoded(&decoder, &frame);
            for rows in [0..1, 3..9, 7..8, 26..27, 5..5] {
                let range = decoder.output().planes()[0].row_range(&rows);
                let mut found = vec![0; range.len()];
                decoder.decode_rows(&frame, rows.clone(), &mut found).unwrap();
                assert!(found == whole[range], "{format} to {output}, {rows:?}");
            }
        }
    }
}

#[test]
fn blocks_decode_as_by_bcdec_at_the_edges_too() {
    type Theirs = fn(&[u8], &mut [u8], usize);
    for (format, size, theirs) in
        [(Format::Bc1, 8, bcdec_rs::bc1 as Theirs), (Format::Bc3, 16, bcdec_rs::bc3)]
    {
        let decoder = Decoder::new(format, 517, 26, Format::Rgba8).unwrap();
        let frame = noise(decoder.input().bytes());
        let mut larger = vec![0; 520 * 28 * 4];
        for (at, block) in frame.chunks(size).enumerate() {
            let (x, y) = (at % 130 * 4, at / 130 * 4);
            theirs(block, &mut larger[(y * 520 + x) * 4..], 520 * 4);
        }
        let rows = larger.chunks(520 * 4).take(26).flat_map(|row| &row[..517 * 4]);
        assert!(decoded(&decoder, &frame).iter().eq(rows), "{format}");
    }
}

#[test]
fn a_frame_of_blocks_is_each_block_in_its_place() {
    const SIZE: (u32, u32) = (301, 27);
    for format in Format::ALL {
        let [plane] = format.planes() else { continue };
        let shape = plane.block;
        let [columns, rows] = [SIZE.0.div_ceil(shape.width), SIZE.1.div_ceil(shape.height)];
        // In ASTC, every other block is a colour that is legal.
        let mut frame = noise((columns * rows) as usize * shape.bytes);
        for block in frame.chunks_mut(16).step_by(2).filter(|_| format.name().starts_with("astc")) {
            block[..8].copy_from_slice(&[0xfc, 0xfd, 255, 255, 255, 255, 255, 255]);
        }
        for output in [Format::Rgb24, Format::Rgba8] {
            let pixel = output.planes()[0].block.bytes;
            let one = Decoder::new(format, shape.width, shape.height, Format::Rgba8).unwrap();
            let mut expected = vec![0; (SIZE.0 * SIZE.1) as usize * pixel];
            for (at, block) in frame.chunks(shape.bytes).enumerate() {
                let (left, top) =
                    (at as u32 % columns * shape.width, at as u32 / columns * shape.height);
                let pixels: Vec<u8> =
                    decoded(&one, block).chunks(4).flat_map(|it| &it[..pixel]).copied().collect();
                let width = shape.width.min(SIZE.0 - left) as usize * pixel;
                for (y, row) in pixels.chunks(shape.width as usize * pixel).enumerate() {
                    let start = ((top as usize + y) * SIZE.0 as usize + left as usize) * pixel;
                    if let Some(to) = expected.get_mut(start..start + width) {
                        to.copy_from_slice(&row[..width]);
                    }
                }
            }
            let whole = Decoder::new(format, SIZE.0, SIZE.1, output).unwrap();
            assert!(decoded(&whole, &frame) == expected, "{format} to {output}");
        }
    }
}

#[test]
fn every_set_decodes_alike_at_every_size() {
    let sizes = (1..=17).chain([60, 255, 256, 257, 300]).zip((1..=9).cycle());
    for (width, height) in sizes.chain([(301, 27)]) {
        for format in Format::ALL {
            let frame = noisy(format, width, height);
            for output in [Format::Rgb24, Format::Rgba8] {
                let decoder = Decoder::new(format, width, height, output).unwrap();
                let [portable, others @ ..] = InstructionSet::ALL
                    .map(|set| decoded(&decoder.clone().with_instruction_set(set), &frame));
                for other in others {
                    assert!(other == portable, "{format} to {output}, {width}×{height}");
                }
            }
        }
    }
}

#[test]
fn other_outputs_wrong_lengths_and_rows_are_refused() {
    let error = Decoder::new(Format::Bc1, 8, 8, Format::Bc3).unwrap_err();
    assert_eq!(error, CodecError::Unsupported { input: Format::Bc1, output: Format::Bc3 });
    let same = Decoder::new(Format::Bc1, 8, 8, Format::Bc1).unwrap();
    let error = same.decode_rows(&[0; 32], 0..4, &mut [0; 16]).unwrap_err();
    assert_eq!(error, CodecError::Unsupported { input: Format::Bc1, output: Format::Bc1 });
    let decoder = Decoder::new(Format::Bc1, 8, 8, Format::Rgb24).unwrap();
    let error = decoder.decode(&[0; 31], &mut [0; 192]).unwrap_err();
    assert_eq!(error, CodecError::Input { want: 32, have: 31 });
    let error = decoder.decode(&[0; 32], &mut [0; 191]).unwrap_err();
    assert_eq!(error, CodecError::Output { want: 192, have: 191 });
    let error = decoder.decode_rows(&[0; 32], 8..9, &mut [0; 24]).unwrap_err();
    assert_eq!(error, CodecError::Rows { rows: 8..9, have: 8 });
}

proptest! {
    #[test]
    fn any_octets_of_any_format_decode(
        number in 1..=Format::ALL.len() as u8,
        width in 1_u32..40,
        height in 1_u32..20,
        octets in proptest::collection::vec(any::<u8>(), 1..500),
    ) {
        let format = Format::from_number(number).unwrap();
        let decoder = Decoder::new(format, width, height, Format::Rgba8).unwrap();
        let length = decoder.input().bytes();
        let frame: Vec<u8> = octets.into_iter().cycle().take(length).collect();
        prop_assert_eq!(decoded(&decoder, &frame).len(), (width * height * 4) as usize);
    }
}
