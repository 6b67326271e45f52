//! `rushes texture serve` of pipes, named pipes and devices.

use std::io::{BufReader, PipeWriter, Write, pipe};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use rushes::texture::file::{FrameReader, Y4mReader, Y4mStream};

use crate::rig::{RunningProgram, interrupt, json, rushes, text};
use crate::texture_rig::{Server, frames, must, serving, serving_by, texture};

const HEADER: &[u8] = b"YUV4MPEG2 W128 H96 F200:1 C420jpeg\n";

/// Octets of a frame.
const FRAME: usize = 128 * 96 * 3 / 2;

/// Returns pictures without a regular pattern.
pub(crate) fn pictures(count: u32) -> Vec<Vec<u8>> {
    let octet = |at: u32| (at.wrapping_mul(2_654_435_761) >> 13) as u8;
    (0..count).map(|n| (0..FRAME as u32).map(|at| octet(at + n * 7919)).collect()).collect()
}

pub(crate) fn write(pipe: &mut impl Write, picture: &[u8]) {
    pipe.write_all(b"FRAME\n").unwrap();
    pipe.write_all(picture).unwrap();
}

/// Starts a server of its standard input, which begins with a header and `picture`.
pub(crate) fn piped(picture: &[u8], more: &[&str]) -> (Server, PipeWriter) {
    let (reader, mut writer) = pipe().unwrap();
    writer.write_all(HEADER).unwrap();
    write(&mut writer, picture);
    let mut command = rushes(&[]);
    command.stdin(reader);
    (serving_by(command, "-", more), writer)
}

/// Runs a client that writes every frame to `copy`; returns its output.
pub(crate) fn copied(server: &Server, copy: &Path) -> Output {
    copied_from(&server.address, copy, &["--transport", "tcp"])
}

/// Like [`copied`], with another address and `more` options.
pub(crate) fn copied_from(address: &str, copy: &Path, more: &[&str]) -> Output {
    let view = ["view", address, "--every-frame", "--json", "-o", copy.to_str().unwrap()];
    texture(&[&view[..], more].concat())
}

#[test]
fn every_frame_of_a_pipe_arrives_and_its_end_ends_both_programs() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.y4m");
    let pictures = pictures(40);
    let (server, mut pipe) = piped(&pictures[0], &["--every-frame", "--json"]);
    let rest = pictures[1..].to_vec();
    let writer = thread::spawn(move || rest.iter().for_each(|picture| write(&mut pipe, picture)));
    let viewed = copied(&server, &copy);
    writer.join().unwrap();
    assert!(viewed.status.success(), "{}", text(&viewed.stderr));
    assert!(frames(&copy).1 == pictures);
    let (served, log) = server.finish();
    assert_eq!(served.status.code(), Some(0), "{log}");
    assert_eq!(
        (&json(&served)["source"], &json(&served)["frames"]),
        (&"standard input".into(), &40.into())
    );
}

#[test]
fn pixels_of_a_named_pipe_arrive_as_they_were_written() {
    let folder = tempfile::tempdir().unwrap();
    let (fifo, copy) = (folder.path().join("camera"), folder.path().join("copy.y4m"));
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let (pictures, to) = (pictures(20), fifo.clone());
    let octets = pictures.concat();
    let writer = thread::spawn(move || std::fs::write(to, octets).unwrap());
    let format = ["--size", "128x96", "--input-format", "yuv420p", "--fps", "200"];
    let more = [&format[..], &["--every-frame"]].concat();
    let server = serving(fifo.to_str().unwrap(), &more);
    let viewed = copied(&server, &copy);
    writer.join().unwrap();
    assert!(viewed.status.success(), "{}", text(&viewed.stderr));
    assert!(frames(&copy).1 == pictures);
    let (served, log) = server.finish();
    assert_eq!(served.status.code(), Some(0), "{log}");
}

#[test]
fn a_frame_arrives_before_the_next_one_is_written() {
    let pictures = pictures(6);
    let (server, mut pipe) = piped(&pictures[0], &["--every-frame"]);
    let view = ["texture", "view", &server.address, "-o", "-", "-q", "--transport", "tcp"];
    let mut viewer = rushes(&view).spawn().unwrap();
    let mut received =
        Y4mStream::new(BufReader::new(viewer.stdout.take().unwrap())).unwrap().unwrap();
    let mut frame = Vec::new();
    for (number, picture) in pictures.iter().enumerate() {
        assert!(received.read_frame(&mut frame).unwrap());
        assert!(frame == *picture, "{number}");
        if let Some(next) = pictures.get(number + 1) {
            write(&mut pipe, next);
        }
    }
    drop(pipe);
    assert!(!received.read_frame(&mut frame).unwrap());
    assert!(viewer.wait().unwrap().success());
    let (served, log) = server.finish();
    assert_eq!(served.status.code(), Some(0), "{log}");
}

#[test]
fn frames_without_a_client_are_discarded_and_the_pipe_never_waits() {
    let pictures = pictures(50);
    let (server, mut pipe) = piped(&pictures[0], &[]);
    // These pictures are more than the pipe and the program can hold.
    pictures[1..].iter().for_each(|picture| write(&mut pipe, picture));
    drop(pipe);
    let (served, log) = server.finish();
    assert_eq!(served.status.code(), Some(0), "{log}");
    assert!(log.contains("sent 0 frames to 0 clients"), "{log}");
}

#[test]
fn an_incomplete_last_frame_is_discarded_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.y4m");
    let pictures = pictures(3);
    let (server, mut pipe) = piped(&pictures[0], &["--every-frame"]);
    write(&mut pipe, &pictures[1]);
    pipe.write_all(b"FRAME\n").unwrap();
    pipe.write_all(&pictures[2][..1000]).unwrap();
    drop(pipe);
    let viewed = copied(&server, &copy);
    assert!(viewed.status.success(), "{}", text(&viewed.stderr));
    assert!(frames(&copy).1 == pictures[..2]);
    let (served, log) = server.finish();
    assert_eq!(served.status.code(), Some(1), "{log}");
    let words = "standard input ended within frame 2, after 1000 of 18432 octets";
    assert!(log.contains(words), "{log}");
}

#[test]
fn a_server_whose_pipe_is_silent_ends_at_a_signal() {
    let mut silent = rushes(&["texture", "serve", "-", "--listen", "127.0.0.1:0"]);
    let mut silent = RunningProgram::of(silent.stdin(Stdio::piped()));
    let pipe = silent.child.stdin.take();
    silent.wait_for("waiting for the first frame of standard input");
    interrupt(&silent.child);
    let (status, log) = silent.end();
    assert_eq!(status.code(), Some(0), "{log}");
    drop(pipe);
    for more in [&[][..], &["--every-frame"]] {
        let (server, pipe) = piped(&pictures(1)[0], more);
        let (served, log) = server.interrupt();
        assert_eq!(served.status.code(), Some(0), "{log}");
        drop(pipe);
    }
}

#[test]
fn frames_can_be_limited_although_the_pipe_continues() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.y4m");
    let pictures = pictures(3);
    let (server, mut pipe) = piped(&pictures[0], &["--every-frame", "--frames", "2"]);
    write(&mut pipe, &pictures[1]);
    let viewed = copied(&server, &copy);
    assert!(viewed.status.success(), "{}", text(&viewed.stderr));
    assert!(frames(&copy).1 == pictures[..2]);
    let (served, log) = server.finish();
    assert_eq!(served.status.code(), Some(0), "{log}");
    drop(pipe);
}

#[test]
#[cfg(target_os = "linux")]
fn a_device_that_never_ends_takes_bounded_memory_and_is_read_at_its_rate() {
    let format = ["--size", "1280x720", "--input-format", "rgba", "--fps", "25"];
    let server = serving("/dev/zero", &format);
    let view = ["view", &server.address, "--null", "--frames", "30", "--transport", "tcp"];
    must(&view);
    for _ in 0..6000 {
        if server.log().contains("ahead") {
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kibibytes: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    // A frame has 3 600 KiB.
    assert!(kibibytes < 150 << 10, "{peak}");
    let (served, log) = server.interrupt();
    assert_eq!(served.status.code(), Some(0), "{log}");
    assert!(log.contains("/dev/zero is ahead of real time"), "{log}");
}

#[test]
fn a_pipe_is_encoded_into_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.y4m");
    let (reader, mut writer) = pipe().unwrap();
    let pictures = pictures(3);
    let written = pictures.clone();
    let writing = thread::spawn(move || {
        writer.write_all(HEADER).unwrap();
        for picture in &written {
            write(&mut writer, picture);
        }
    });
    let encode = ["texture", "encode", "-", copy.to_str().unwrap()];
    let encoded = rushes(&encode).stdin(reader).output().unwrap();
    writing.join().unwrap();
    assert!(encoded.status.success(), "{}", text(&encoded.stderr));
    assert!(frames(&copy).1 == pictures);
    let file = BufReader::new(std::fs::File::open(&copy).unwrap());
    assert_eq!(Y4mReader::new(file).unwrap().rate().numerator(), 200);
}

#[test]
fn a_file_without_frames_is_refused_with_advice() {
    let pixels = ["--size", "2x2", "--input-format", "rgb24", "--fps", "25"];
    for (octets, more, code, words) in [
        (&b""[..], &[][..], 1, "standard input: contains no frame"),
        (b"YUV4MPEG2 W2 H2 F25:1\n", &[], 1, "standard input: contains no frame"),
        (b"", &pixels, 1, "standard input: contains no frame"),
        (b"\x1aE\xdf\xa3 no frames", &[], 1, "-f yuv4mpegpipe -"),
        (b"\x1aE\xdf\xa3 no frames", &[], 1, "it does not begin with YUV4MPEG2"),
        (b"YUV4MPEG2 W2 H2 C411\nFRAME\n", &[], 1, "-pix_fmt yuv420p"),
        (b"YUV4MPEG2 W2 H2 It\nFRAME\n", &[], 1, "interlaced video is not supported"),
        (b"", &["--size", "2x2"], 2, "--input-format rgb24 (or rgba, yuv420p, …) --fps RATE"),
        (b"", &["--input-format", "rgba"], 2, "Add: --size WIDTHxHEIGHT --fps RATE;"),
        (b"", &["--loop"], 2, "standard input can be read only once: --loop needs a file"),
        (b"", &["--preload"], 2, "--preload needs a file"),
    ] {
        let (reader, mut writer) = pipe().unwrap();
        writer.write_all(octets).unwrap();
        drop(writer);
        let serve = [&["texture", "serve", "-", "--listen", "127.0.0.1:0"], more].concat();
        let output = rushes(&serve).stdin(reader).output().unwrap();
        let log = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{more:?}: {log}");
        assert!(log.contains(words), "{more:?}: {log}");
    }
    // Y4M that is read as pixels is detected at its first frame.
    let (reader, mut writer) = pipe().unwrap();
    writer.write_all(HEADER).unwrap();
    drop(writer);
    let serve = [&["texture", "serve", "-", "--listen", "127.0.0.1:0"], &pixels[..]].concat();
    let output = rushes(&serve).stdin(reader).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("this is a Y4M file"), "{}", text(&output.stderr));
}
