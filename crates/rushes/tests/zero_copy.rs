//! Streams that lend their slabs to the kernel, over loopback. There the kernel copies, but
//! returns each slab with a completion as on any other path.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use std::time::Duration;

#[cfg(feature = "srtp")]
use rushes::{Security, Suite};

use rushes::net::Counters;
use rushes::{Codec, Context, MediaStream, Pacing, ReceivePath, Recovery, SendPath, StreamBuilder};

const SECOND: Duration = Duration::from_secs(1);

fn stream() -> StreamBuilder {
    Context::new().session("127.0.0.1").unwrap().stream(Codec::Generic).pacing(Pacing::Off)
}

/// Opens a stream that lends slabs and one that receives.
fn pair(adjust: impl Fn(StreamBuilder) -> StreamBuilder) -> (MediaStream, MediaStream) {
    let receiver = adjust(stream().probation(1)).open().unwrap();
    let port = receiver.local_address().port();
    (adjust(stream()).zero_copy(true).remote_port(port).open().unwrap(), receiver)
}

fn frame(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|n| (n as u32).wrapping_mul(0x9e37_79b9).to_le_bytes()[3] ^ seed).collect()
}

/// Sends frames of many sizes and checks that each arrives unchanged.
fn goes_round(name: &str, (mut sender, mut receiver): (MediaStream, MediaStream)) -> Counters {
    for round in 0..4 {
        for len in [1, 1000, 1428, 1429, 15_000, 16_384, 50_000, 65_000, 130_000, 700_000] {
            let frame = frame(len, round);
            sender.push_frame(&frame, None).unwrap();
            let received = receiver.pull_frame(SECOND).unwrap();
            let received = received.unwrap_or_else(|| panic!("{name} {len}: nothing arrived"));
            assert!(received[..] == frame[..], "{name}: {len} octets differ");
        }
    }
    assert_eq!(receiver.statistics().receive.packets_lost, 0, "{name}");
    // Waiting for the socket also reads the completions.
    assert!(sender.pull_frame(Duration::from_millis(1)).unwrap().is_none());
    sender.statistics().socket
}

fn was_lent(name: &str, counters: &Counters) {
    // Each frame of 700 000 octets takes eleven slabs, more than there are.
    assert!(counters.lent > 40, "{name}: {counters:?}");
    assert_eq!(counters.lent_back, counters.lent, "{name}: {counters:?}");
    assert_eq!(counters.lent_copied, counters.lent, "{name}: {counters:?}");
}

#[test]
fn frames_arrive_unchanged() {
    was_lent("plain", &goes_round("plain", pair(|builder| builder)));
}

#[test]
fn frames_of_a_stream_with_retransmissions_arrive_unchanged() {
    for recovery in [Recovery::On, Recovery::Verbatim] {
        let name = format!("{recovery:?}");
        was_lent(&name, &goes_round(&name, pair(|builder| builder.recovery(recovery))));
    }
}

#[cfg(feature = "srtp")]
#[test]
fn secured_frames_arrive_unchanged() {
    for suite in [Suite::AesCm128HmacSha1_80, Suite::AeadAes128Gcm] {
        let key: Vec<u8> = (0..).take(suite.key_and_salt_len()).collect();
        let security = Security::shared(suite, &key).unwrap();
        let name = format!("{suite}");
        was_lent(&name, &goes_round(&name, pair(|builder| builder.security(security.clone()))));
    }
}

#[test]
fn ways_that_cannot_lend_copy() {
    for send_path in [SendPath::Sendmmsg, SendPath::Single] {
        let name = format!("{send_path}");
        let pair = pair(|builder| builder.send_path(send_path).receive_path(ReceivePath::Auto));
        let counters = goes_round(&name, pair);
        assert_eq!((counters.lent, counters.lent_refused), (0, 0), "{name}");
    }
}

#[test]
fn small_frames_are_copied() {
    let (mut sender, mut receiver) = pair(|builder| builder.recovery(Recovery::On));
    for n in (0..8).flat_map(|_| 0..250_u8) {
        let frame = frame(300, n);
        sender.push_frame(&frame, None).unwrap();
        assert_eq!(receiver.pull_frame(SECOND).unwrap().unwrap()[..], frame[..]);
    }
    assert_eq!(sender.statistics().socket.lent, 0);
}

#[test]
fn two_streams_on_one_port_get_their_own_slabs_back() {
    let session = Context::new().session("127.0.0.1").unwrap();
    let receivers = [0, 1].map(|_| session.stream(Codec::Generic).probation(1).open().unwrap());
    let mut senders: Vec<MediaStream> = Vec::new();
    for receiver in &receivers {
        let local = senders.first().map_or(0, |sender| sender.local_address().port());
        let builder = session.stream(Codec::Generic).pacing(Pacing::Off).zero_copy(true);
        let builder = builder.local_port(local).remote_port(receiver.local_address().port());
        let payload_type = rushes::PayloadType::new(99 + senders.len() as u8).unwrap();
        senders.push(builder.payload_type(payload_type).open().unwrap());
    }
    std::thread::scope(|scope| {
        for (seed, sender) in (0..).zip(&mut senders) {
            scope.spawn(move || {
                for _ in 0..50 {
                    sender.push_frame(&frame(600_000, seed), None).unwrap();
                }
            });
        }
    });
    let counters = senders[0].statistics().socket;
    assert!(counters.lent > 900, "{counters:?}");
    assert!(counters.lent_back > counters.lent - 40, "{counters:?}");
}
