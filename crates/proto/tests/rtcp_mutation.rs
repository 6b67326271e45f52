//! A million broken and arbitrary RTCP packets cause no panic, in limited time and memory.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod world;

use std::time::Duration;

use proptest::prelude::*;
use rushes_proto::rtcp::{
    Arrival, BitRateLimit, Dlrr, Ecn, Fir, ReportBlock, SdesKind, SenderInfo, Writer,
};
use rushes_proto::{NtpTime, RtpTimestamp, SequenceNumber, Ssrc};
use world::Seeded;
use world::reports::read_all;

const PACKETS: usize = 1_000_000;

/// Returns one datagram with a packet of each kind.
pub fn everything() -> Vec<u8> {
    let (own, media) = (Ssrc(1), Ssrc(2));
    let mut writer = Writer::new();
    let ntp = NtpTime(0x0123_4567_89ab_cdef);
    let info = SenderInfo { ntp, rtp: RtpTimestamp(7), packets: 8, octets: 9 };
    let block = ReportBlock { ssrc: media, cumulative_lost: -5, ..ReportBlock::default() };
    writer.sender_report(own, &info, &[block; 33]);
    let items: [(SdesKind, &[u8]); 3] = [
        (SdesKind::Cname, b"alice@example"),
        (SdesKind::Tool, b"Rushes"),
        (SdesKind::Private, b"\x02pxvalue"),
    ];
    writer.source_description(own, items);
    writer.app(own, 5, *b"test", &[1, 2, 3, 4, 5]);
    writer.nack(own, media, [1, 2, 5, 40_000, 40_016].map(SequenceNumber));
    let limit = BitRateLimit { ssrc: media, bit_rate: 1_000_000, overhead: 40 };
    writer.bit_rate_request(own, &[limit; 2]);
    writer.bit_rate_notification(own, &[limit]);
    let arrivals = [None, Some((Ecn::Congestion, Arrival::Before(Duration::from_millis(3))))];
    writer.congestion(own, [(media, SequenceNumber(65_535), arrivals)], ntp);
    let wide = [Some(Duration::from_secs(5)), None, Some(Duration::from_secs(6))];
    writer.transport_wide([own, media], SequenceNumber(65_535), 7, &wide);
    writer.picture_loss(own, media);
    writer.full_intra_request(own, &[Fir { ssrc: media, number: 9 }]);
    writer.estimate(own, 3_000_000, &[media]);
    writer.reference_time(own, ntp);
    writer.delays(own, &[Dlrr { ssrc: media, last_reference_time: 1, delay: 2 }]);
    writer.bye(&[own], "the end");
    writer.bytes().to_vec()
}

#[test]
fn a_million_broken_packets_are_read_to_the_end_or_refused() {
    let seed = everything();
    // One packet for each call of the writer, and a receiver report for the last of the 33 blocks.
    assert_eq!(read_all(&seed), Some(15));
    let mut random = Seeded(0x5254_4350);
    let mut read = 0;
    for _ in 0..PACKETS {
        let mut packet = seed.clone();
        for _ in 0..=random.below(4) {
            let place = random.below(packet.len() as u64) as usize;
            match random.below(6) {
                0 => packet.truncate(place.max(1)),
                1 => packet[place] = [0, 1, 0x7f, 0x80, 0xff][random.below(5) as usize],
                // Changes of lengths and counts are most likely to break a parser.
                2 if place | 3 < packet.len() => packet[place | 3] = random.roll() as u8,
                3 => packet[place & !3] ^= 1 << random.below(8),
                _ => packet[place] ^= 1 << random.below(8),
            }
        }
        read += usize::from(read_all(&packet).is_some());
    }
    assert!((PACKETS / 10..PACKETS).contains(&read), "{read} were read");
}

proptest! {
    #[test]
    fn arbitrary_octets_are_read_to_the_end_or_refused(
        octets in prop::collection::vec(any::<u8>(), 0..200),
        shape in 0_u8..4,
    ) {
        let mut octets = octets;
        // Three in four inputs have a valid header, so that they are parsed further.
        if shape > 0 && octets.len() >= 4 {
            octets.truncate(octets.len() & !3);
            octets[0] = 0x80 | octets[0] & 0x3f;
            octets[1] = 200 + octets[1] % 8;
            let words = (octets.len() / 4 - 1) as u16;
            octets[2..4].copy_from_slice(&words.to_be_bytes());
        }
        let _ = read_all(&octets);
    }
}
