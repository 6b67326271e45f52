//! A million broken packets per format cause no panic and no growth.
//!
//! The packets are mutations of real ones, so that they reach deep into each format.

mod world;

use std::time::Duration;

use rushes_proto::payload::Delivery;
use rushes_proto::{RtpTimestamp, SequenceNumber};
use world::{Kind, Listener, Seeded, Source, extend, extensions, interleave, send};

const PACKETS: usize = 1_000_000;

/// Maximum octets of one source with the limits below: a window, a frame and its waiting copies.
const HELD_MAX: usize = 4 << 20;

fn seeds(kind: Kind, random: &mut Seeded) -> Vec<Vec<u8>> {
    let sources: Vec<Source> = (0..40)
        .map(|number| {
            let units = if kind.has_nal_units() { 6 } else { 1 };
            let len = |random: &mut Seeded| match (kind, random.below(3)) {
                (Kind::Opus | Kind::Pcm, _) => 20,
                (_, 0) => 700,
                _ => 30,
            };
            let units = (0..units)
                .map(|n| {
                    let len = len(random);
                    kind.unit(10 * number + n, len, random)
                })
                .collect();
            Source::new(kind, units)
        })
        .collect();
    let first = (SequenceNumber(65_500), RtpTimestamp(0));
    let mut datagrams = send(kind, &sources, 220, first);
    if kind.is_interleaved() {
        datagrams = interleave(datagrams, kind, random);
    }
    let mut packets: Vec<Vec<u8>> = datagrams.into_iter().map(|datagram| datagram.octets).collect();
    for packet in packets.iter_mut().step_by(3) {
        extend(packet, false, random);
    }
    packets
}

/// Breaks `packet` as networks and attackers do.
fn mutate(packet: &mut Vec<u8>, random: &mut Seeded) {
    for _ in 0..=random.below(3) {
        let len = packet.len() as u64;
        match random.below(8) {
            0 => packet.truncate(random.below(len + 1) as usize),
            1 => packet.extend((0..random.below(40)).map(|n| n as u8)),
            2 | 3 if len > 12 => {
                // The octet is in the payload header or just after it.
                let place = 12 + random.below((len - 12).min(6)) as usize;
                packet[place] = random.roll() as u8;
            }
            4 if len > 3 => packet[1..4].fill(random.roll() as u8),
            5 if len > 11 => packet[8 + random.below(4) as usize] ^= 1 << random.below(8),
            _ if len > 0 => {
                let place = random.below(len) as usize;
                packet[place] ^= 1 << random.below(8);
            }
            _ => {}
        }
    }
}

fn a_million_broken_packets(kind: Kind, delivery: Delivery) {
    let mut random = Seeded(0x5eed ^ kind as u64);
    let seeds = seeds(kind, &mut random);
    let mut listener = Listener::with(kind, delivery, |config| {
        config.frame.frame_len_max = 64 << 10;
        config.reorder_len_max = 64 << 10;
        config.reorder_packets_max = 256;
        config.sources_max = 4;
        config.extensions = extensions();
        config.source_timeout = Duration::from_millis(1);
    });
    let mut packet = Vec::new();
    for n in 0..PACKETS {
        packet.clear();
        packet.extend_from_slice(&seeds[(n + random.below(3) as usize) % seeds.len()]);
        // Each pass uses another SSRC; under the same one, the packets would be duplicates.
        packet[8..12].copy_from_slice(&((n / seeds.len()) as u32).to_be_bytes());
        if random.chance(0.5) {
            mutate(&mut packet, &mut random);
        }
        listener.take(Duration::from_micros(20 * n as u64), &packet);
        for frame in listener.frames.drain(..) {
            assert!(frame.len() <= 64 << 10);
        }
        while listener.receiver.poll_event().is_some() {}
        if n % 5000 == 0 {
            let statistics = listener.receiver.statistics();
            assert!(statistics.held_octets <= HELD_MAX, "{} octets", statistics.held_octets);
            assert!(statistics.sources.len() <= 4);
        }
    }
    let statistics = listener.receiver.statistics();
    assert!(statistics.discards.total() > PACKETS as u64 / 100, "the mutations had no effect");
    // Few interleaved access units are whole when half of the packets are repeated or missing.
    let least = if kind.is_interleaved() && delivery == Delivery::AccessUnit { 1 } else { 1000 };
    assert!(statistics.frames >= least, "too few frames: {}", statistics.frames);
}

macro_rules! formats {
    ($($name:ident: $kind:ident, $delivery:ident;)*) => {$(
        #[test]
        fn $name() {
            a_million_broken_packets(Kind::$kind, Delivery::$delivery);
        }
    )*};
}

formats! {
    h264_survives_a_million_broken_packets: H264, Unit;
    h264_access_units_survive_a_million_broken_packets: H264, AccessUnit;
    h265_survives_a_million_broken_packets: H265, Unit;
    h265_access_units_survive_a_million_broken_packets: H265, AccessUnit;
    h265_with_don_survives_a_million_broken_packets: H265Numbered, AccessUnit;
    h265_interleaved_survives_a_million_broken_packets: H265Interleaved, AccessUnit;
    h265_interleaved_units_survive_a_million_broken_packets: H265Interleaved, Unit;
    h266_interleaved_survives_a_million_broken_packets: H266Interleaved, AccessUnit;
    h266_survives_a_million_broken_packets: H266, Unit;
    h266_with_don_survives_a_million_broken_packets: H266Numbered, AccessUnit;
    opus_survives_a_million_broken_packets: Opus, AccessUnit;
    samples_survive_a_million_broken_packets: Pcm, AccessUnit;
    vp8_survives_a_million_broken_packets: Vp8, AccessUnit;
    vp9_survives_a_million_broken_packets: Vp9, AccessUnit;
    av1_survives_a_million_broken_packets: Av1, AccessUnit;
    raw_survives_a_million_broken_packets: Raw, AccessUnit;
    generic_survives_a_million_broken_packets: Generic, AccessUnit;
}
