//! KLV metadata of SMPTE ST 336 (RFC 6597).

use std::sync::Arc;

use rushes_proto::PayloadType;
use rushes_proto::payload::generic::Generic;
use rushes_proto::rtp::Packet;

use super::file::klv::{self, LABEL, item_len};
use super::{Evidence, FileKind, MediaFormat, blocks, follows};

const ENCODING: &str = "smpte336m";

pub(super) static FORMAT: MediaFormat = MediaFormat {
    name: "klv",
    title: "KLV",
    encoding: Some(ENCODING),
    media: "application",
    payload_type: PayloadType::new(112).unwrap(),
    payload: |options| {
        let clock_rate = options.clock_rate.unwrap_or(FORMAT.clock_rate);
        Arc::new(Generic { name: ENCODING, clock_rate })
    },
    files: FileKind { reader: klv::reader, ..blocks::files(&["klv"]) },
    evidence,
    ..MediaFormat::UNKNOWN
};

/// Counts the units that begin like KLV. A unit is all items of one timestamp (RFC 6597 section
/// 4.2.1).
fn evidence(packets: &[Packet<'_>]) -> Evidence {
    let mut evidence = Evidence::default();
    let mut last: Option<&Packet<'_>> = None;
    for packet in packets {
        let before = last.replace(packet);
        if before.is_some_and(|before| before.timestamp() == packet.timestamp()) {
            continue;
        }
        let begins = begins_unit(packet);
        // After a lost packet, this may be the middle of a unit.
        if begins || before.is_some_and(|before| follows(packet, before)) {
            evidence.count(begins);
        }
    }
    evidence
}

/// Returns whether a payload consists of items, the last of which may continue in the next packet.
fn begins_unit(packet: &Packet<'_>) -> bool {
    let mut rest = packet.payload();
    if !rest.starts_with(&LABEL) {
        return false;
    }
    while !rest.is_empty() {
        let Ok(len) = item_len(rest) else { return false };
        let behind = usize::try_from(len).ok().and_then(|len| rest.get(len..));
        let Some(behind) = behind else { return !packet.marker() };
        rest = behind;
    }
    true
}

#[cfg(test)]
mod tests {
    use rushes_proto::rtp::Header;
    use rushes_proto::{ClockRate, RtpTimestamp, SequenceNumber, Ssrc};

    use super::super::FormatOptions;
    use super::*;

    /// Returns the evidence of packets, each given as sequence number, timestamp, marker bit and
    /// payload.
    fn seen(packets: &[(u16, u32, bool, &[u8])]) -> (u64, u64) {
        let datagram = |&(number, timestamp, marker, payload): &(u16, u32, bool, &[u8])| {
            let (number, timestamp) = (SequenceNumber(number), RtpTimestamp(timestamp));
            let header = Header::new(FORMAT.payload_type, number, timestamp, Ssrc(1));
            let header = Header { marker, ..header };
            let mut octets = vec![0; header.written_len()];
            header.write(&mut octets).unwrap();
            [&octets, payload].concat()
        };
        let datagrams: Vec<_> = packets.iter().map(datagram).collect();
        let packets: Vec<_> = datagrams.iter().map(|it| Packet::parse(it).unwrap()).collect();
        let Evidence { for_it, against } = evidence(&packets);
        (for_it, against)
    }

    const ITEM: &[u8] = b"\x06\x0e\x2b\x34twelve octet\x05value";
    const EMPTY: &[u8] = b"\x06\x0e\x2b\x34twelve octet\0";

    #[test]
    fn the_rate_is_a_parameter() {
        let rate = |clock_rate| {
            let options = FormatOptions { clock_rate, ..FormatOptions::default() };
            (FORMAT.payload)(&options).clock_rate()
        };
        assert_eq!(rate(None), ClockRate::VIDEO);
        assert_eq!(rate(Some(ClockRate::OPUS)), ClockRate::OPUS);
    }

    #[test]
    fn units_of_one_item_and_of_several_are_evidence() {
        let both = [ITEM, EMPTY, ITEM].concat();
        assert_eq!(seen(&[(1, 1, true, ITEM), (2, 2, true, &both)]), (2, 0));
    }

    #[test]
    fn a_unit_in_several_packets_counts_once() {
        let (begin, end) = ITEM.split_at(19);
        assert_eq!(seen(&[(1, 1, false, begin), (2, 1, true, end), (3, 2, true, ITEM)]), (2, 0));
    }

    #[test]
    fn a_unit_of_another_length_or_key_is_evidence_against() {
        let longer = [ITEM, &[0]].concat();
        for wrong in [&ITEM[1..], &ITEM[..19], &longer] {
            assert_eq!(seen(&[(1, 1, true, ITEM), (2, 2, true, wrong)]), (1, 1), "{wrong:02x?}");
        }
    }

    #[test]
    fn the_middle_of_a_unit_after_a_lost_packet_is_no_evidence() {
        assert_eq!(seen(&[(1, 1, true, ITEM), (3, 2, true, &ITEM[17..])]), (1, 0));
        assert_eq!(seen(&[(1, 1, true, &ITEM[17..])]), (0, 0));
    }
}
