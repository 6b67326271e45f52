//! `rushes texture` of pictures whose size changes.

use std::fs;
use std::io::{BufReader, Write, pipe};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use rushes::texture::file::Y4mStream;

use crate::rig::{json, rushes, text};
use crate::skipped;
use crate::texture_pipes::{copied, copied_from, pictures, piped, write};
use crate::texture_rig::{frames, serving_by};

const SMALL: &[u8] = b"YUV4MPEG2 W16 H8 F200:1 C420jpeg\n";
const SMALL_FRAME: usize = 16 * 8 * 3 / 2;

/// Returns small pictures, each of one value.
fn small(count: u8) -> Vec<Vec<u8>> {
    (0..count).map(|value| vec![value; SMALL_FRAME]).collect()
}

/// Writes the large pictures after the first one, then the small ones, then the large ones again.
fn write_all(mut pipe: impl Write, large: &[Vec<u8>], small: &[Vec<u8>]) {
    for picture in &large[1..] {
        write(&mut pipe, picture);
    }
    pipe.write_all(SMALL).unwrap();
    for picture in small {
        write(&mut pipe, picture);
    }
    pipe.write_all(b"YUV4MPEG2 W128 H96 F200:1 C420jpeg\n").unwrap();
    for picture in large {
        write(&mut pipe, picture);
    }
}

#[test]
fn frames_of_each_size_have_a_file_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let (large, small) = (pictures(12), small(9));
    let (server, pipe) = piped(&large[0], &["--every-frame", "--json"]);
    let (first, second) = (large.clone(), small.clone());
    let writer = thread::spawn(move || write_all(pipe, &first, &second));
    let viewed = copied(&server, &file("copy.y4m"));
    writer.join().unwrap();
    assert!(viewed.status.success(), "{}", text(&viewed.stderr));
    let report = json(&viewed);
    assert_eq!(report["frames_written"], 33);
    let names: Vec<_> = report["further_files"].as_array().unwrap().iter().collect();
    assert!(names.len() == 2 && names[0].as_str().unwrap().ends_with("copy-2.y4m"), "{names:?}");
    assert!(frames(&file("copy.y4m")).1 == large);
    assert!(frames(&file("copy-2.y4m")).1 == small);
    assert!(frames(&file("copy-3.y4m")).1 == large);
    let (served, log) = server.finish();
    assert_eq!(served.status.code(), Some(0), "{log}");
    assert_eq!(json(&served)["frames"], 33, "{log}");
}

#[test]
fn a_further_file_replaces_none_that_exists() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    fs::write(file("copy-2.y4m"), "mine").unwrap();
    let (large, small) = (pictures(3), small(3));
    let (server, pipe) = piped(&large[0], &["--every-frame"]);
    let (first, second) = (large.clone(), small.clone());
    let writer = thread::spawn(move || write_all(pipe, &first, &second));
    let copy = file("copy.y4m");
    let viewed = copied_from(&server.address, &copy, &["--transport", "tcp", "--force"]);
    writer.join().unwrap();
    assert!(viewed.status.success(), "{}", text(&viewed.stderr));
    assert_eq!(fs::read(file("copy-2.y4m")).unwrap(), b"mine");
    assert!(frames(&file("copy.y4m")).1 == large);
    assert!(frames(&file("copy-3.y4m")).1 == small);
    assert!(frames(&file("copy-4.y4m")).1 == large);
    server.finish();
}

#[test]
fn a_pipe_is_passed_on_with_its_headers() {
    let (large, small) = (pictures(4), small(4));
    let (server, pipe) = piped(&large[0], &["--every-frame"]);
    let view = ["texture", "view", &server.address, "-o", "-", "-q", "--transport", "tcp"];
    let mut viewer = rushes(&view).arg("--every-frame").spawn().unwrap();
    let (first, second) = (large.clone(), small.clone());
    let writer = thread::spawn(move || write_all(pipe, &first, &second));
    let mut received =
        Y4mStream::new(BufReader::new(viewer.stdout.take().unwrap())).unwrap().unwrap();
    let mut frame = Vec::new();
    for picture in large.iter().chain(&small).chain(&large) {
        assert!(received.read_frame(&mut frame).unwrap() && frame == *picture);
    }
    writer.join().unwrap();
    assert!(viewer.wait().unwrap().success());
    server.finish();
}

#[test]
fn a_file_has_the_frames_before_another_size() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.y4m");
    let (reader, mut writer) = pipe().unwrap();
    let large = pictures(3);
    let written = large.clone();
    let writing = thread::spawn(move || {
        writer.write_all(b"YUV4MPEG2 W128 H96 F200:1 C420jpeg\n").unwrap();
        for picture in &written {
            write(&mut writer, picture);
        }
        writer.write_all(SMALL).unwrap();
        for picture in &small(1) {
            write(&mut writer, picture);
        }
    });
    let encode = ["texture", "encode", "-", copy.to_str().unwrap()];
    let encoded = rushes(&encode).stdin(reader).output().unwrap();
    writing.join().unwrap();
    let log = text(&encoded.stderr);
    assert_eq!(encoded.status.code(), Some(1), "{log}");
    assert!(log.contains("the pictures change to 16×8 yuv420 at frame 3"), "{log}");
    assert!(frames(&copy).1 == large);
}

/// Runs FFmpeg for three pictures of a size, written to `to`.
fn ffmpeg(size: &str, to: impl Into<Stdio>) -> Command {
    let mut command = Command::new("ffmpeg");
    let input = format!("testsrc2=size={size}:rate=25:duration=0.12");
    command.args(["-v", "error", "-f", "lavfi", "-i", &input]);
    command.args(["-pix_fmt", "yuv420p", "-f", "yuv4mpegpipe", "-"]);
    command.stdin(Stdio::null()).stdout(to);
    command
}

#[test]
fn another_program_writes_and_reads_pictures_of_two_sizes() {
    if !skipped::have(&["ffmpeg"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (reader, writer) = pipe().unwrap();
    let writing = thread::spawn(move || {
        for size in ["320x180", "180x320"] {
            let status = ffmpeg(size, writer.try_clone().unwrap()).status().unwrap();
            assert!(status.success());
        }
    });
    let mut command = rushes(&[]);
    command.stdin(reader);
    let server = serving_by(command, "-", &["--every-frame"]);
    let copy = folder.path().join("copy.y4m");
    let viewed = copied(&server, &copy);
    writing.join().unwrap();
    assert!(viewed.status.success(), "{}", text(&viewed.stderr));
    for (name, size) in [("copy.y4m", "320x180"), ("copy-2.y4m", "180x320")] {
        let own = folder.path().join("own.y4m");
        let status = ffmpeg(size, fs::File::create(&own).unwrap()).status().unwrap();
        assert!(status.success());
        let received = folder.path().join(name);
        assert!(frames(&received).1 == frames(&own).1, "{name}");
        assert_eq!(decoded(&received), decoded(&own), "{name}");
    }
    server.finish();
}

/// Returns the hash of each frame as FFmpeg reads it.
fn decoded(path: &Path) -> String {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-i"]).arg(path).args(["-f", "framemd5", "-"]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout).lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
}
