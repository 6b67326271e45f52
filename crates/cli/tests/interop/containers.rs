//! Containers made by FFmpeg: their frames and times equal those that `ffprobe` prints, and are
//! sent as `ffmpeg` sends them.

use std::path::Path;
use std::process::Command;

use rushes::file::{MediaFrame, MediaReader, ReadOptions, tracks};
use rushes::{ClockRate, Codec};

use crate::ffmpeg::{GOODBYE, ffmpeg_receives};
use crate::media::nal_units;
use crate::ports::four_ports;
use crate::rig::{describe, have, ports, receive, received, send};
use crate::sampling::ffmpeg;

/// The containers: a name, and the options of `ffmpeg` for video, audio and the container.
pub(crate) const FILMS: [(&str, &[&str]); 8] = [
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

/// Makes a film of two seconds with a beep.
pub(crate) fn film(path: &Path, options: &[&str]) {
    let video = "testsrc2=size=320x180:rate=30000/1001:duration=2";
    let input =
        ["-f", "lavfi", "-i", video, "-f", "lavfi", "-i", "sine=duration=2:sample_rate=48000"];
    let path = path.display().to_string();
    let quiet = ["-x265-params", "log-level=0", "-strict", "-2", "-pix_fmt", "yuv420p", "-g", "20"];
    ffmpeg(&[&input[..], &quiet, options, &[&path]].concat());
}

/// Returns the decoding and presentation times of a track's packets, in ticks of `clock_rate`, and
/// their sizes, by `ffprobe`.
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
    nal_units(frame)
        .filter(|unit| nal.header(unit).is_some_and(|it| nal.is_vcl(it.nal_type)))
        .collect()
}

fn read(path: &Path, codec: Codec) -> Vec<MediaFrame> {
    let mut reader = MediaReader::open(path, codec, ReadOptions::default()).unwrap();
    std::iter::from_fn(|| reader.next_frame().unwrap().cloned()).collect()
}

/// FFmpeg writes the first fragment's samples into the index and times into all other fragments;
/// fragments of other programs have no times.
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
        // Matroska counts times in milliseconds, and ffprobe rounds the time before the beginning.
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

/// Returns the frames in a list of FFmpeg's `framemd5`: their presentation times in seconds, and
/// their hashes.
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

/// Returns the frames of a track as FFmpeg decodes them.
pub(crate) fn decoded(path: &Path, track: &str) -> Vec<(f64, String)> {
    let list = path.with_extension(format!("{track}.md5")).display().to_string();
    let film = path.display().to_string();
    let track = format!("0:{track}");
    let times = ["-fps_mode", "passthrough", "-enc_time_base", "-1", "-copyts"];
    let arguments = [&["-i", &film, "-map", &track][..], &times, &["-f", "framemd5", &list]];
    ffmpeg(&arguments.concat());
    listed(&std::fs::read_to_string(list).unwrap())
}

/// Sends the H.264 film at `path` and audio in it, or as `options` say, to FFmpeg: the frames of both
/// that it decodes. It places the streams by the clocks in their sender reports.
fn shown_by_ffmpeg(path: &Path, options: &[&str]) -> [Vec<(f64, String)>; 2] {
    let folder = tempfile::tempdir().unwrap();
    let port = four_ports();
    let sdp = describe(path, port, folder.path(), options);
    let lists = ["v", "a"].map(|track| folder.path().join(track).display().to_string());
    let times = ["-fps_mode", "passthrough", "-enc_time_base", "-1"];
    let [video, audio] = lists.each_ref().map(|list| ["-f", "framemd5", list]);
    let output =
        [&["-copyts", "-map", "0:v"][..], &times, &video, &["-map", "0:a"], &times, &audio];
    let process = ffmpeg_receives(&sdp, port, &output.concat());
    let report = send(path, port, options);
    process.stop_after(GOODBYE);
    let streams = report["streams"].as_array().unwrap();
    let codecs: Vec<_> = streams.iter().map(|it| it["codec"].as_str().unwrap()).collect();
    assert_eq!(codecs, ["h264", "opus"]);
    lists.map(|list| listed(&std::fs::read_to_string(list).unwrap()))
}

/// By how many seconds the last frame of each track in `received` is later than in `film`. From the
/// first sender reports on, FFmpeg knows how the streams are to be placed.
fn shifts(received: &[Vec<(f64, String)>; 2], film: &[Vec<(f64, String)>; 2]) -> [f64; 2] {
    [0, 1].map(|track| {
        let last = |frames: &[(f64, String)]| frames.last().unwrap().0;
        last(&received[track]) - last(&film[track])
    })
}

#[test]
fn a_film_is_sent_with_its_sound_in_step() {
    if !have(&["ffmpeg"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("film.mp4");
    film(&path, FILMS[0].1);
    let received = shown_by_ffmpeg(&path, &[]);
    let of_film = ["v", "a"].map(|track| decoded(&path, track));
    let hashes =
        |frames: &[(f64, String)]| frames.iter().map(|it| it.1.clone()).collect::<Vec<_>>();
    assert_eq!(hashes(&of_film[0]), hashes(&received[0]));
    // FFmpeg places the streams by the clocks in the sender reports: all frames of both are moved by the
    // same time. On a busy machine it may read the first report behind some frames, which it places by
    // a clock of its own; it also cuts the first frame of the audio, as the film's container requires.
    let shift = received[0].last().unwrap().0 - of_film[0].last().unwrap().0;
    for track in [0, 1] {
        let times: Vec<_> =
            received[track].iter().zip(&of_film[track]).map(|(to, from)| (to.0, from.0)).collect();
        let is_placed = |(to, from): &&(f64, f64)| (to - from - shift).abs() < 0.002;
        let placed = times.iter().rev().take_while(is_placed).count();
        assert!(2 * placed > times.len(), "{shift}: {times:?}");
    }
}

/// The first picture is decoded 67 ms before time 0. It is presented at time 0, where the audio beside
/// the film begins, too.
#[test]
fn audio_beside_a_film_begins_with_its_pictures() {
    if !have(&["ffmpeg"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("film.mp4");
    film(&path, FILMS[0].1);
    let first = packets(&path, "v:0", ClockRate::VIDEO)[0];
    assert_eq!((first.0, first.1), (-6_006, 0));
    let speech = folder.path().join("speech.opus").display().to_string();
    ffmpeg(&["-i", &path.display().to_string(), "-map", "0:a", "-c", "copy", &speech]);
    let received = shown_by_ffmpeg(&path, &["--audio", &speech]);
    let of_film = ["v", "a"].map(|track| decoded(&path, track));
    let [video, audio] = shifts(&received, &of_film);
    // The first 6.5 ms of the packets, the pre-skip, are before time 0 in the film.
    assert!((audio - video - 0.0065).abs() < 0.002, "out of step: {video} {audio} seconds");
}

/// The duration of a file by `ffprobe`, in seconds; `None` if it does not say.
fn duration(path: &Path) -> Option<f64> {
    let show = ["-v", "error", "-show_entries", "format=duration", "-of", "csv=p=0"];
    let output = Command::new("ffprobe").args(show).arg(path).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().parse().ok()
}

/// The first frame of the video that FFmpeg shows from `seconds` on, if it seeks there.
fn sought(path: &Path, seconds: &str) -> (f64, String) {
    let list = path.with_extension("sought.md5").display().to_string();
    let film = path.display().to_string();
    let times = ["-fps_mode", "passthrough", "-enc_time_base", "-1", "-copyts"];
    let input = ["-ss", seconds, "-i", &film, "-map", "0:v", "-frames:v", "1"];
    ffmpeg(&[&input[..], &times, &["-f", "framemd5", &list]].concat());
    listed(&std::fs::read_to_string(list).unwrap()).remove(0)
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
            let path_of_copy = folder.path().join(format!("copy.{extension}"));
            let port = ports();
            let process = receive(&path_of_copy, port, &["--codec", codec]);
            send(&path, port, &["--codec", codec]);
            assert_eq!(received(process)["complete"], true);
            let (film, copy) = (decoded(&path, track), decoded(&path_of_copy, track));
            assert_eq!(film.len(), copy.len(), "{extension} of {name}");
            // FFmpeg cuts the first frame of the audio, as the film's container requires.
            let shift = copy[1].0 - film[1].0;
            for (film, copy) in film.iter().zip(&copy).skip(1) {
                // Matroska counts times in milliseconds.
                assert!((copy.0 - film.0 - shift).abs() < 0.001_1, "{film:?} {copy:?}");
                assert!(track == "a" || film.1 == copy.1, "{extension} of {name}");
            }
            if ["mkv", "webm"].contains(extension) {
                let seconds = duration(&path_of_copy).unwrap();
                assert!((seconds - 2.0).abs() < 0.05, "{extension} of {name}: {seconds} seconds");
            }
            if *extension == "mkv" {
                let sought = sought(&path_of_copy, "1.5");
                let expected = copy.iter().find(|frame| frame.0 >= 1.5).unwrap();
                assert_eq!(sought.1, expected.1, "{sought:?} {expected:?}");
            }
        }
    }
}

#[test]
fn h266_is_sent_from_the_container_that_it_was_received_into() {
    let bare = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../vectors/media/vvc_192x128_64f_vvenc_tiny_nals.266");
    let folder = tempfile::tempdir().unwrap();
    let transfer = |from: &Path, name: &str| {
        let (copy, port) = (folder.path().join(name), ports());
        let process = receive(&copy, port, &["--codec", "h266"]);
        send(from, port, &[]);
        assert_eq!(received(process)["complete"], true);
        copy
    };
    let expected = read(&bare, Codec::H266);
    for extension in ["mp4", "mov", "mkv"] {
        let film = transfer(&bare, &format!("film.{extension}"));
        let found = tracks(&film).unwrap().unwrap();
        assert_eq!(found[0].codec, Some(Codec::H266));
        let copy = read(&transfer(&film, &format!("{extension}.266")), Codec::H266);
        assert_eq!(copy.len(), expected.len(), "{extension}");
        for (frame, copy) in expected.iter().zip(&copy) {
            assert_eq!(slices(Codec::H266, &frame.data), slices(Codec::H266, &copy.data));
        }
    }
}
