//! Containers made by FFmpeg: their frames and times as `ffprobe` shows them, and sent as `ffmpeg`
//! sends them.

use std::path::Path;
use std::process::Command;

use rushes::file::{MediaFrame, MediaReader, ReadOptions, tracks};
use rushes::payload::nal::find_start_codes;
use rushes::{ClockRate, Codec};

use crate::rig::have;
use crate::sampling::ffmpeg;

/// How containers are made: a name, and the options of `ffmpeg` for video, audio and the container.
const FILMS: [(&str, &[&str]); 7] = [
    ("plain.mp4", &["-c:v", "libx264", "-bf", "3", "-c:a", "libopus"]),
    ("moved.mp4", &["-c:v", "libx264", "-bf", "3", "-c:a", "libopus", "-movflags", "+faststart"]),
    ("parts.mp4", &["-c:v", "libx264", "-c:a", "libopus", "-movflags", "frag_keyframe+empty_moov"]),
    (
        "parts_of_base.mp4",
        &["-c:v", "libx265", "-c:a", "libopus", "-movflags", "+frag_keyframe+default_base_moof"],
    ),
    ("film.mov", &["-c:v", "libx264", "-bf", "2", "-c:a", "aac"]),
    ("film.mkv", &["-c:v", "libx265", "-c:a", "libopus"]),
    (
        "open_groups.mkv",
        &["-c:v", "libx264", "-x264-params", "open-gop=1:keyint=12:bframes=3", "-c:a", "libopus"],
    ),
];

/// Makes a film of two seconds, with a beep.
fn film(path: &Path, options: &[&str]) {
    let video = "testsrc2=size=320x180:rate=30000/1001:duration=2";
    let input =
        ["-f", "lavfi", "-i", video, "-f", "lavfi", "-i", "sine=duration=2:sample_rate=48000"];
    let path = path.display().to_string();
    let quiet = ["-x265-params", "log-level=0", "-strict", "-2", "-pix_fmt", "yuv420p", "-g", "20"];
    ffmpeg(&[&input[..], &quiet, options, &[&path]].concat());
}

/// The times of decoding and presentation of a track's packets, in ticks of `clock_rate`, and their
/// octets, by `ffprobe`.
fn packets(path: &Path, track: &str, clock_rate: ClockRate) -> Vec<(i64, i64, usize)> {
    let show = "packet=pts,dts,size:stream=time_base";
    let arguments = ["-v", "error", "-select_streams", track, "-show_entries", show, "-of", "csv"];
    let output = Command::new("ffprobe").args(arguments).arg(path).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let base = text.lines().find_map(|line| line.strip_prefix("stream,")).unwrap();
    let (seconds, units) = base.trim().split_once('/').unwrap();
    let (seconds, units): (i128, i128) = (seconds.parse().unwrap(), units.parse().unwrap());
    let scale = |ticks: &str| {
        let ticks = ticks.parse::<i128>().unwrap_or(0) * seconds * i128::from(clock_rate.hertz());
        ((ticks + units / 2 * ticks.signum()) / units) as i64
    };
    let lines = text.lines().filter_map(|line| line.strip_prefix("packet,"));
    lines
        .map(|line| {
            let mut fields = line.split(',');
            let (presented, decoded) =
                (scale(fields.next().unwrap()), scale(fields.next().unwrap()));
            (decoded, presented, fields.next().unwrap().parse().unwrap())
        })
        .collect()
}

/// The NAL units of slices.
fn slices(codec: Codec, frame: &[u8]) -> Vec<&[u8]> {
    let nal = codec.nal.unwrap();
    let starts: Vec<_> = find_start_codes(frame).collect();
    let ends = starts.iter().skip(1).copied().chain([frame.len()]);
    let units = starts.iter().zip(ends).map(|(start, end)| {
        let unit = &frame[start + 3..end];
        let len = unit.iter().rposition(|octet| *octet != 0).map_or(0, |last| last + 1);
        &unit[..len]
    });
    units.filter(|unit| nal.header(unit).is_some_and(|it| nal.is_vcl(it.nal_type))).collect()
}

fn read(path: &Path, codec: Codec) -> Vec<MediaFrame> {
    let mut reader = MediaReader::open(path, codec, ReadOptions::default()).unwrap();
    std::iter::from_fn(|| reader.next_frame().unwrap().cloned()).collect()
}

#[test]
fn frames_and_times_are_those_of_the_container() {
    if !have(&["ffmpeg"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (name, options) in FILMS {
        let path = folder.path().join(name);
        film(&path, options);
        // Matroska counts in milliseconds, and ffprobe rounds the time before the beginning.
        let is_matroska = name.ends_with("mkv");
        let found = tracks(&path).unwrap().unwrap();
        assert_eq!(found.iter().map(|it| it.media).collect::<Vec<_>>(), ["video", "audio"]);
        let video = found[0].codec.unwrap();
        let expected = packets(&path, "v:0", video.clock_rate);
        let frames = read(&path, video);
        let bare = folder.path().join(format!("{name}.{}", video.files.extensions[0]));
        let paths = [&path, &bare].map(|path| path.display().to_string());
        ffmpeg(&["-i", &paths[0], "-c", "copy", &paths[1]]);
        let bare = read(&bare, video);
        assert_eq!([frames.len(), bare.len()], [expected.len(); 2], "{name}");
        for (number, (frame, bare)) in frames.iter().zip(&bare).enumerate() {
            let (decoded, presented, _) = expected[number];
            assert_eq!(
                frame.presented.unwrap().ticks(video.clock_rate),
                presented,
                "{name} {number}"
            );
            let time = frame.decoded.unwrap().ticks(video.clock_rate);
            assert!(is_matroska || time == decoded, "{name} {number}: {time} {decoded}");
            assert_eq!(slices(video, &frame.data), slices(video, &bare.data), "{name} {number}");
            let sets = [frame, bare].map(|it| (video.has_parameter_sets)(&it.data));
            assert!(sets[0] >= sets[1], "{name} {number}: parameter sets are missing");
        }
        assert!((video.has_parameter_sets)(&frames[0].data), "{name}");
        let in_order = frames.windows(2).all(|pair| pair[0].decoded <= pair[1].decoded);
        assert!(in_order, "{name}");
        if found[1].codec == Some(Codec::Opus) {
            let expected = packets(&path, "a:0", ClockRate::OPUS);
            let frames = read(&path, Codec::Opus);
            assert_eq!(frames.len(), expected.len(), "{name}");
            for (frame, (_, presented, len)) in frames.iter().zip(expected) {
                let time = frame.presented.unwrap().ticks(ClockRate::OPUS);
                let margin = if is_matroska { 48 } else { 0 };
                assert!(time.abs_diff(presented) <= margin, "{name}: {time} {presented}");
                assert_eq!(frame.data.len(), len);
                assert_eq!(frame.duration, Some(960));
            }
        }
    }
}
