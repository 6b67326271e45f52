//! Attacks on the path without a key: reflections, copies, and packets that arrive first.
#![cfg(feature = "srtp")]
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test may panic and read the clock"
)]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rushes_proto::FrameRate;
use rushes_proto::payload::opus::Opus;
use rushes_proto::payload::{FrameError, PayloadFormat};
use rushes_proto::repair::RequestTiming;
use rushes_proto::srtp::{
    MasterKey, Policy, PolicyError, ProtectError, Protector, SrtcpProtector, SrtcpUnprotector,
    Suite, UnprotectError, Unprotector,
};
use rushes_proto::stream::{Receiver, ReceiverConfig, Retransmission, Sender, SenderConfig};
use rushes_proto::{Batch, PayloadType, RtpTimestamp, SequenceNumber, Ssrc};

fn rtx() -> PayloadType {
    PayloadType::new(112).unwrap()
}

fn key(octet: u8) -> MasterKey {
    MasterKey::new(Suite::AeadAes128Gcm, &[octet; 28]).unwrap()
}

fn named(octet: u8) -> MasterKey {
    key(octet).with_mki(&[octet]).unwrap()
}

fn policy() -> Policy {
    Policy::new(Suite::AeadAes128Gcm)
}

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// Returns a clear RTP packet.
fn packet(ssrc: u32, sequence: u16) -> Vec<u8> {
    let mut packet = vec![0x80, 96];
    packet.extend(sequence.to_be_bytes());
    packet.extend([0; 4]);
    packet.extend(ssrc.to_be_bytes());
    packet.extend([7; 20]);
    packet
}

fn sender(ssrc: u32, again: u32) -> Sender {
    let format = Opus::default();
    let config = SenderConfig {
        ssrc: Ssrc(ssrc),
        payload_type: PayloadType::OPUS,
        first_sequence: SequenceNumber(100),
        first_timestamp: RtpTimestamp(0),
        clock_rate: format.clock_rate(),
        frame_rate: FrameRate::DEFAULT,
        packet_len_max: 500,
    };
    let first_sequence = SequenceNumber(5);
    let again = Retransmission::Rtx { payload_type: rtx(), ssrc: Ssrc(again), first_sequence };
    let sender = Sender::new(format.packetiser(), config).unwrap().with_history(64, again);
    sender.secured(Protector::new(&policy(), &key(7)).unwrap()).unwrap()
}

fn receiver() -> Receiver {
    let format: Arc<dyn PayloadFormat> = Arc::new(Opus::default());
    let mut config = ReceiverConfig::new(PayloadType::OPUS, format.clock_rate());
    config.requests = Some(RequestTiming::default());
    config.retransmission = Some((rtx(), None));
    let unprotector = Unprotector::new(&policy(), &key(7)).unwrap();
    Receiver::new(format, config).unwrap().secured(unprotector)
}

/// Sends a frame of `octet`s, and returns its only datagram.
fn push(sender: &mut Sender, octet: u8, batch: &mut Batch) -> Vec<u8> {
    let mut frame = vec![0x08];
    frame.extend([octet; 30]);
    assert!(sender.push(&frame, None).unwrap().fill(batch));
    batch.datagrams().next().unwrap().to_vec()
}

#[test]
fn packets_reflected_after_a_collision_are_not_taken_for_a_peers() {
    let (mut sender, mut receiver) = (sender(0xa, 0xaa), receiver());
    let mut batch = Batch::with_history(1 << 16);
    receiver.set_own_ssrc(Ssrc(0xa));
    let sent: Vec<_> = (0..3).map(|octet| push(&mut sender, octet, &mut batch)).collect();
    let (now, from) = (Instant::now(), Some(address("192.0.2.9:1")));
    receiver.handle_datagram_from(now, from, &sent[0]);
    assert!(receiver.poll_conflict().is_some());
    receiver.set_own_ssrc(Ssrc(0xb));
    for datagram in &sent {
        receiver.handle_datagram_from(now, from, datagram);
    }
    assert!(receiver.poll_frame().is_none());
    assert!(receiver.poll_conflict().is_none(), "an earlier SSRC causes no collision");
}

#[test]
fn reflected_retransmissions_do_not_join_the_peers_stream() {
    let (mut own, mut peer, mut receiver) = (sender(0xa, 0xaa), sender(0xc, 0xcc), receiver());
    receiver.set_own_ssrc(Ssrc(0xa));
    receiver.add_own_ssrc(own.retransmission_ssrc().unwrap());
    let (mut own_batch, mut batch) = (Batch::with_history(1 << 16), Batch::with_history(1 << 16));
    let (now, from) = (Instant::now(), Some(address("192.0.2.9:1")));
    for _ in 0..3 {
        push(&mut own, 0xee, &mut own_batch);
    }
    let mut again = Batch::new();
    assert!(own.retransmit(now, SequenceNumber(101), &own_batch, &mut again).unwrap());
    let sent: Vec<_> = (0..3).map(|octet| push(&mut peer, octet, &mut batch)).collect();
    receiver.handle_datagram_from(now, from, &sent[0]);
    receiver.handle_datagram_from(now, from, &sent[2]);
    receiver.handle_datagram_from(now, from, again.datagrams().next().unwrap());
    while let Some(frame) = receiver.poll_frame() {
        assert_ne!(frame[1], 0xee);
    }
}

#[test]
fn a_copy_that_arrives_first_does_not_block_the_genuine_source() {
    let (mut sender, mut receiver) = (sender(0xc, 0xcc), receiver());
    let mut batch = Batch::with_history(1 << 16);
    let now = Instant::now();
    let sent: Vec<_> = (0..5).map(|octet| push(&mut sender, octet, &mut batch)).collect();
    receiver.handle_datagram_from(now, Some(address("192.0.2.66:6")), &sent[0]);
    for datagram in &sent {
        let now = now + Duration::from_millis(20);
        receiver.handle_datagram_from(now, Some(address("192.0.2.1:1")), datagram);
    }
    assert_eq!(std::iter::from_fn(|| receiver.poll_frame()).count(), 5);
}

#[test]
fn a_key_that_was_not_used_yet_is_kept_rather_than_used_ones() {
    let mut receiver = Unprotector::new(&policy(), &named(1)).unwrap();
    for n in 2..=4 {
        receiver.add_master_key(&named(n)).unwrap();
    }
    let mut sender = Protector::new(&policy(), &named(2)).unwrap();
    let mut first = packet(9, 5);
    sender.protect(&mut first).unwrap();
    receiver.unprotect(&mut first).unwrap();
    receiver.add_master_key(&named(5)).unwrap();
    for (n, sequence) in [(4, 6), (5, 7)] {
        sender.set_master_key(&named(n)).unwrap();
        let mut next = packet(9, sequence);
        sender.protect(&mut next).unwrap();
        assert!(receiver.unprotect(&mut next).is_ok(), "key {n}");
    }
}

#[test]
fn a_round_set_twice_runs_no_key_stream_again() {
    let mut sender = Protector::new(&policy(), &key(7)).unwrap();
    sender.protect(&mut packet(9, 5)).unwrap();
    sender.set_roll_over_counter(Ssrc(9), 7).unwrap();
    assert_eq!(sender.set_roll_over_counter(Ssrc(9), 0), Err(ProtectError::Repeated));
    let mut receiver = Unprotector::new(&policy(), &key(7)).unwrap();
    receiver.set_roll_over_counter(Ssrc(9), 7).unwrap();
    let mut next = packet(9, 6);
    sender.protect(&mut next).unwrap();
    let copy = next.clone();
    receiver.unprotect(&mut next).unwrap();
    assert_eq!(receiver.set_roll_over_counter(Ssrc(9), 7), Err(UnprotectError::Replayed));
    assert_eq!(receiver.unprotect(&mut copy.clone()), Err(UnprotectError::Replayed));
}

#[test]
fn a_key_does_not_begin_its_life_again() {
    let mut sender = Protector::new(&policy(), &key(7)).unwrap();
    assert_eq!(sender.set_master_key(&key(7)), Err(PolicyError::SameKey));
    let mut reporter = SrtcpProtector::new(&policy(), &key(7)).unwrap();
    assert_eq!(reporter.set_master_key(&key(7)), Err(PolicyError::SameKey));
}

/// An expired key stays refused, and no key stream is used twice.
#[test]
fn a_key_cannot_be_set_again_after_another() {
    let limited = |octet| key(octet).with_lifetime(2, 2).unwrap();
    let mut sender = Protector::new(&policy(), &limited(7)).unwrap();
    let mut reporter = SrtcpProtector::new(&policy(), &limited(7)).unwrap();
    let report = [&[0x80, 201, 0, 1][..], &[0, 0, 0, 9]].concat();
    for octet in [7, 8, 9] {
        for sequence in 0..2 {
            sender.protect(&mut packet(octet.into(), sequence)).unwrap();
            reporter.protect(&mut report.clone()).unwrap();
        }
        let over = Err(ProtectError::Expired);
        assert_eq!(sender.protect(&mut packet(octet.into(), 2)), over);
        assert_eq!(reporter.protect(&mut report.clone()), over);
        for known in 7..=octet {
            assert_eq!(sender.set_master_key(&limited(known)), Err(PolicyError::SameKey));
            assert_eq!(reporter.set_master_key(&limited(known)), Err(PolicyError::SameKey));
        }
        sender.set_master_key(&limited(octet + 1)).unwrap();
        reporter.set_master_key(&limited(octet + 1)).unwrap();
    }
    let mut receiver = Unprotector::new(&policy(), &key(7)).unwrap();
    assert_eq!(receiver.add_master_key(&key(7)), Err(PolicyError::SameKey));
}

#[test]
fn a_sender_without_sources_left_fails_and_continues_under_another_key() {
    let (mut sender, mut batch) = (sender(0, 0xaa), Batch::with_history(1 << 16));
    for ssrc in 0..256 {
        sender.set_ssrc(Ssrc(1000 + ssrc));
        push(&mut sender, 1, &mut batch);
    }
    sender.set_ssrc(Ssrc(5));
    let refused = sender.push(&[8, 1, 2, 3], None).err();
    assert_eq!(refused, Some(FrameError::TooManySources));
    sender.set_master_key(&key(8)).unwrap();
    push(&mut sender, 1, &mut batch);
}

#[test]
fn a_full_receiver_replaces_the_longest_silent_source() {
    let policy = Policy { sources_max: 4, window: 128, ..policy() };
    let mut sender = Protector::new(&Policy { sources_max: 64, ..policy }, &key(7)).unwrap();
    let mut receiver = Unprotector::new(&policy, &key(7)).unwrap();
    let mut send = |ssrc, sequence| {
        let mut packet = packet(ssrc, sequence);
        sender.protect(&mut packet).unwrap();
        packet
    };
    for ssrc in 0..4 {
        receiver.unprotect(&mut send(ssrc, 5)).unwrap();
    }
    let mut early = send(9, 5);
    assert_eq!(receiver.unprotect(&mut early), Err(UnprotectError::TooManySources));
    for sequence in 6..200 {
        receiver.unprotect(&mut send(1, sequence)).unwrap();
    }
    assert!(receiver.unprotect(&mut send(9, 6)).is_ok());
    assert!(receiver.unprotect(&mut send(1, 200)).is_ok(), "the active source stays");
}

#[test]
fn a_replaced_source_cannot_be_replayed_and_may_return() {
    let policy = Policy { sources_max: 2, window: 128, ..policy() };
    let mut sender = Protector::new(&Policy { sources_max: 64, ..policy }, &key(7)).unwrap();
    let mut receiver = Unprotector::new(&policy, &key(7)).unwrap();
    let mut reporter = SrtcpProtector::new(&Policy { sources_max: 64, ..policy }, &key(7)).unwrap();
    let mut reports = SrtcpUnprotector::new(&policy, &key(7)).unwrap();
    let mut send = |ssrc, sequence| {
        let mut packet = packet(ssrc, sequence);
        sender.protect(&mut packet).unwrap();
        packet
    };
    let mut report = |ssrc: u8| {
        let mut report = [&[0x80, 201, 0, 1][..], &[0, 0, 0, ssrc]].concat();
        reporter.protect(&mut report).unwrap();
        report
    };
    // The last two are in the second round, which a receiver without memory of the source would
    // not know.
    let recorded: Vec<_> = [0, 30_000, 60_000, 20, 21].map(|n| send(3, n)).into();
    for packet in &recorded {
        receiver.unprotect(&mut packet.clone()).unwrap();
    }
    let told = report(3);
    reports.unprotect(&mut told.clone()).unwrap();
    for sequence in 0..200 {
        receiver.unprotect(&mut send(1, sequence)).unwrap();
        reports.unprotect(&mut report(1)).unwrap();
    }
    // Source 2 takes the place of source 3.
    receiver.unprotect(&mut send(2, 0)).unwrap();
    reports.unprotect(&mut report(2)).unwrap();
    for sequence in 200..400 {
        receiver.unprotect(&mut send(1, sequence)).unwrap();
        reports.unprotect(&mut report(1)).unwrap();
    }
    for packet in &recorded {
        assert!(receiver.unprotect(&mut packet.clone()).is_err(), "a replay is accepted");
    }
    assert_eq!(reports.unprotect(&mut told.clone()), Err(UnprotectError::Replayed));
    receiver.unprotect(&mut send(3, 22)).unwrap();
    reports.unprotect(&mut report(3)).unwrap();
    for packet in &recorded {
        assert!(receiver.unprotect(&mut packet.clone()).is_err(), "a replay is accepted");
    }
    assert_eq!(reports.unprotect(&mut told.clone()), Err(UnprotectError::Replayed));
}

/// A receiver remembers a limited number of sources; beyond that number, it accepts no new ones.
#[test]
fn a_receiver_that_remembers_as_many_sources_as_it_may_lets_no_others_in() {
    let policy = Policy { sources_max: 2, window: 128, ..policy() };
    let mut receiver = Unprotector::new(&policy, &key(7)).unwrap();
    let mut taken = 0;
    for ssrc in 0..5000 {
        let mut sender = Protector::new(&policy, &key(7)).unwrap();
        let all: Vec<_> = (0..130)
            .map(|sequence| {
                let mut packet = packet(ssrc, sequence);
                sender.protect(&mut packet).unwrap();
                packet
            })
            .collect();
        let arrived =
            all.iter().filter(|it| receiver.unprotect(&mut (*it).clone()).is_ok()).count();
        taken += usize::from(arrived > 0);
    }
    assert!((4000..=4098).contains(&taken), "{taken}");
}
