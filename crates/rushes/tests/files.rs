//! Media files, read as frames and written from frames.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::{Path, PathBuf};

use rushes::file::{MediaReader, MediaWriter, ReadOptions, codec_of};
use rushes::{Codec, RtpTimestamp};

fn media() -> Vec<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    ["vectors/media", "../shared/media"]
        .iter()
        .filter_map(|folder| std::fs::read_dir(root.join(folder)).ok())
        .flatten()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file() && codec_of(path).is_some())
        .collect()
}

/// Returns the frames of a file and the duration of each.
fn frames(path: &Path) -> Vec<(Vec<u8>, Option<u32>)> {
    let mut reader =
        MediaReader::open(path, codec_of(path).unwrap(), ReadOptions::default()).unwrap();
    let mut frames = Vec::new();
    while let Some(frame) = reader.next_frame().unwrap() {
        frames.push((frame.data.clone(), frame.duration));
    }
    frames
}

/// Returns the packets after the two headers of an Ogg file with one stream, read according to RFC
/// 3533 only.
fn ogg_packets(octets: &[u8]) -> Vec<Vec<u8>> {
    let (mut packets, mut packet, mut page) = (Vec::new(), Vec::new(), 0);
    while page + 27 <= octets.len() {
        assert_eq!(&octets[page..page + 4], b"OggS");
        let segments = usize::from(octets[page + 26]);
        let mut data = page + 27 + segments;
        for segment in &octets[page + 27..page + 27 + segments] {
            packet.extend_from_slice(&octets[data..data + usize::from(*segment)]);
            data += usize::from(*segment);
            if *segment < 255 {
                packets.push(std::mem::take(&mut packet));
            }
        }
        page = data;
    }
    packets.split_off(2)
}

#[test]
fn the_projects_own_files_are_there() {
    assert!(media().len() >= 4);
}

#[test]
fn every_file_is_written_as_it_was_read() {
    let folder = tempfile::tempdir().unwrap();
    for path in media() {
        let codec = codec_of(&path).unwrap();
        let copy = folder.path().join(path.file_name().unwrap());
        let mut writer = MediaWriter::create(&copy, codec).unwrap();
        let mut timestamp = RtpTimestamp(u32::MAX - 10_000);
        let before = frames(&path);
        for (frame, duration) in &before {
            writer.write(frame, timestamp).unwrap();
            timestamp = timestamp.plus(duration.unwrap_or(3000));
        }
        writer.finish().unwrap();
        assert!(frames(&copy) == before, "{} differs", path.display());
    }
}

#[test]
fn opus_packets_are_those_of_an_independent_reader() {
    for path in media().iter().filter(|path| codec_of(path) == Some(Codec::Opus)) {
        let read: Vec<Vec<u8>> = frames(path).into_iter().map(|(packet, _)| packet).collect();
        assert!(read == ogg_packets(&std::fs::read(path).unwrap()), "{}", path.display());
    }
}

#[test]
fn a_generic_file_is_cut_into_equal_frames() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.raw");
    std::fs::write(&path, [7; 2500]).unwrap();
    let mut options = ReadOptions::default();
    options.frame_len = 1000;
    let mut reader = MediaReader::open(&path, Codec::Generic, options).unwrap();
    let mut lens = Vec::new();
    while let Some(frame) = reader.next_frame().unwrap() {
        lens.push(frame.data.len());
    }
    assert_eq!(lens, [1000, 1000, 500]);
}

#[test]
fn an_unfinished_file_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.265");
    let mut writer = MediaWriter::create(&path, Codec::H265).unwrap();
    writer.write(b"half", RtpTimestamp(0)).unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    drop(writer);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn errors_name_the_file_and_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing.265");
    let error = MediaReader::open(&missing, Codec::H265, ReadOptions::default()).unwrap_err();
    assert!(error.to_string().contains("missing.265"), "{error}");
    let path = folder.path().join("text.265");
    std::fs::write(&path, "\0\0not a bitstream").unwrap();
    let error = MediaReader::open(&path, Codec::H265, ReadOptions::default()).unwrap_err();
    let error = error.to_string();
    assert!(error.contains("text.265") && error.contains("octet 2"), "{error}");
    let path = folder.path().join("text.opus");
    std::fs::write(&path, "not Ogg either").unwrap();
    let error = MediaReader::open(&path, Codec::Opus, ReadOptions::default()).unwrap_err();
    assert!(error.to_string().contains("text.opus"), "{error}");
    let error = MediaWriter::create(&folder.path().join("no/such/x.265"), Codec::H265);
    assert!(error.unwrap_err().to_string().contains("x.265"));
}

#[test]
fn a_restarted_file_has_only_later_frames() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.raw");
    let mut writer = MediaWriter::create(&path, Codec::Generic).unwrap();
    // The frame is larger than the buffer, so that a part of it is already in the file.
    writer.write(&vec![7; 300 << 10], RtpTimestamp(0)).unwrap();
    writer.write(b"before", RtpTimestamp(0)).unwrap();
    writer.begin_again().unwrap();
    writer.write(b"after", RtpTimestamp(0)).unwrap();
    writer.finish().unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"after");

    let path = folder.path().join("x.opus");
    let mut writer = MediaWriter::create(&path, Codec::Opus).unwrap();
    writer.write(&[0x08, 1], RtpTimestamp(7)).unwrap();
    writer.begin_again().unwrap();
    writer.write(&[0x08, 2], RtpTimestamp(0)).unwrap();
    // A new sender's timestamps are not a gap.
    writer.change_source();
    writer.write(&[0x08, 3], RtpTimestamp(1 << 30)).unwrap();
    writer.finish().unwrap();
    let mut reader = MediaReader::open(&path, Codec::Opus, ReadOptions::default()).unwrap();
    let mut packets = Vec::new();
    while let Some(frame) = reader.next_frame().unwrap() {
        packets.push(frame.data.clone());
    }
    assert_eq!(packets, [[0x08, 2], [0x08, 3]]);
}
