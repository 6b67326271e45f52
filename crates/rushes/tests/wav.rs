//! WAV files: written and read, with lost samples, by another library, and with wrong octets.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io::Cursor;
use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;
use rushes::file::{FileError, MediaReader, MediaWriter, ReadOptions, Sampling, codec_of};
use rushes::{ClockRate, Codec, RtpTimestamp};

const CODECS: [Codec; 4] = [Codec::L16, Codec::L24, Codec::Pcmu, Codec::Pcma];

fn sampling(hertz: u32, channels: u8) -> Sampling {
    Sampling { rate: ClockRate::new(hertz).unwrap(), channels }
}

fn group_len(codec: Codec, channels: u8) -> usize {
    codec.sample.unwrap().len() * usize::from(channels)
}

/// Returns the file of frames, each with its timestamp, and its silence.
fn write(codec: Codec, sampling: Sampling, frames: &[(u32, &[u8])]) -> (Vec<u8>, Duration) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.wav");
    let mut writer = MediaWriter::create(&path, codec).unwrap().with_sampling(sampling);
    for (timestamp, frame) in frames {
        writer.write(frame, RtpTimestamp(*timestamp)).unwrap();
    }
    let silence = writer.silence();
    writer.finish().unwrap();
    assert_eq!(codec_of(&path), Some(codec));
    (std::fs::read(path).unwrap(), silence)
}

/// Returns all samples of a file in network byte order, their sampling, and the number of frames.
fn read(octets: Vec<u8>, codec: Codec) -> Result<(Vec<u8>, Option<Sampling>, usize), FileError> {
    let mut reader = MediaReader::from_octets(octets, "any", codec, ReadOptions::default())?;
    let (mut samples, mut frames) = (Vec::new(), 0);
    while let Some(frame) = reader.next_frame()? {
        samples.extend_from_slice(&frame.data);
        frames += 1;
    }
    Ok((samples, reader.sampling(), frames))
}

fn error(octets: Vec<u8>, codec: Codec) -> String {
    read(octets, codec).unwrap_err().to_string()
}

/// Returns the codec of the samples of a file.
fn sample_of(octets: &[u8]) -> Option<Codec> {
    CODECS.into_iter().find(|codec| (codec.files.is_of)(octets))
}

/// Returns a signal of so many sample groups.
fn signal(codec: Codec, channels: u8, groups: usize) -> Vec<u8> {
    (0..groups * group_len(codec, channels)).map(|n| (n * 37 + n / 251) as u8).collect()
}

#[test]
fn samples_are_written_and_read_again_in_frames_of_a_packet() {
    for codec in CODECS {
        for sampling in [sampling(8000, 1), sampling(44_100, 2), sampling(48_000, 8)] {
            let Sampling { channels, .. } = sampling;
            let signal = signal(codec, channels, 1001);
            let (file, silence) = write(codec, sampling, &[(7, &signal)]);
            assert_eq!(silence, Duration::ZERO);
            let (again, found, frames) = read(file, codec).unwrap();
            assert!(again == signal, "{} {sampling}", codec.name);
            assert_eq!(found, Some(sampling));
            assert!(frames > 1, "{} {sampling}: {frames}", codec.name);
        }
    }
}

#[test]
fn hound_reads_our_files_and_we_read_those_of_hound() {
    for (codec, bits) in [(Codec::L16, 16), (Codec::L24, 24)] {
        for channels in [1, 2, 6] {
            let values: Vec<i32> = (0..600).map(|n: i32| (n * 7919) - ((n % 7) << 12)).collect();
            let values: Vec<i32> =
                values.iter().map(|value| value << (32 - bits) >> (32 - bits)).collect();
            let octets: Vec<u8> = values
                .iter()
                .flat_map(|value| value.to_be_bytes()[4 - bits as usize / 8..].to_vec())
                .collect();
            let sampling = sampling(48_000, channels);
            let (ours, _) = write(codec, sampling, &[(0, &octets)]);
            let mut reader = hound::WavReader::new(Cursor::new(ours)).unwrap();
            let spec = reader.spec();
            assert_eq!(
                (spec.channels, spec.bits_per_sample, spec.sample_rate),
                (channels.into(), bits, 48_000)
            );
            let read_by_hound: Vec<i32> = reader.samples().map(Result::unwrap).collect();
            assert_eq!(read_by_hound, values);
            let mut theirs = Cursor::new(Vec::new());
            let mut writer = hound::WavWriter::new(&mut theirs, spec).unwrap();
            for value in &values {
                writer.write_sample(*value).unwrap();
            }
            writer.finalize().unwrap();
            let (again, found, _) = read(theirs.into_inner(), codec).unwrap();
            assert!(again == octets && found == Some(sampling), "{codec:?} {channels}");
        }
    }
}

#[test]
fn lost_samples_are_silence_of_their_length() {
    for (codec, silent) in
        [(Codec::L16, 0), (Codec::L24, 0), (Codec::Pcmu, 0xff), (Codec::Pcma, 0xd5)]
    {
        let sampling = sampling(8000, 1);
        let signal = signal(codec, 1, 300);
        let (first, second) = signal.split_at(100 * group_len(codec, 1));
        // 1 000 samples are missing, over the wrap of the timestamps.
        let begin = u32::MAX - 600;
        let frames = [(begin, first), (begin.wrapping_add(1100), second)];
        let (file, silence) = write(codec, sampling, &frames);
        let (samples, ..) = read(file, codec).unwrap();
        let gap = vec![silent; 1000 * group_len(codec, 1)];
        assert!(samples == [first, &gap[..], second].concat(), "{}", codec.name);
        assert_eq!(silence, Duration::from_millis(125));
    }
}

#[test]
fn silence_is_no_longer_than_the_sound_and_ten_seconds() {
    let signal = signal(Codec::L16, 1, 8000);
    let second = |at: u32| (at * 8000, &signal[..]);
    // Gaps of 5 and 7 s, then one of 6 s that would be too much, a step back, and a jump.
    let (file, silence) = write(
        Codec::L16,
        sampling(8000, 1),
        &[
            second(0),
            second(6),
            second(14),
            second(15),
            second(22),
            second(3),
            second(200_000),
            second(200_001),
        ],
    );
    assert_eq!(silence, Duration::from_secs(12));
    assert_eq!(read(file, Codec::L16).unwrap().0.len(), (8 + 12) * 16_000);
}

#[test]
fn a_jump_of_the_clock_is_no_silence_however_long_the_recording() {
    let sound = signal(Codec::L16, 1, 30 * 8000);
    let frames = [(0, &sound[..]), (40 * 8000, &sound), (81 * 8000, &sound)];
    let (file, silence) = write(Codec::L16, sampling(8000, 1), &frames);
    // The gap of 10 s is silence, and that of 11 s is none.
    assert_eq!(silence, Duration::from_secs(10));
    assert_eq!(read(file, Codec::L16).unwrap().0.len(), 100 * 16_000);
}

#[test]
fn a_million_jumps_of_the_clock_make_no_large_file() {
    let frame = [0; 2];
    let jumps: Vec<(u32, &[u8])> =
        (0..1_000_000).map(|n: u32| (n.wrapping_mul(70_001), &frame[..])).collect();
    let (file, silence) = write(Codec::L16, sampling(8000, 1), &jumps);
    assert!(silence <= Duration::from_secs(10 + 125), "{silence:?}");
    assert!(file.len() < 5_000_000, "{}", file.len());
}

#[test]
fn chunks_between_are_left_out_and_an_unknown_length_lasts_to_the_end() {
    let signal = signal(Codec::L16, 2, 500);
    let (file, _) = write(Codec::L16, sampling(48_000, 2), &[(0, &signal)]);
    let at = |name: &[u8]| file.windows(4).position(|it| it == name).unwrap();
    let text = [b"bext\x03\0\0\0abc\0", &file[at(b"fmt ")..]].concat();
    let text = [&file[..12], &text].concat();
    assert_eq!(read(text, Codec::L16).unwrap().0, signal);
    let behind = [&file[..], b"LIST\x04\0\0\0abcd"].concat();
    assert_eq!(read(behind, Codec::L16).unwrap().0, signal);
    for unknown in [u32::MAX, 0, 0x7fff_ffdb] {
        let mut endless = file.clone();
        let len_at = at(b"data") + 4;
        endless[len_at..len_at + 4].copy_from_slice(&unknown.to_le_bytes());
        endless[4..8].copy_from_slice(&unknown.to_le_bytes());
        assert_eq!(read(endless, Codec::L16).unwrap().0, signal, "{unknown:#x}");
    }
    // Lengths that a program sets which cannot go back to write the right ones.
    let mut piped = file.clone();
    let len_at = at(b"data") + 4;
    piped[len_at..len_at + 4].copy_from_slice(&0x7fff_f000_u32.to_le_bytes());
    piped[4..8].copy_from_slice(&(0x7fff_f000 + len_at as u32 - 4).to_le_bytes());
    assert_eq!(read(piped, Codec::L16).unwrap().0, signal);
    // A file without samples, with a chunk behind them.
    let mut empty = [&file[..at(b"data") + 4], &[0; 4], b"LIST\x04\0\0\0abcd"].concat();
    let len = empty.len() as u32 - 8;
    empty[4..8].copy_from_slice(&len.to_le_bytes());
    assert!(read(empty, Codec::L16).unwrap().0.is_empty());
    // RF64: the length is in ds64.
    let mut rf64 = file.clone();
    rf64[..4].copy_from_slice(b"RF64");
    rf64[12..16].copy_from_slice(b"ds64");
    rf64[28..36].copy_from_slice(&400_u64.to_le_bytes());
    let len_at = at(b"data") + 4;
    rf64[len_at..len_at + 4].fill(0xff);
    assert_eq!(read(rf64.clone(), Codec::L16).unwrap().0, signal[..400]);
    // BW64, with lengths of many other chunks.
    rf64[..4].copy_from_slice(b"BW64");
    assert_eq!(sample_of(&rf64), Some(Codec::L16));
    let table = vec![7; 2000];
    rf64[16..20].copy_from_slice(&(28 + 2000_u32).to_le_bytes());
    rf64.splice(48..48, table);
    assert_eq!(read(rf64, Codec::L16).unwrap().0, signal[..400]);
}

#[test]
fn bad_files_are_named() {
    let (file, _) = write(Codec::L16, sampling(48_000, 2), &[(0, &signal(Codec::L16, 2, 100))]);
    let cut = error(file[..file.len() - 5].to_vec(), Codec::L16);
    assert!(cut.contains("is cut off by the end of the file"), "{cut}");
    let headless = error(file[..30].to_vec(), Codec::L16);
    assert!(headless.contains("has no samples"), "{headless}");
    let other = error(b"OggS plus more octets".to_vec(), Codec::L16);
    assert!(other.contains("is not of a WAV file"), "{other}");
    let avi = error(b"RIFF\0\0\0\0AVI LIST".to_vec(), Codec::L16);
    assert!(avi.contains("is not of a WAV file"), "{avi}");
    let another = error(file.clone(), Codec::L24);
    assert_eq!(another, "any: contains no L24, but samples of 16 bits");
    let format_at = file.windows(4).position(|it| it == b"fmt ").unwrap() + 8;
    let with = |at: usize, octets: &[u8]| {
        let mut file = file.clone();
        file[format_at + at..format_at + at + octets.len()].copy_from_slice(octets);
        file
    };
    let floating = error(with(0, &[3, 0]), Codec::L16);
    assert_eq!(floating, "any: contains no L16, but floating-point samples of 16 bits");
    for wrong in [with(2, &[0, 0]), with(4, &[0; 4]), with(4, &[0xff; 4]), with(12, &[6, 0])] {
        let wrong = error(wrong, Codec::L16);
        assert!(wrong.contains("follows a format without channels"), "{wrong}");
    }
    let mut options = ReadOptions::default();
    options.sampling = Some(sampling(44_100, 2));
    let unwanted = MediaReader::from_octets(file, "any", Codec::L16, options).unwrap_err();
    assert_eq!(
        unwanted.to_string(),
        "any: has 2 channels at 48000 Hz, and the stream 2 channels at 44100 Hz"
    );
    assert!(read(Vec::new(), Codec::L16).unwrap().0.is_empty());
}

#[test]
fn a_frame_that_ends_within_a_sample_is_no_part_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = MediaWriter::create(&folder.path().join("x.wav"), Codec::L24).unwrap();
    assert!(writer.write(&[0; 7], RtpTimestamp(0)).is_err());
    writer.write(&[0; 6], RtpTimestamp(0)).unwrap();
    writer.finish().unwrap();
}

#[test]
fn samples_are_not_written_to_containers() {
    for name in ["x.mkv", "x.MP4"] {
        let error = MediaWriter::create(Path::new(name), Codec::L16).unwrap_err().to_string();
        assert!(error.contains("L16 is not written to containers: name it .wav"), "{error}");
    }
}

#[test]
fn a_missing_file_has_no_codec() {
    assert_eq!(codec_of(Path::new("missing.wav")), None);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_octets_end(octets in prop::collection::vec(any::<u8>(), 0..500)) {
        for codec in CODECS {
            let _ = read([b"RIFF\0\0\0\0WAVE", &octets[..]].concat(), codec);
        }
    }

    #[test]
    fn a_file_with_wrong_octets_gives_no_more_than_it_has(
        changes in prop::collection::vec((0..100_usize, any::<u8>()), 1..8),
        cut in any::<prop::sample::Index>(),
        pick in 0..4_usize,
    ) {
        let codec = CODECS[pick];
        let (mut octets, _) = write(codec, sampling(48_000, 2), &[(0, &signal(codec, 2, 200))]);
        for (place, octet) in changes {
            octets[place] = octet;
        }
        octets.truncate(cut.index(octets.len()) + 1);
        let len = octets.len();
        for codec in CODECS {
            if let Ok((samples, ..)) = read(octets.clone(), codec) {
                prop_assert!(samples.len() <= len);
            }
        }
    }

    #[test]
    fn pieces_of_any_size_give_the_same_samples(
        pieces in prop::collection::vec(1..400_usize, 1..20), pick in 0..4_usize,
    ) {
        let codec = CODECS[pick];
        let signal = signal(codec, 2, 300);
        let (file, _) = write(codec, sampling(48_000, 2), &[(0, &signal)]);
        let mut reader = (codec.files.reader)(Path::new("any"), ReadOptions::default());
        let (mut frame, mut samples) = (rushes::file::MediaFrame::default(), Vec::new());
        let (mut rest, mut pieces) = (&file[..], pieces.into_iter().cycle());
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(pieces.next().unwrap().min(rest.len()));
            reader.feed(piece);
            rest = behind;
            while reader.next_frame(&mut frame).unwrap() {
                samples.extend_from_slice(&frame.data);
            }
        }
        reader.finish();
        while reader.next_frame(&mut frame).unwrap() {
            samples.extend_from_slice(&frame.data);
        }
        prop_assert!(samples == signal);
    }
}
