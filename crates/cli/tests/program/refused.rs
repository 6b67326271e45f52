//! Destinations whose port is closed.

use std::net::UdpSocket;

use crate::rig::{
    MEDIA, RunningProgram, free_port, json, listening, media, run, rushes, text, units,
};

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

#[test]
fn one_closed_destination_of_several_is_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.265");
    let (mut receiver, to) = listening(&copy, &["--idle-timeout", "2s"]);
    let closed = format!("127.0.0.1:{}", free_port());
    let send = ["send", &media(MEDIA[1]), "--to", &closed, "--to", &to, "--fps", "60"];
    let output = run(&send);
    let log = text(&output.stderr);
    assert!(output.status.success(), "{log}");
    assert!(receiver.wait().unwrap().success());
    assert!(log.contains("nothing listens on one of"), "{log}");
    assert!(log.contains("destinations: 2"), "{log}");
    assert!(log.contains("that a destination's port is closed"), "{log}");
    assert!(units(&copy) == units(media(MEDIA[1]).as_ref()), "other pictures arrived");
}

#[test]
fn destinations_that_cannot_be_served_together_are_named() {
    let file = media(MEDIA[1]);
    let to = "127.0.0.1:5004";
    for (more, reason) in [
        (&["--to", to][..], "given twice"),
        (&["--to", "127.0.0.1:5005"], "overlap"),
        (&["--to", "[::1]:5004"], "different IP versions"),
        (&["--to", "127.0.0.1:0"], "a port from 1 to 65535"),
        (&["--to", "127.0.0.2:5004", "--max-rate", "1M"], "--max-rate follows one path"),
        (&["--to", "127.0.0.2:5004", "--zrtp"], "--zrtp agrees on a key with one receiver"),
        (&["--to", "127.0.0.1:5006", "--audio", &media(MEDIA[3])], "take 4 ports at each"),
    ] {
        let output = run(&[&["send", &file, "--to", to], more].concat());
        let log = text(&output.stderr);
        assert!(!output.status.success() && log.contains(reason), "{more:?}: {log}");
    }
}
