//! The test pattern moves, shows its number, and is the same in every format.
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::path::Path;

use rushes_texture::source::{Pattern, PatternError, PatternSpec, RawHint, open, read_counter};
use rushes_texture::{Format, Frame, Layout, Source};

fn pattern(spec: &str) -> Pattern {
    Pattern::new(&spec.parse::<PatternSpec>().unwrap()).unwrap()
}

fn next(source: &mut Pattern) -> Frame {
    source.next_frame().unwrap().unwrap()
}

/// Returns deterministic noise from -24 to 24.
fn noise(seed: &mut u32) -> i8 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    *seed ^= *seed << 5;
    (*seed % 49) as i8 - 24
}

#[test]
fn the_number_is_read_in_every_format_of_pixels_and_at_every_size_with_room() {
    let formats = ["rgb24", "rgba8", "rgb565", "yuv420", "yuv422", "ycocg420"];
    for size in ["80x32", "161x91", "320x8", "1918x1078"] {
        for format in formats {
            let mut source = pattern(&format!("pattern:{size},{format}"));
            for number in 0..3 {
                let frame = next(&mut source);
                assert_eq!(frame.len(), source.layout().bytes());
                assert_eq!(read_counter(source.layout(), &frame), Some(number), "{size} {format}");
            }
        }
    }
}

#[test]
fn frames_too_small_for_the_number_are_drawn_without() {
    for size in ["1x1", "2x3", "30x26", "79x32"] {
        for format in ["rgb24", "rgba8", "rgb565", "yuv420", "yuv422", "ycocg420"] {
            let mut source = pattern(&format!("pattern:{size},{format}"));
            let frame = next(&mut source);
            assert_eq!(frame.len(), source.layout().bytes());
            assert_eq!(read_counter(source.layout(), &frame), None);
        }
    }
}

#[test]
fn the_number_outlives_halved_chroma_and_noise() {
    let mut source = pattern("pattern:320x180,yuv420");
    let layout = *source.layout();
    let mut seed = 1;
    for number in 0..50 {
        let mut frame = next(&mut source).to_vec();
        for octet in &mut frame {
            *octet = octet.saturating_add_signed(noise(&mut seed));
        }
        assert_eq!(read_counter(&layout, &frame), Some(number));
    }
}

#[test]
fn the_number_outlives_four_by_four_blocks_of_two_colours() {
    // The worst case of BC1: each pixel becomes the darkest or the brightest of its block.
    let mut source = pattern("pattern:161x91");
    let layout = *source.layout();
    let frame = next(&mut source);
    let frame = frame.to_vec();
    let green = |x: u32, y: u32| frame[((y * 161 + x) * 3 + 1) as usize];
    let mut coded = frame.clone();
    for (y, x) in (0..91).flat_map(|y| (0..161).map(move |x| (y, x))) {
        let block =
            (y & !3..(y & !3) + 4).flat_map(|y| (x & !3..(x & !3) + 4).map(move |x| (x, y)));
        let block = block.filter(|&(x, y)| x < 161 && y < 91).map(|(x, y)| green(x, y));
        let (least, most) = block.fold((255, 0), |(a, b), it: u8| (a.min(it), b.max(it)));
        let near = if green(x, y) - least > most - green(x, y) { most } else { least };
        coded[((y * 161 + x) * 3) as usize..][..3].fill(near);
    }
    assert_eq!(read_counter(&layout, &coded), Some(0));
}

#[test]
fn a_picture_without_squares_has_no_number() {
    let layout = Layout::new(Format::Rgb24, 640, 360).unwrap();
    for octet in [0, 100, 255] {
        assert_eq!(read_counter(&layout, &vec![octet; layout.bytes()]), None);
    }
    assert_eq!(read_counter(&layout, &[0; 5]), None);
    let blocks = Layout::new(Format::Bc1, 640, 360).unwrap();
    assert_eq!(read_counter(&blocks, &vec![0; blocks.bytes()]), None);
}

#[test]
fn a_frame_drawn_into_old_memory_is_as_one_drawn_into_new() {
    for format in ["rgb24", "yuv420"] {
        let spec = format!("pattern:213x117,{format}");
        let mut again = pattern(&spec);
        let mut fresh = pattern(&spec);
        let mut held = Vec::new();
        for _ in 0..6 {
            let reused = next(&mut again);
            held.push(next(&mut fresh));
            assert_eq!(Some(&reused), held.last());
        }
        assert_ne!(held[4], held[5]);
    }
}

#[test]
fn a_length_ends_the_pattern_and_a_rewind_begins_it_again() {
    let mut source = pattern("pattern:80x32@50,frames=2");
    assert_eq!(source.length(), Some(2));
    let first = next(&mut source);
    next(&mut source);
    assert!(source.next_frame().unwrap().is_none());
    source.rewind().unwrap();
    assert_eq!(next(&mut source), first);
}

#[test]
fn formats_of_blocks_and_sizes_of_no_frame_are_refused() {
    let error = |spec: &str| Pattern::new(&spec.parse().unwrap()).unwrap_err();
    assert_eq!(error("pattern,bc1"), PatternError::Blocks(Format::Bc1));
    assert!(matches!(error("pattern:0x5"), PatternError::Layout(_)));
    assert!(matches!(error("pattern:99999x5"), PatternError::Layout(_)));
}

#[test]
fn a_pattern_opens_by_name_and_takes_missing_properties_from_the_hint() {
    let hint = RawHint { format: Some(Format::Yuv422), ..RawHint::default() };
    let source = open(Path::new("pattern:64x48@59.94"), &hint).unwrap();
    assert_eq!(*source.layout(), Layout::new(Format::Yuv422, 64, 48).unwrap());
    assert_eq!(source.rate().to_string(), "60000/1001");
}
