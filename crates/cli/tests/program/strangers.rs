//! `recv` with strangers: the choice of the source that is written, and its protection from others.

use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::rig::{MEDIA, free_port, json, listening, media, receiving, run, text, units};

/// Time after which a program counts as hung.
const PATIENCE: Duration = Duration::from_secs(120);

/// Returns the output of a program that must end by itself.
pub(crate) fn ended(mut child: Child) -> Output {
    let deadline = Instant::now() + PATIENCE;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > deadline {
            child.kill().unwrap();
            panic!("the program does not end: {}", text(&child.wait_with_output().unwrap().stderr));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.wait_with_output().unwrap()
}

/// A sender of RTP with one SSRC and 3 000 ticks per frame.
pub(crate) struct Source {
    socket: UdpSocket,
    to: (&'static str, u16),
    pub(crate) payload_type: u8,
    ssrc: u32,
    sequence: u16,
    packets: u32,
}

impl Source {
    /// Creates a source of raw frames.
    pub(crate) fn new(ssrc: u32, port: u16) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        Self { socket, to: ("127.0.0.1", port), payload_type: 99, ssrc, sequence: 7, packets: 0 }
    }

    pub(crate) fn packet(&mut self, payload: &[u8], marker: bool) {
        let mut packet = vec![0x80, self.payload_type | if marker { 0x80 } else { 0 }];
        packet.extend_from_slice(&self.sequence.to_be_bytes());
        packet.extend_from_slice(&(u32::from(self.sequence) * 3000).to_be_bytes());
        packet.extend_from_slice(&self.ssrc.to_be_bytes());
        packet.extend_from_slice(payload);
        self.socket.send_to(&packet, self.to).unwrap();
        self.sequence = self.sequence.wrapping_add(1);
        self.packets += 1;
    }

    /// Sends one frame in one packet.
    pub(crate) fn frame(&mut self, payload: &[u8]) {
        self.packet(payload, true);
    }

    /// Sends a sender report, a name and BYE to the next port.
    pub(crate) fn goodbye(&self) {
        let ssrc = self.ssrc.to_be_bytes();
        let mut datagram = vec![0x80, 200, 0, 6];
        datagram.extend_from_slice(&ssrc);
        datagram.extend_from_slice(&[0; 12]);
        datagram.extend_from_slice(&self.packets.to_be_bytes());
        datagram.extend_from_slice(&[0; 4]);
        datagram.extend_from_slice(&[0x81, 202, 0, 2]);
        datagram.extend_from_slice(&ssrc);
        datagram.extend_from_slice(&[1, 1, b'x', 0]);
        datagram.extend_from_slice(&[0x81, 203, 0, 1]);
        datagram.extend_from_slice(&ssrc);
        self.socket.send_to(&datagram, (self.to.0, self.to.1 + 1)).unwrap();
    }
}

/// Returns the port of a receiver that `listening` started.
pub(crate) fn port_of(address: &str) -> u16 {
    address.rsplit_once(':').unwrap().1.parse().unwrap()
}

/// Fails unless the whole file was received.
fn is_the_file(output: &Output, copy: &Path, name: &str) -> Value {
    let report = json(output);
    assert_eq!(output.status.code(), Some(0), "{report} {}", text(&output.stderr));
    assert_eq!(report["complete"], true, "{report}");
    assert_eq!(report["packets_lost"], 0, "{report}");
    assert!(units(copy) == units(Path::new(&media(name))), "{name} differs: {report}");
    report
}

#[test]
fn a_few_packets_of_a_stranger_before_the_stream_are_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let name = MEDIA[1];
    let copy = folder.path().join(name);
    for packets in [1, 2, 3, 12] {
        let (receiver, to) = listening(&copy, &["--force"]);
        let mut stranger = Source::new(0xbad, port_of(&to));
        stranger.payload_type = 97;
        for _ in 0..packets {
            stranger.frame(&[0x02, 0x01, 0xff]);
        }
        let sent = run(&["send", &media(name), "--to", &to, "--fps", "500", "-q"]);
        assert!(sent.status.success(), "{}", text(&sent.stderr));
        let report = is_the_file(&ended(receiver), &copy, name);
        assert_eq!(report["end"], "bye", "{packets}: {report}");
    }
}

#[test]
fn a_persistent_stranger_neither_delays_the_receivers_end_nor_changes_its_verdict() {
    let folder = tempfile::tempdir().unwrap();
    let name = MEDIA[1];
    let copy = folder.path().join(name);
    let (receiver, to) = listening(&copy, &["--idle-timeout", "30s"]);
    let (mut stranger, mut other) =
        (Source::new(0xbad, port_of(&to)), Source::new(0xbad2, port_of(&to)));
    let over = AtomicBool::new(false);
    let output = std::thread::scope(|scope| {
        scope.spawn(|| {
            stranger.payload_type = 97;
            other.payload_type = 97;
            while !over.load(Ordering::Relaxed) {
                stranger.frame(&[0x02, 0x01, 0xff]);
                // Some packets are missing, and those of the other source are not H.265.
                stranger.sequence = stranger.sequence.wrapping_add(3);
                other.frame(&[0xff]);
                std::thread::sleep(Duration::from_millis(3));
            }
        });
        let sent = run(&["send", &media(name), "--to", &to, "--fps", "200", "-q"]);
        let output = sent.status.success().then(|| ended(receiver));
        over.store(true, Ordering::Relaxed);
        output.unwrap()
    });
    let report = is_the_file(&output, &copy, name);
    assert_eq!(report["end"], "bye", "{report}");
    assert!(report["other_sources"]["frames"].as_u64().unwrap() > 0, "{report}");
}

#[test]
fn a_stranger_who_begins_later_gets_nothing_into_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.raw");
    let (receiver, to) = listening(&copy, &["--idle-timeout", "30s"]);
    let (mut honest, mut stranger) =
        (Source::new(1, port_of(&to)), Source::new(0xbad, port_of(&to)));
    let mut expected = Vec::new();
    for n in 0..40_u8 {
        let frame = [n; 100];
        honest.frame(&frame);
        expected.extend_from_slice(&frame);
        stranger.frame(&[0xee; 20]);
    }
    // The stranger's own goodbye ends nothing.
    stranger.goodbye();
    honest.frame(b"the end");
    expected.extend_from_slice(b"the end");
    honest.goodbye();
    let output = ended(receiver);
    let report = json(&output);
    assert_eq!(output.status.code(), Some(0), "{report}");
    assert!(std::fs::read(&copy).unwrap() == expected, "{report}");
    assert_eq!((&report["end"], &report["packets_lost"]), (&"bye".into(), &0.into()), "{report}");
}

#[test]
fn only_the_given_peer_is_received() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.raw");
    let port = free_port();
    let mut honest = Source::new(1, port);
    let peer = honest.socket.local_addr().unwrap().to_string();
    let from = format!("127.0.0.1:{port}");
    let receiver = receiving(port, &["--from", &from, "--peer", &peer], &copy);
    let mut stranger = Source::new(0xbad, port);
    for _ in 0..50 {
        stranger.frame(&[0xee; 1000]);
    }
    // One packet is enough from a known peer.
    honest.frame(b"one frame");
    honest.goodbye();
    let output = ended(receiver);
    let report = json(&output);
    assert_eq!(output.status.code(), Some(0), "{report} {}", text(&output.stderr));
    assert_eq!(std::fs::read(&copy).unwrap(), b"one frame", "{report}");
    assert_eq!(report["received"]["foreign"], 50, "{report}");

    // The same holds with the host alone.
    let receiver = receiving(port, &["--from", &from, "--peer", "127.0.0.1", "-f"], &copy);
    let mut honest = Source::new(2, port);
    honest.frame(b"another");
    honest.goodbye();
    assert_eq!(ended(receiver).status.code(), Some(0));
    assert_eq!(std::fs::read(&copy).unwrap(), b"another");
}

#[test]
fn a_peer_that_cannot_be_is_an_error_that_names_it() {
    let name = format!("{}.invalid", "x".repeat(70));
    for (peer, code) in [(&name[..], 1), ("::1", 1), ("239.1.2.3", 2), ("[::1]:5004", 1)] {
        let arguments = ["recv", "--from", "127.0.0.1:0", "--peer", peer, "-o", "never.265"];
        let output = run(&arguments);
        let log = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{peer}: {log}");
        let host = peer.trim_start_matches('[').split(']').next().unwrap();
        assert!(log.contains(host), "{peer}: {log}");
    }
}

#[test]
fn a_stream_of_one_packet_is_received() {
    let folder = tempfile::tempdir().unwrap();
    let (file, copy) = (folder.path().join("one.raw"), folder.path().join("copy.raw"));
    std::fs::write(&file, "one packet").unwrap();
    for more in [&[][..], &["--no-rtcp"]] {
        let (receiver, to) = listening(&copy, &[more, &["--force"]].concat());
        let mut arguments = vec!["send", file.to_str().unwrap(), "--to", &to, "-q"];
        arguments.extend(more);
        assert!(run(&arguments).status.success());
        let output = ended(receiver);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
        assert_eq!(std::fs::read(&copy).unwrap(), b"one packet");
    }
}

#[test]
fn a_sender_that_returns_continues_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.raw");
    let (receiver, to) = listening(&copy, &["--idle-timeout", "5s"]);
    let mut expected = Vec::new();
    for ssrc in [0xa1, 0xa2] {
        let mut sender = Source::new(ssrc, port_of(&to));
        for n in 0..30_u8 {
            let frame = [[ssrc as u8, n]; 50].concat();
            sender.frame(&frame);
            expected.extend_from_slice(&frame);
        }
        // The first sender is killed; the second sends a goodbye.
        if ssrc == 0xa2 {
            sender.goodbye();
        }
    }
    let output = ended(receiver);
    let report = json(&output);
    assert_eq!(output.status.code(), Some(0), "{report}");
    assert!(std::fs::read(&copy).unwrap() == expected, "{report}");
    assert_eq!(report["sources"].as_array().unwrap().len(), 2, "{report}");
    assert_eq!(report["end"], "bye", "{report}");
    let log = text(&output.stderr);
    assert!(log.contains("000000a1") && log.contains("000000a2"), "{log}");
}
