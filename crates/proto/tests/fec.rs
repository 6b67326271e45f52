//! Forward error correction against a slow and naive decoder, the vectors of RFC 5109, loss as the
//! theory of the code predicts it, and hostile repair packets.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use rushes_proto::repair::fec::{
    BlockSize, Decoder, DecoderLimits, Encoder, FecError, FecFormat, Protected,
};
use rushes_proto::{SequenceNumber, Ssrc};

const SOURCE: Ssrc = Ssrc(0x0102_0304);
const FORMATS: [FecFormat; 4] =
    [FecFormat::FlexFec, FecFormat::FlexFecFixed, FecFormat::FlexFec03, FecFormat::Ulp];

/// Returns a packet with all parts that a header may have, as `shape` selects them.
fn packet(sequence: u16, shape: u64, body: &[u8]) -> Vec<u8> {
    let sources = (shape >> 8 & 3) as u8;
    let (extension, padding) = (shape & 1 != 0, shape & 2 != 0);
    let mut packet = vec![0x80 | u8::from(padding) << 5 | u8::from(extension) << 4 | sources];
    packet.push((shape >> 16) as u8);
    packet.extend(sequence.to_be_bytes());
    packet.extend(((shape >> 24) as u32).to_be_bytes());
    packet.extend(SOURCE.0.to_be_bytes());
    for n in 0..sources {
        packet.extend([n; 4]);
    }
    if extension {
        packet.extend([0xbe, 0xde, 0, 1, 0x10, shape as u8, 0, 0]);
    }
    packet.extend(body);
    if padding {
        packet.extend([0, 0, 3]);
    }
    packet
}

fn encode(format: FecFormat, size: (u16, u16), packets: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let size = BlockSize::new(format, size.0, size.1).unwrap();
    let mut encoder = Encoder::new(size, SOURCE);
    let mut repairs = Vec::new();
    for packet in packets {
        encoder.push(packet);
        if encoder.is_full() {
            encoder.close(|repair| repairs.push(repair.to_vec()));
        }
    }
    encoder.close(|repair| repairs.push(repair.to_vec()));
    repairs
}

fn bits(octets: &[u8]) -> Vec<bool> {
    octets.iter().flat_map(|octet| (0..8).map(move |n| octet << n & 0x80 != 0)).collect()
}

fn number(bits: &[bool]) -> usize {
    bits.iter().fold(0, |number, bit| 2 * number + usize::from(*bit))
}

/// The protected numbers, and the bit string of RFC 8627 section 6.2 without its first two bits.
type NaiveRepair = (BTreeSet<u16>, Vec<bool>);

/// Reads a repair packet bit by bit, by the figures of the RFCs.
fn read_naively(format: FecFormat, payload: &[u8]) -> NaiveRepair {
    let all = bits(payload);
    let (base_at, mask_at, header_end);
    let mut places = Vec::new();
    match format {
        FecFormat::Ulp => {
            let mask_len = if all[1] { 48 } else { 16 };
            (base_at, mask_at, header_end) = (16, 96, 96 + mask_len);
            places.extend((0..mask_len).map(|n| all[mask_at + n]));
        }
        FecFormat::FlexFecFixed if all[1] => {
            let (columns, rows) = (number(&all[80..88]), number(&all[88..96]));
            let (step, count) = if rows < 2 { (1, columns) } else { (columns, rows) };
            (base_at, header_end) = (64, 96);
            places.extend((0..step * count).map(|n| n % step == 0));
        }
        _ => {
            let is_draft = format == FecFormat::FlexFec03;
            base_at = if is_draft { 128 } else { 64 };
            mask_at = base_at + 16;
            places.extend(&all[mask_at + 1..mask_at + 16]);
            let mut end = mask_at + 16;
            if all[mask_at] != is_draft {
                places.extend(&all[end + 1..end + 32]);
                let has_third = all[end] != is_draft;
                end += 32;
                if has_third {
                    places.extend(&all[end + usize::from(is_draft)..end + 64]);
                    end += 64;
                }
            }
            header_end = end;
        }
    }
    let base = number(&all[base_at..base_at + 16]) as u16;
    let protected = (0_u16..).zip(&places).filter(|(_, is_set)| **is_set);
    let protected = protected.map(|(n, _)| base.wrapping_add(n)).collect();
    let (length, timestamp) = match format {
        FecFormat::Ulp => (&all[64..80], &all[32..64]),
        _ => (&all[16..32], &all[32..64]),
    };
    let text = [&all[2..16], length, timestamp, &all[header_end..]].concat();
    (protected, text)
}

fn bit_string(packet: &[u8]) -> Vec<bool> {
    let all = bits(packet);
    let length = bits(&((packet.len() - 12) as u16).to_be_bytes());
    [&all[2..16], &length, &all[32..64], &all[96..]].concat()
}

/// Repairs what the repair packets can repair, by trying all of them until nothing changes.
fn repair_naively(received: &mut BTreeMap<u16, Vec<u8>>, repairs: &[NaiveRepair]) {
    loop {
        let before = received.len();
        for (protected, text) in repairs {
            let missing: Vec<u16> =
                protected.iter().copied().filter(|n| !received.contains_key(n)).collect();
            let [lost] = missing[..] else { continue };
            let mut sum = text.clone();
            for packet in protected.iter().filter_map(|n| received.get(n)) {
                for (sum, bit) in sum.iter_mut().zip(bit_string(packet)) {
                    *sum ^= bit;
                }
            }
            let len = number(&sum[14..30]);
            let mut whole = vec![true, false];
            whole.extend(&sum[..14]);
            whole.extend(bits(&lost.to_be_bytes()));
            whole.extend(&sum[30..62]);
            whole.extend(bits(&SOURCE.0.to_be_bytes()));
            whole.extend(&sum[62..62 + 8 * len]);
            received.insert(lost, whole.chunks(8).map(|bits| number(bits) as u8).collect());
        }
        if received.len() == before {
            return;
        }
    }
}

/// Gives packets to a decoder, in the order of `order`, and returns those it recovered.
fn decode(format: FecFormat, sources: &[&[u8]], repairs: &[&[u8]], swap: bool) -> Vec<Vec<u8>> {
    let mut decoder = Decoder::new(format, SOURCE, DecoderLimits::default());
    let early = if swap { sources.len().min(1) } else { sources.len() };
    sources[..early].iter().for_each(|packet| decoder.handle_source(packet));
    for repair in repairs {
        let outcome = decoder.handle_repair(&[SOURCE], repair);
        assert!(sources.is_empty() || outcome.is_ok(), "{outcome:?}");
    }
    sources[early..].iter().for_each(|packet| decoder.handle_source(packet));
    std::iter::from_fn(|| decoder.poll_recovered()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_a_naive_decoder_repairs_is_repaired_octet_for_octet(
        format in prop::sample::select(&FORMATS[..]),
        first in any::<u16>(),
        made in prop::collection::vec(
            (any::<u64>(), prop::collection::vec(any::<u8>(), 0..40)), 1..100),
        (block, columns) in (1..=48_u16).prop_flat_map(|block| (Just(block), 1..=block)),
        lost in prop::collection::vec(prop::bool::weighted(0.15), 200),
        swap in any::<bool>(),
    ) {
        let number = |n: usize| first.wrapping_add(n as u16);
        let sent: Vec<Vec<u8>> = made.iter().enumerate()
            .map(|(n, (shape, body))| packet(number(n), *shape, body)).collect();
        let repairs = encode(format, (block, columns), &sent);
        let is_lost = |n: usize| lost[n] && n > 0;
        let sources: Vec<&[u8]> = sent.iter().enumerate()
            .filter(|(n, _)| !is_lost(*n)).map(|(_, packet)| &packet[..]).collect();
        let arrived: Vec<&[u8]> = repairs.iter().enumerate()
            .filter(|(n, _)| !lost[100 + *n]).map(|(_, repair)| &repair[..]).collect();
        let naive: Vec<NaiveRepair> =
            arrived.iter().map(|repair| read_naively(format, repair)).collect();
        let mut whole: BTreeMap<u16, Vec<u8>> = sent.iter().enumerate()
            .filter(|(n, _)| !is_lost(*n)).map(|(n, packet)| (number(n), packet.clone())).collect();
        let received = whole.clone();
        repair_naively(&mut whole, &naive);
        whole.retain(|n, _| !received.contains_key(n));
        for (n, packet) in &whole {
            prop_assert_eq!(packet, &sent[usize::from(n.wrapping_sub(first))]);
        }
        let mut recovered: BTreeMap<u16, Vec<u8>> = decode(format, &sources, &arrived, swap).into_iter()
            .map(|packet| (u16::from_be_bytes([packet[2], packet[3]]), packet)).collect();
        // A packet that comes after its repair packet was recovered by then.
        for (n, packet) in &recovered {
            prop_assert_eq!(packet, &sent[usize::from(n.wrapping_sub(first))]);
        }
        recovered.retain(|n, _| !received.contains_key(n));
        prop_assert_eq!(recovered, whole);
    }

    #[test]
    fn any_octets_as_repair_packets_change_no_limit(
        format in prop::sample::select(&FORMATS[..]),
        payloads in prop::collection::vec(prop::collection::vec(
            prop_oneof![2 => any::<u8>(), 1 => Just(0), 1 => Just(0xff)], 0..60), 0..60),
        base in any::<u16>(),
    ) {
        let limits = DecoderLimits { packets: 64, repairs: 4, packet_len: 100 };
        let mut decoder = Decoder::new(format, SOURCE, limits);
        for (n, mut payload) in payloads.into_iter().enumerate() {
            decoder.handle_source(&packet(base.wrapping_add(2 * n as u16), n as u64, &payload));
            let at = match format { FecFormat::Ulp => 2, FecFormat::FlexFec03 => 16, _ => 8 };
            if let Some(place) = payload.get_mut(at..at + 2) {
                place.copy_from_slice(&base.wrapping_add(n as u16).to_be_bytes());
            }
            let _ = decoder.handle_repair(&[SOURCE], &payload);
            while let Some(packet) = decoder.poll_recovered() {
                prop_assert!(packet.len() <= limits.packet_len);
                prop_assert!(rushes_proto::rtp::Packet::parse(&packet).is_ok());
            }
        }
        prop_assert!(decoder.counts().recovered <= decoder.counts().repairs);
    }
}

/// Packets A to D of RFC 5109 section 10: sequence number, timestamp, payload type, length, marker.
fn example() -> Vec<Vec<u8>> {
    [(8, 3, 11, 200, 0x80), (9, 5, 18, 140, 0), (10, 7, 11, 100, 0x80), (11, 9, 18, 340, 0)]
        .map(|(sequence, timestamp, kind, len, marker)| {
            let head = [0x80, marker | kind, 0, sequence, 0, 0, 0, timestamp, 1, 2, 3, 4];
            [&head[..], &vec![sequence; len]].concat()
        })
        .to_vec()
}

#[test]
fn the_ulp_header_is_that_of_rfc_5109_section_10_1() {
    let repairs = encode(FecFormat::Ulp, (4, 1), &example());
    let [repair] = &repairs[..] else { panic!("{} repair packets", repairs.len()) };
    let header = [0, 0, 0, 8, 0, 0, 0, 8, 0x01, 0x74, 0x01, 0x54, 0xf0, 0x00];
    assert_eq!(repair[..14], header);
    assert_eq!(repair.len(), 14 + 340);
}

#[test]
fn the_headers_of_flexfec_are_those_of_the_figures() {
    let fields = [0, 0, 0x01, 0x74, 0, 0, 0, 8];
    let flexible = encode(FecFormat::FlexFec, (4, 1), &example());
    assert_eq!(flexible[0][..12], [&fields[..], &[0, 8, 0x78, 0]].concat());
    let fixed = encode(FecFormat::FlexFecFixed, (4, 1), &example());
    let row = [0x40, 0, 0x01, 0x74, 0, 0, 0, 8, 0, 8, 4, 0];
    assert_eq!(fixed[0][..12], row);
    let columns = encode(FecFormat::FlexFecFixed, (4, 2), &example());
    assert_eq!(columns[0][8..12], [0, 8, 2, 2]);
    assert_eq!(columns[1][8..12], [0, 9, 2, 2]);
    let draft = encode(FecFormat::FlexFec03, (4, 1), &example());
    let rest = [1, 0, 0, 0, 1, 2, 3, 4, 0, 8, 0xf8, 0];
    assert_eq!(draft[0][..20], [&fields[..], &rest].concat());
}

#[test]
fn masks_of_all_lengths_reach_their_last_packet() {
    for (format, long) in
        [(FecFormat::FlexFec, 110), (FecFormat::FlexFec03, 109), (FecFormat::Ulp, 48)]
    {
        for packets in [1, 15, 16, 17, 46, 47, long].into_iter().filter(|n| *n <= long) {
            let sent: Vec<Vec<u8>> = (0..packets)
                .map(|n| packet(65_500_u16.wrapping_add(n), 7, &[n as u8; 9]))
                .collect();
            let repairs = encode(format, (packets, 1), &sent);
            let (last, others) = sent.split_last().unwrap();
            let mut sources: Vec<&[u8]> = others.iter().map(|packet| &packet[..]).collect();
            let before = packet(65_499, 7, &[]);
            sources.insert(0, &before);
            assert_eq!(
                decode(format, &sources, &[&repairs[0]], false),
                std::slice::from_ref(last),
                "{format:?}"
            );
        }
    }
}

#[test]
fn a_burst_as_long_as_the_columns_is_repaired() {
    for format in FORMATS {
        let sent: Vec<Vec<u8>> =
            (0..40).map(|n| packet(n, u64::from(n) << 24, &[n as u8; 50])).collect();
        let repairs = encode(format, (40, 8), &sent);
        assert_eq!(repairs.len(), 8);
        for begin in 1..32 {
            let is_lost = |n: &usize| (begin..begin + 8).contains(n);
            let sources: Vec<&[u8]> =
                (0..40).filter(|n| !is_lost(n)).map(|n| &sent[n][..]).collect();
            let repairs: Vec<&[u8]> = repairs.iter().map(|repair| &repair[..]).collect();
            assert_eq!(decode(format, &sources, &repairs, false).len(), 8, "{format:?} {begin}");
        }
    }
}

#[test]
fn a_block_that_ends_early_keeps_the_ratio() {
    for (packets, expected) in [(1, 1), (5, 1), (9, 1), (10, 2), (20, 4), (40, 8)] {
        for format in [FecFormat::FlexFec, FecFormat::FlexFec03, FecFormat::Ulp] {
            let sent: Vec<Vec<u8>> = (0..packets).map(|n| packet(n, 0, &[1])).collect();
            assert_eq!(encode(format, (40, 8), &sent).len(), expected, "{packets}");
        }
    }
    // The rest of the ratio is that of the next block.
    let mut encoder = Encoder::new(BlockSize::new(FecFormat::FlexFec, 40, 8).unwrap(), SOURCE);
    let counts = (0..10).map(|block| {
        (0..7).for_each(|n| encoder.push(&packet(7 * block + n, 0, &[1])));
        let mut count = 0;
        encoder.close(|_| count += 1);
        encoder.close(|_| unreachable!("the block is empty"));
        count
    });
    assert_eq!(counts.collect::<Vec<_>>(), [1, 1, 2, 1, 2, 1, 1, 2, 1, 2]);
}

#[test]
fn rows_and_columns_repair_what_neither_does_alone() {
    // Rows {0, 1, 2, 3} and {4, 5, 6, 7}, columns {0, 4} and {1, 5}; 0, 1 and 4 are lost.
    let sent: Vec<Vec<u8>> = (0..8).map(|n| packet(100 + n, 3 << 24, &[n as u8; 20])).collect();
    let rows = encode(FecFormat::FlexFec, (4, 1), &sent);
    let columns = encode(FecFormat::FlexFecFixed, (8, 4), &sent);
    let repairs: Vec<&[u8]> = rows.iter().chain(&columns[1..2]).map(|repair| &repair[..]).collect();
    let sources: Vec<&[u8]> = [2, 3, 5, 6, 7].map(|n: usize| &sent[n][..]).to_vec();
    assert_eq!(decode(FecFormat::FlexFec, &sources, &repairs[..1], false).len(), 0);
    let mut recovered = decode(FecFormat::FlexFec, &sources, &repairs, false);
    recovered.sort();
    assert_eq!(recovered, [sent[0].clone(), sent[1].clone(), sent[4].clone()]);
}

#[test]
fn a_retransmission_is_the_packet_itself() {
    let lost = packet(9, 0x8000_0103, &[7; 30]);
    for (format, first) in [(FecFormat::FlexFec, lost[0]), (FecFormat::FlexFec03, lost[0] | 0x40)] {
        let mut repair = lost.clone();
        repair[0] = first;
        let neighbour = packet(10, 0, &[]);
        assert_eq!(decode(format, &[&neighbour], &[&repair], false), std::slice::from_ref(&lost));
        let mut decoder = Decoder::new(format, Ssrc(1), DecoderLimits::default());
        assert_eq!(decoder.handle_repair(&[SOURCE], &repair), Err(FecError::OtherSource));
    }
}

#[test]
fn a_repair_packet_from_before_a_jump_recovers_nothing() {
    let sent: Vec<Vec<u8>> = (100..103).map(|n| packet(n, 0, &[n as u8; 20])).collect();
    let repairs = encode(FecFormat::FlexFec, (3, 1), &sent);
    let mut decoder = Decoder::new(FecFormat::FlexFec, SOURCE, DecoderLimits::default());
    decoder.handle_source(&sent[2]);
    decoder.handle_source(&packet(200, 0, &[]));
    // Two of its packets are missing.
    assert_eq!(decoder.handle_repair(&[SOURCE], &repairs[0]), Ok(()));
    // The distance between its first packet and this one is more than half the numbers.
    decoder.handle_source(&packet(200 + 32_700, 0, &[]));
    decoder.handle_source(&sent[0]);
    assert_eq!(decoder.poll_recovered(), None);
}

#[test]
fn a_retransmission_that_is_no_packet_is_not_handed_over() {
    // Fifteen contributing sources, or padding, for which there are no octets.
    for octet in [0x0f, 0x20] {
        let mut decoder = Decoder::new(FecFormat::FlexFec, SOURCE, DecoderLimits::default());
        decoder.handle_source(&packet(10, 0, &[]));
        let mut repair = packet(9, 0, &[0; 30]);
        repair[0] = 0x80 | octet;
        repair.truncate(if octet == 0x20 { 42 } else { 20 });
        assert_eq!(decoder.handle_repair(&[SOURCE], &repair), Ok(()));
        assert_eq!(decoder.poll_recovered(), None);
        assert_eq!((decoder.counts().recovered, decoder.counts().unusable), (0, 1));
    }
}

#[test]
fn reserved_and_foreign_repair_packets_are_refused() {
    let mut decoder = Decoder::new(FecFormat::FlexFec, SOURCE, DecoderLimits::default());
    decoder.handle_source(&packet(8, 0, &[]));
    let fixed = |columns, rows| [0x40, 0, 0, 0, 0, 0, 0, 0, 0, 8, columns, rows];
    let mut handle = |sources: &[Ssrc], payload: &[u8]| decoder.handle_repair(sources, payload);
    assert_eq!(handle(&[SOURCE], &fixed(0, 0)), Err(FecError::Reserved));
    assert_eq!(handle(&[SOURCE], &[0xc0; 30]), Err(FecError::Reserved));
    assert_eq!(handle(&[SOURCE], &fixed(255, 255)), Err(FecError::OutsideWindow));
    assert_eq!(handle(&[Ssrc(1)], &fixed(4, 0)), Err(FecError::OtherSource));
    assert_eq!(handle(&[], &fixed(4, 0)), Err(FecError::Sources(0)));
    assert_eq!(handle(&[SOURCE; 2], &fixed(4, 0)), Err(FecError::Sources(2)));
    assert_eq!(handle(&[SOURCE], &[0; 2049]), Err(FecError::TooLong(2049)));
    let truncated = FecError::Truncated { need: 12, have: 11 };
    assert_eq!(handle(&[SOURCE], &fixed(4, 0)[..11]), Err(truncated));
}

#[test]
fn a_packet_of_an_earlier_round_is_not_taken_for_a_protected_one() {
    let format = FecFormat::FlexFec;
    let limits = DecoderLimits { packets: 16, ..DecoderLimits::default() };
    let mut decoder = Decoder::new(format, SOURCE, limits);
    let old = packet(5, 0, &[1; 20]);
    decoder.handle_source(&old);
    // All packets of the slot of number 5 are lost until the numbers begin again.
    for n in (6..=65_535).chain(0..4).filter(|n| n % 16 != 5) {
        decoder.handle_source(&packet(n, 0, &[]));
    }
    let sent: Vec<Vec<u8>> = (4..6).map(|n| packet(n, 0, &[2; 20])).collect();
    let repairs = encode(format, (2, 1), &sent);
    decoder.handle_source(&sent[0]);
    assert_eq!(decoder.handle_repair(&[SOURCE], &repairs[0]), Ok(()));
    assert_eq!(decoder.poll_recovered(), Some(sent[1].clone()));
}

#[test]
fn protected_packets_wrap_around() {
    let protected = Protected::mask(SequenceNumber(65_535), 0b101 << 125);
    assert!(protected.packets().eq([SequenceNumber(65_535), SequenceNumber(1)]));
    assert!(!protected.contains(SequenceNumber(0)) && !protected.contains(SequenceNumber(127)));
    assert_eq!(protected.count(), 2);
}

/// A generator with a fixed seed (xorshift).
struct Random(u64);

impl Random {
    fn is(&mut self, probability: f64) -> bool {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 11) as f64 / (1_u64 << 53) as f64) < probability
    }
}

/// Sends 40 000 packets in blocks and returns the share of source packets that stay lost.
fn residual_loss(
    columns: u16,
    random: &mut Random,
    lose: &mut dyn FnMut(&mut Random) -> bool,
) -> f64 {
    const BLOCK: u16 = 40;
    let (format, blocks) = (FecFormat::FlexFec, 1000_u32);
    let mut decoder = Decoder::new(format, SOURCE, DecoderLimits::default());
    let size = BlockSize::new(format, BLOCK, columns).unwrap();
    let mut encoder = Encoder::new(size, SOURCE);
    let mut lost = 0_u32;
    for n in 0..u32::from(BLOCK) * blocks {
        let packet = packet(n as u16, 0, &[n as u8; 4]);
        encoder.push(&packet);
        if lose(random) && n > 0 {
            lost += 1;
        } else {
            decoder.handle_source(&packet);
        }
        if encoder.is_full() {
            encoder.close(|repair| {
                if !lose(random) {
                    decoder.handle_repair(&[SOURCE], repair).unwrap();
                }
            });
        }
        while decoder.poll_recovered().is_some() {}
    }
    f64::from(lost - decoder.counts().recovered as u32) / f64::from(u32::from(BLOCK) * blocks)
}

#[test]
fn independent_loss_is_reduced_as_the_theory_of_the_code_says() {
    for percent in [1, 2, 5, 10, 15, 20] {
        for columns in [2_u16, 4, 8, 20] {
            let loss = f64::from(percent) / 100.0;
            let mut random = Random(0x9e37_79b9_7f4a_7c15 + u64::from(columns));
            let residual = residual_loss(columns, &mut random, &mut |random| random.is(loss));
            // A lost packet stays lost if any of the others of its column, or the parity, is lost.
            let others = f64::from(40 / columns);
            let theory = loss * (1.0 - (1.0 - loss).powf(others));
            let deviation = (residual - theory).abs();
            assert!(deviation < 0.1 * theory + 0.001, "{percent} % {columns}: {residual} {theory}");
        }
    }
}

#[test]
fn bursts_shorter_than_the_columns_cost_less_than_independent_loss() {
    for (begin, columns) in [(0.002, 8), (0.01, 8), (0.02, 20)] {
        let residual = |columns| {
            let mut left = 0;
            let mut burst = |random: &mut Random| {
                left = if left > 0 {
                    left - 1
                } else if random.is(begin) {
                    5
                } else {
                    0
                };
                left > 0
            };
            residual_loss(columns, &mut Random(0x1234_5678_9abc_def1), &mut burst)
        };
        let (interleaved, single) = (residual(columns), residual(1));
        assert!(interleaved < 0.7 * single, "{begin} {columns}: {interleaved} {single}");
    }
}
