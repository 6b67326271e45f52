//! FlexFEC-03 as pion/interceptor writes it (`vectors/fec`).
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;

use rushes_proto::Ssrc;
use rushes_proto::repair::fec::{BlockSize, Decoder, DecoderLimits, Encoder, FecFormat};

const SOURCE: Ssrc = Ssrc(0x0102_0304);

/// Packet `n` of those that pion was given.
fn source(n: u16) -> Vec<u8> {
    let mut packet = vec![0x80, if n.is_multiple_of(3) { 0xe0 } else { 0x60 }];
    packet.extend(65_530_u16.wrapping_add(n).to_be_bytes());
    packet.extend((3000 * u32::from(n)).to_be_bytes());
    packet.extend(SOURCE.0.to_be_bytes());
    packet.extend((0..5 + 7 * n).map(|k| (n * 31 + k) as u8));
    packet
}

/// Returns pion's payloads by the size of their block.
fn blocks() -> BTreeMap<(u16, u16), Vec<Vec<u8>>> {
    let text = include_str!("../../../vectors/fec/flexfec-03-pion.txt");
    let mut blocks: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split(' ').collect();
        let [packets, repairs, payload] = fields[..] else { panic!("{line}") };
        let octet = |at| u8::from_str_radix(&payload[at..at + 2], 16).unwrap();
        let payload = (0..payload.len()).step_by(2).map(octet).collect();
        let size = (packets.parse().unwrap(), repairs.parse().unwrap());
        blocks.entry(size).or_default().push(payload);
    }
    assert_eq!(blocks.len(), 4);
    blocks
}

#[test]
fn any_lost_packet_is_recovered_from_repair_packets_of_pion() {
    for ((packets, _), repairs) in blocks() {
        // The last packet is lost only if a packet after it has shown the position.
        for lost in 0..packets {
            let limits = DecoderLimits::default();
            let mut decoder = Decoder::new(FecFormat::FlexFec03, SOURCE, limits);
            (0..packets).filter(|n| *n != lost).for_each(|n| decoder.handle_source(&source(n)));
            for repair in &repairs {
                decoder.handle_repair(&[], repair).unwrap();
            }
            assert_eq!(decoder.poll_recovered(), Some(source(lost)), "{packets} {lost}");
            assert_eq!(decoder.poll_recovered(), None);
        }
    }
}

#[test]
fn our_repair_packets_are_those_of_pion_but_for_the_base() {
    for ((packets, columns), theirs) in blocks() {
        let size = BlockSize::new(FecFormat::FlexFec03, packets, columns).unwrap();
        let mut encoder = Encoder::new(size, SOURCE);
        (0..packets).for_each(|n| encoder.push(&source(n)));
        let mut ours = Vec::new();
        encoder.close(|repair| ours.push(repair.to_vec()));
        assert_eq!(ours.len(), theirs.len());
        assert_eq!(ours[0], theirs[0]);
        for (n, (ours, theirs)) in (0_u16..).zip(ours.iter().zip(&theirs)) {
            assert_eq!(ours[..16], theirs[..16]);
            // Section 6.2: the base is the lowest of the protected numbers. pion's is the block's.
            assert_eq!(ours[16..18], 65_530_u16.wrapping_add(n).to_be_bytes());
            assert_eq!(theirs[16..18], 65_530_u16.to_be_bytes());
            let parity_len = usize::from(5 + 7 * (packets - 1 - (packets - 1 - n) % columns));
            assert_eq!(ours[ours.len() - parity_len..], theirs[theirs.len() - parity_len..]);
        }
    }
}
