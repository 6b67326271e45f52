//! A format whose payloads are delivered as they arrive: none waits, and none is delivered twice.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, reason = "any instant will do")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use rushes_proto::payload::texture::Texture;
use rushes_proto::rtp::Header;
use rushes_proto::stream::{Discard, Receiver, ReceiverConfig};
use rushes_proto::{ClockRate, PayloadType, RtpTimestamp, SequenceNumber, Ssrc};

const SSRC: Ssrc = Ssrc(7);

struct Case {
    receiver: Receiver,
    now: Instant,
}

impl Case {
    fn new() -> Self {
        let mut config = ReceiverConfig::new(PayloadType::GENERIC, ClockRate::VIDEO);
        config.probation = 1;
        let receiver = Receiver::new(Arc::new(Texture { payload: 8 }), config).unwrap();
        Self { receiver, now: Instant::now() }
    }

    /// Receives packet `sequence`; returns the numbers of the payloads delivered.
    fn take(&mut self, sequence: u16) -> Vec<u8> {
        let time = RtpTimestamp(0);
        let header = Header::new(PayloadType::GENERIC, SequenceNumber(sequence), time, SSRC);
        let mut datagram = vec![0; 12];
        header.write(&mut datagram).unwrap();
        datagram.extend_from_slice(&[0, 0, 0, sequence as u8, 0x55]);
        self.receiver.handle_datagram(self.now, &datagram);
        self.arrived()
    }

    fn arrived(&mut self) -> Vec<u8> {
        std::iter::from_fn(|| self.receiver.poll_frame()).map(|frame| frame.data()[3]).collect()
    }

    fn discards(&self, reason: Discard) -> u64 {
        self.receiver.statistics().discards.get(reason)
    }
}

#[test]
fn a_packet_behind_a_gap_does_not_wait() {
    let mut case = Case::new();
    assert_eq!(case.take(10), [10]);
    assert_eq!(case.take(13), [13]);
    assert_eq!(case.take(11), [11]);
    assert_eq!(case.take(12), [12]);
    assert_eq!(case.take(14), [14]);
    assert_eq!(case.receiver.statistics().packets_lost, 0);
}

#[test]
fn a_packet_that_arrives_again_is_a_duplicate() {
    let mut case = Case::new();
    assert_eq!(case.take(10), [10]);
    assert_eq!(case.take(12), [12]);
    assert_eq!(case.take(12), []);
    assert_eq!(case.take(11), [11]);
    assert_eq!(case.take(11), []);
    assert_eq!(case.discards(Discard::Duplicate) + case.discards(Discard::Late), 2);
}

#[test]
fn a_packet_that_never_arrives_is_counted_once() {
    let mut case = Case::new();
    case.take(10);
    case.take(13);
    case.now += Duration::from_secs(1);
    case.receiver.handle_timeout(case.now);
    assert_eq!(case.arrived(), []);
    assert_eq!(case.receiver.statistics().packets_lost, 2);
    assert_eq!(case.take(14), [14]);
    assert_eq!(case.receiver.statistics().packets, 3);
}

#[test]
fn more_gaps_than_the_window_holds_deliver_everything_once() {
    let mut case = Case::new();
    let mut arrived = case.take(0);
    for sequence in (2..4_000).step_by(2) {
        arrived.extend(case.take(sequence));
    }
    assert_eq!(arrived.len(), 2_000);
}
