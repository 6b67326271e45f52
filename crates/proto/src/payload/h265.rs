//! H.265 in RTP: RFC 7798, single-stream transmission.
//!
//! Sent and received packets: single NAL unit packets, aggregation packets, fragmentation units.
//! PACI packets are unwrapped on receipt and never sent.
//!
//! With `sprop-max-don-diff` above 0, units carry decoding order numbers (RFC 7798 section 4.6) and
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

/// H.265 as in RFC 7798.
#[derive(Clone, Copy, Debug)]
pub struct H265 {
    /// The framing of NAL units in frames to send.
    pub input: Framing,
    /// Whether adjacent small NAL units share a packet.
    pub aggregate: bool,
    /// `sprop-max-don-diff`: above 0, DONL and DOND are sent and expected (RFC 7798 section 7.1).
    pub max_don_diff: u16,
    /// `sprop-depack-buf-nalus`: the maximum number of units sent before one that precedes them in
    /// decoding order (RFC 7798 section 7.1), so that units need not wait for more; 0 if unknown.
    pub depack_buf_nalus: u16,
    /// `sprop-depack-buf-bytes`: the maximum octets of units that a receiver has to hold back (RFC
    /// 7798 section 7.1); 0 if unknown.
    pub depack_buf_bytes: u32,
}

impl Default for H265 {
    /// Returns start codes, with aggregation and without decoding order numbers.
    fn default() -> Self {
        Self {
            input: Framing::AnnexB,
            aggregate: true,
            max_don_diff: 0,
            depack_buf_nalus: 0,
            depack_buf_bytes: 0,
        }
    }
}

impl H265 {
    fn numbering(self) -> Numbering {
        if self.max_don_diff > 0 { Numbering::Don } else { Numbering::None }
    }

    fn interleaving(self) -> Option<Interleaving> {
        let Self { max_don_diff, depack_buf_nalus, depack_buf_bytes, .. } = self;
        let interleaving = Interleaving { max_don_diff, depack_buf_nalus, depack_buf_bytes };
        (max_don_diff > 0).then_some(interleaving)
    }
}

impl PayloadFormat for H265 {
    fn name(&self) -> &'static str {
        "H265"
    }

    fn clock_rate(&self) -> ClockRate {
        ClockRate::VIDEO
    }

    fn packetiser(&self) -> Box<dyn Packetiser> {
        Box::new(NalPacketiser::<Hevc>::new(self.input, self.aggregate, self.numbering()))
    }

    fn depacketiser(&self) -> Box<dyn Depacketiser> {
        Box::new(NalDepacketiser::<Hevc>::new(self.interleaving()))
    }

    fn has_nal_units(&self) -> bool {
        true
    }

    fn is_interleaved(&self) -> bool {
        self.max_don_diff > 0
    }
}

/// Aggregation packet (RFC 7798 section 4.4.2).
const AGGREGATION_PACKET: u8 = 48;

/// Fragmentation unit (RFC 7798 section 4.4.3).
const FRAGMENTATION_UNIT: u8 = 49;

/// PACI packet (RFC 7798 section 4.4.4).
const CONTENT_INFORMATION: u8 = 50;

/// A video parameter set.
const VIDEO_PARAMETER_SET: u8 = 32;

/// Access unit delimiter (ITU-T H.265 table 7-1).
const ACCESS_UNIT_DELIMITER: u8 = 35;

/// The header octets of HEVC: F, Type (6 bits), `LayerId` (6 bits), TID (3 bits)
/// (RFC 7798 section 1.1.4).
#[derive(Debug)]
struct Hevc;

impl Layout for Hevc {
    const CODEC: NalCodec = NalCodec::H265;
    const HEADER_LEN: usize = 2;
    const NAL_TYPES: RangeInclusive<u8> = 0..=47;
    const DOND_LEN: usize = 1;
    const HAS_EMPTY_FRAGMENTS: bool = false;
    const HAS_PICTURE_END: bool = false;

    #[inline]
    fn header(unit: &[u8]) -> NalHeader {
        [unit[0], unit[1]]
    }

    #[inline]
    fn nal_type(header: NalHeader) -> u8 {
        header[0] >> 1 & 0x3f
    }

    #[inline]
    fn kind(header: NalHeader) -> PayloadKind {
        match Self::nal_type(header) {
            0..=47 => PayloadKind::Single,
            AGGREGATION_PACKET => PayloadKind::Aggregate,
            FRAGMENTATION_UNIT => PayloadKind::Fragment,
            CONTENT_INFORMATION => PayloadKind::ContentInformation,
            _ => PayloadKind::Unknown,
        }
    }

    /// F is set if any unit's is; `LayerId` and TID are the lowest of all units (RFC 7798 section
    /// 4.4.2).
    fn aggregate_header<'u>(units: impl Iterator<Item = &'u [u8]>) -> NalHeader {
        let (mut forbidden, mut layer, mut temporal) = (0, 0x3f, 7);
        for unit in units {
            forbidden |= unit[0] & 0x80;
            layer = layer.min((unit[0] & 1) << 5 | unit[1] >> 3);
            temporal = temporal.min(unit[1] & 7);
        }
        [forbidden | AGGREGATION_PACKET << 1 | layer >> 5, layer << 3 | temporal]
    }

    #[inline]
    fn fragment_header(header: NalHeader, position: Position) -> [u8; 3] {
        let fu_header = position.bits() | Self::nal_type(header);
        [header[0] & 0x81 | FRAGMENTATION_UNIT << 1, header[1], fu_header]
    }

    #[inline]
    fn fragmented_header(payload_header: NalHeader, fu_header: u8) -> (NalHeader, u8) {
        let nal_type = fu_header & 0x3f;
        ([payload_header[0] & 0x81 | nal_type << 1, payload_header[1]], nal_type)
    }

    #[inline]
    fn is_delimiter(header: NalHeader) -> bool {
        Self::nal_type(header) == ACCESS_UNIT_DELIMITER
    }

    fn begins_stream(header: NalHeader) -> bool {
        matches!(Self::nal_type(header), ACCESS_UNIT_DELIMITER | VIDEO_PARAMETER_SET)
    }

    fn is_slice(unit: &[u8]) -> bool {
        Self::nal_type([unit[0], 0]) < 32
    }

    /// `first_slice_segment_in_pic_flag` is the first bit of a slice segment (ITU-T H.265 section
    /// 7.3.6.1).
    #[inline]
    fn continues_picture(header: NalHeader, body: &[u8]) -> bool {
        Self::nal_type(header) < 32 && body.first().is_some_and(|octet| octet >> 7 == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::error::{FrameError, PayloadError};
    use super::super::rig::{annex_b, receive_all, receive_one, send, send_units};
    use super::*;

    const NUMBERED: H265 = H265 {
        input: Framing::AnnexB,
        aggregate: true,
        max_don_diff: 1,
        depack_buf_nalus: 0,
        depack_buf_bytes: 0,
    };

    fn sent(format: H265, units: &[&[u8]], limit: usize) -> Vec<Vec<u8>> {
        let sent = send_units(&format, units, limit);
        sent.into_iter().map(|payload| payload.octets).collect()
    }

    #[test]
    fn small_units_share_an_aggregation_packet() {
        // VPS, SPS and a slice of TID 2 (RFC 7798 figure 7).
        let units = [&[0x40, 1, 7][..], &[0x42, 1, 8], &[0x02, 2, 9, 9]];
        let expected = b"\x60\x01\0\x03\x40\x01\x07\0\x03\x42\x01\x08\0\x04\x02\x02\x09\x09";
        assert_eq!(sent(H265::default(), &units, 100), [expected]);
    }

    #[test]
    fn an_aggregate_has_the_lowest_layer_and_tid_and_any_f() {
        // LayerId 33 TID 3, LayerId 2 TID 5 with F.
        let units = [&[0x03, 0x0b, 1][..], &[0x82, 2 << 3 | 5, 1]];
        assert_eq!(sent(H265::default(), &units, 100)[0][..2], [0xe0, 2 << 3 | 3]);
        // LayerId 33 and 40: the sixth bit is in the first octet.
        let units = [&[0x03, 0x0b, 1][..], &[0x03, 0x47, 1]];
        assert_eq!(sent(H265::default(), &units, 100)[0][..2], [0x61, 1 << 3 | 3]);
    }

    #[test]
    fn a_large_unit_is_cut_into_fragmentation_units() {
        // Type 19, LayerId 32, TID 1.
        let unit: Vec<u8> = [19 << 1 | 1, 1].into_iter().chain(1..=12).collect();
        let expected = [
            &[49 << 1 | 1, 1, 0x93, 1, 2, 3, 4, 5][..],
            &[49 << 1 | 1, 1, 19, 6, 7, 8, 9, 10],
            &[49 << 1 | 1, 1, 0x53, 11, 12],
        ];
        assert_eq!(sent(H265::default(), &[&unit], 8), expected);
        assert_eq!(receive_all(&H265::default(), &expected), Ok(vec![unit]));
    }

    #[test]
    fn units_are_numbered_over_frames() {
        let mut packetiser = NUMBERED.packetiser();
        let mut send = |units: &[&[u8]], limit| {
            let units: Vec<_> = units.iter().map(|unit| unit.to_vec()).collect();
            let sent = send(packetiser.as_mut(), &annex_b(&units), limit);
            sent.into_iter().map(|payload| payload.octets).collect::<Vec<_>>()
        };
        assert_eq!(send(&[&[0x26, 1, 7]], 100), [b"\x26\x01\0\0\x07"]);
        // DONL in the first aggregation unit, DOND in the second (RFC 7798 figure 8).
        assert_eq!(
            send(&[&[0x40, 1, 7], &[0x42, 1, 8]], 100),
            [b"\x60\x01\0\x01\0\x03\x40\x01\x07\0\0\x03\x42\x01\x08"]
        );
        // Only the first fragment has a DONL field (RFC 7798 figure 9).
        let expected = [&b"\x62\x01\x93\0\x03\x01\x02\x03"[..], b"\x62\x01\x53\x04\x05\x06\x07"];
        assert_eq!(send(&[&[0x26, 1, 1, 2, 3, 4, 5, 6, 7]], 8), expected);
        assert_eq!(send(&[&[0x26, 1, 7]], 100), [b"\x26\x01\0\x04\x07"]);
    }

    #[test]
    fn numbers_are_taken_off_again() {
        for (payload, units) in [
            (&b"\x26\x01\xab\xcd\x07"[..], vec![&[0x26, 1, 7][..]]),
            (b"\x4a\x01\0\x09", vec![&[0x4a, 1]]),
            (
                b"\x60\x01\xff\xff\0\x03\x40\x01\x07\x05\0\x02\x42\x01",
                vec![&[0x40, 1, 7], &[0x42, 1]],
            ),
        ] {
            assert_eq!(
                receive_one(&NUMBERED, payload),
                (Ok(()), units.iter().map(|unit| unit.to_vec()).collect())
            );
        }
        for (payload, field) in [
            (&b"\x26\x01\0"[..], "DONL"),
            (b"\x60\x01\0", "DONL"),
            (b"\x62\x01\x93\0", "DONL"),
            (b"\x62\x01\x93\0\0", "FU payload"),
        ] {
            let (outcome, _) = receive_one(&NUMBERED, payload);
            let Err(PayloadError::Truncated { field: found, need, have }) = outcome else {
                panic!("{payload:02x?}: {outcome:?}");
            };
            assert_eq!((found, have), (field, payload.len()));
            assert!(need > have);
        }
    }

    #[test]
    fn paci_packets_are_unwrapped() {
        // A and cType are those of the content, PHSsize is 3, F0 is set (RFC 7798 figure 11).
        let paci =
            |a: u8, content_type: u8| [50 << 1, 1, a << 7 | content_type << 1, 3 << 4 | 8, 9, 9, 9];
        let format = H265::default();
        let single = [&paci(0, 1)[..], &[7, 8]].concat();
        assert_eq!(receive_one(&format, &single), (Ok(()), vec![vec![1 << 1, 1, 7, 8]]));
        let forbidden = [&paci(1, 1)[..], &[7, 8]].concat();
        assert_eq!(receive_one(&format, &forbidden).1, [[0x80 | 1 << 1, 1, 7, 8]]);
        let aggregate = [&paci(0, 48)[..], &[0, 2, 0x40, 1, 0, 2, 0x42, 1]].concat();
        assert_eq!(receive_one(&format, &aggregate).1, [[0x40, 1], [0x42, 1]]);
        let start = [&paci(0, 49)[..], &[0x93, 7]].concat();
        let end = [&paci(0, 49)[..], &[0x53, 8]].concat();
        assert_eq!(receive_all(&format, &[&start, &end]), Ok(vec![vec![19 << 1, 1, 7, 8]]));
    }

    #[test]
    fn a_paci_packet_uses_the_layer_of_its_payload_header() {
        let payload = [50 << 1 | 1, 0xfb, 19 << 1, 0, 7];
        assert_eq!(receive_one(&H265::default(), &payload).1, [[19 << 1 | 1, 0xfb, 7]]);
    }

    #[test]
    fn paci_packets_that_break_the_rules_are_refused() {
        let format = H265::default();
        // The header announces 31 octets of PHES, but 30 are present.
        let long = [&[50 << 1, 1, 1 << 1 | 1, 0xf0][..], &[0; 30]].concat();
        assert!(matches!(receive_one(&format, &long).0, Err(PayloadError::Truncated { .. })));
        let cut = receive_one(&format, &[50 << 1, 1, 1 << 1]).0;
        assert!(matches!(cut, Err(PayloadError::Truncated { .. })));
        let nested = receive_one(&format, &[50 << 1, 1, 50 << 1, 0, 1 << 1, 0, 7]).0;
        assert_eq!(nested, Err(PayloadError::Nested { packet_type: 50 }));
        let unknown = receive_one(&format, &[50 << 1, 1, 51 << 1, 0, 7]).0;
        assert_eq!(unknown, Err(PayloadError::UnknownType { packet_type: 51 }));
        let inside = receive_one(&format, &[0x60, 1, 0, 4, 50 << 1, 1, 2, 0]).0;
        assert_eq!(inside, Err(PayloadError::Nested { packet_type: 50 }));
    }

    #[test]
    fn forged_packets_are_refused() {
        let start: &[u8] = &[0x62, 1, 0x93, 1];
        let header = |header| PayloadError::FragmentHeader { header };
        for (payloads, error) in [
            (
                vec![&[0x26][..]],
                PayloadError::Truncated { field: "payload header", need: 2, have: 1 },
            ),
            (vec![&[0x62, 1, 0xd3, 1]], header(0xd3)),
            (vec![&[0x62, 1, 0xb1, 1]], header(0xb1)),
            (vec![&[0x62, 1, 0xb0, 1]], header(0xb0)),
            (
                vec![&[0x62, 1, 0x93]],
                PayloadError::Truncated { field: "FU payload", need: 4, have: 3 },
            ),
            (vec![&[0x62, 1, 0x53, 1]], PayloadError::FragmentWithoutStart),
            (vec![start, &[0x62, 9, 0x53, 1]], PayloadError::FragmentMismatch),
            (vec![start, &[0x62, 2, 0x53, 1]], PayloadError::FragmentMismatch),
            (vec![start, &[0x62, 1, 0x54, 1]], PayloadError::FragmentMismatch),
            (
                vec![&[0x60, 1, 0, 1, 0x40]],
                PayloadError::AggregationUnit { offset: 2, claimed: 1, remaining: 1 },
            ),
            (vec![&[0x60, 1, 0, 2, 0x60, 1]], PayloadError::Nested { packet_type: 48 }),
            (vec![&[0x60, 1, 0, 2, 0x62, 1]], PayloadError::Nested { packet_type: 49 }),
            (vec![&[63 << 1, 1, 1]], PayloadError::UnknownType { packet_type: 63 }),
        ] {
            assert_eq!(receive_all(&H265::default(), &payloads), Err(error), "{payloads:02x?}");
        }
    }

    #[test]
    fn units_that_cannot_travel_are_left_out_of_their_access_unit() {
        // The Dolby Vision metadata after each picture has type 62.
        for nal_type in 48..64 {
            let other: &[u8] = &[nal_type << 1, 1, 9];
            let units = [other, &[0x40, 1, 7], other, &[0x26, 1, 0x88], &[0x26], other];
            let expected = b"\x60\x01\0\x03\x40\x01\x07\0\x03\x26\x01\x88";
            let sent = send_units(&H265::default(), &units, 100);
            assert_eq!((&sent[0].octets[..], sent[0].marker, sent.len()), (&expected[..], true, 1));
        }
    }

    #[test]
    fn an_access_unit_of_units_that_cannot_travel_is_refused() {
        for nal_type in 48..64 {
            let frame = [0, 0, 1, nal_type << 1, 1, 1];
            let outcome = H265::default().packetiser().start(&frame, 100);
            assert_eq!(outcome, Err(FrameError::NalType { offset: 3, nal_type }));
        }
        let outcome = H265::default().packetiser().start(&[0, 0, 1, 0x26], 100);
        assert_eq!(outcome, Err(FrameError::NalHeader { offset: 3, len: 1 }));
    }
}
