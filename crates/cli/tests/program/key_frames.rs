//! `--key-frame-requests-to`: encoders behind a pipe are asked for key frames.

use std::io::Write as _;
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use rushes::file::{MediaReader, ReadOptions};
use rushes::{Codec, Context, KeyFrameRequest};

use crate::rig::{RunningProgram, free_port, interrupt, media, run, rushes, text, units};
use crate::skipped;

const FILM: &str = "avc_cif_60f_baseline.264";
/// Nothing here takes as long, unless it never ends.
const PATIENCE: Duration = Duration::from_secs(120);

/// An encoder that makes a key frame only when it is asked for one.
struct Encoder {
    pipe: ChildStdin,
    key: Vec<u8>,
    others: Vec<Vec<u8>>,
    /// Frames made.
    made: usize,
    /// Requests answered.
    answered: usize,
}

impl Encoder {
    fn new(pipe: ChildStdin) -> Self {
        let film = media(FILM);
        let mut reader =
            MediaReader::open(film.as_ref(), Codec::H264, ReadOptions::default()).unwrap();
        let all = std::iter::from_fn(|| reader.next_frame().unwrap().map(|it| it.data.clone()));
        let (keys, others): (Vec<_>, Vec<_>) = all.partition(|it| (Codec::H264.is_key_frame)(it));
        let key = keys.into_iter().next().unwrap();
        Self { pipe, key, others, made: 0, answered: 0 }
    }

    /// Makes the next frame: a key frame if one more than those so far was requested in the file.
    fn next(&mut self, requests: &Path) -> std::io::Result<()> {
        let lines = std::fs::read_to_string(requests).unwrap_or_default();
        assert!(lines.lines().all(|line| line == "key-frame"), "{lines:?}");
        let is_key = lines.lines().count() > self.answered;
        let frame = if is_key { &self.key } else { &self.others[self.made % self.others.len()] };
        (self.answered, self.made) = (self.answered + usize::from(is_key), self.made + 1);
        self.pipe.write_all(frame)?;
        std::thread::sleep(Duration::from_millis(20));
        Ok(())
    }
}

#[test]
fn a_viewer_begins_with_the_key_frame_that_the_encoder_was_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let (requests, copy) = (folder.path().join("requests"), folder.path().join("copy.264"));
    let address = format!("127.0.0.1:{}", free_port());
    let mut command = rushes(&["serve", "-", "--codec", "h264", "--http", &address]);
    command.arg("--key-frame-requests-to").arg(&requests).stdin(Stdio::piped());
    let mut server = RunningProgram::of(&mut command);
    let mut encoder = Encoder::new(server.child.stdin.take().unwrap());
    server.wait_for("in a browser");
    let whep = format!("http://{address}/whep");
    let mut player = rushes(&["recv", "--whep", &whep, "--duration", "2s", "-o"]);
    let mut player = player.arg(&copy).stderr(Stdio::piped()).spawn().unwrap();
    let start = Instant::now();
    while player.try_wait().unwrap().is_none() {
        encoder.next(&requests).unwrap();
        assert!(start.elapsed() < PATIENCE);
    }
    let played = player.wait_with_output().unwrap();
    assert!(played.status.success(), "{}", text(&played.stderr));
    assert!(encoder.answered > 0 && copy.exists());
    interrupt(&server.child);
    drop(encoder);
    assert!(server.end().0.success());
}

#[test]
fn a_receiver_of_plain_rtp_asks_the_encoder_and_cannot_ask_it_often() {
    let folder = tempfile::tempdir().unwrap();
    let requests = folder.path().join("requests");
    let context = Context::new();
    let mut receiver =
        context.receive_on("127.0.0.1").unwrap().stream(Codec::H264).feedback(true).open().unwrap();
    let to = receiver.local_address().to_string();
    let mut command = rushes(&["send", "-", "--codec", "h264", "--to", &to, "--feedback"]);
    command.arg("--key-frame-requests-to").arg(&requests).stdin(Stdio::piped());
    let mut sender = RunningProgram::of(&mut command);
    let mut encoder = Encoder::new(sender.child.stdin.take().unwrap());
    let (start, mut keys, mut asked) = (Instant::now(), 0, 0);
    while keys < 3 {
        encoder.next(&requests).unwrap();
        while let Some(frame) = receiver.pull_frame(Duration::ZERO).unwrap() {
            keys += usize::from((Codec::H264.is_key_frame)(frame.data()));
            receiver.rtcp().request_key_frame(KeyFrameRequest::PictureLoss).unwrap();
            asked += 1;
        }
        assert!(start.elapsed() < PATIENCE, "{keys} key frames, {asked} requests");
    }
    // One each second, though many more were requested.
    let seconds = start.elapsed().as_secs() as usize;
    assert!(encoder.answered <= seconds + 1 && asked > 3, "{} {asked}", encoder.answered);
    drop(encoder);
    assert!(sender.end().0.success());
}

#[test]
fn gstreamer_makes_the_key_frames_that_viewers_need() {
    const PYTHON: &str = "/usr/bin/python3";
    let imports =
        "import gi; gi.require_version('GstVideo', '1.0'); from gi.repository import GstVideo";
    let has_gi = Command::new(PYTHON).args(["-c", imports]).output();
    if !skipped::have(&["gst-inspect-1.0"]) {
        return;
    }
    if !has_gi.is_ok_and(|it| it.status.success()) {
        skipped::missing("python3 with GStreamer", "python3-gi gir1.2-gst-plugins-base-1.0");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let [requests, said] = ["requests", "said"].map(|name| folder.path().join(name));
    assert!(Command::new("mkfifo").arg(&requests).status().unwrap().success());
    let mut encoder = Command::new(PYTHON)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/ask_encoder.py"))
        .arg(&requests)
        .stdout(Stdio::piped())
        .stderr(std::fs::File::create(&said).unwrap())
        .spawn()
        .unwrap();
    let address = format!("127.0.0.1:{}", free_port());
    let mut command = rushes(&["serve", "-", "--codec", "h264", "--http", &address]);
    command.arg("--key-frame-requests-to").arg(&requests).stdin(encoder.stdout.take().unwrap());
    let mut server = RunningProgram::of(&mut command);
    server.wait_for("in a browser");
    // The encoder makes one by itself every 20 s, and one at its beginning: the first viewer may get that.
    for number in 0..3 {
        let copy = folder.path().join(format!("{number}.264"));
        let whep = format!("http://{address}/whep");
        let mut player = rushes(&["recv", "--whep", &whep, "--duration", "1s", "-o"]);
        let played = player.arg(&copy).output().unwrap();
        assert!(played.status.success(), "{}", text(&played.stderr));
        assert!(units(&copy).len() > 10);
    }
    interrupt(&server.child);
    assert!(server.end().0.success());
    let _ = encoder.kill();
    encoder.wait().unwrap();
    let said = std::fs::read_to_string(said).unwrap();
    assert!(said.lines().filter(|line| *line == "a key frame is made").count() >= 2, "{said}");
}

#[test]
fn only_live_encoders_are_asked() {
    let film = media(FILM);
    let asks = ["--key-frame-requests-to", "-"];
    for (arguments, reason) in [
        (&["send", &film, "--to", "127.0.0.1:9"][..], "a file has the key frames that it has"),
        (&["serve", &film], "a file has the key frames that it has"),
        (&["send", "-", "--codec", "h264", "--to", "127.0.0.1:9", "--json"], "give it a pipe"),
    ] {
        let refused = run(&[arguments, &asks[..]].concat());
        let said = text(&refused.stderr);
        assert!(refused.status.code() == Some(2) && said.contains(reason), "{arguments:?} {said}");
    }
}
