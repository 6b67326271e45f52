//! Sending the output of another program.

use std::io::Write;
use std::process::{Child, Stdio};
use std::time::Duration;

use rushes::file::{MediaReader, ReadOptions, codec_of};

use crate::rig::{
    MEDIA, RunningProgram, free_port, interrupt, json, listening, media, run, rushes, text, units,
};
use crate::strangers::ended;

fn frames(file: &str) -> Vec<Vec<u8>> {
    let codec = codec_of(file.as_ref()).unwrap();
    let mut reader = MediaReader::open(file.as_ref(), codec, ReadOptions::default()).unwrap();
    let mut frames = Vec::new();
    while let Some(frame) = reader.next_frame().unwrap() {
        frames.push(frame.data.clone());
    }
    frames
}

/// Starts a sender of its standard input.
fn sending(codec: &str, to: &str, more: &[&str]) -> Child {
    let mut command = rushes(&["send", "-", "--codec", codec, "--to", to, "--json"]);
    command.args(more).stdin(Stdio::piped()).spawn().unwrap()
}

#[test]
fn frames_from_a_pipe_arrive_as_they_were_made() {
    for (name, more) in [(MEDIA[0], &[][..]), (MEDIA[1], &["--fps", "200"]), (MEDIA[2], &[])] {
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join(name);
        let (receiver, to) = listening(&copy, &[]);
        let codec = codec_of(name.as_ref()).unwrap().name;
        let mut sender = sending(codec, &to, more);
        let mut pipe = sender.stdin.take().unwrap();
        let frames = frames(&media(name));
        for frame in &frames {
            pipe.write_all(frame).unwrap();
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(pipe);
        let sent = sender.wait_with_output().unwrap();
        assert!(sent.status.success(), "{}", text(&sent.stderr));
        assert_eq!(json(&sent)["source"], "standard input");
        assert_eq!(json(&sent)["sent"]["frames"], frames.len());
        let received = ended(receiver);
        assert!(received.status.success(), "{}", text(&received.stderr));
        assert!(units(&copy) == units(media(name).as_ref()), "{name}");
    }
}

#[test]
fn the_standard_input_may_be_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join(MEDIA[0]);
    let (receiver, to) = listening(&copy, &[]);
    let file = std::fs::File::open(media(MEDIA[0])).unwrap();
    let mut sender = rushes(&["send", "-", "--codec", "h264", "--to", &to, "--fps", "500"]);
    let sent = sender.stdin(file).output().unwrap();
    assert!(sent.status.success(), "{}", text(&sent.stderr));
    assert!(ended(receiver).status.success());
    assert!(units(&copy) == units(media(MEDIA[0]).as_ref()));
}

#[test]
fn a_file_in_a_pipe_is_noticed_and_sent_at_a_rate() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join(MEDIA[1]);
    let (receiver, to) = listening(&copy, &["--codec", "h265"]);
    let mut sender = rushes(&["send", "-", "--codec", "h265", "--to", &to]);
    let mut sender = sender.stdin(Stdio::piped()).spawn().unwrap();
    let mut pipe = sender.stdin.take().unwrap();
    // The input is larger than a pipe can hold while the stream is set up.
    let octets = std::fs::read(media(MEDIA[1])).unwrap();
    let _ = pipe.write_all(&octets.repeat(2));
    drop(pipe);
    let sent = sender.wait_with_output().unwrap();
    assert!(sent.status.success(), "{}", text(&sent.stderr));
    assert!(text(&sent.stderr).contains("ahead of real time"), "{}", text(&sent.stderr));
    assert!(ended(receiver).status.success());
    assert_eq!(units(&copy).len(), 2 * units(media(MEDIA[1]).as_ref()).len());
}

#[test]
fn what_cannot_be_sent_from_a_pipe_is_refused_with_the_reason() {
    let refused = |arguments: &[&str], expected: &str| {
        let mut command = rushes(&["send", "-", "--to", "127.0.0.1:9"]);
        let output = command.args(arguments).stdin(Stdio::piped()).output().unwrap();
        let log = text(&output.stderr);
        assert!(output.status.code() == Some(2) && log.contains(expected), "{log}");
    };
    refused(&[], "the standard input: cannot determine the codec");
    refused(&["--codec", "h264", "--loop", "2"], "standard input can be read only once");
    let port = free_port().to_string();
    let empty =
        run(&["send", "/dev/null", "--codec", "h264", "--to", &format!("127.0.0.1:{port}")]);
    assert_eq!(empty.status.code(), Some(1));
    assert!(text(&empty.stderr).contains("contains no frame"), "{}", text(&empty.stderr));
}

#[test]
fn a_sender_whose_source_is_silent_ends_at_a_signal() {
    let folder = tempfile::tempdir().unwrap();
    let (mut receiver, to) = listening(&folder.path().join("x.264"), &[]);
    let mut sender = rushes(&["send", "-", "--codec", "h264", "--to", &to]);
    let sender = sender.args(["--stats-interval", "100ms"]).stdin(Stdio::piped());
    let mut sender = RunningProgram::of(sender);
    let mut pipe = sender.child.stdin.take().unwrap();
    pipe.write_all(&frames(&media(MEDIA[0]))[0]).unwrap();
    sender.wait_for("1 frame ");
    interrupt(&sender.child);
    let (status, log) = sender.end();
    assert_eq!(status.code(), Some(0), "a camera has no other end: {log}");
    receiver.kill().unwrap();
    receiver.wait().unwrap();
    drop(pipe);
}

#[test]
fn a_file_is_sent_until_a_signal_and_received_for_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join(MEDIA[0]);
    let (receiver, to) = listening(&copy, &["--duration", "1s", "--no-rtcp"]);
    let arguments = ["--to", &to, "--loop", "0", "--fps", "100", "-q", "--no-rtcp"];
    let sender = rushes(&[&["send", &media(MEDIA[0])], &arguments[..]].concat()).spawn().unwrap();
    let received = ended(receiver);
    let report = json(&received);
    assert_eq!((received.status.code(), &report["end"]), (Some(0), &"duration".into()), "{report}");
    interrupt(&sender);
    let sent = sender.wait_with_output().unwrap();
    assert_eq!(sent.status.code(), Some(0), "{}", text(&sent.stderr));
}

#[test]
fn a_receiver_waits_no_longer_than_asked() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("x.264");
    let port = free_port().to_string();
    let arguments = ["recv", "--from", &port, "--wait", "300ms", "--json", "-o"];
    let output = rushes(&arguments).arg(&copy).output().unwrap();
    assert_eq!((output.status.code(), &json(&output)["end"]), (Some(1), &"wait".into()));
    let log = text(&output.stderr);
    assert!(log.contains("nothing of the stream came within 300ms (--wait); no file"), "{log}");
}

/// `timeout` of the GNU core utilities signals the program and then its group.
#[test]
fn a_second_signal_at_once_does_not_lose_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join(MEDIA[0]);
    let (receiver, to) = listening(&copy, &["--idle-timeout", "60s", "--no-rtcp"]);
    let sent = run(&["send", &media(MEDIA[0]), "--to", &to, "--fps", "1000", "-q", "--no-rtcp"]);
    assert!(sent.status.success());
    interrupt(&receiver);
    interrupt(&receiver);
    let received = ended(receiver);
    assert_eq!((received.status.code(), &json(&received)["end"]), (Some(0), &"signal".into()));
    assert!(units(&copy) == units(media(MEDIA[0]).as_ref()));
}
