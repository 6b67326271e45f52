//! The colours of PNG images: from file to file, and as FFmpeg reads them.
#![allow(clippy::unwrap_used, reason = "a test may")]

#[path = "../../../interop/skipped.rs"]
mod skipped;

use std::path::{Path, PathBuf};
use std::process::Command;

use rushes_texture::file::{FileError, PngError, create, read_png};
use rushes_texture::source::{RawHint, SourceError, open};
use rushes_texture::{Colour, ColourHint, Encoder, Format, Layout, Primaries, Rate, Transfer};

const HDR: Colour = Colour {
    primaries: Primaries::Bt2020,
    transfer: Transfer::Pq,
    matrix: rushes_texture::Matrix::Bt709,
    range: rushes_texture::ColourRange::Limited,
    siting: rushes_texture::Siting::Centre,
};

/// Writes a frame of 8×4 pixels of these colours.
fn write(path: &Path, format: Format, colour: Colour, frame: &[u8]) {
    let layout = Layout::new(format, 8, 4).unwrap().with_colour(colour);
    let mut writer = create(path, layout, Rate::DEFAULT).unwrap();
    writer.write_frame(frame).unwrap();
    writer.finish().unwrap();
}

/// Replaces the contents of the chunk cICP.
fn with_chunk(path: &Path, contents: [u8; 4]) {
    let mut file = std::fs::read(path).unwrap();
    let at = file.windows(4).position(|window| window == b"cICP").unwrap();
    file[at + 4..at + 8].copy_from_slice(&contents);
    let sum = !file[at..at + 8].iter().fold(u32::MAX, |crc, &octet| {
        (0..8).fold(crc ^ u32::from(octet), |crc, _| (crc >> 1) ^ (0xEDB8_8320 * (crc & 1)))
    });
    file[at + 8..at + 12].copy_from_slice(&sum.to_be_bytes());
    std::fs::write(path, file).unwrap();
}

fn folder() -> (tempfile::TempDir, impl Fn(&str) -> PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    (folder, move |name| path.join(name))
}

#[test]
fn colours_stay_from_a_png_through_ktx2_to_a_png() {
    let (_folder, name) = folder();
    write(&name("a.png"), Format::Rgb24, HDR, &[90; 96]);
    let mut source = open(&name("a.png"), &RawHint::default()).unwrap();
    assert_eq!((source.layout().colour(), source.unknown_colour()), (HDR, None));

    let blocks = source.layout().in_format(Format::Bc1);
    let encoder = Encoder::between(*source.layout(), blocks).unwrap();
    let mut frame = vec![0; blocks.bytes()];
    encoder.encode(&source.next_frame().unwrap().unwrap(), &mut frame).unwrap();
    write(&name("a.ktx2"), Format::Bc1, HDR, &frame);
    let film = open(&name("a.ktx2"), &RawHint::default()).unwrap();
    assert_eq!(film.layout().colour(), HDR);

    write(&name("b.png"), Format::Rgba8, film.layout().colour(), &[9; 128]);
    assert_eq!(read_png(&name("b.png"), &mut Vec::new()).unwrap().colour(), HDR);
}

#[test]
fn a_png_of_srgb_has_no_chunk_of_colours() {
    let (_folder, name) = folder();
    write(&name("a.png"), Format::Rgb24, Colour::default(), &[90; 96]);
    let file = std::fs::read(name("a.png")).unwrap();
    assert!(!file.windows(4).any(|window| window == b"cICP"));
}

#[test]
fn unknown_colours_are_reported_invalid_ones_refused_and_other_ones_than_the_firsts_named() {
    let (_folder, name) = folder();
    write(&name("a0.png"), Format::Rgb24, HDR, &[90; 96]);
    write(&name("a1.png"), Format::Rgb24, Colour::default(), &[90; 96]);
    let mut source = open(&name("a%d.png"), &RawHint::default()).unwrap();
    source.next_frame().unwrap();
    let error = source.next_frame().unwrap_err();
    assert!(matches!(&error, SourceError::Colours(path) if *path == name("a1.png")), "{error}");

    // Hybrid log-gamma.
    with_chunk(&name("a0.png"), [9, 18, 0, 1]);
    let source = open(&name("a0.png"), &RawHint::default()).unwrap();
    assert_eq!(source.unknown_colour(), Some([9, 18, 0, 1]));
    let colour = source.layout().colour();
    assert_eq!((colour.primaries, colour.transfer), (Primaries::Bt2020, Transfer::Sdr));

    // A matrix of luma and chroma, which the standard excludes.
    with_chunk(&name("a0.png"), [9, 16, 9, 1]);
    let error = read_png(&name("a0.png"), &mut Vec::new()).unwrap_err();
    assert!(matches!(error, FileError::Png(PngError::Colour)), "{error}");
}

#[test]
fn what_overrides_unknown_colours_is_not_reported() {
    let (_folder, name) = folder();
    write(&name("a.png"), Format::Rgb24, HDR, &[90; 96]);
    let (pq, sdr, wide) = (Some(Transfer::Pq), Some(Transfer::Sdr), Some(Primaries::Bt2020));
    for (chunk, transfer, primaries, is_reported) in [
        // Hybrid log-gamma, Display P3, both, and limited range, which no hint says of RGB.
        ([9, 18, 0, 1], pq, None, false),
        ([9, 18, 0, 1], None, wide, true),
        ([12, 16, 0, 1], None, wide, false),
        ([12, 16, 0, 1], sdr, None, true),
        ([12, 18, 0, 1], sdr, wide, false),
        ([9, 16, 0, 0], pq, wide, true),
    ] {
        with_chunk(&name("a.png"), chunk);
        let colour = ColourHint { transfer, primaries, ..ColourHint::default() };
        let hint = RawHint { colour, ..RawHint::default() };
        let source = open(&name("a.png"), &hint).unwrap();
        let reported = is_reported.then_some(chunk);
        assert_eq!(source.unknown_colour(), reported, "{chunk:?} {transfer:?} {primaries:?}");
    }
}

/// Returns whether FFmpeg reads the chunk: from version 6.1 on. Builds without a release have no such number.
fn does_ffprobe_know_it() -> bool {
    let version = Command::new("ffprobe").arg("-version").output().unwrap().stdout;
    let version = String::from_utf8(version).unwrap();
    let number = version.split(' ').nth(2).unwrap_or_default();
    let mut parts = number.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    parts.next().is_none_or(|major| (major, parts.next().unwrap_or(0)) >= (6, 1))
}

#[test]
fn ffmpeg_reads_the_colours() {
    if !skipped::have(&["ffprobe"]) {
        return;
    }
    if !does_ffprobe_know_it() {
        return skipped::not_here("FFmpeg is older than 6.1 and does not read cICP");
    }
    let (_folder, name) = folder();
    write(&name("a.png"), Format::Rgb24, HDR, &[90; 96]);
    let entries = "stream=color_primaries,color_transfer,color_space,color_range";
    let probe = Command::new("ffprobe")
        .args(["-v", "error", "-show_entries", entries, "-of", "default=nw=1"])
        .arg(name("a.png"))
        .output()
        .unwrap();
    let probed = String::from_utf8(probe.stdout).unwrap();
    for line in ["color_primaries=bt2020", "color_transfer=smpte2084", "color_range=pc"] {
        assert!(probed.contains(line), "{probed}");
    }
}
