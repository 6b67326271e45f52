//! The end of a reception, and the report on it.

use std::path::Path;
use std::process::{Command, Output};

use crate::program::program;
use crate::rig::{
    MEDIA, RunningProgram, free_port, json, listening, media, run, rushes, text, units,
};
use crate::strangers::{Source, ended, port_of};

/// Returns the output of a receiver of three frames, after which `end` ends the stream.
fn received(more: &[&str], end: impl FnOnce(&mut Source)) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let (receiver, to) = listening(&folder.path().join("copy.raw"), more);
    let mut sender = Source::new(1, port_of(&to));
    for n in 0..3 {
        sender.frame(&[n; 100]);
    }
    end(&mut sender);
    ended(receiver)
}

#[test]
fn silence_is_no_goodbye() {
    let silent = ["--idle-timeout", "1s"];
    let output = received(&silent, |_| ());
    assert_eq!(json(&output)["end"], "silence");
    assert_eq!(output.status.code(), Some(0), "FFmpeg never says BYE");
    let output = received(&["--idle-timeout", "1s", "--until-bye"], |_| ());
    assert_eq!((output.status.code(), &json(&output)["end"]), (Some(1), &"silence".into()));
    assert!(text(&output.stderr).contains("without a goodbye"), "{}", text(&output.stderr));
    let output = received(&["--idle-timeout", "60s", "--until-bye"], |sender| sender.goodbye());
    assert_eq!((output.status.code(), &json(&output)["end"]), (Some(0), &"bye".into()));
}

#[test]
fn the_summary_reports_that_silence_ended_the_reception() {
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let copy = folder.path().join("copy.raw");
    let from = format!("127.0.0.1:{port}");
    let arguments = ["recv", "--from", &from, "--idle-timeout", "1s", "-o"];
    let mut receiver = RunningProgram::of(rushes(&arguments).arg(&copy));
    receiver.wait_for("listening on");
    let mut sender = Source::new(1, port);
    (0..3).for_each(|n| sender.frame(&[n; 10]));
    let (status, log) = receiver.end();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(log.contains("ended by silence, without a goodbye"), "{log}");
}

#[test]
#[cfg(unix)]
fn a_signal_is_distinguished_from_silence() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join(MEDIA[0]);
    let (receiver, to) = listening(&copy, &["--idle-timeout", "60s", "--no-rtcp"]);
    let sent = run(&["send", &media(MEDIA[0]), "--to", &to, "--fps", "1000", "-q", "--no-rtcp"]);
    assert!(sent.status.success());
    crate::rig::interrupt(&receiver);
    let output = ended(receiver);
    assert_eq!(json(&output)["end"], "signal");
    assert!(units(&copy) == units(Path::new(&media(MEDIA[0]))));
}

#[test]
fn the_last_frame_is_written_or_reported_as_missing() {
    // The last packet has no marker bit, as from uvgRTP.
    for goodbye in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("copy.raw");
        let (receiver, to) = listening(&copy, &["--idle-timeout", "1s"]);
        let mut sender = Source::new(1, port_of(&to));
        (0..3).for_each(|_| sender.frame(b"frame."));
        sender.packet(b"the last", false);
        if goodbye {
            sender.goodbye();
        }
        let output = ended(receiver);
        let (report, content) = (json(&output), std::fs::read(&copy).unwrap());
        let is_whole = content == b"frame.frame.frame.the last";
        assert_eq!(report["complete"], is_whole, "{report} {content:?}");
        assert_eq!(output.status.code(), Some(i32::from(!is_whole)), "{report}");
        assert!(is_whole || text(&output.stderr).contains("1 frame dropped"), "{report}");
    }
}

#[test]
#[cfg(unix)]
fn a_full_disk_keeps_the_received_frames() {
    let folder = tempfile::tempdir().unwrap();
    let (port, name) = (free_port(), MEDIA[0]);
    let copy = folder.path().join(name);
    let from = format!("127.0.0.1:{port}");
    // The system limits the size of a file, and returns an error beyond it.
    let script = "trap '' XFSZ; ulimit -f 64; exec \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh"]).arg(program());
    command.args(["recv", "--from", &from, "-o", copy.to_str().unwrap()]);
    let mut receiver = RunningProgram::of(&mut command);
    receiver.wait_for("listening on");
    let to = format!("127.0.0.1:{port}");
    run(&["send", &media(name), "--to", &to, "--fps", "1000", "-q", "--loop", "3"]);
    let (status, log) = receiver.end();
    assert_eq!(status.code(), Some(1), "{log}");
    let files: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(Result::unwrap).collect();
    assert_eq!(files.len(), 1, "{files:?} {log}");
    let kept = files[0].path();
    assert!(log.contains(kept.to_str().unwrap()), "{log}");
    // The part reported as complete is the beginning of the film.
    let number = |before: &str| -> usize {
        let words = log.split_once(before).unwrap().0;
        words.rsplit(' ').next().unwrap().parse().unwrap()
    };
    let (octets, whole, frames) =
        (number(" octets, "), number(" of them"), number(" complete frames"));
    let content = std::fs::read(&kept).unwrap();
    assert_eq!(content.len(), octets, "{log}");
    assert!(whole <= octets && frames > 0, "{log}");
    let film = std::fs::read(media(name)).unwrap().repeat(3);
    let whole_file = folder.path().join("whole.264");
    std::fs::write(&whole_file, &content[..whole]).unwrap();
    let film_file = folder.path().join("film.264");
    std::fs::write(&film_file, film).unwrap();
    let (copy, film) = (units(&whole_file), units(&film_file));
    assert!(!copy.is_empty() && copy == film[..copy.len()], "{log}");
}

#[test]
#[cfg(unix)]
fn a_full_disk_keeps_the_frames_of_a_film() {
    let folder = tempfile::tempdir().unwrap();
    let script = "trap '' XFSZ; ulimit -f 64; exec \"$@\"";
    for name in ["film.raw", "film.y4m"] {
        let film = folder.path().join(name);
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh"]).arg(program());
        command.args(["texture", "decode", "pattern:64x64@30", "--frames", "60"]).arg(&film);
        let (status, log) = RunningProgram::of(&mut command).end();
        assert_eq!(status.code(), Some(1), "{log}");
        let entries = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let kept: Vec<_> = entries.filter(|path| path.to_str().unwrap().contains(name)).collect();
        assert_eq!(kept.len(), 1, "{log}");
        assert!(log.contains(kept[0].to_str().unwrap()), "{log}");
        let len = std::fs::metadata(&kept[0]).unwrap().len();
        assert!(len > 0 && log.contains(&format!("keeps {len} bytes")), "{log}");
    }
}
