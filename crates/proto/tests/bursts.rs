//! Batches can be limited to a burst; the packets stay the same.
#![cfg(feature = "srtp")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod ends;
mod world;

use ends::master;
use proptest::prelude::*;
use rushes_proto::srtp::{Policy, Protector, Suite};
use rushes_proto::stream::{Sender, SenderConfig};
use rushes_proto::{Batch, FrameRate, RtpTimestamp, SequenceNumber};
use world::{Kind, PAYLOAD_TYPE, SSRC, Seeded, Source};

const PACKET_LEN_MAX: usize = 500;

fn sender(kind: Kind, secured: bool) -> Sender {
    let format = kind.format();
    let config = SenderConfig {
        ssrc: SSRC,
        payload_type: PAYLOAD_TYPE,
        first_sequence: SequenceNumber(65_500),
        first_timestamp: RtpTimestamp(9),
        clock_rate: format.clock_rate(),
        frame_rate: FrameRate::DEFAULT,
        packet_len_max: PACKET_LEN_MAX,
    };
    let sender = Sender::new(format.packetiser(), config).unwrap();
    if !secured {
        return sender;
    }
    let suite = Suite::AeadAes128Gcm;
    let key = master(suite, 7, &[]);
    sender.secured(Protector::new(&Policy::new(suite), &key).unwrap()).unwrap()
}

/// The batches of a frame, each a list of datagrams.
fn batches(sender: &mut Sender, frame: &[u8], limit: Option<usize>) -> Vec<Vec<Vec<u8>>> {
    let (mut batch, mut batches) = (Batch::new(), Vec::new());
    let mut outgoing = sender.push(frame, None).unwrap();
    if let Some(limit) = limit {
        outgoing.limit_batches(limit);
    }
    while outgoing.fill(&mut batch) {
        batches.push(batch.datagrams().map(<[u8]>::to_vec).collect());
    }
    batches
}

/// The packets of a frame that is left for later after each batch.
fn packets_in_parts(sender: &mut Sender, frame: &[u8], limit: usize) -> Vec<Vec<u8>> {
    let (mut batch, mut packets) = (Batch::new(), Vec::new());
    let mut rest = sender.push(frame, None).unwrap().suspend();
    loop {
        let mut outgoing = sender.resume(frame, &rest);
        outgoing.limit_batches(limit);
        if !outgoing.fill(&mut batch) {
            return packets;
        }
        packets.extend(batch.datagrams().map(<[u8]>::to_vec));
        rest = outgoing.suspend();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn a_burst_limits_each_batch_and_changes_no_packet(
        seed: u64,
        limit in 0_usize..80_000,
        len in 1_usize..150_000,
        units in 1_u32..20,
        kind in prop::sample::select(vec![Kind::H264, Kind::H265, Kind::H266, Kind::Generic]),
        secured: bool,
    ) {
        let mut random = Seeded(seed);
        let units = if kind.has_nal_units() { units } else { 1 };
        let unit = |n| kind.unit(n, len / units as usize + 3, &mut random);
        let frame = Source::new(kind, (0..units).map(unit).collect()).frame;
        let whole = batches(&mut sender(kind, secured), &frame, None);
        let limited = batches(&mut sender(kind, secured), &frame, Some(limit));
        prop_assert_eq!(whole.concat(), limited.concat());
        let mut parted = sender(kind, secured);
        prop_assert_eq!(whole.concat(), packets_in_parts(&mut parted, &frame, limit));
        prop_assert_eq!(parted.statistics().frames_cut, 0);
        for (n, batch) in limited.iter().enumerate() {
            let octets: usize = batch.iter().map(Vec::len).sum();
            prop_assert!(octets <= limit.max(PACKET_LEN_MAX));
            // It is as full as the limit allows: another of the largest packets would not fit.
            let is_last = n + 1 == limited.len();
            prop_assert!(is_last || octets + PACKET_LEN_MAX > limit.min(65_507));
        }
    }
}

#[test]
fn a_frame_that_is_left_ends_with_the_next_one() {
    let (mut sender, mut batch) = (sender(Kind::Generic, true), Batch::new());
    let frame = Source::new(Kind::Generic, vec![Kind::Generic.unit(1, 9000, &mut Seeded(3))]).frame;
    let mut outgoing = sender.push(&frame, None).unwrap();
    outgoing.limit_batches(0);
    assert!(outgoing.fill(&mut batch));
    let rest = outgoing.suspend();
    // With other octets nothing is sent, and the frame is cut.
    assert!(!sender.resume(&frame[1..], &rest).fill(&mut batch));
    assert_eq!(sender.statistics().frames_cut, 1);
    let _whole = batches(&mut sender, &frame, None);
    let next = sender.next_sequence();
    assert!(!sender.resume(&frame, &rest).fill(&mut batch));
    assert_eq!(
        sender.statistics().packets,
        u64::from(next.0.wrapping_sub(65_500)) - 1,
        "one number was skipped"
    );
}

#[test]
fn a_packet_larger_than_the_burst_is_sent_alone() {
    let frame = Source::new(Kind::Opus, vec![Kind::Opus.unit(1, 30, &mut Seeded(3))]).frame;
    assert_eq!(batches(&mut sender(Kind::Opus, false), &frame, Some(0)).len(), 1);
}
