//! Containers made by FFmpeg: their frames and times as `ffprobe` shows them, and sent as `ffmpeg`
//! sends them.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rushes::file::{MediaFrame, MediaReader, ReadOptions, tracks};
use rushes::payload::nal::find_start_codes;
use rushes::{ClockRate, Codec};

use crate::ffmpeg::ffmpeg_receives;
use crate::rig::{describe, have, ports, receive, received, send};
use crate::sampling::ffmpeg;

/// How containers are made: a name, and the options of `ffmpeg` for video, audio and the container.
const FILMS: [(&str, &[&str]); 8] = [
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
    // Clusters of unknown size, as browsers record.
    ("live.mkv", &["-c:v", "libx264", "-bf", "2", "-c:a", "libopus", "-live", "1"]),
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

/// FFmpeg writes the first fragment's samples into the index, and times into all others; those of
/// other programs have none.
#[test]
fn fragments_without_times_follow_the_samples_of_the_index() {
    if !have(&["ffmpeg"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("parts.mp4");
    film(&path, &["-c:v", "libx264", "-c:a", "libopus", "-movflags", "+frag_keyframe"]);
    let mut octets = std::fs::read(&path).unwrap();
    let places: Vec<_> =
        octets.windows(4).enumerate().filter(|(_, it)| it == b"tfdt").map(|(at, _)| at).collect();
    assert!(places.len() >= 4, "both tracks in several fragments: {places:?}");
    for place in places {
        octets[place..place + 4].copy_from_slice(b"free");
    }
    let bare = folder.path().join("without_times.mp4");
    std::fs::write(&bare, octets).unwrap();
    for codec in [Codec::H264, Codec::Opus] {
        let times = |path| -> Vec<_> {
            read(path, codec).iter().map(|it| (it.decoded, it.presented)).collect()
        };
        assert_eq!(times(&path), times(&bare), "{codec:?}");
    }
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

/// The frames in a list of FFmpeg's `framemd5`: when they are presented, in seconds, and their
/// hashes.
fn listed(text: &str) -> Vec<(f64, String)> {
    let base = text.lines().find_map(|line| line.strip_prefix("#tb 0: 1/")).unwrap();
    let per_second: f64 = base.trim().parse().unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let frame = |line: &str| {
        let fields: Vec<_> = line.split(',').map(str::trim).collect();
        (fields[2].parse::<f64>().unwrap() / per_second, fields[5].to_owned())
    };
    lines.map(frame).collect()
}

/// The frames of a track as FFmpeg decodes them.
fn decoded(path: &Path, track: &str) -> Vec<(f64, String)> {
    let list = path.with_extension(format!("{track}.md5")).display().to_string();
    let film = path.display().to_string();
    let track = format!("0:{track}");
    let times = ["-fps_mode", "passthrough", "-enc_time_base", "-1", "-copyts"];
    let arguments = [&["-i", &film, "-map", &track][..], &times, &["-f", "framemd5", &list]];
    ffmpeg(&arguments.concat());
    listed(&std::fs::read_to_string(list).unwrap())
}

#[test]
fn a_film_is_sent_with_its_sound_in_step() {
    if !have(&["ffmpeg"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("film.mp4");
    film(&path, FILMS[0].1);
    // Four ports in a row.
    let port = loop {
        let (first, second) = (ports(), ports());
        if second == first + 2 {
            break first;
        }
    };
    let sdp = describe(&path, port, folder.path(), &[]);
    let lists = ["v", "a"].map(|track| folder.path().join(track).display().to_string());
    let times = ["-fps_mode", "passthrough", "-enc_time_base", "-1"];
    let [video, audio] = lists.each_ref().map(|list| ["-f", "framemd5", list]);
    let output =
        [&["-copyts", "-map", "0:v"][..], &times, &video, &["-map", "0:a"], &times, &audio];
    let process = ffmpeg_receives(&sdp, port, &output.concat());
    let report = send(&path, port, &[]);
    process.stop_after(Duration::from_secs(5));
    let streams = report["streams"].as_array().unwrap();
    let codecs: Vec<_> = streams.iter().map(|it| it["codec"].as_str().unwrap()).collect();
    assert_eq!(codecs, ["h264", "opus"]);
    let of_film = ["v", "a"].map(|track| decoded(&path, track));
    let received = lists.map(|list| listed(&std::fs::read_to_string(list).unwrap()));
    let hashes =
        |frames: &[(f64, String)]| frames.iter().map(|it| it.1.clone()).collect::<Vec<_>>();
    assert_eq!(hashes(&of_film[0]), hashes(&received[0]));
    // FFmpeg places the streams by the clocks in the sender reports, which arrive before the first
    // frame: all frames of both are moved by the same time.
    let shift = received[0].last().unwrap().0 - of_film[0].last().unwrap().0;
    for track in [0, 1] {
        let times: Vec<_> =
            received[track].iter().zip(&of_film[track]).map(|(to, from)| (to.0, from.0)).collect();
        // FFmpeg cuts the first frame of the audio, as the container of the film says.
        let mut whole = times.iter().skip(track);
        assert!(whole.all(|(to, from)| (to - from - shift).abs() < 0.002), "{shift}: {times:?}");
    }
}

#[test]
fn a_received_film_is_written_to_a_container_with_its_times() {
    if !have(&["ffmpeg"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (name, track, codec, copies) in [
        (0, "v", "h264", &["mp4", "mkv"][..]),
        (5, "v", "h265", &["mp4", "mkv"]),
        (0, "a", "opus", &["m4a", "webm"]),
    ] {
        let (name, options) = FILMS[name];
        let path = folder.path().join(name);
        film(&path, options);
        for extension in copies {
            let copy = folder.path().join(format!("copy.{extension}"));
            let port = ports();
            let process = receive(&copy, port, &["--codec", codec]);
            send(&path, port, &["--codec", codec]);
            assert_eq!(received(process)["complete"], true);
            let (film, copy) = (decoded(&path, track), decoded(&copy, track));
            assert_eq!(film.len(), copy.len(), "{extension} of {name}");
            // FFmpeg cuts the first frame of the audio, as the container of the film says.
            let shift = copy[1].0 - film[1].0;
            for (film, copy) in film.iter().zip(&copy).skip(1) {
                // Matroska counts milliseconds.
                assert!((copy.0 - film.0 - shift).abs() < 0.001_1, "{film:?} {copy:?}");
                assert!(track == "a" || film.1 == copy.1, "{extension} of {name}");
            }
        }
    }
}
