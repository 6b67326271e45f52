//! Packets that crashed other libraries, each with the number of its finding.
//!
//! They were collected in a study of the best-known C++ library of the field. Here each is counted
//! or handled like a genuine packet, and a good frame that is sent afterwards arrives.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod world;

use std::time::Duration;

use rushes_proto::payload::Delivery;
use rushes_proto::rtp::Header;
use rushes_proto::stream::Discard;
use rushes_proto::{PayloadType, RtpTimestamp, SequenceNumber};
use world::{Kind, Listener, PAYLOAD_TYPE, SSRC, Seeded, Source, send};

/// Returns a packet of the tests' source.
fn packet(sequence: u16, timestamp: u32, marker: bool, payload: &[u8]) -> Vec<u8> {
    let sequence = SequenceNumber(sequence);
    let mut header = Header::new(PAYLOAD_TYPE, sequence, RtpTimestamp(timestamp), SSRC);
    header.marker = marker;
    let mut packet = vec![0; 12];
    header.write(&mut packet).unwrap();
    packet.extend_from_slice(payload);
    packet
}

/// Returns an H.265 fragmentation unit of type 1, layer 0, temporal id plus 1 of 1.
fn fragment(sequence: u16, timestamp: u32, start_end: u8, body: &[u8]) -> Vec<u8> {
    let payload = [&[49 << 1, 1, start_end << 6 | 1], body].concat();
    packet(sequence, timestamp, start_end == 0b01, &payload)
}

/// A receiver of `kind` without probation, and its clock.
struct Victim {
    listener: Listener,
    clock: Duration,
}

impl Victim {
    fn new(kind: Kind) -> Self {
        Self {
            listener: Listener::with(kind, Delivery::Unit, |config| config.probation = 1),
            clock: Duration::ZERO,
        }
    }

    fn take(&mut self, datagram: &[u8]) {
        self.clock += Duration::from_micros(10);
        self.listener.take(self.clock, datagram);
    }

    fn discards(&self, reason: Discard) -> u64 {
        self.listener.receiver.statistics().discards.get(reason)
    }

    /// Checks that a good single NAL unit still arrives.
    fn still_works(&mut self, sequence: u16) {
        self.listener.frames.clear();
        self.take(&packet(sequence, 77_777, true, &[1 << 1, 1, 5, 6, 7]));
        self.listener.finish();
        let last = self.listener.frames.last().expect("a good packet did not arrive");
        assert_eq!(&last[..], [0, 0, 0, 1, 1 << 1, 1, 5, 6, 7]);
    }
}

/// R1: the X bit on a 12-octet packet, whose extension length would be read beyond it.
#[test]
fn an_extension_bit_on_a_bare_header_is_counted() {
    let mut victim = Victim::new(Kind::H265);
    let mut datagram = packet(1, 0, false, &[]);
    datagram[0] |= 0x10;
    victim.take(&datagram);
    assert_eq!(victim.discards(Discard::NotRtp), 1);
    victim.still_works(1);
}

#[test]
fn key_agreement_that_this_end_does_not_use_is_counted_apart() {
    let mut victim = Victim::new(Kind::H265);
    for (datagram, is_zrtp) in [
        (&b"\x10\0\0\x01ZRTP\0\0\0\x07a message"[..], true),
        (b"\x13\0\0\x01ZRTP", true),
        (b"\x10\0\0\x01ZRT", false),
        (b"\x14\0\0\x01ZRTP\0\0\0\x07a message", false),
    ] {
        let before = victim.discards(Discard::Zrtp);
        victim.take(datagram);
        assert_eq!(victim.discards(Discard::Zrtp) - before, u64::from(is_zrtp), "{datagram:?}");
    }
    assert_eq!(victim.discards(Discard::NotRtp), 2);
    victim.still_works(1);
}

/// R1: an extension that claims more words than the packet has.
#[test]
fn an_extension_longer_than_its_packet_is_counted() {
    let mut victim = Victim::new(Kind::H265);
    let mut datagram = packet(1, 0, false, &[0xbe, 0xde, 0xff, 0xff, 1, 2, 3, 4]);
    datagram[0] |= 0x10;
    victim.take(&datagram);
    assert_eq!(victim.discards(Discard::NotRtp), 1);
    victim.still_works(1);
}

/// R2: two fragments with one sequence number and two timestamps, then a whole unit much later.
#[test]
fn equal_sequence_numbers_with_two_timestamps_are_a_duplicate() {
    let mut victim = Victim::new(Kind::H265);
    victim.take(&fragment(1, 1000, 0b10, &[1; 50]));
    victim.take(&fragment(1, 2000, 0b10, &[2; 50]));
    assert_eq!(victim.discards(Discard::Duplicate), 1);
    victim.clock += Duration::from_secs(1);
    victim.take(&fragment(2, 3000, 0b10, &[3; 50]));
    victim.take(&fragment(3, 3000, 0b01, &[4; 50]));
    assert_eq!(victim.listener.frames.len(), 1, "the whole unit alone");
    victim.still_works(4);
}

/// R3: payloads shorter than their own headers.
#[test]
fn payloads_of_no_one_and_two_octets_are_not_read_beyond() {
    for kind in Kind::ALL {
        let mut victim = Victim::new(kind);
        for (sequence, len) in (1..).zip([0, 1, 2, 1, 0, 2]) {
            for octet in [0x00, 0x1c, 0x62, 0x7c, 0xff] {
                victim.take(&packet(sequence, u32::from(octet), false, &vec![octet; len]));
            }
        }
    }
}

/// R4: aggregates whose unit lengths omit the length fields, or exceed the end.
#[test]
fn aggregates_that_claim_more_than_they_have_are_counted() {
    for (kind, head) in [
        (Kind::H264, &[24][..]),
        (Kind::H265, &[48 << 1, 1][..]),
        (Kind::H266, &[0, 28 << 3 | 1][..]),
    ] {
        let mut victim = Victim::new(kind);
        let bodies: [&[u8]; 5] =
            [&[0, 7, 2, 1, 9, 9, 9], &[0xff, 0xff, 2, 1], &[0], &[0, 0], &[0, 2, 2, 1, 0]];
        for (sequence, body) in (1..).zip(bodies) {
            victim.take(&packet(sequence, 0, false, &[head, body].concat()));
        }
        assert_eq!(victim.discards(Discard::Payload), bodies.len() as u64, "{kind:?}");
    }
}

/// R5: endless fragments without a start, each with a different timestamp.
#[test]
fn fragments_without_a_start_do_not_grow_memory() {
    let mut victim = Victim::new(Kind::H265);
    victim.take(&fragment(0, 0, 0b00, &[0; 10]));
    let before = victim.listener.receiver.statistics().held_octets;
    for n in 1..200_000_u32 {
        victim.take(&fragment(n as u16, 1000 * n, 0b00, &[0; 10]));
    }
    assert_eq!(victim.discards(Discard::FragmentWithoutStart), 200_000);
    let after = victim.listener.receiver.statistics().held_octets;
    assert!(after <= before + 4096, "{before} octets became {after}");
}

/// R5: one unit that never ends.
#[test]
fn a_unit_without_end_stops_growing_at_the_limit() {
    let mut victim = Victim::new(Kind::H265);
    let limit = 1 << 20;
    victim.listener = Listener::with(Kind::H265, Delivery::Unit, |config| {
        config.probation = 1;
        config.frame.frame_len_max = limit;
    });
    victim.take(&fragment(0, 0, 0b10, &[0; 1000]));
    for n in 1..5000_u32 {
        victim.take(&fragment(n as u16, 0, 0b00, &[0; 1000]));
        assert!(victim.listener.receiver.statistics().held_octets <= 4 * limit);
    }
    assert_eq!(victim.discards(Discard::FrameTooLarge), 1);
    victim.still_works(5000);
}

/// R6: generic frames whose end is always lost.
#[test]
fn generic_frames_without_an_end_are_dropped_and_freed() {
    let mut victim = Victim::new(Kind::Generic);
    for n in 0..50_000_u32 {
        victim.take(&packet(n as u16, 10 * n, false, &[7; 1000]));
    }
    let statistics = victim.listener.receiver.statistics();
    assert!(statistics.held_octets < 1 << 20, "{} octets", statistics.held_octets);
}

/// R7: genuine traffic for a long time, through several wraps.
#[test]
fn a_million_good_packets_grow_nothing() {
    let mut victim = Victim::new(Kind::H265);
    let mut held = 0;
    for n in 0..1_000_000_u32 {
        victim.take(&packet(n as u16, 3000 * n, true, &[1 << 1, 1, 5, 6, 7]));
        victim.listener.frames.clear();
        if n == 10_000 {
            held = victim.listener.receiver.statistics().held_octets;
        }
    }
    let statistics = victim.listener.receiver.statistics();
    assert_eq!(statistics.frames, 1_000_000);
    assert_eq!(statistics.held_octets, held);
}

/// R10, C1: datagrams shorter than a header, among them one octet of 0x80.
#[test]
fn datagrams_shorter_than_a_header_are_counted() {
    let mut victim = Victim::new(Kind::H265);
    for len in 0..12 {
        victim.take(&vec![0x80; len]);
    }
    assert_eq!(victim.discards(Discard::KeepAlive), 1);
    assert_eq!(victim.discards(Discard::NotRtp), 11);
    victim.still_works(1);
}

/// R11: more contributing sources than octets, padding longer than the packet.
#[test]
fn bad_contributing_sources_and_padding_are_counted() {
    let mut victim = Victim::new(Kind::H265);
    let mut datagram = packet(1, 0, false, &[1, 2, 3, 200]);
    datagram[0] |= 0x0f;
    victim.take(&datagram);
    datagram[0] = 0xa0;
    victim.take(&datagram);
    assert_eq!(victim.discards(Discard::NotRtp), 2);
    victim.still_works(1);
}

/// C3, for RTP: a thousand sources at once; later ones are refused only until the old ones fall
/// silent.
#[test]
fn a_thousand_sources_are_limited_and_replaced() {
    let mut victim = Victim::new(Kind::H265);
    for n in 0..1000_u32 {
        let mut datagram = packet(1, 0, true, &[1 << 1, 1, 5]);
        datagram[8..12].copy_from_slice(&n.to_be_bytes());
        victim.take(&datagram);
    }
    assert_eq!(victim.listener.receiver.statistics().sources.len(), 16);
    assert_eq!(victim.discards(Discard::TooManySources), 984);
    victim.clock += Duration::from_secs(60);
    victim.still_works(1);
}

/// Sends short runs of packets, with losses of fewer than `burst_max` between them; returns how
/// many were sent and how many arrived.
fn run_with_bursts(victim: &mut Victim, burst_max: u64) -> (u64, u64) {
    let (mut sequence, mut sent, mut arrived) = (0_u16, 0, 0);
    let mut random = Seeded(7);
    for n in 0..200 {
        for _ in 0..1 + random.below(5) + 2 {
            victim.take(&packet(sequence, n, true, &[1 << 1, 1, 5]));
            sequence = sequence.wrapping_add(1);
            arrived += 1;
        }
        let burst = if n < 199 { random.below(burst_max) } else { 0 };
        sequence = sequence.wrapping_add(burst as u16);
        sent += burst;
    }
    victim.listener.finish();
    (sent + arrived, arrived)
}

/// Overload with genuine traffic: most packets are lost, in bursts just short of a dropout.
#[test]
fn bursts_of_loss_are_counted_and_survived() {
    let mut victim = Victim::new(Kind::H265);
    let (sent, arrived) = run_with_bursts(&mut victim, 2990);
    let statistics = victim.listener.receiver.statistics();
    assert_eq!(statistics.packets, arrived);
    assert_eq!(statistics.packets + statistics.packets_lost, sent);
}

/// A longer burst cannot be distinguished from a restart: it is not counted as lost, and all
/// packets that arrive are delivered (RFC 3550 appendix A.1).
#[test]
fn bursts_longer_than_a_dropout_are_survived() {
    let mut victim = Victim::new(Kind::H265);
    let (sent, arrived) = run_with_bursts(&mut victim, 20_000);
    let statistics = victim.listener.receiver.statistics();
    assert_eq!(statistics.packets, arrived);
    assert!(statistics.packets_lost < sent - arrived);
}

/// At the sender: more than 20 000 packets for one NAL unit, with the caller's octets unchanged.
#[test]
fn a_unit_of_twenty_thousand_packets_is_sent_and_received() {
    let mut random = Seeded(1);
    let source = Source::new(Kind::H265, vec![Kind::H265.unit(1, 4_000_000, &mut random)]);
    let before = source.frame.clone();
    let first = (SequenceNumber(60_000), RtpTimestamp(0));
    let datagrams = send(Kind::H265, std::slice::from_ref(&source), 200, first);
    assert!(datagrams.len() > 20_000);
    assert_eq!(source.frame, before);
    let mut listener = Listener::new(Kind::H265, Delivery::AccessUnit);
    for (n, datagram) in datagrams.iter().enumerate() {
        listener.take(Duration::from_micros(n as u64), &datagram.octets);
    }
    assert_eq!(listener.frames.len(), 1);
    assert!(listener.frames[0][..] == source.delivered(Kind::H265));
}

/// RTCP and other payload types on the port are counted, not parsed as media.
#[test]
fn other_packets_on_the_port_are_distinguished() {
    let mut victim = Victim::new(Kind::H265);
    victim.take(&[0x80, 200, 0, 6, 0, 0, 0, 1]);
    let mut datagram = packet(1, 0, false, &[1 << 1, 1, 5]);
    datagram[1] = PayloadType::OPUS.value();
    victim.take(&datagram);
    assert_eq!(victim.discards(Discard::Rtcp), 1);
    assert_eq!(victim.discards(Discard::PayloadType), 1);
    victim.still_works(1);
}
