//! False claims that the program must not make, and its exit code after failures.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::time::Duration;

use assert_cmd::assert::Assert;

const RUSHES: &str = env!("CARGO_BIN_EXE_rushes");

/// Time after which a program counts as hung.
const PATIENCE: Duration = Duration::from_secs(60);

fn rushes(args: &[&str]) -> Assert {
    assert_cmd::Command::new(RUSHES).args(args).timeout(PATIENCE).assert()
}

fn stdout(assert: &Assert) -> String {
    String::from_utf8(assert.get_output().stdout.clone()).unwrap()
}

fn stderr(assert: &Assert) -> String {
    String::from_utf8(assert.get_output().stderr.clone()).unwrap()
}

fn vector(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/media").join(name)
}

/// Writes a file of `octets` in `folder`.
fn file(folder: &Path, name: &str, octets: &[u8]) -> String {
    let path = folder.join(name);
    std::fs::write(&path, octets).unwrap();
    path.to_str().unwrap().to_owned()
}

/// A running `rushes recv`, and the port that it listens on.
struct Listener {
    child: Child,
    errors: BufReader<ChildStderr>,
    port: u16,
}

impl Listener {
    fn start(output: &Path, args: &[&str]) -> Self {
        let mut child = Command::new(RUSHES)
            .args(["recv", "--from", "127.0.0.1:0", "-o"])
            .arg(output)
            .args(args)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        errors.read_line(&mut line).unwrap();
        let port = line.trim().rsplit_once(':').unwrap().1.parse().unwrap();
        Self { child, errors, port }
    }

    /// Waits until the program ends; returns its status and its error output.
    fn end(&mut self) -> (ExitStatus, String) {
        let mut log = String::new();
        self.errors.read_to_string(&mut log).unwrap();
        (self.child.wait().unwrap(), log)
    }
}

impl Drop for Listener {
    /// Ends the program, so that a failing test leaves none behind.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns an RTP packet of the generic format: payload type 99, with the marker bit.
fn packet(sequence: u16, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x80, 0xe3];
    packet.extend_from_slice(&sequence.to_be_bytes());
    packet.extend_from_slice(&(u32::from(sequence) * 3000).to_be_bytes());
    packet.extend_from_slice(b"ssrc");
    packet.extend_from_slice(payload);
    packet
}

#[test]
fn loopback_of_nothing_proves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["empty.265", "empty.raw"] {
        let output = stdout(&rushes(&["loopback", &file(folder.path(), name, b"")]).code(1));
        assert!(output.contains("nothing was sent"), "{output}");
        assert!(!output.contains("identical"), "{output}");
    }
}

#[test]
fn options_that_cannot_work_exit_with_2_and_say_why() {
    let lines: &[(&[&str], &str)] = &[
        (&["loopback", "--mtu", "50"], "MTU"),
        (&["loopback", "--loop", "0"], "--loop"),
        (&["loopback", "--frame-size", "0"], "--frame-size"),
        (&["loopback", "--codec", "opus"], "built-in"),
        (&["loopback", "unknown.xyz"], "--codec"),
        (&["send", "unknown.xyz", "--to", "127.0.0.1:9"], "--codec"),
        (&["send", "x.265", "--to", "127.0.0.1:0"], "--to"),
        (&["recv", "--from", "5004", "-o", "unknown.xyz"], "--codec"),
        (&["recv", "--from", "5004", "-o", "-", "--codec", "raw", "--json"], "standard output"),
    ];
    for (line, word) in lines {
        let error = stderr(&rushes(line).code(2));
        assert!(error.contains(word), "{line:?}: {error}");
    }
}

#[test]
fn an_error_names_the_file_and_its_cause_once() {
    let error = stderr(&rushes(&["loopback", "no/such/film.265"]).code(1));
    assert!(error.contains("no/such/film.265"), "{error}");
    assert_eq!(error.matches("os error").count(), 1, "{error}");
}

#[test]
fn help_teaches_with_examples() {
    for line in [&["--help"][..], &["loopback", "--help"], &["send", "--help"], &["recv", "--help"]]
    {
        let help = stdout(&rushes(line).success());
        assert!(help.contains("Examples:\n  rushes "), "{help}");
    }
}

#[test]
fn a_lost_packet_is_counted_and_shows_in_the_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.raw");
    let mut listener = Listener::start(&copy, &["--idle-timeout", "1s"]);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for (sequence, payload) in [(7, b"one"), (8, b"two"), (10, b"low"), (11, b"end")] {
        socket.send_to(&packet(sequence, payload), ("127.0.0.1", listener.port)).unwrap();
    }
    let (status, log) = listener.end();
    assert_eq!(status.code(), Some(1), "{log}");
    assert!(log.contains("1 packet lost"), "{log}");
    // Whole frames are kept; the frame after the gap may lack its beginning.
    assert_eq!(std::fs::read(&copy).unwrap(), b"onetwoend");
}

#[cfg(unix)]
mod interrupted {
    use super::*;

    /// Interrupts the program like Ctrl-C.
    fn interrupt(child: &Child) {
        let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        assert!(status.unwrap().success());
    }

    #[test]
    fn loopback_does_not_call_a_part_of_the_file_identical() {
        let mut child = Command::new(RUSHES)
            .args(["loopback", "--fps", "1", "--json", "--stats-interval", "10ms"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        lines.next().unwrap().unwrap();
        interrupt(&child);
        let last = lines.last().unwrap().unwrap();
        let object: serde_json::Value = serde_json::from_str(&last).unwrap();
        assert_eq!(object["identical"], false, "{object}");
        assert_eq!(child.wait().unwrap().code(), Some(1));
    }

    #[test]
    fn send_ends_however_often_the_file_was_to_go() {
        let path = vector("hevc_192x128_90f_tiny_nals.265");
        let mut child = Command::new(RUSHES)
            .args(["send", path.to_str().unwrap(), "--to", "127.0.0.1:9", "--fps", "100"])
            .args(["--loop", "18446744073709551615", "--json", "--stats-interval", "10ms"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        lines.next().unwrap().unwrap();
        interrupt(&child);
        assert!(lines.last().is_some());
        assert_eq!(child.wait().unwrap().code(), Some(1));
    }

    #[test]
    fn a_reader_who_leaves_early_is_no_panic() {
        for line in [&["loopback"][..], &["loopback", "--json"], &["completions", "bash"], &["man"]]
        {
            let mut child = Command::new(RUSHES)
                .args(line)
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            drop(child.stdout.take());
            let output = child.wait_with_output().unwrap();
            let log = String::from_utf8(output.stderr).unwrap();
            assert!(!log.contains("panicked"), "{line:?}: {log}");
        }
    }
}

#[test]
fn no_port_is_listened_on_twice() {
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let from = taken.local_addr().unwrap().to_string();
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.265");
    let error = stderr(&rushes(&["recv", "--from", &from, "-o", copy.to_str().unwrap()]).code(1));
    assert!(error.contains(&from), "{error}");
    assert!(!copy.exists());
}
