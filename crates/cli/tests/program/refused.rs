//! Destinations whose port is closed.

use std::net::UdpSocket;

use crate::rig::{MEDIA, RunningProgram, free_port, json, listening, media, run, rushes, text};

/// The number of passes that take longer than a sender takes a silent destination for a closed one.
const LONGER: &str = "4";

const WARNING: &str = "nothing listens on";

#[test]
fn a_sender_whose_packets_are_all_refused_says_so_once_and_fails() {
    let to = format!("127.0.0.1:{}", free_port());
    for more in [&["--fps", "60"][..], &["--no-rtcp"], &["--flat-out"], &["--rtcp-mux"]] {
        let send = ["send", &media(MEDIA[1]), "--to", &to, "--json"];
        let output = run(&[&send[..], more].concat());
        let log = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{more:?} {log}");
        assert!(json(&output)["sent"]["refused"].as_u64().unwrap() > 0, "{more:?} {log}");
        let warning = format!("warning: {WARNING} {to}");
        assert_eq!(log.matches(&warning).count(), 1, "{more:?} {log}");
        assert!(log.contains("nothing was received"), "{more:?} {log}");
    }
}

#[test]
fn a_receiver_without_reports_that_starts_later_is_enough() {
    let port = free_port();
    let to = format!("127.0.0.1:{port}");
    let send = ["send", &media(MEDIA[1]), "--to", &to, "--fps", "60", "--loop", LONGER];
    let mut sender = RunningProgram::of(&mut rushes(&send));
    sender.wait_for(WARNING);
    // Kept until the sender has ended.
    let receiver = UdpSocket::bind(("127.0.0.1", port)).unwrap();
    let (status, log) = sender.end();
    drop(receiver);
    assert!(status.success(), "{log}");
}

#[test]
fn a_receiver_that_reports_and_ends_is_enough() {
    let folder = tempfile::tempdir().unwrap();
    let (mut receiver, to) = listening(&folder.path().join("copy.265"), &["--duration", "100ms"]);
    let send = ["send", &media(MEDIA[1]), "--to", &to, "--fps", "60", "--loop", LONGER];
    let output = run(&send);
    assert!(receiver.wait().unwrap().success());
    assert!(output.status.success(), "{}", text(&output.stderr));
}
