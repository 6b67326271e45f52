//! Both streams of a film received into one file, as FFmpeg reads it, from this program and from FFmpeg.

use std::path::Path;

use serde_json::Value;

use crate::containers::{FILMS, decoded, film};
use crate::media::{H264, OPUS};
use crate::ports::four_ports;
use crate::rig::{Process, describe, have, receive_described, received, send};

/// Fails unless `copy` has the pictures and as much sound as `film`, and their distance in time is the
/// same to `seconds`.
fn is_in_step(film: &Path, copy: &Path, seconds: f64, report: &Value) {
    let shifts = ["v", "a"].map(|track| {
        let (film, copy) = (decoded(film, track), decoded(copy, track));
        assert_eq!(film.len(), copy.len(), "{track}: {report}");
        // FFmpeg cuts the first frame of the audio, as the container of the film says.
        let shift = copy[1].0 - film[1].0;
        for (film, copy) in film.iter().zip(&copy).skip(1) {
            assert!((copy.0 - film.0 - shift).abs() < 0.002, "{track}: {film:?} {copy:?}");
            assert!(track == "a" || film.1 == copy.1, "a picture differs: {film:?} {copy:?}");
        }
        shift
    });
    assert!((shifts[0] - shifts[1]).abs() < seconds, "out of step: {shifts:?} seconds: {report}");
}

#[test]
fn both_streams_of_a_film_are_written_to_one_file_in_step() {
    if !have(&["ffmpeg"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (options, extension) in [(0, "mp4"), (5, "mkv"), (0, "mov")] {
        let path = folder.path().join(FILMS[options].0);
        film(&path, FILMS[options].1);
        let (port, copy) = (four_ports(), folder.path().join(format!("copy.{extension}")));
        let sdp = describe(&path, port, folder.path(), &[]);
        let process = receive_described(&copy, &sdp, port, &[]).listening(port + 2);
        send(&path, port, &[]);
        let report = received(process);
        assert_eq!(report["complete"], true, "{report}");
        let ends = [0, 1].map(|number: usize| &report["streams"][number]["end"]);
        assert_eq!(ends, ["bye"; 2], "{report}");
        is_in_step(&path, &copy, 0.002, &report);
    }
}

/// Its two outputs begin the clocks of their reports one after the other, and would otherwise move
/// their streams to begin at 0.
#[test]
fn both_streams_that_ffmpeg_sends_are_written_to_one_file() {
    if !have(&["ffmpeg"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("film.mp4");
    film(&path, FILMS[0].1);
    for extension in ["mp4", "mkv"] {
        let (port, copy) = (four_ports(), folder.path().join(format!("copy.{extension}")));
        let sdp = describe(&path, port, folder.path(), &[]);
        let process = receive_described(&copy, &sdp, port, &[]).listening(port + 2);
        let to = [port, port + 2].map(|port| format!("rtp://127.0.0.1:{port}"));
        let types = [H264, OPUS].map(|kind| kind.payload_type.to_string());
        let input = ["-nostdin", "-v", "error", "-re", "-i", path.to_str().unwrap()];
        let output = |track: usize, map| {
            let options = ["-map", map, "-c", "copy", "-f", "rtp", "-rtpflags", "send_bye"];
            let times = ["-avoid_negative_ts", "disabled", "-payload_type", &types[track]];
            [&options[..], &times, &[&to[track]]].concat()
        };
        let arguments = [&input[..], &output(0, "0:v"), &output(1, "0:a")].concat();
        let (_, errors) = Process::start("ffmpeg", &arguments).finish();
        eprint!("{errors}");
        let report = received(process);
        assert_eq!(report["complete"], true, "{report}");
        is_in_step(&path, &copy, 0.05, &report);
    }
}
