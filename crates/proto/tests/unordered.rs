//! A format whose payloads are delivered as they arrive: none waits, and none is delivered twice.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, reason = "any instant will do")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use rushes_proto::payload::PackedFrames;
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
        Self::of(false)
    }

    /// Creates a receiver whose frames are delivered together if `packed`.
    fn of(packed: bool) -> Self {
        let mut config = ReceiverConfig::new(PayloadType::GENERIC, ClockRate::VIDEO);
        config.probation = 1;
        config.frame.packed = packed;
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

    /// Returns the numbers of the payloads that are delivered together.
    fn packed(&mut self) -> Vec<u8> {
        let mut frames = PackedFrames::new();
        assert_eq!(self.receiver.poll_packed(&mut frames), !frames.is_empty());
        frames.iter().map(|frame| frame[3]).collect()
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

#[test]
fn frames_that_are_delivered_together_come_once_each_as_they_arrived() {
    let mut case = Case::of(true);
    for sequence in [10, 13, 11, 13, 12] {
        assert_eq!(case.take(sequence), [], "no frame of its own");
    }
    // Where each ends counts, too: frames without octets would have no limit.
    assert_eq!(case.receiver.ready_octets(), 4 * (5 + size_of::<usize>()));
    assert_eq!(case.packed(), [10, 13, 11, 12]);
    assert_eq!(case.packed(), []);
    assert_eq!((case.discards(Discard::Duplicate), case.receiver.ready_octets()), (1, 0));
    assert_eq!(case.receiver.statistics().frames, 4);
}

#[test]
fn the_end_of_a_source_loses_no_frame_that_waits() {
    let mut case = Case::of(true);
    case.take(10);
    case.now += Duration::from_secs(3600);
    case.receiver.handle_timeout(case.now);
    assert!(case.receiver.statistics().sources.is_empty(), "it has ended");
    assert_eq!(case.packed(), [10]);
}
