//! Every receiver detects a frame that was begun but not finished.
#![cfg(feature = "srtp")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod ends;
mod world;

use std::time::Duration;

use ends::master;
use rushes_proto::FrameRate;
use rushes_proto::payload::{Delivery, FrameError, FrameSettings};
use rushes_proto::srtp::{Policy, Protector, Suite, Unprotector};
use rushes_proto::stream::{Receiver, ReceiverConfig, Sender, SenderConfig};
use rushes_proto::{Batch, RtpTimestamp, SequenceNumber};
use world::{Kind, Listener, PAYLOAD_TYPE, SSRC, Seeded, Source};

const SUITE: Suite = Suite::AeadAes128Gcm;

const KINDS: [Kind; 4] = [Kind::H264, Kind::H265, Kind::H266, Kind::Generic];

fn sender(kind: Kind, first: u16) -> Sender {
    let format = kind.format();
    let config = SenderConfig {
        ssrc: SSRC,
        payload_type: PAYLOAD_TYPE,
        first_sequence: SequenceNumber(first),
        first_timestamp: RtpTimestamp(9),
        clock_rate: format.clock_rate(),
        frame_rate: FrameRate::DEFAULT,
        packet_len_max: 500,
    };
    Sender::new(format.packetiser(), config).unwrap()
}

/// Returns frames of about 130 000 octets, in units that each fit a packet.
fn sources(kind: Kind) -> Vec<Source> {
    let mut random = Seeded(7);
    let mut source = |n: u32| {
        let (count, len) = if kind.has_nal_units() { (300, 430) } else { (1, 130_000) };
        Source::new(kind, (0..count).map(|m| kind.unit(1000 * n + m, len, &mut random)).collect())
    };
    (0..4).map(&mut source).collect()
}

/// Sends at most `batches` batches of `frame`; returns the datagrams.
fn push(sender: &mut Sender, frame: &Source, at: Option<u32>, batches: usize) -> Vec<Vec<u8>> {
    let (mut batch, mut datagrams) = (Batch::new(), Vec::new());
    let mut outgoing = sender.push(&frame.frame, at.map(RtpTimestamp)).unwrap();
    for _ in 0..batches {
        if !outgoing.fill(&mut batch) {
            break;
        }
        datagrams.extend(batch.datagrams().map(<[u8]>::to_vec));
    }
    datagrams
}

fn sequence(datagram: &[u8]) -> u16 {
    u16::from_be_bytes([datagram[2], datagram[3]])
}

fn is_secured(listener: &mut Listener, kind: Kind) {
    let mut config = ReceiverConfig::new(PAYLOAD_TYPE, kind.format().clock_rate());
    config.frame = FrameSettings { delivery: Delivery::AccessUnit, ..FrameSettings::default() };
    let key = master(SUITE, 7, &[]);
    let unprotector = Unprotector::new(&Policy::new(SUITE), &key).unwrap();
    listener.receiver = Receiver::new(kind.format(), config).unwrap().secured(unprotector);
}

/// Returns the frames delivered of four. The second is cut after its first batch, and the third has
/// the timestamp `third`.
fn delivered(kind: Kind, secured: bool, third: Option<u32>) -> Vec<Vec<u8>> {
    let sources = sources(kind);
    let mut sender = sender(kind, 65_100);
    let mut listener = Listener::new(kind, Delivery::AccessUnit);
    if secured {
        let key = master(SUITE, 7, &[]);
        sender = sender.secured(Protector::new(&Policy::new(SUITE), &key).unwrap()).unwrap();
        is_secured(&mut listener, kind);
    }
    let times = [Some(9), Some(99), third, None];
    for (n, source) in sources.iter().enumerate() {
        let batches = if n == 1 { 1 } else { usize::MAX };
        for datagram in push(&mut sender, source, times[n], batches) {
            listener.take(Duration::from_millis(n as u64), &datagram);
        }
    }
    assert_eq!(sender.statistics().frames_cut, 1);
    listener.finish();
    listener.frames.iter().map(|frame| frame.to_vec()).collect()
}

#[test]
fn a_frame_cut_between_two_batches_is_not_taken_for_a_whole_one() {
    for (kind, secured) in KINDS.into_iter().flat_map(|kind| [(kind, false), (kind, true)]) {
        let sources = sources(kind);
        let expected = [0, 2, 3].map(|n: usize| sources[n].delivered(kind));
        assert!(delivered(kind, secured, None) == expected, "{kind:?}, secured: {secured}");
    }
}

#[test]
fn a_cut_frame_is_not_completed_by_another_of_its_timestamp() {
    for (kind, secured) in KINDS.into_iter().flat_map(|kind| [(kind, false), (kind, true)]) {
        let sources = sources(kind);
        let expected = [0, 3].map(|n: usize| sources[n].delivered(kind));
        assert!(delivered(kind, secured, Some(99)) == expected, "{kind:?}, secured: {secured}");
    }
}

#[test]
fn a_sequence_number_is_skipped_after_a_cut_frame_only() {
    let sources = sources(Kind::H265);
    let mut sender = sender(Kind::H265, 0);
    let last = |datagrams: Vec<Vec<u8>>| sequence(datagrams.last().unwrap());
    let before = last(push(&mut sender, &sources[0], None, usize::MAX));
    // No packet of this frame was sent.
    assert!(push(&mut sender, &sources[1], None, 0).is_empty());
    let cut = push(&mut sender, &sources[1], None, 1);
    assert_eq!(sequence(&cut[0]), before + 1);
    let refused = sender.push(&[0, 0, 1], None).err();
    assert_eq!(refused, Some(FrameError::Empty));
    let next = push(&mut sender, &sources[2], None, usize::MAX);
    assert_eq!(sequence(&next[0]), last(cut) + 2);
    let cut = last(push(&mut sender, &sources[3], None, 1));
    let mut batch = Batch::new();
    sender.keep_alive(&mut batch);
    assert_eq!(sequence(batch.bytes()), cut + 2);
    sender.keep_alive(&mut batch);
    assert_eq!(sequence(batch.bytes()), cut + 3);
}

#[test]
fn a_sequence_number_is_skipped_where_a_key_expired() {
    let source = &sources(Kind::H265)[0];
    let key = master(SUITE, 7, &[]).with_lifetime(5, 5).unwrap();
    let protector = Protector::new(&Policy::new(SUITE), &key).unwrap();
    let mut sender = sender(Kind::H265, 65_530).secured(protector).unwrap();
    assert_eq!(push(&mut sender, source, None, usize::MAX).len(), 5);
    assert_eq!(sender.push(&source.frame, None).err(), Some(FrameError::KeyExpired));
    sender.set_master_key(&master(SUITE, 8, &[])).unwrap();
    // 65 530 to 65 534 belong to the frame that was cut.
    assert_eq!(sequence(&push(&mut sender, source, None, usize::MAX)[0]), 0);
    assert_eq!(sender.statistics().frames_cut, 1);
}
