//! Frames from pipes: each is available when it is complete, and no call waits longer than
//! requested.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io::{PipeWriter, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rushes::file::{MediaReader, MediaWriter, NextFrame, ReadOptions};
use rushes::{Codec, RtpTimestamp};

/// A timeout longer than any wait in a passing test.
const LONG: Duration = Duration::from_secs(30);

const AVC: &str = "avc_cif_60f_baseline.264";

fn vector(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../vectors/media").join(name)
}

fn frames(name: &str, codec: Codec) -> Vec<Vec<u8>> {
    let mut reader = MediaReader::open(&vector(name), codec, ReadOptions::default()).unwrap();
    let mut frames = Vec::new();
    while let Some(frame) = reader.next_frame().unwrap() {
        assert_eq!(frame.arrival, None);
        frames.push(frame.data.clone());
    }
    frames
}

fn live(codec: Codec) -> (MediaReader, PipeWriter) {
    let (source, writer) = std::io::pipe().unwrap();
    let reader = MediaReader::live(source, "a pipe", codec, ReadOptions::default()).unwrap();
    assert!(reader.is_live());
    (reader, writer)
}

fn next(reader: &mut MediaReader) -> Vec<u8> {
    match reader.next_frame_until(Instant::now() + LONG).unwrap() {
        NextFrame::Frame(frame) => {
            assert!(frame.arrival.is_some());
            frame.data.clone()
        }
        other => panic!("{other:?}"),
    }
}

fn is_pending(reader: &mut MediaReader, wait: Duration) -> bool {
    matches!(reader.next_frame_until(Instant::now() + wait).unwrap(), NextFrame::Pending)
}

fn has_ended(reader: &mut MediaReader) -> bool {
    matches!(reader.next_frame_until(Instant::now() + LONG).unwrap(), NextFrame::End)
}

#[test]
fn a_frame_leaves_before_the_next_is_made() {
    for (name, codec) in [
        (AVC, Codec::H264),
        ("hevc_192x128_90f_tiny_nals.265", Codec::H265),
        ("vvc_192x128_64f_vvenc_tiny_nals.266", Codec::H266),
    ] {
        let (mut reader, mut pipe) = live(codec);
        assert!(is_pending(&mut reader, Duration::ZERO));
        for frame in frames(name, codec).into_iter().take(20) {
            // A writer without a buffer writes whole blocks only by chance.
            pipe.write_all(&frame).unwrap();
            assert!(next(&mut reader) == frame, "{name}");
        }
        drop(pipe);
        assert!(has_ended(&mut reader));
        assert!(has_ended(&mut reader));
    }
}

#[test]
fn a_frame_that_was_begun_is_there_when_the_next_begins() {
    let frames = frames(AVC, Codec::H264);
    let (mut reader, mut pipe) = live(Codec::H264);
    let all = frames.concat();
    let (mut expected, mut written) = (frames.iter(), 0);
    let mut end = frames[0].len();
    // A program with a buffer writes whole blocks.
    for block in all.chunks(4096) {
        pipe.write_all(block).unwrap();
        written += block.len();
        // The first octets of a picture show that the previous one is complete.
        while written >= end + 8 {
            let frame = expected.next().unwrap();
            assert!(next(&mut reader) == *frame);
            end += expected.as_slice().first().map_or(usize::MAX / 2, Vec::len);
        }
        if block.len() == 4096 {
            assert!(is_pending(&mut reader, Duration::from_millis(40)), "not after {written}");
        }
    }
    drop(pipe);
    for frame in expected {
        assert!(next(&mut reader) == *frame);
    }
    assert!(has_ended(&mut reader));
}

#[test]
fn packets_and_items_are_there_when_their_last_octet_is() {
    let octets = std::fs::read(vector("opus_speech_mono_mixed_durations.opus")).unwrap();
    let packets = frames("opus_speech_mono_mixed_durations.opus", Codec::Opus);
    let (mut reader, mut pipe) = live(Codec::Opus);
    pipe.write_all(&octets).unwrap();
    for packet in packets {
        assert_eq!(next(&mut reader), packet);
    }
    assert!(is_pending(&mut reader, Duration::ZERO));

    let item = b"\x06\x0e\x2b\x34twelve octet\x05value";
    let (mut reader, mut pipe) = live(Codec::Klv);
    for _ in 0..3 {
        pipe.write_all(&item[..9]).unwrap();
        assert!(is_pending(&mut reader, Duration::from_millis(1)));
        pipe.write_all(&item[9..]).unwrap();
        assert_eq!(next(&mut reader), item);
    }
}

#[test]
fn arrivals_are_those_of_the_first_octets_and_increase() {
    let frames = frames(AVC, Codec::H264);
    let (mut reader, mut pipe) = live(Codec::H264);
    let mut before = Instant::now();
    for frame in frames.iter().take(10) {
        pipe.write_all(frame).unwrap();
        let found = reader.next_frame_until(Instant::now() + LONG).unwrap();
        let NextFrame::Frame(found) = found else { panic!("{found:?}") };
        let arrival = found.arrival.unwrap();
        assert!(arrival >= before && arrival <= Instant::now());
        before = Instant::now();
    }
}

#[test]
fn a_named_pipe_is_opened_without_waiting_for_its_writer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("camera.264");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let mut reader = MediaReader::open(&path, Codec::H264, ReadOptions::default()).unwrap();
    assert!(reader.is_live() && is_pending(&mut reader, Duration::ZERO));
    let frames = frames(AVC, Codec::H264);
    let mut pipe = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    pipe.write_all(&frames[0]).unwrap();
    assert!(next(&mut reader) == frames[0]);
    drop(pipe);
    assert!(has_ended(&mut reader));
}

/// With `recv -o - | ffplay -`, the player has a frame before the next one arrives.
#[test]
fn a_frame_written_to_a_pipe_is_there_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("player.264");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let mut player = MediaReader::open(&path, Codec::H264, ReadOptions::default()).unwrap();
    let mut writer = MediaWriter::create(&path, Codec::H264).unwrap();
    for frame in frames(AVC, Codec::H264).iter().take(20) {
        writer.write(frame, RtpTimestamp(0)).unwrap();
        assert!(next(&mut player) == *frame);
    }
    writer.finish().unwrap();
    assert!(has_ended(&mut player));
}

#[test]
fn what_is_no_bitstream_is_an_error_that_names_the_pipe() {
    let (mut reader, mut pipe) = live(Codec::H265);
    pipe.write_all(b"RIFF and so on").unwrap();
    let error = reader.next_frame_until(Instant::now() + LONG).unwrap_err().to_string();
    assert!(error.contains("a pipe") && error.contains("no start code"), "{error}");
}
