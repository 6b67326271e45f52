//! Containers: frames that were written are read again, and damage ends in errors.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![cfg(feature = "containers")]

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use rushes::file::{MediaFrame, MediaReader, MediaTime, MediaWriter, ReadOptions, tracks};
use rushes::payload::nal::{PictureFormat, find_units};
use rushes::{Codec, FrameRate, Framing, RtpTimestamp};

/// Width and height.
type Size = (u32, u32);

const FILES: [(&str, Codec, Option<Size>); 4] = [
    ("avc_cif_60f_baseline.264", Codec::H264, Some((352, 288))),
    ("hevc_192x128_90f_tiny_nals.265", Codec::H265, Some((192, 128))),
    ("vvc_192x128_64f_vvenc_tiny_nals.266", Codec::H266, Some((192, 128))),
    ("opus_speech_mono_mixed_durations.opus", Codec::Opus, None),
];

fn media(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/media").join(name)
}

fn read(path: &Path, codec: Codec) -> Vec<MediaFrame> {
    let mut reader = MediaReader::open(path, codec, ReadOptions::default()).unwrap();
    std::iter::from_fn(|| reader.next_frame().unwrap().cloned()).collect()
}

/// Returns the NAL units of a frame that `is` accepts.
fn units(codec: Codec, frame: &[u8], is: fn(Codec, u8) -> bool) -> Vec<&[u8]> {
    let mut units = Vec::new();
    find_units(frame, Framing::AnnexB, &mut units).unwrap();
    let units = units.into_iter().map(|unit| &frame[unit]);
    units
        .filter(|it| codec.nal.unwrap().header(it).is_some_and(|it| is(codec, it.nal_type)))
        .collect()
}

fn slices(codec: Codec, frame: &[u8]) -> Vec<&[u8]> {
    units(codec, frame, |codec, nal_type| codec.nal.unwrap().is_vcl(nal_type))
}

/// Returns the time of each frame of a file, counted from the first one.
fn times(codec: Codec, frames: &[MediaFrame]) -> Vec<i64> {
    let rate = FrameRate::new(25, 1).unwrap();
    let mut audio = 0;
    let time = |frame: &MediaFrame| match (frame.picture, frame.duration) {
        (Some(picture), _) => picture.position.ticks(codec.clock_rate, rate),
        (None, duration) => {
            audio += i64::from(duration.unwrap_or(0));
            audio - i64::from(duration.unwrap_or(0))
        }
    };
    frames.iter().map(time).collect()
}

/// Writes `frames` to a file in `folder`.
fn write(folder: &Path, extension: &str, codec: Codec, frames: &[MediaFrame]) -> PathBuf {
    let path = folder.join(format!("{}.{extension}", codec.name));
    let mut writer = MediaWriter::create(&path, codec).unwrap();
    for (frame, time) in frames.iter().zip(times(codec, frames)) {
        writer.write(&frame.data, RtpTimestamp(7).plus(time.cast_unsigned() as u32)).unwrap();
    }
    writer.finish().unwrap();
    path
}

/// The containers that are written, by their extensions.
const CONTAINERS: [&str; 2] = ["mp4", "mkv"];

#[test]
fn what_is_written_is_read_again_with_its_times() {
    let folder = tempfile::tempdir().unwrap();
    for (name, codec, size) in FILES {
        let frames = read(&media(name), codec);
        let expected = times(codec, &frames);
        // The first frame may be presented after others.
        let begin = *expected.iter().min().unwrap();
        if let Some((width, height)) = size {
            let sets = units(codec, &frames[0].data, |_, _| true);
            let of_set = |set| PictureFormat::of_parameter_set(codec.nal.unwrap(), set);
            let format = sets.into_iter().find_map(of_set).unwrap();
            assert_eq!((format.width, format.height), (width, height), "{name}");
            assert_eq!(
                (format.chroma_format, format.bit_depth_luma),
                (1, 8 + 2 * u8::from(codec == Codec::H266))
            );
        }
        for extension in CONTAINERS {
            let path = write(folder.path(), extension, codec, &frames);
            let found = tracks(&path).unwrap().unwrap();
            assert_eq!(found.len(), 1);
            assert_eq!(found[0].codec, Some(codec), "{found:?}");
            let copy = read(&path, codec);
            assert_eq!(copy.len(), frames.len(), "{extension} of {name}");
            // Matroska counts times in milliseconds.
            let margin = if extension == "mkv" { codec.clock_rate.hertz() / 2_000 } else { 0 };
            for (number, (frame, copy)) in frames.iter().zip(&copy).enumerate() {
                let time = copy.presented.unwrap().ticks(codec.clock_rate);
                let expected = expected[number] - begin;
                assert!(
                    time.abs_diff(expected) <= margin.into(),
                    "{name} {extension} {number}: {time} {expected}"
                );
                if codec.has_nal_units() {
                    assert_eq!(slices(codec, &frame.data), slices(codec, &copy.data));
                } else {
                    assert_eq!((&frame.data, frame.duration), (&copy.data, copy.duration));
                }
            }
            if codec.has_nal_units() {
                assert!((codec.has_parameter_sets)(&copy[0].data));
            }
        }
    }
}

#[test]
fn vp8_and_vp9_are_held_by_matroska_and_webm_and_not_by_mp4() {
    let folder = tempfile::tempdir().unwrap();
    for (codec, name) in
        [(Codec::Vp8, "vp8_320x180_60f_libvpx.ivf"), (Codec::Vp9, "vp9_320x180_60f_libvpx.ivf")]
    {
        let frames = read(&media(name), codec);
        for extension in ["mkv", "webm"] {
            let path = folder.path().join(format!("{}.{extension}", codec.name));
            let codecs = [codec, Codec::Opus];
            assert!(MediaWriter::holds(&path, &codecs));
            let mut writer = MediaWriter::create_tracks(&path, &codecs).unwrap();
            // No decoder could begin with the second frame.
            assert!(!writer.write_track(0, &frames[1].data, MediaTime::ZERO).unwrap());
            for (number, frame) in (0..).zip(&frames) {
                let time = MediaTime::new(number, 30.try_into().unwrap());
                assert!(writer.write_track(0, &frame.data, time).unwrap());
                assert!(writer.write_track(1, &[0xf8, 0xff, 0xfe], time).unwrap());
            }
            writer.finish().unwrap();
            let found = tracks(&path).unwrap().unwrap();
            let found: Vec<_> = found.iter().map(|track| (track.codec, track.media)).collect();
            assert_eq!(found, [(Some(codec), "video"), (Some(Codec::Opus), "audio")]);
            let copy = read(&path, codec);
            assert_eq!(copy.len(), frames.len());
            for (number, (frame, copy)) in (0_i64..).zip(frames.iter().zip(&copy)) {
                assert_eq!((&frame.data, copy.duration), (&copy.data, None));
                let millis = copy.presented.unwrap().nanos() / 1_000_000;
                assert!(millis.abs_diff(number * 1_000 / 30) <= 1, "{millis}");
            }
        }
        let error = MediaWriter::create(&folder.path().join("a.mp4"), codec).unwrap_err();
        assert!(error.to_string().contains("name it .mkv"), "{error}");
    }
}

#[test]
fn a_codec_that_a_container_lacks_is_an_error_that_names_its_codings() {
    let folder = tempfile::tempdir().unwrap();
    let frames = read(&media(FILES[0].0), Codec::H264);
    let path = write(folder.path(), "mp4", Codec::H264, &frames);
    let error = MediaReader::open(&path, Codec::Opus, ReadOptions::default()).unwrap_err();
    assert!(error.to_string().ends_with("contains no Opus, but avc1"), "{error}");
    // Read as octets, a container is a file like any other.
    let octets = std::fs::read(&path).unwrap();
    let raw: Vec<u8> = read(&path, Codec::Generic).into_iter().flat_map(|it| it.data).collect();
    assert_eq!(raw, octets);
    let error = MediaWriter::create(&folder.path().join("a.webm"), Codec::H264).unwrap_err();
    assert!(error.to_string().contains("name it .mkv"), "{error}");
    assert!(!folder.path().join("a.webm.part").exists());
    assert_eq!(tracks(&media(FILES[0].0)).unwrap(), None);
}

#[test]
fn frames_before_the_first_parameter_sets_are_omitted_and_a_new_source_continues() {
    let folder = tempfile::tempdir().unwrap();
    let codec = Codec::H264;
    let frames = read(&media(FILES[0].0), codec);
    let path = folder.path().join("late.mp4");
    let mut writer = MediaWriter::create(&path, codec).unwrap();
    let mut put = |frame: &MediaFrame, timestamp| {
        writer.write(&frame.data, RtpTimestamp(timestamp)).unwrap();
    };
    put(&frames[1], 0);
    put(&frames[0], 3_000);
    put(&frames[1], 6_000);
    writer.change_source();
    writer.write(&frames[0].data, RtpTimestamp(123)).unwrap();
    writer.finish().unwrap();
    let copy = read(&path, codec);
    let times: Vec<_> =
        copy.iter().map(|it| it.presented.unwrap().ticks(codec.clock_rate)).collect();
    assert_eq!(times, [3_000, 6_000, 9_000]);
}

#[test]
fn a_recording_without_parameter_sets_is_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let frames = read(&media(FILES[0].0), Codec::H264);
    let path = folder.path().join("empty.mp4");
    let mut writer = MediaWriter::create(&path, Codec::H264).unwrap();
    writer.write(&frames[1].data, RtpTimestamp(0)).unwrap();
    let error = writer.finish().unwrap_err();
    assert!(error.to_string().contains("parameter sets"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_recording_that_was_interrupted_is_read_up_to_there() {
    let folder = tempfile::tempdir().unwrap();
    let codec = Codec::H264;
    let frames = read(&media(FILES[0].0), codec);
    for extension in CONTAINERS {
        let octets = std::fs::read(write(folder.path(), extension, codec, &frames)).unwrap();
        for tenth in 5..10 {
            let cut = octets[..octets.len() * tenth / 10].to_vec();
            let mut reader =
                MediaReader::from_octets(cut, "cut", codec, ReadOptions::default()).unwrap();
            let count = std::iter::from_fn(|| reader.next_frame().unwrap().cloned()).count();
            assert!((1..frames.len()).contains(&count), "{extension} {tenth}: {count}");
        }
    }
}

/// ISO/IEC 14496-15 section 11.2.4, with the profile, tier and level of the sequence parameter set.
#[test]
fn the_record_of_h266_says_what_a_decoder_needs() {
    let folder = tempfile::tempdir().unwrap();
    let (name, codec, _) = FILES[2];
    let frames = read(&media(name), codec);
    let octets = std::fs::read(write(folder.path(), "mp4", codec, &frames)).unwrap();
    let at = octets.windows(4).position(|it| it == b"vvcC").unwrap() + 4;
    let expected = [
        // Version and flags; lengths of four octets, and a profile.
        &[0, 0, 0, 0, 0xff][..],
        // Five sub-layers, 4:2:0, 10 bits.
        &[0, 0x51, 0x5f],
        // One octet of constraints; Main 10, Main tier, level 2.0; frames only, one layer; no levels
        // of sub-layers, no sub-profiles.
        &[1, 0x02, 0x20, 0x80, 0, 0],
        // 192 by 128, no mean frame rate; all sequence and picture parameter sets.
        &[0, 192, 0, 128, 0, 0, 2, 0x8f],
    ];
    let expected = expected.concat();
    assert_eq!(octets[at..at + expected.len()], expected);
}

/// Adaptation parameter sets of H.266, before a picture and after it, are in no record.
#[test]
fn parameter_sets_that_no_record_holds_stay_in_their_frame() {
    let folder = tempfile::tempdir().unwrap();
    let (name, codec, _) = FILES[2];
    let mut frames = read(&media(name), codec);
    frames[0].data.extend([0, 0, 0, 1, 0, 18 << 3 | 1, 0x55]);
    let of_adaptation =
        |frame: &MediaFrame| units(codec, &frame.data, |_, it| matches!(it, 17 | 18)).concat();
    for extension in CONTAINERS {
        let path = write(folder.path(), extension, codec, &frames);
        for (frame, copy) in frames.iter().zip(&read(&path, codec)) {
            assert_eq!(of_adaptation(frame), of_adaptation(copy), "{extension}");
        }
    }
}

/// A recording that was killed is such a file, too.
#[test]
fn a_pipe_gets_no_index_of_the_file() {
    const CUES: [u8; 4] = [0x1c, 0x53, 0xbb, 0x6b];
    let folder = tempfile::tempdir().unwrap();
    let codec = Codec::H264;
    let frames = read(&media(FILES[0].0), codec);
    let file = std::fs::read(write(folder.path(), "mkv", codec, &frames)).unwrap();
    let pipes = folder.path().join("pipes");
    std::fs::create_dir(&pipes).unwrap();
    let pipe = pipes.join("h264.mkv");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let player = std::thread::spawn(move || std::fs::read(pipe).unwrap());
    write(&pipes, "mkv", codec, &frames);
    let piped = player.join().unwrap();
    let has_index = |octets: &[u8]| octets.windows(4).any(|it| it == CUES);
    assert!(has_index(&file) && !has_index(&piped));
    let reader = MediaReader::from_octets(piped, "pipe", codec, ReadOptions::default());
    let mut reader = reader.unwrap();
    let count = std::iter::from_fn(|| reader.next_frame().unwrap().cloned()).count();
    assert_eq!(count, frames.len());
}

#[test]
fn a_parameter_set_that_comes_back_is_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let codec = Codec::H264;
    let frames = read(&media(FILES[0].0), codec);
    let set = units(codec, &frames[0].data, |codec, it| codec.nal.unwrap().is_parameter_set(it));
    let mut other = set[1].to_vec();
    other.push(0x55);
    let path = folder.path().join("sets.mkv");
    let mut writer = MediaWriter::create(&path, codec).unwrap();
    let with = |set: &[u8]| [&[0, 0, 0, 1], set, &frames[1].data].concat();
    for (number, frame) in
        [frames[0].data.clone(), with(&other), with(set[1]), with(set[1])].iter().enumerate()
    {
        writer.write(frame, RtpTimestamp(number as u32 * 3_000)).unwrap();
    }
    writer.finish().unwrap();
    let copy = read(&path, codec);
    let has =
        |number: usize, set: &[u8]| units(codec, &copy[number].data, |_, _| true).contains(&set);
    assert!(has(1, &other) && has(2, set[1]), "the set before was replaced");
}

/// Each key frame gets the parameter sets of the container.
#[test]
fn large_parameter_sets_are_not_repeated_without_end() {
    let folder = tempfile::tempdir().unwrap();
    let codec = Codec::H264;
    let frames = read(&media(FILES[0].0), codec);
    let large = [&[0x68][..], &[0x55; 16_000]].concat();
    let is_set = |codec: Codec, nal_type| codec.nal.unwrap().is_parameter_set(nal_type);
    let sets = units(codec, &frames[0].data, is_set).into_iter().chain([&large[..]]);
    let sets: Vec<u8> = sets.flat_map(|set| [&[0, 0, 0, 1], set].concat()).collect();
    for extension in CONTAINERS {
        let path = folder.path().join(format!("sets.{extension}"));
        let mut writer = MediaWriter::create(&path, codec).unwrap();
        for number in 0..1_000_u16 {
            let slice = [&[0, 0, 0, 1, 0x65, 0x88][..], &number.to_be_bytes(), &[7]].concat();
            let timestamp = RtpTimestamp(u32::from(number) * 3_000);
            writer.write(&[&sets[..], &slice].concat(), timestamp).unwrap();
        }
        writer.finish().unwrap();
        let len = std::fs::metadata(&path).unwrap().len() as usize;
        let mut reader = MediaReader::open(&path, codec, ReadOptions::default()).unwrap();
        let mut octets = 0;
        let error = loop {
            match reader.next_frame() {
                Ok(Some(frame)) => octets += frame.data.len(),
                Ok(None) => panic!("{extension}: {octets} octets of {len}"),
                Err(error) => break error.to_string(),
            }
        };
        assert!(octets <= 64 * len && octets > 20 * len, "{extension}: {octets} octets of {len}");
        assert!(error.contains("64 times"), "{error}");
    }
}

/// Reads all of a damaged file: the frames before the damage, and perhaps an error.
fn survives(octets: Vec<u8>, codec: Codec) {
    let len = octets.len();
    let reader = MediaReader::from_octets(octets, "damaged", codec, ReadOptions::default());
    let Ok(mut reader) = reader else { return };
    let mut read = 0;
    while let Ok(Some(frame)) = reader.next_frame() {
        read += frame.data.len();
        // Parameter sets are repeated, and octets may stand for several frames.
        assert!(read <= 64 * len, "a file of {len} octets has no end");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn damaged_containers_end_in_errors(
        seed in any::<[u8; 32]>(),
        cut in 0..1_000_usize,
        changes in prop::collection::vec((0..1_000_usize, any::<u8>()), 0..12),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let (name, codec, _) = FILES[usize::from(seed[0]) % FILES.len()];
        let mut frames = read(&media(name), codec);
        frames.truncate(12);
        for extension in CONTAINERS {
            let path = write(folder.path(), extension, codec, &frames);
            let mut octets = std::fs::read(path).unwrap();
            // Changes are more frequent in the indices, at the beginning, than in the frames.
            for (place, value) in &changes {
                let at = place.pow(3) * octets.len() / 1_000_usize.pow(3);
                octets[at] = *value;
            }
            survives(octets.clone(), codec);
            octets.truncate(cut * octets.len() / 1_000);
            survives(octets, codec);
        }
    }
}

/// Writes the first frames of video and audio to one file, the audio `late` milliseconds after it.
fn write_film(path: &Path, late: i64) -> [Vec<MediaFrame>; 2] {
    let thousand = std::num::NonZeroU32::new(1_000).unwrap();
    let frames = [FILES[0], FILES[3]].map(|(name, codec, _)| read(&media(name), codec));
    let mut writer = MediaWriter::create_tracks(path, &[Codec::H264, Codec::Opus]).unwrap();
    for ((picture, sound), number) in frames[0].iter().zip(&frames[1]).zip(0..25) {
        for (track, frame, first) in [(0, picture, 0), (1, sound, late)] {
            let time = MediaTime::new(first + 40 * number, thousand);
            writer.write_track(track, &frame.data, time).unwrap();
        }
    }
    writer.finish().unwrap();
    frames
}

#[test]
fn a_film_has_both_tracks_on_one_clock() {
    let folder = tempfile::tempdir().unwrap();
    for extension in ["mp4", "mkv"] {
        let path = folder.path().join(format!("film.{extension}"));
        let frames = write_film(&path, 20);
        let found: Vec<_> = tracks(&path).unwrap().unwrap().iter().map(|it| it.codec).collect();
        assert_eq!(found, [Some(Codec::H264), Some(Codec::Opus)]);
        for (track, (codec, first)) in [(Codec::H264, 0), (Codec::Opus, 20)].into_iter().enumerate()
        {
            let copy = read(&path, codec);
            assert_eq!(copy.len(), 25, "{extension}");
            for ((frame, copy), number) in frames[track].iter().zip(&copy).zip(0..) {
                let millis = copy.presented.unwrap().nanos() / 1_000_000;
                assert_eq!(millis, first + 40 * number, "{extension} {codec:?}");
                if codec.has_nal_units() {
                    assert_eq!(slices(codec, &frame.data), slices(codec, &copy.data));
                } else {
                    assert_eq!(frame.data, copy.data);
                }
            }
        }
    }
}

/// Ten minutes back with each packet: over several of them the times do not fit 32 bits.
#[test]
fn times_that_go_back_without_end_are_written() {
    let folder = tempfile::tempdir().unwrap();
    for extension in ["mp4", "mkv"] {
        let path = folder.path().join(format!("back.{extension}"));
        let mut writer = MediaWriter::create(&path, Codec::Opus).unwrap();
        for number in 0..400_u32 {
            let timestamp = RtpTimestamp(0_u32.wrapping_sub(number.wrapping_mul(28_799_999)));
            writer.write(&[0xf8, 0xff, 0xfe], timestamp).unwrap();
        }
        writer.finish().unwrap();
        assert_eq!(read(&path, Codec::Opus).len(), 400, "{extension}");
    }
}

#[test]
fn a_track_that_is_left_out_or_has_no_frame_is_not_in_the_film() {
    let folder = tempfile::tempdir().unwrap();
    let frames = read(&media(FILES[0].0), Codec::H264);
    for is_left_out in [true, false] {
        let path = folder.path().join(format!("{is_left_out}.mp4"));
        let mut writer = MediaWriter::create_tracks(&path, &[Codec::Opus, Codec::H264]).unwrap();
        if is_left_out {
            writer.leave_out(0);
        }
        let picture = &frames[0].data;
        // A picture without parameter sets cannot be the first.
        let slice = [&[0, 0, 0, 1], slices(Codec::H264, picture)[0]].concat();
        assert!(!writer.write_track(1, &slice, MediaTime::ZERO).unwrap());
        assert!(writer.write_track(1, picture, MediaTime::ZERO).unwrap());
        if is_left_out {
            assert!(!writer.write_track(0, &[0xfc, 1, 2], MediaTime::ZERO).unwrap());
        }
        writer.finish().unwrap();
        let found: Vec<_> = tracks(&path).unwrap().unwrap().iter().map(|it| it.codec).collect();
        assert_eq!(found, [Some(Codec::H264)]);
        assert_eq!(read(&path, Codec::H264).len(), 1);
    }
    let path = folder.path().join("none.mp4");
    let mut writer = MediaWriter::create_tracks(&path, &[Codec::Opus]).unwrap();
    let error = writer.write_track(1, &[0xfc], MediaTime::ZERO).unwrap_err();
    assert!(error.to_string().ends_with("no such track"), "{error}");
    assert!(MediaWriter::holds("a.mp4".as_ref(), &[Codec::H264, Codec::Opus]));
    assert!(!MediaWriter::holds("a.mkv".as_ref(), &[]));
    assert!(!MediaWriter::holds("a.mkv".as_ref(), &[Codec::Opus; 127]));
    assert!(!MediaWriter::holds("a.264".as_ref(), &[Codec::H264, Codec::Opus]));
    assert!(!MediaWriter::holds("a.webm".as_ref(), &[Codec::H264, Codec::Opus]));
}
