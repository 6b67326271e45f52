//! FFmpeg's frames through a pipe into a texture server.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::thread;

use crate::program::program;
use crate::rig::have;

const PICTURES: &str = "testsrc2=size=320x180:rate=100:duration=0.5";

/// Returns FFmpeg's digest of each frame.
fn digests(input: &[&str], pixels: &str) -> Vec<String> {
    let output = Command::new("ffmpeg")
        .args(["-v", "error", "-nostdin"])
        .args(input)
        .args(["-pix_fmt", pixels, "-f", "framemd5", "-"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.rsplit(',').next().unwrap().trim().to_owned()).collect()
}

/// Serves the output of FFmpeg from a pipe; returns the digests of the frames that a client
/// received.
fn piped(pixels: &str, container: &[&str], serve: &[&str]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.y4m");
    let mut ffmpeg = Command::new("ffmpeg")
        .args(["-v", "error", "-nostdin", "-f", "lavfi", "-i", PICTURES, "-pix_fmt", pixels])
        .args(container)
        .arg("-")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let rushes = || Command::new(program());
    let mut server = rushes()
        .args(["texture", "serve", "-", "--listen", "127.0.0.1:0", "--every-frame"])
        .args(serve)
        .stdin(ffmpeg.stdout.take().unwrap())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stderr.take().unwrap()).lines().map(Result::unwrap);
    let address = lines.by_ref().find_map(|line| {
        line.split_once("listening on ").map(|(_, address)| address.trim().to_owned())
    });
    // The log is read, so that its pipe does not fill up.
    let log = thread::spawn(move || lines.collect::<Vec<_>>().join("\n"));
    let view = ["texture", "view", &address.unwrap(), "--every-frame", "--transport", "tcp", "-o"];
    let viewed = rushes().args(view).arg(&copy).output().unwrap();
    assert!(viewed.status.success(), "{}", String::from_utf8_lossy(&viewed.stderr));
    assert!(ffmpeg.wait().unwrap().success());
    let status = server.wait().unwrap();
    assert_eq!(status.code(), Some(0), "{}", log.join().unwrap());
    digests(&["-i", copy.to_str().unwrap()], pixels)
}

#[test]
fn frames_of_ffmpeg_pass_a_pipe_unchanged() {
    if !have(&["ffmpeg"]) {
        return;
    }
    for pixels in ["yuv420p", "yuv422p"] {
        let expected = digests(&["-f", "lavfi", "-i", PICTURES], pixels);
        assert_eq!(expected.len(), 50);
        assert_eq!(piped(pixels, &["-f", "yuv4mpegpipe"], &[]), expected, "{pixels}");
        let raw = ["--size", "320x180", "--input-format", pixels, "--fps", "100"];
        assert_eq!(piped(pixels, &["-f", "rawvideo"], &raw), expected, "{pixels} without a header");
    }
}
