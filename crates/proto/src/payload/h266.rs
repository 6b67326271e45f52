//! H.266 in RTP: RFC 9328, single-stream transmission.
//!
//! Packets: single NAL unit packets, aggregation packets, fragmentation units with the P bit.
//!
//! With `sprop-max-don-diff` above 0, units carry decoding order numbers (RFC 9328 section 4.4) and
//! may arrive interleaved. They are delivered in decoding order (section 6), each as soon as no
//! unit that precedes it can follow. This delays units as far as the sender may interleave them,
//! and an access unit until the first unit of the next one. The buffer holds at most 8 192 units
//! and as many octets as the largest frame, or as `sprop-depack-buf-bytes` if that is lower; if
//! there are more, the first units are dropped. Units are sent in decoding order.

use std::ops::RangeInclusive;

use super::builder::Framing;
use super::decoding_order::Interleaving;
use super::join::NalDepacketiser;
use super::layout::{Layout, NalHeader, Numbering, PayloadKind, Position};
use super::nal::NalCodec;
use super::split::NalPacketiser;
use super::{Depacketiser, Packetiser, PayloadFormat};
use crate::time::ClockRate;

/// H.266 as in RFC 9328.
#[derive(Clone, Copy, Debug)]
pub struct H266 {
    /// The framing of NAL units in frames to send.
    pub input: Framing,
    /// Whether adjacent small NAL units share a packet.
    pub aggregate: bool,
    /// `sprop-max-don-diff`: if above 0, DONL fields are sent and expected (RFC 9328 section 7.2).
    pub max_don_diff: u16,
    /// `sprop-depack-buf-bytes`: the maximum octets of units that a receiver has to hold back (RFC
    /// 9328 section 7.2); 0 if unknown.
    pub depack_buf_bytes: u32,
}

impl Default for H266 {
    /// Returns start codes, with aggregation and without decoding order numbers.
    fn default() -> Self {
        Self { input: Framing::AnnexB, aggregate: true, max_don_diff: 0, depack_buf_bytes: 0 }
    }
}

impl H266 {
    fn numbering(self) -> Numbering {
        if self.max_don_diff > 0 { Numbering::Don } else { Numbering::None }
    }

    fn interleaving(self) -> Option<Interleaving> {
        let Self { max_don_diff, depack_buf_bytes, .. } = self;
        let interleaving = Interleaving { max_don_diff, depack_buf_nalus: 0, depack_buf_bytes };
        (max_don_diff > 0).then_some(interleaving)
    }
}

impl PayloadFormat for H266 {
    fn name(&self) -> &'static str {
        "H266"
    }

    fn clock_rate(&self) -> ClockRate {
        ClockRate::VIDEO
    }

    fn packetiser(&self) -> Box<dyn Packetiser> {
        Box::new(NalPacketiser::<Vvc>::new(self.input, self.aggregate, self.numbering()))
    }

    fn depacketiser(&self) -> Box<dyn Depacketiser> {
        Box::new(NalDepacketiser::<Vvc>::new(self.interleaving()))
    }

    fn has_nal_units(&self) -> bool {
        true
    }

    fn is_interleaved(&self) -> bool {
        self.max_don_diff > 0
    }
}

/// Aggregation packet (RFC 9328 section 4.3.2).
const AGGREGATION_PACKET: u8 = 28;

/// Fragmentation unit (RFC 9328 section 4.3.3).
const FRAGMENTATION_UNIT: u8 = 29;

/// Picture header (ITU-T H.266 table 5).
const PICTURE_HEADER: u8 = 19;

/// Access unit delimiter (ITU-T H.266 table 5).
const ACCESS_UNIT_DELIMITER: u8 = 20;

/// The header octets of VVC: F, Z, `LayerId` (6 bits), Type (5 bits), TID (3 bits)
/// (RFC 9328 section 1.1.4).
#[derive(Debug)]
struct Vvc;

impl Layout for Vvc {
    const CODEC: NalCodec = NalCodec::H266;
    const HEADER_LEN: usize = 2;
    const NAL_TYPES: RangeInclusive<u8> = 0..=27;
    /// H.266 does not have this field of H.265 (RFC 9328 section 4.3.2, figure 6).
    const DOND_LEN: usize = 0;
    const HAS_EMPTY_FRAGMENTS: bool = false;
    const HAS_PICTURE_END: bool = true;

    #[inline]
    fn header(unit: &[u8]) -> NalHeader {
        [unit[0], unit[1]]
    }

    #[inline]
    fn nal_type(header: NalHeader) -> u8 {
        header[1] >> 3
    }

    #[inline]
    fn kind(header: NalHeader) -> PayloadKind {
        match Self::nal_type(header) {
            0..=27 => PayloadKind::Single,
            AGGREGATION_PACKET => PayloadKind::Aggregate,
            FRAGMENTATION_UNIT => PayloadKind::Fragment,
            _ => PayloadKind::Unknown,
        }
    }

    /// F is set if any unit's is; `LayerId` and TID are the lowest of all units (RFC 9328 section
    /// 4.3.2).
    fn aggregate_header<'u>(units: impl Iterator<Item = &'u [u8]>) -> NalHeader {
        let (mut forbidden, mut layer, mut temporal) = (0, 0x3f, 7);
        for unit in units {
            forbidden |= unit[0] & 0x80;
            layer = layer.min(unit[0] & 0x3f);
            temporal = temporal.min(unit[1] & 7);
        }
        [forbidden | layer, AGGREGATION_PACKET << 3 | temporal]
    }

    #[inline]
    fn fragment_header(header: NalHeader, position: Position) -> [u8; 3] {
        let picture_end = if position == Position::PictureEnd { 0x20 } else { 0 };
        let fu_header = position.bits() | picture_end | Self::nal_type(header);
        [header[0], header[1] & 7 | FRAGMENTATION_UNIT << 3, fu_header]
    }

    #[inline]
    fn fragmented_header(payload_header: NalHeader, fu_header: u8) -> (NalHeader, u8) {
        let nal_type = fu_header & 0x1f;
        ([payload_header[0], payload_header[1] & 7 | nal_type << 3], nal_type)
    }

    #[inline]
    fn is_delimiter(header: NalHeader) -> bool {
        Self::nal_type(header) == ACCESS_UNIT_DELIMITER
    }

    /// Operating point information, decoding capability information and parameter sets precede all
    /// other units (ITU-T H.266 section 7.4.2.4.3).
    fn begins_stream(header: NalHeader) -> bool {
        matches!(Self::nal_type(header), 12..=15 | ACCESS_UNIT_DELIMITER)
    }

    fn is_slice(unit: &[u8]) -> bool {
        unit[1] >> 3 < 12
    }

    /// `sh_picture_header_in_slice_header_flag` is the first bit of a slice; if it is 0, a picture
    /// header precedes the slice (ITU-T H.266 section 7.3.7).
    #[inline]
    fn continues_picture(header: NalHeader, body: &[u8]) -> bool {
        Self::nal_type(header) < 12 && body.first().is_some_and(|octet| octet >> 7 == 0)
    }

    fn starts_picture_after(unit: &[u8], next: &[u8]) -> Option<bool> {
        let [_, second, ..] = next else { return None };
        if second >> 3 == PICTURE_HEADER {
            return Some(true);
        }
        Self::is_slice(next).then(|| {
            let has_picture_header = next.get(2).is_some_and(|octet| octet >> 7 == 1);
            has_picture_header || next[0] & 0x3f != unit[0] & 0x3f
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::error::{FrameError, PayloadError};
    use super::super::rig::{annex_b, receive_all, receive_one, send, send_units};
    use super::*;

    const NUMBERED: H266 =
        H266 { input: Framing::AnnexB, aggregate: true, max_don_diff: 1, depack_buf_bytes: 0 };

    fn sent(units: &[&[u8]], limit: usize) -> Vec<Vec<u8>> {
        let sent = send_units(&H266::default(), units, limit);
        sent.into_iter().map(|payload| payload.octets).collect()
    }

    #[test]
    fn small_units_share_an_aggregation_packet_of_the_lowest_layer_and_tid() {
        // SPS and PPS of LayerId 0 TID 1 (RFC 9328 figure 7).
        let units = [&[0, 15 << 3 | 1, 7][..], &[0, 16 << 3 | 1, 8, 9]];
        assert_eq!(sent(&units, 100), [b"\0\xe1\0\x03\0\x79\x07\0\x04\0\x81\x08\x09"]);
        let units = [&[0x21, 3, 7][..], &[0x80 | 5, 15 << 3 | 6, 8]];
        assert_eq!(sent(&units, 100)[0][..2], [0x80 | 5, 28 << 3 | 3]);
    }

    #[test]
    fn a_large_unit_is_cut_into_fragmentation_units() {
        // Type 7, LayerId 33, TID 1; P is set: its picture has no other (RFC 9328 figure 10).
        let unit: Vec<u8> = [33, 7 << 3 | 1].into_iter().chain(0x81..=0x8c).collect();
        let expected = [
            &[33, 0xe9, 0x80 | 7, 0x81, 0x82, 0x83, 0x84, 0x85][..],
            &[33, 0xe9, 7, 0x86, 0x87, 0x88, 0x89, 0x8a],
            &[33, 0xe9, 0x60 | 7, 0x8b, 0x8c],
        ];
        assert_eq!(sent(&[&unit], 8), expected);
        assert_eq!(receive_all(&H266::default(), &expected), Ok(vec![unit]));
    }

    /// Returns the P bits of the last fragments of units.
    fn picture_ends(units: &[&[u8]]) -> Vec<bool> {
        let ends = sent(units, 8)
            .into_iter()
            .filter(|payload| payload[1] >> 3 == FRAGMENTATION_UNIT && payload[2] & 0x40 != 0);
        ends.map(|payload| payload[2] & 0x20 != 0).collect()
    }

    #[test]
    fn the_p_bit_is_on_the_last_slice_of_each_picture_only() {
        let header: &[u8] = &[0, 19 << 3 | 1, 1];
        let slice: &[u8] = &[0, 1, 1, 2, 3, 4, 5, 6, 7];
        let whole_picture: &[u8] = &[0, 1, 0x81, 2, 3, 4, 5, 6, 7];
        let upper_layer: &[u8] = &[1, 1, 0x81, 2, 3, 4, 5, 6, 7];
        let message: &[u8] = &[0, 24 << 3 | 1, 1, 2, 3, 4, 5, 6, 7];
        assert_eq!(
            picture_ends(&[header, slice, slice, slice, message]),
            [false, false, true, false]
        );
        assert_eq!(picture_ends(&[message, whole_picture]), [false, true]);
        assert_eq!(picture_ends(&[whole_picture, upper_layer]), [true, true]);
        assert_eq!(picture_ends(&[whole_picture, message, upper_layer]), [true, false, true]);
        assert_eq!(picture_ends(&[header, slice, header, slice, slice]), [true, false, true]);
    }

    #[test]
    fn the_p_bit_means_nothing_to_the_joined_unit() {
        let payloads =
            [&[0, 0xe9, 0xa0 | 7, 1][..], &[0, 0xe9, 0x20 | 7, 2], &[0, 0xe9, 0x60 | 7, 3]];
        assert_eq!(
            receive_all(&H266::default(), &payloads),
            Ok(vec![vec![0, 7 << 3 | 1, 1, 2, 3]])
        );
    }

    #[test]
    fn only_the_first_unit_of_an_aggregate_is_numbered() {
        let mut packetiser = NUMBERED.packetiser();
        let mut send = |units: &[&[u8]], limit| {
            let units: Vec<_> = units.iter().map(|unit| unit.to_vec()).collect();
            let sent = send(packetiser.as_mut(), &annex_b(&units), limit);
            sent.into_iter().map(|payload| payload.octets).collect::<Vec<_>>()
        };
        assert_eq!(send(&[&[0, 9, 7]], 100), [b"\0\x09\0\0\x07"]);
        // RFC 9328 figure 8: there is no DOND.
        assert_eq!(
            send(&[&[0, 0x79, 7], &[0, 0x81, 8]], 100),
            [b"\0\xe1\0\x01\0\x03\0\x79\x07\0\x03\0\x81\x08"]
        );
        let expected = [&b"\0\xe9\x81\0\x03\x81\x02\x03"[..], b"\0\xe9\x61\x04\x05\x06\x07"];
        assert_eq!(send(&[&[0, 9, 0x81, 2, 3, 4, 5, 6, 7]], 8), expected);
        assert_eq!(send(&[&[0, 9, 7]], 100), [b"\0\x09\0\x04\x07"]);
    }

    #[test]
    fn numbers_are_taken_off_again() {
        let payload = b"\0\xe1\xff\xff\0\x03\0\x79\x07\0\x02\0\x81";
        let units = vec![vec![0, 0x79, 7], vec![0, 0x81]];
        assert_eq!(receive_one(&NUMBERED, payload), (Ok(()), units));
        assert_eq!(receive_one(&NUMBERED, b"\0\x09\xab\xcd\x07").1, [[0, 9, 7]]);
    }

    #[test]
    fn forged_packets_are_refused() {
        let start: &[u8] = &[0, 0xe9, 0x87, 1];
        let header = |header| PayloadError::FragmentHeader { header };
        for (payloads, error) in [
            (vec![&[0][..]], PayloadError::Truncated { field: "payload header", need: 2, have: 1 }),
            (vec![&[0, 0xe9, 0xc7, 1]], header(0xc7)),
            (vec![&[0, 0xe9, 0x9c, 1]], header(0x9c)),
            (vec![&[0, 0xe9, 0x9d, 1]], header(0x9d)),
            (
                vec![&[0, 0xe9, 0x87]],
                PayloadError::Truncated { field: "FU payload", need: 4, have: 3 },
            ),
            (vec![&[0, 0xe9, 0x47, 1]], PayloadError::FragmentWithoutStart),
            (vec![start, &[1, 0xe9, 0x47, 1]], PayloadError::FragmentMismatch),
            (vec![start, &[0, 0xea, 0x47, 1]], PayloadError::FragmentMismatch),
            (vec![start, &[0, 0xe9, 0x48, 1]], PayloadError::FragmentMismatch),
            (vec![&[0, 0xe1, 0, 2, 0, 0xe1]], PayloadError::Nested { packet_type: 28 }),
            (vec![&[0, 0xe1, 0, 2, 0, 0xe9]], PayloadError::Nested { packet_type: 29 }),
            (vec![&[0, 31 << 3 | 1, 1]], PayloadError::UnknownType { packet_type: 31 }),
        ] {
            assert_eq!(receive_all(&H266::default(), &payloads), Err(error), "{payloads:02x?}");
        }
    }

    #[test]
    fn unspecified_types_are_not_sent() {
        for nal_type in 28..32 {
            let frame = [0, 0, 1, 0, nal_type << 3 | 1, 1];
            let outcome = H266::default().packetiser().start(&frame, 100);
            assert_eq!(outcome, Err(FrameError::NalType { offset: 3, nal_type }));
        }
    }
}
