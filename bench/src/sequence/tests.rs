#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::process::Command;

use super::*;

const CODECS: [(Codec, &str, usize); 3] =
    [(Codec::H264, "264", 2), (Codec::H265, "265", 3), (Codec::H266, "266", 2)];

/// Small, so that tests are fast; the proportions are those of large sequences.
const BIT_RATE: u64 = 40_000_000;

fn nal_units(codec: Codec, octets: &[u8]) -> Vec<Range<usize>> {
    assert!(codec.has_nal_units());
    let mut found = Vec::new();
    find_units(octets, Framing::AnnexB, &mut found).unwrap();
    found
}

#[test]
fn units_cover_the_stream_and_have_the_bit_rate() {
    for (codec, _, _) in CODECS {
        for bit_rate in [BIT_RATE, 165_000_000] {
            let made = Sequence::make(codec, bit_rate).unwrap();
            let mut end = 0;
            for unit in &made.units {
                assert_eq!(unit.octets.start, end);
                end = unit.octets.end;
            }
            assert_eq!((end, made.units.len()), (made.octets.len(), make::PERIOD));
            let off = made.bit_rate() / bit_rate as f64 - 1.0;
            assert!(off.abs() < 0.01, "{codec:?}: {off}");
        }
    }
}

#[test]
fn slices_have_their_size_on_average() {
    for sizes in [Sizes::flat(667_000), Sizes { mean: 667_000, group: 8, intra: 4 }] {
        let made = Sequence::from(&Origin::Slices(sizes), Codec::H265).unwrap();
        assert!(made.octets_of(16).abs_diff(16 * 667_000) < 100, "{}", made.octets_of(16));
        assert_eq!(made.unit(0).len(), sizes.intra * made.unit(1).len());
        for unit in [made.unit(0), made.unit(1)] {
            assert_eq!(nal_units(Codec::H265, unit).len(), 1);
        }
    }
}

#[test]
fn intra_units_are_five_times_as_large_and_the_others_vary() {
    let made = Sequence::make(Codec::H265, BIT_RATE).unwrap();
    let intra: Vec<bool> = made.units.iter().map(|unit| unit.is_intra).collect();
    assert_eq!(intra, std::array::from_fn::<_, 64, _>(|n| n == 0));
    let lens: Vec<usize> = made.units.iter().map(|unit| unit.octets.len()).collect();
    let mean = lens[1..].iter().sum::<usize>() as f64 / 63.0;
    let ratio = lens[0] as f64 / mean;
    assert!((4.9..5.1).contains(&ratio), "{ratio}");
    let (least, most) = (lens[1..].iter().min().unwrap(), lens[1..].iter().max().unwrap());
    assert!(*least as f64 > 0.7 * mean && (*most as f64) < 1.3 * mean && *most > least + 1000);
}

#[test]
fn every_nal_unit_that_was_made_is_found_and_no_other() {
    for (codec, _, sets) in CODECS {
        let made = Sequence::make(codec, BIT_RATE).unwrap();
        assert_eq!(nal_units(codec, &made.octets).len(), make::PERIOD + sets, "{codec:?}");
        for (n, unit) in made.units.iter().enumerate() {
            let found = nal_units(codec, &made.octets[unit.octets.clone()]);
            assert_eq!(found.len(), if n == 0 { sets + 1 } else { 1 }, "{codec:?} {n}");
        }
    }
}

#[test]
fn no_nal_unit_has_what_must_not_be_in_one() {
    for (codec, _, _) in CODECS {
        let made = Sequence::make(codec, BIT_RATE).unwrap();
        for unit in nal_units(codec, &made.octets) {
            let octets = &made.octets[unit];
            assert_ne!(octets.last(), Some(&0));
            for four in octets.windows(4).filter(|four| four[..2] == [0, 0]) {
                assert!(four[2] > 3 || four[2] == 3 && four[3] <= 3, "{codec:?}: {four:?}");
            }
        }
    }
}

#[test]
fn a_sequence_is_the_same_every_time() {
    let [one, other] = [(); 2].map(|()| Sequence::make(Codec::H264, BIT_RATE).unwrap());
    assert!(one.octets == other.octets);
}

#[test]
fn what_was_written_is_read_with_the_same_units() {
    let folder = tempfile::tempdir().unwrap();
    for (codec, extension, _) in CODECS {
        let path = folder.path().join(format!("made.{extension}"));
        let made = Sequence::make(codec, BIT_RATE).unwrap();
        made.write_to(&path).unwrap();
        let read = Sequence::read(&path, codec).unwrap();
        assert!(read.octets == made.octets);
        let ranges = |sequence: &Sequence| -> Vec<(Range<usize>, bool)> {
            let units = sequence.units.iter();
            units.map(|unit| (unit.octets.clone(), unit.is_intra)).collect()
        };
        assert_eq!(ranges(&read), ranges(&made), "{codec:?}");
        assert_eq!(read.period(), make::PERIOD);
    }
}

#[test]
fn units_go_on_from_the_beginning() {
    let made = Sequence::make(Codec::H265, BIT_RATE).unwrap();
    assert!(made.unit(64 + 3) == made.unit(3));
    let all = made.octets.len() as u64;
    assert_eq!(made.octets_of(128), 2 * all);
    assert_eq!(made.octets_of(65), all + made.unit(0).len() as u64);
    assert_eq!(made.period(), 64);
}

#[test]
fn what_cannot_be_made_or_read_is_told() {
    assert!(Sequence::make(Codec::Opus, BIT_RATE).is_err());
    assert!(Sequence::make(Codec::H265, 1000).is_err());
    assert!(Sequence::read(Path::new("/nowhere/at.all"), Codec::H265).is_err());
    let empty = tempfile::NamedTempFile::new().unwrap();
    assert!(Sequence::read(empty.path(), Codec::H265).is_err());
}

/// If FFmpeg is installed, its parsers must find one packet for each access unit, and the size.
#[test]
fn ffprobe_sees_the_picture_and_every_access_unit() {
    if Command::new("ffprobe").arg("-version").output().is_err() {
        eprintln!("ffprobe is not installed: left out");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // Not every FFmpeg supports H.266.
    for (codec, extension, name) in [(Codec::H264, "264", "h264"), (Codec::H265, "265", "hevc")] {
        let path = folder.path().join(format!("made.{extension}"));
        let mut twice = Sequence::make(codec, BIT_RATE).unwrap();
        twice.octets.extend_from_within(..);
        twice.write_to(&path).unwrap();
        let output = Command::new("ffprobe")
            .args(["-v", "error", "-f", name, "-framerate", "120", "-count_packets"])
            .args(["-show_entries", "stream=codec_name,width,height,nb_read_packets"])
            .args(["-show_entries", "packet=flags", "-of", "csv"])
            .arg(&path)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let stream = format!("stream,{name},3840,2160,{}", 2 * make::PERIOD);
        assert!(text.lines().any(|line| line == stream), "{codec:?}: {text}");
        let key = text.lines().filter(|line| line.starts_with("packet,K")).count();
        assert_eq!(key, 2, "{codec:?}: {text}");
    }
}
