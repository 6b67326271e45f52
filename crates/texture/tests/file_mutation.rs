//! Damaged files: a reader ends without a panic for every changed byte.
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::io::Cursor;

use proptest::prelude::*;
use rushes_texture::file::{
    FrameReader, Ktx2Reader, Ktx2Writer, Y4mReader, Y4mWriter, create, read_png_from,
};
use rushes_texture::{Format, Layout, Rate};

/// Maximum number of frames read, because the damaged header of a small file may claim very many.
const FRAMES_MAX: usize = 10_000;

/// Reads all frames, none of which may take more memory than about twice the length of the file.
fn drain(reader: &mut dyn FrameReader, file: usize) {
    let mut frame = Vec::new();
    for _ in 0..FRAMES_MAX {
        let more = reader.read_frame(&mut frame);
        assert!(frame.capacity() <= 2 * file + 64, "{} of {file}", frame.capacity());
        match more {
            Ok(true) => assert_eq!(frame.len(), reader.layout().bytes()),
            _ => return,
        }
    }
}

fn read_y4m(bytes: &[u8]) {
    if let Ok(mut reader) = Y4mReader::new(Cursor::new(bytes)) {
        drain(&mut reader, bytes.len());
    }
}

fn read_ktx2(bytes: &[u8]) {
    if let Ok(mut reader) = Ktx2Reader::new(Cursor::new(bytes)) {
        drain(&mut reader, bytes.len());
    }
}

/// Reads a PNG. Its frame takes 16 bytes for each of the file, or twice the pixels that are read; these are far from
/// 1 032 times the file, to which it could decompress.
fn read_png(bytes: &[u8]) {
    let mut frame = Vec::new();
    let read = read_png_from(Cursor::new(bytes), &mut frame);
    assert!(frame.capacity() <= 16 * bytes.len() + 2 * frame.len() + 64);
    if let Ok(layout) = read {
        assert_eq!(frame.len(), layout.bytes());
    }
}

const PNG: &[u8; 8] = b"\x89PNG\r\n\x1a\n";

/// Corrects the checksums of all chunks of a PNG, without which changed ones are not read.
fn mend(file: &mut [u8]) {
    let mut at = PNG.len();
    while let Some(&length) = file.get(at..).and_then(<[u8]>::first_chunk) {
        let end = at + 8 + u32::from_be_bytes(length) as usize;
        if end + 4 > file.len() {
            return;
        }
        let sum = !file[at + 4..end].iter().fold(u32::MAX, |crc, &octet| {
            (0..8).fold(crc ^ u32::from(octet), |crc, _| (crc >> 1) ^ (0xEDB8_8320 * (crc & 1)))
        });
        file[end..end + 4].copy_from_slice(&sum.to_be_bytes());
        at = end + 4;
    }
}

/// A frame is not reserved for what the header claims: not if the file is too short for it, and not while its pixels
/// have not been decompressed.
#[test]
fn a_png_of_a_large_size_with_few_bytes_takes_no_memory() {
    let claim = |side: u32, data: usize| {
        let (side, length) = (side.to_be_bytes(), (data as u32).to_be_bytes());
        let mut file = [&PNG[..], &[0, 0, 0, 13], b"IHDR", &side, &side, &[1, 0, 0, 0, 0]].concat();
        file.extend([&[0; 4][..], &length, b"IDAT", &vec![0; data], &[0; 4]].concat());
        mend(&mut file);
        file
    };
    for (side, data, limit) in [(65_535, 3, 0), (32_768, 3, 0), (32_768, 131_072, 16 * 131_200)] {
        let mut frame = Vec::new();
        assert!(read_png_from(Cursor::new(claim(side, data)), &mut frame).is_err());
        assert!(frame.capacity() <= limit, "{side} {data}: {}", frame.capacity());
    }
}

/// Grey becomes RGB, and so three times as large; nothing else grows.
#[test]
fn y4m_of_any_samples_and_length_ends_without_a_panic() {
    for samples in ["420p10", "422p16", "444", "444p9", "444alpha", "mono", "mono12"] {
        for size in ["W5 H3", "W1 H1", "W300 H2", "W32768 H32768"] {
            let header = format!("YUV4MPEG2 {size} C{samples}\nFRAME\n");
            for length in [0, 1, 15, 45, 90, 600, 2_400, 20_000] {
                let file = [header.as_bytes(), &vec![0xa5; length]].concat();
                let mut reader = Y4mReader::new(Cursor::new(&file[..])).unwrap();
                let mut frame = Vec::new();
                while let Ok(true) = reader.read_frame(&mut frame) {
                    assert_eq!(frame.len(), reader.layout().bytes());
                }
                assert!(frame.capacity() <= 6 * file.len() + 64, "{samples} {size} {length}");
            }
        }
    }
}

fn y4m() -> Vec<u8> {
    let layout = Layout::new(Format::Yuv420, 5, 3).unwrap();
    let mut writer = Y4mWriter::new(Vec::new(), layout, Rate::DEFAULT).unwrap();
    for octet in 0..3 {
        writer.write(&vec![octet; layout.bytes()]).unwrap();
    }
    writer.into_inner().unwrap()
}

fn ktx2() -> Vec<u8> {
    let layout = Layout::new(Format::YCoCgBc3, 5, 3).unwrap();
    let mut writer = Ktx2Writer::new(Cursor::new(Vec::new()), layout, Rate::DEFAULT).unwrap();
    for octet in 0..3 {
        writer.write(&vec![octet; layout.bytes()]).unwrap();
    }
    writer.into_inner().unwrap().into_inner()
}

fn png() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let layout = Layout::new(Format::Rgba8, 9, 7).unwrap();
    let mut writer = create(&folder.path().join("a%d.png"), layout, Rate::DEFAULT).unwrap();
    writer.write_frame(&vec![77; layout.bytes()]).unwrap();
    writer.finish().unwrap();
    std::fs::read(folder.path().join("a0.png")).unwrap()
}

fn damage(file: &mut Vec<u8>, changes: &[(prop::sample::Index, u8)], cut: prop::sample::Index) {
    for (at, octet) in changes {
        let at = at.index(file.len());
        file[at] = *octet;
    }
    if cut.index(4) == 0 {
        file.truncate(cut.index(file.len()));
    }
}

fn changes() -> impl Strategy<Value = Vec<(prop::sample::Index, u8)>> {
    let octet = prop_oneof![any::<u8>(), Just(0), Just(0xFF), Just(b'\n'), Just(b' '), Just(b'9')];
    prop::collection::vec((any::<prop::sample::Index>(), octet), 0..6)
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        rng_seed: prop::test_runner::RngSeed::Fixed(6),
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config(4000))]

    #[test]
    fn a_damaged_y4m_file_never_panics(
        changes in changes(),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut file = y4m();
        damage(&mut file, &changes, cut);
        read_y4m(&file);
    }

    #[test]
    fn a_damaged_ktx2_file_never_panics(
        changes in changes(),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut file = ktx2();
        damage(&mut file, &changes, cut);
        read_ktx2(&file);
    }

    #[test]
    fn a_damaged_png_file_never_panics(
        changes in changes(),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut file = png();
        damage(&mut file, &changes, cut);
        read_png(&file);
        mend(&mut file);
        read_png(&file);
    }

    #[test]
    fn octets_of_any_kind_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        read_y4m(&bytes);
        read_ktx2(&bytes);
        read_png(&bytes);
        let mut png = [&PNG[..], &bytes[..]].concat();
        mend(&mut png);
        read_png(&png);
        read_y4m(&[b"YUV4MPEG2 ", &bytes[..]].concat());
        read_ktx2(&[b"\xABKTX 20\xBB\r\n\x1A\n", &bytes[..]].concat());
    }
}

#[test]
fn every_word_of_a_ktx2_header_at_its_ends_never_panics() {
    let file = ktx2();
    for at in (12..file.len() - 4).step_by(4) {
        for word in [0, 1, 0x7FFF_FFFF, 0x8000_0000, u32::MAX] {
            let mut file = file.clone();
            file[at..at + 4].copy_from_slice(&u32::to_le_bytes(word));
            read_ktx2(&file);
        }
    }
}
