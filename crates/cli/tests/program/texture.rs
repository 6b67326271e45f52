//! `rushes texture serve` and `view`: two processes.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::rig::{free_port, interrupt, json, rushes, text};
use crate::texture_rig::{counters, frames, must, serving, texture, viewing};

const PATTERN: &str = "pattern:320x180@60";

fn path(folder: &tempfile::TempDir, name: &str) -> (PathBuf, String) {
    let path = folder.path().join(name);
    let name = path.to_str().unwrap().to_owned();
    (path, name)
}

fn wait_for(mut found: impl FnMut() -> bool) {
    for _ in 0..1000 {
        if found() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("the condition was not met in time");
}

/// Returns the size of the unfinished files in `folder`.
fn octets_under_way(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.filter_map(|entry| entry.ok()?.metadata().ok()).map(|it| it.len()).sum()
}

#[test]
fn viewed_frames_equal_those_encoded_and_decoded() {
    let folder = tempfile::tempdir().unwrap();
    for format in ["bc1", "ycocg-bc3"] {
        let (_, encoded) = path(&folder, "encoded.ktx2");
        let (expected, expected_name) = path(&folder, "expected.y4m");
        must(&["encode", PATTERN, &encoded, "-f", "--frames", "40", "--format", format]);
        must(&["decode", &encoded, &expected_name, "-f"]);
        let expected = frames(&expected);
        for transport in ["udp", "tcp"] {
            let more = ["--format", format, "--frames", "40", "--every-frame", "--once", "--json"];
            let server = serving(PATTERN, &more);
            let (copy, name) = path(&folder, "copy.y4m");
            let options = ["--transport", transport, "--every-frame", "--json", "--force"];
            let viewed = must(&[&["view", &server.address, "-o", &name], &options[..]].concat());
            let (served, log) = server.finish();
            assert!(served.status.success(), "{log}");
            let (seen, sent) = (json(&viewed), json(&served));
            assert_eq!((&seen["frames_written"], &sent["frames"]), (&40.into(), &40.into()));
            assert_eq!((&seen["transport"], &seen["format"]), (&transport.into(), &format.into()));
            assert_eq!(seen["complete"], true, "{seen}");
            assert!(seen["end"].as_str().unwrap().contains("source has ended"), "{seen}");
            assert!(frames(&copy) == expected, "{format} {transport}");
            assert_eq!(counters(&copy), (0..40).collect::<Vec<_>>());
        }
    }
}

#[test]
fn frames_are_stored_as_received_if_the_file_can_hold_them() {
    let folder = tempfile::tempdir().unwrap();
    let (encoded, encoded_name) = path(&folder, "encoded.ktx2");
    must(&["encode", PATTERN, &encoded_name, "--frames", "10"]);
    let server = serving(&encoded_name, &["--every-frame", "--preload", "--transport", "tcp"]);
    let (copy, name) = path(&folder, "copy.ktx2");
    must(&["view", &server.address, "--output", &name, "--every-frame", "-q"]);
    assert!(std::fs::read(&copy).unwrap() == std::fs::read(&encoded).unwrap());
    let (raw, name) = path(&folder, "copy.raw");
    must(&["view", &server.address, "--output", &name, "--frames", "2", "-q"]);
    assert_eq!(std::fs::metadata(&raw).unwrap().len(), 2 * 80 * 45 * 8);
    assert!(server.interrupt().0.status.success());
}

#[test]
fn the_standard_output_takes_a_film() {
    let folder = tempfile::tempdir().unwrap();
    let server = serving(PATTERN, &["--every-frame", "--transport", "tcp"]);
    let viewed = must(&["view", &server.address, "-o", "-", "--frames", "3", "--every-frame"]);
    let film = folder.path().join("film.y4m");
    std::fs::write(&film, viewed.stdout).unwrap();
    assert_eq!(counters(&film), [0, 1, 2]);
    server.interrupt();
}

#[test]
fn frames_that_a_slow_reader_misses_are_dropped_and_reported() {
    let server = serving(PATTERN, &["--flat-out", "--loop"]);
    for (more, code) in [(&[][..], 1), (&["--allow-loss"], 0)] {
        let view = ["texture", "view", &server.address, "-o", "-", "--stats-interval", "20ms"];
        let more = [&["--transport", "tcp"], more].concat();
        let mut viewer = rushes(&[&view, &more[..]].concat()).spawn().unwrap();
        let mut lines = BufReader::new(viewer.stderr.take().unwrap());
        // The film is not read until frames have been dropped.
        let mut log = String::new();
        while !log.contains("LEFT OUT") {
            assert_ne!(lines.read_line(&mut log).unwrap(), 0, "{log}");
        }
        interrupt(&viewer);
        let output = viewer.wait_with_output().unwrap();
        lines.read_to_string(&mut log).unwrap();
        assert_eq!(output.status.code(), Some(code), "{log}");
        assert_eq!(log.contains("the file is incomplete"), code == 1, "{log}");
        assert!(log.contains("ended as requested"), "{log}");
    }
    server.interrupt();
}

#[test]
fn requests_of_the_client_are_fulfilled_and_reported() {
    let server = serving(PATTERN, &["--format", "bc1"]);
    let options = ["--units", "3", "--packet-size", "700", "--format", "yuv420", "--fps", "30"];
    let seen =
        must(&[&["view", &server.address, "--null", "--frames", "5"], &options[..]].concat());
    let log = text(&seen.stderr);
    let expected = "320×180 yuv420 at 30 frames/s by UDP";
    assert!(log.contains(expected) && log.contains("packets of 700 octets"), "{log}");
    assert!(log.contains("5 frames") && log.contains("ended as requested"), "{log}");
    let (output, log) = server.interrupt();
    assert!(output.status.success() && log.contains("sent "), "{log}");
}

#[test]
fn a_client_that_vanishes_does_not_keep_the_next_one_from_being_served() {
    let server = serving(PATTERN, &["--clients", "1"]);
    for transport in ["udp", "tcp"] {
        let (mut child, _) = viewing(&server.address, &["--transport", transport]);
        child.kill().unwrap();
        child.wait().unwrap();
        // The server may detect it later.
        wait_for(|| {
            texture(&["view", &server.address, "--null", "--frames", "3"]).status.success()
        });
    }
    let (output, log) = server.interrupt();
    assert!(output.status.success() && log.matches("disconnected").count() >= 4, "{log}");
}

#[test]
fn one_client_too_many_is_refused_and_the_others_are_served() {
    let server = serving(PATTERN, &["--clients", "1"]);
    let address = server.address.clone();
    let (mut first, mut lines) = viewing(&address, &[]);
    let second = texture(&["view", &address, "--null"]);
    assert_eq!(second.status.code(), Some(1));
    assert!(text(&second.stderr).contains("too many clients"), "{}", text(&second.stderr));
    interrupt(&first);
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    assert!(first.wait().unwrap().success());
    // Each line is a JSON object; the last one is the report.
    let objects: Vec<serde_json::Value> =
        rest.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(objects.last().unwrap()["end"], "ended as requested");
    assert!(server.interrupt().0.status.success());
}

#[test]
fn an_interrupt_leaves_a_whole_file_and_tells_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let (copy, name) = path(&folder, "copy.y4m");
    let server = serving(PATTERN, &["--every-frame", "--transport", "tcp", "--once"]);
    let view = ["texture", "view", &server.address, "-o", &name, "--every-frame", "--json"];
    let viewer = rushes(&view).spawn().unwrap();
    wait_for(|| octets_under_way(folder.path()) > 200_000);
    assert!(!copy.exists());
    interrupt(&viewer);
    let viewed = viewer.wait_with_output().unwrap();
    assert_eq!(viewed.status.code(), Some(0), "{}", text(&viewed.stderr));
    let counters = counters(&copy);
    assert_eq!(counters, (0..counters.len() as u32).collect::<Vec<_>>());
    assert_eq!(json(&viewed)["frames_written"], counters.len());
    let (served, log) = server.finish();
    assert!(served.status.success(), "{log}");
    assert!(log.contains("disconnected: closed by the peer: ended"), "{log}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn an_interrupted_server_notifies_its_clients_which_keep_their_frames() {
    let folder = tempfile::tempdir().unwrap();
    let (copy, name) = path(&folder, "copy.y4m");
    let server = serving(PATTERN, &["--every-frame", "--transport", "tcp"]);
    let view = ["texture", "view", &server.address, "-o", &name, "--every-frame", "--json"];
    let viewer = rushes(&view).spawn().unwrap();
    wait_for(|| octets_under_way(folder.path()) > 200_000);
    assert!(server.interrupt().0.status.success());
    let viewed = viewer.wait_with_output().unwrap();
    let report = json(&viewed);
    assert_eq!(viewed.status.code(), Some(0), "{report} {}", text(&viewed.stderr));
    assert!(report["end"].as_str().unwrap().contains("server is closing"), "{report}");
    assert_eq!(report["frames_written"], counters(&copy).len());
}

#[test]
fn a_server_that_vanishes_is_a_failure_and_the_file_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let (copy, name) = path(&folder, "copy.y4m");
    let port = free_port().to_string();
    let serve = ["texture", "serve", PATTERN, "--transport", "tcp", "--listen", &port, "-q"];
    let mut server = rushes(&serve).spawn().unwrap();
    wait_for(|| std::net::TcpStream::connect(("127.0.0.1", port.parse().unwrap())).is_ok());
    let viewer = rushes(&["texture", "view", &port, "-o", &name]).spawn().unwrap();
    wait_for(|| octets_under_way(folder.path()) > 200_000);
    server.kill().unwrap();
    server.wait().unwrap();
    let viewed = viewer.wait_with_output().unwrap();
    assert_eq!(viewed.status.code(), Some(1));
    let log = text(&viewed.stderr);
    assert!(log.contains("the server did not end the stream"), "{log}");
    assert!(!counters(&copy).is_empty());
}

#[test]
fn without_a_frame_there_is_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let (_, name) = path(&folder, "copy.y4m");
    let source = folder.path().join("slow.rgb");
    std::fs::write(&source, []).unwrap();
    let more = ["--size", "8x8", "--once"];
    let server = serving(source.to_str().unwrap(), &more);
    let viewed = texture(&["view", &server.address, "-o", &name, "--json"]);
    assert_eq!(viewed.status.code(), Some(1));
    assert!(text(&viewed.stderr).contains("no frame was received"), "{}", text(&viewed.stderr));
    assert_eq!(json(&viewed)["complete"], false);
    let (served, log) = server.finish();
    assert_eq!(served.status.code(), Some(1), "{log}");
    assert!(log.contains("no client received a frame"), "{log}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_file_that_cannot_hold_the_frames_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (_, name) = path(&folder, "copy.ktx2");
    let server = serving(PATTERN, &["--format", "yuv420"]);
    let viewed = texture(&["view", &server.address, "-o", &name]);
    assert_eq!(viewed.status.code(), Some(1));
    let log = text(&viewed.stderr);
    assert!(log.contains("copy.ktx2: KTX 2.0 files cannot contain yuv420 frames"), "{log}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    assert!(server.interrupt().0.status.success());
}

#[test]
fn a_request_that_the_server_cannot_fulfil_is_an_error() {
    let server = serving(PATTERN, &[]);
    let address = server.address.clone();
    let closed = format!("127.0.0.1:{}", free_port());
    for (arguments, word) in [
        (&[address.as_str(), "--format", "etc1"][..], "to etc1"),
        (&[&address, "--packet-size", "600K"], "65503"),
        (&[&closed], &closed),
    ] {
        let viewed = texture(&[&["view", "--null"], arguments].concat());
        assert_eq!(viewed.status.code(), Some(1), "{arguments:?}");
        let log = text(&viewed.stderr);
        assert!(log.contains(word) && log.contains("cannot view"), "{arguments:?}: {log}");
    }
    let once = serving(PATTERN, &["--once"]);
    assert_eq!(
        texture(&["view", "--null", &once.address, "--format", "etc1"]).status.code(),
        Some(1)
    );
    let (ended, log) = once.finish();
    assert_eq!(ended.status.code(), Some(1));
    assert!(log.contains("was refused") && log.contains("to etc1"), "{log}");
    let other = texture(&["serve", PATTERN, "--listen", &address]);
    assert_eq!(other.status.code(), Some(1));
    assert!(text(&other.stderr).contains(&address), "{}", text(&other.stderr));
    assert!(server.interrupt().0.status.success());
}
