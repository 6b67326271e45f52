//! Packets that arrive and cannot be used: they are reported while they arrive and by the exit
//! code.

use crate::rig::{MEDIA, RunningProgram, free_port, json, listening, media, run, rushes, text};
use crate::strangers::{Source, ended, port_of};

#[test]
fn another_payload_type_is_named_with_the_option_that_takes_it() {
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let from = format!("127.0.0.1:{port}");
    let copy = folder.path().join("copy.264");
    let mut receiver = RunningProgram::of(rushes(&["recv", "--from", &from, "-o"]).arg(&copy));
    receiver.wait_for("listening on");
    let sent = run(&["send", &media(MEDIA[1]), "--to", &from, "--fps", "1000", "-q"]);
    assert!(sent.status.success());
    receiver.wait_for("packets of payload type 97 arrive from 127.0.0.1:");
    crate::rig::interrupt(&receiver.child);
    let (status, log) = receiver.end();
    assert_eq!(status.code(), Some(1), "{log}");
    assert!(log.contains("expected 96 (h264). Try: --codec h265 or --payload-type 97"), "{log}");
    assert!(log.contains("no complete frame was received; no file was written"), "{log}");
}

#[test]
fn a_stream_of_another_codec_is_not_complete() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.265");
    let (receiver, to) = listening(&copy, &["--codec", "h265"]);
    let arguments = ["--to", &to, "--payload-type", "97", "--fps", "1000", "-q"];
    let sent = run(&[&["send", &media(MEDIA[0])], &arguments[..]].concat());
    assert!(sent.status.success(), "{}", text(&sent.stderr));
    let output = ended(receiver);
    let report = json(&output);
    assert_eq!((output.status.code(), &report["complete"]), (Some(1), &false.into()), "{report}");
    assert!(report["received"]["packets_unusable"].as_u64().unwrap() > 0, "{report}");
    let log = text(&output.stderr);
    assert!(log.contains("payloads of another format: another --codec?"), "{log}");
}

/// The stream of the peer is complete, whatever a stranger sends before, during and after it.
#[test]
fn what_strangers_send_does_not_count() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.264");
    let (receiver, to) = listening(&copy, &["--codec", "h264"]);
    let mut stranger = Source::new(7, port_of(&to));
    (0..200).for_each(|n| stranger.frame(&[n; 40]));
    let sent = run(&["send", &media(MEDIA[0]), "--to", &to, "--fps", "1000", "-q"]);
    assert!(sent.status.success());
    (0..200).for_each(|n| stranger.frame(&[n; 40]));
    let output = ended(receiver);
    assert_eq!(json(&output)["complete"], true, "{}", text(&output.stderr));
    assert_eq!(output.status.code(), Some(0));
}

/// Returns the payload of a frame of 4×4 pixels in YCbCr-4:2:2 of 8 bits with its first `lines`
/// (RFC 4175 section 4).
fn lines(lines: u8) -> Vec<u8> {
    let mut payload = vec![0, 0];
    for line in 0..lines {
        let goes_on = if line + 1 < lines { 0x80 } else { 0 };
        payload.extend_from_slice(&[0, 8, 0, line, goes_on, 0]);
    }
    payload.resize(payload.len() + 8 * usize::from(lines), 7);
    payload
}

#[test]
fn a_recording_with_frames_that_lack_parts_is_incomplete() {
    let folder = tempfile::tempdir().unwrap();
    for (partial, status) in [(0, 0), (3, 1)] {
        let copy = folder.path().join(format!("copy-{partial}.y4m"));
        let video = ["--codec", "uncompressed", "--size", "4x4", "--sampling", "4:2:2"];
        let more = ["--payload-type", "99", "--incomplete"];
        let (receiver, to) = listening(&copy, &[&video[..], &more].concat());
        let mut source = Source::new(7, port_of(&to));
        (0..20).for_each(|_| source.frame(&lines(4)));
        (0..partial).for_each(|_| source.frame(&lines(3)));
        source.goodbye();
        let output = ended(receiver);
        let report = json(&output);
        assert_eq!(report["frames_incomplete"], partial, "{report}");
        assert_eq!(
            (output.status.code(), &report["complete"]),
            (Some(status), &(partial == 0).into())
        );
        let log = text(&output.stderr);
        assert!(partial == 0 || log.contains("3 frames with missing parts"), "{log}");
    }
}
