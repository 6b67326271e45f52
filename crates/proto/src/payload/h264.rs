//! H.264 in RTP: RFC 6184, packetization modes 1 (non-interleaved) and 0 (single NAL unit).
//!
//! Sent and received packets: single NAL unit packets, STAP-A, FU-A. STAP-B, MTAP16, MTAP24 and
//! FU-B belong to the interleaved mode; they are recognised and counted, but not delivered.

use std::ops::RangeInclusive;

use super::builder::Framing;
use super::join::NalDepacketiser;
use super::layout::{Layout, NalHeader, Numbering, PayloadKind, Position};
use super::nal::NalCodec;
use super::split::NalPacketiser;
use super::{Depacketiser, Packetiser, PayloadFormat};
use crate::time::ClockRate;

/// H.264 as in RFC 6184, packetization mode 1, or 0 with [`single_units`](Self::single_units).
#[derive(Clone, Copy, Debug)]
pub struct H264 {
    /// The framing of NAL units in frames to send.
    pub input: Framing,
    /// Whether adjacent small NAL units share a packet (STAP-A).
    pub aggregate: bool,
    /// Whether each NAL unit travels whole and alone (packetization mode 0, RFC 6184 section 6.2). Frames with units
    /// that do not fit a packet are refused ([`FrameError::UnitTooLong`](super::FrameError::UnitTooLong)), and nothing is
    /// aggregated.
    pub single_units: bool,
}

impl Default for H264 {
    /// Returns start codes, with aggregation and fragments.
    fn default() -> Self {
        Self { input: Framing::AnnexB, aggregate: true, single_units: false }
    }
}

impl PayloadFormat for H264 {
    fn name(&self) -> &'static str {
        "H264"
    }

    fn clock_rate(&self) -> ClockRate {
        ClockRate::VIDEO
    }

    fn packetiser(&self) -> Box<dyn Packetiser> {
        let packetiser = NalPacketiser::<Avc>::new(self.input, self.aggregate, Numbering::None);
        Box::new(if self.single_units { packetiser.with_single_units() } else { packetiser })
    }

    fn depacketiser(&self) -> Box<dyn Depacketiser> {
        Box::new(NalDepacketiser::<Avc>::new(None))
    }

    fn has_nal_units(&self) -> bool {
        true
    }
}

/// STAP-A (RFC 6184 section 5.7.1).
const STAP_A: u8 = 24;

/// FU-A (RFC 6184 section 5.8).
const FU_A: u8 = 28;

/// A sequence parameter set.
const SEQUENCE_PARAMETER_SET: u8 = 7;

/// Access unit delimiter (ITU-T H.264 table 7-1).
const ACCESS_UNIT_DELIMITER: u8 = 9;

/// The header octet of AVC: F, NRI (2 bits), Type (5 bits) (RFC 6184 section 1.3).
#[derive(Debug)]
struct Avc;

impl Layout for Avc {
    const CODEC: NalCodec = NalCodec::H264;
    const HEADER_LEN: usize = 1;
    const NAL_TYPES: RangeInclusive<u8> = 1..=23;
    const DOND_LEN: usize = 0;
    /// Some senders cut a unit before they know where it ends (RFC 6184 section 5.8).
    const HAS_EMPTY_FRAGMENTS: bool = true;
    const HAS_PICTURE_END: bool = false;

    #[inline]
    fn header(unit: &[u8]) -> NalHeader {
        [unit[0], 0]
    }

    #[inline]
    fn nal_type(header: NalHeader) -> u8 {
        header[0] & 0x1f
    }

    #[inline]
    fn kind(header: NalHeader) -> PayloadKind {
        match Self::nal_type(header) {
            1..=23 => PayloadKind::Single,
            STAP_A => PayloadKind::Aggregate,
            FU_A => PayloadKind::Fragment,
            25..=27 | 29 => PayloadKind::OutsideMode,
            _ => PayloadKind::Unknown,
        }
    }

    /// F is set if it is set in any unit; NRI is the highest of all units (RFC 6184 section 5.7).
    fn aggregate_header<'u>(units: impl Iterator<Item = &'u [u8]>) -> NalHeader {
        let (mut forbidden, mut importance) = (0, 0);
        for unit in units {
            forbidden |= unit[0] & 0x80;
            importance = importance.max(unit[0] & 0x60);
        }
        [forbidden | importance | STAP_A, 0]
    }

    #[inline]
    fn fragment_header(header: NalHeader, position: Position) -> [u8; 3] {
        [header[0] & 0xe0 | FU_A, position.bits() | header[0] & 0x1f, 0]
    }

    #[inline]
    fn fragmented_header(payload_header: NalHeader, fu_header: u8) -> (NalHeader, u8) {
        let nal_type = fu_header & 0x1f;
        ([payload_header[0] & 0xe0 | nal_type, 0], nal_type)
    }

    #[inline]
    fn is_delimiter(header: NalHeader) -> bool {
        Self::nal_type(header) == ACCESS_UNIT_DELIMITER
    }

    fn begins_stream(header: NalHeader) -> bool {
        matches!(Self::nal_type(header), ACCESS_UNIT_DELIMITER | SEQUENCE_PARAMETER_SET)
    }

    fn is_slice(unit: &[u8]) -> bool {
        (1..=5).contains(&(unit[0] & 0x1f))
    }

    /// `first_mb_in_slice`, ue(v), is 0 if its first bit is 1 (ITU-T H.264 section 7.3.3).
    #[inline]
    fn continues_picture(header: NalHeader, body: &[u8]) -> bool {
        matches!(Self::nal_type(header), 1 | 5) && body.first().is_some_and(|octet| octet >> 7 == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::builder::Delivery;
    use super::super::error::{FrameError, PayloadError};
    use super::super::rig::{Listener, receive_all, receive_one, send_units};
    use super::*;

    fn sent(units: &[&[u8]], limit: usize) -> Vec<Vec<u8>> {
        let sent = send_units(&H264::default(), units, limit);
        sent.into_iter().map(|payload| payload.octets).collect()
    }

    #[test]
    fn small_units_share_a_stap_a_with_the_highest_nri() {
        let units = [&[0x67, 1, 2][..], &[0x68, 3], &[0x06, 4, 5]];
        assert_eq!(sent(&units, 100), [b"\x78\0\x03\x67\x01\x02\0\x02\x68\x03\0\x03\x06\x04\x05"]);
        let units = [&[0x41, 1][..], &[0x86, 4], &[0x01, 5]];
        assert_eq!(sent(&units, 100), [b"\xd8\0\x02\x41\x01\0\x02\x86\x04\0\x02\x01\x05"]);
    }

    #[test]
    fn a_stap_a_is_filled_to_its_last_octet() {
        let units = [&[0x67, 1, 2][..], &[0x68, 3]];
        assert_eq!(sent(&units, 10), [b"\x78\0\x03\x67\x01\x02\0\x02\x68\x03"]);
        assert_eq!(sent(&units, 9), [&[0x67, 1, 2][..], &[0x68, 3]]);
    }

    #[test]
    fn without_aggregation_each_unit_travels_alone() {
        let format = H264 { aggregate: false, ..H264::default() };
        let sent = send_units(&format, &[&[0x67, 1], &[0x68, 2]], 100);
        let sent: Vec<_> = sent.iter().map(|sent| (&sent.octets[..], sent.marker)).collect();
        assert_eq!(sent, [(&[0x67, 1][..], false), (&[0x68, 2], true)]);
    }

    #[test]
    fn in_mode_0_units_travel_whole_and_alone_or_not_at_all() {
        let format = H264 { single_units: true, ..H264::default() };
        let fits = [0x65; 10];
        let sent = send_units(&format, &[&[0x67, 1], &[0x68, 2], &fits], 10);
        let sent: Vec<_> = sent.iter().map(|sent| (&sent.octets[..], sent.marker)).collect();
        assert_eq!(sent, [(&[0x67, 1][..], false), (&[0x68, 2], false), (&fits, true)]);
        let frame = [&[0, 0, 0, 1, 0x67, 1, 0, 0, 1][..], &[0x65; 11]].concat();
        let mut packetiser = format.packetiser();
        let outcome = packetiser.start(&frame, 10);
        assert_eq!(outcome, Err(FrameError::UnitTooLong { offset: 9, len: 11, limit: 10 }));
        assert_eq!(packetiser.start(&frame, 11), Ok(()));
    }

    #[test]
    fn a_large_unit_is_cut_into_fu_as() {
        let unit: Vec<u8> = [0x65].into_iter().chain(1..=20).collect();
        let expected = [
            &[0x7c, 0x85, 1, 2, 3, 4, 5, 6, 7, 8][..],
            &[0x7c, 0x05, 9, 10, 11, 12, 13, 14, 15, 16],
            &[0x7c, 0x45, 17, 18, 19, 20],
        ];
        assert_eq!(sent(&[&unit], 10), expected);
        assert_eq!(receive_all(&H264::default(), &expected), Ok(vec![unit]));
    }

    #[test]
    fn units_of_one_octet_travel() {
        // These are the end of the sequence and of the stream.
        assert_eq!(sent(&[&[0x0a]], 100), [[0x0a]]);
        assert_eq!(sent(&[&[0x0a], &[0x0b]], 100), [[0x18, 0, 1, 0x0a, 0, 1, 0x0b]]);
        let (_, units) = receive_one(&H264::default(), &[0x18, 0, 1, 0x0a, 0, 1, 0x0b]);
        assert_eq!(units, [[0x0a], [0x0b]]);
    }

    #[test]
    fn types_that_mean_something_else_in_rtp_are_left_out() {
        for nal_type in (0..32).filter(|nal_type| !(1..=23).contains(nal_type)) {
            let other: &[u8] = &[0x60 | nal_type, 1];
            let sent = send_units(&H264::default(), &[&[0x67, 1], other], 100);
            assert_eq!(
                (&sent[0].octets[..], sent[0].marker, sent.len()),
                (&[0x67, 1][..], true, 1)
            );
            let frame = [0, 0, 0, 1, 0x60 | nal_type, 1];
            let outcome = H264::default().packetiser().start(&frame, 100);
            assert_eq!(outcome, Err(FrameError::NalType { offset: 4, nal_type }));
        }
    }

    #[test]
    fn the_interleaved_mode_is_recognised_and_not_delivered() {
        for packet_type in [25, 26, 27, 29] {
            let (outcome, units) = receive_one(&H264::default(), &[packet_type, 0, 1, 0, 1, 0x65]);
            assert_eq!(outcome, Err(PayloadError::OutsideMode { packet_type }));
            assert_eq!(units.len(), 0);
        }
        for packet_type in [0, 30, 31] {
            let (outcome, _) = receive_one(&H264::default(), &[packet_type, 0, 1]);
            assert_eq!(outcome, Err(PayloadError::UnknownType { packet_type }));
        }
    }

    #[test]
    fn units_before_a_flaw_in_a_stap_a_stand() {
        let good = [0x18, 0, 2, 0x41, 9];
        let unit = |offset, claimed, remaining| PayloadError::AggregationUnit {
            offset,
            claimed,
            remaining,
        };
        let size = PayloadError::Truncated { field: "NAL unit size", need: 7, have: 6 };
        for (flaw, error) in [
            (&[0, 0, 0x41][..], unit(5, 0, 1)),
            (&[0, 2, 0x41], unit(5, 2, 1)),
            (&[0xff, 0xff], unit(5, 65_535, 0)),
            (&[0], size),
            (&[0, 2, 0x18, 0], PayloadError::Nested { packet_type: 24 }),
            (&[0, 2, 0x1c, 0x85], PayloadError::Nested { packet_type: 28 }),
            (&[0, 2, 0x1d, 0x85], PayloadError::Nested { packet_type: 29 }),
        ] {
            let (outcome, units) = receive_one(&H264::default(), &[&good, flaw].concat());
            assert_eq!((outcome, units), (Err(error), vec![vec![0x41, 9]]), "{flaw:02x?}");
        }
    }

    #[test]
    fn a_reserved_type_in_a_stap_a_is_stepped_over() {
        let payload = [0x18, 0, 1, 0x41, 0, 1, 0x1e, 0, 1, 0x42];
        let (outcome, units) = receive_one(&H264::default(), &payload);
        assert_eq!(outcome, Err(PayloadError::UnknownType { packet_type: 30 }));
        assert_eq!(units, [[0x41], [0x42]]);
    }

    #[test]
    fn a_stap_a_without_units_is_refused() {
        let error = PayloadError::Truncated { field: "NAL unit size", need: 3, have: 1 };
        assert_eq!(receive_one(&H264::default(), &[0x18]).0, Err(error));
    }

    #[test]
    fn fragments_that_break_the_rules_are_refused() {
        let start: &[u8] = &[0x7c, 0x85, 1];
        let header = |header| PayloadError::FragmentHeader { header };
        for (payloads, error) in [
            (vec![&[0x7c, 0xc5, 1][..]], header(0xc5)),
            (vec![&[0x7c, 0x98, 1]], header(0x98)),
            (vec![&[0x7c, 0x9c, 1]], header(0x9c)),
            (vec![&[0x7c, 0x80, 1]], header(0x80)),
            (vec![&[0x7c, 0x05, 1]], PayloadError::FragmentWithoutStart),
            (vec![&[0x7c, 0x45, 1]], PayloadError::FragmentWithoutStart),
            (vec![start, &[0x7c, 0x41, 1]], PayloadError::FragmentMismatch),
            (vec![start, &[0x5c, 0x45, 1]], PayloadError::FragmentMismatch),
            (vec![start, &[0xfc, 0x45, 1]], PayloadError::FragmentMismatch),
            (vec![start, &[0x41, 1], &[0x7c, 0x45, 1]], PayloadError::FragmentWithoutStart),
            (vec![&[0x7c]], PayloadError::Truncated { field: "FU header", need: 2, have: 1 }),
        ] {
            assert_eq!(receive_all(&H264::default(), &payloads), Err(error), "{payloads:02x?}");
        }
    }

    #[test]
    fn a_fragment_of_another_time_does_not_continue_a_unit() {
        let mut listener = Listener::new(&H264::default(), Delivery::Unit);
        assert_eq!(listener.take(&[0x7c, 0x85, 1], 0, false), Ok(()));
        let outcome = listener.take(&[0x7c, 0x45, 2], 3000, true);
        assert_eq!(outcome, Err(PayloadError::FragmentMismatch));
        assert_eq!(listener.units().len(), 0);
    }

    #[test]
    fn a_marked_packet_ends_its_unfinished_unit() {
        let mut listener = Listener::new(&H264::default(), Delivery::AccessUnit);
        assert_eq!(listener.take(&[0x7c, 0x85, 0x81], 0, true), Ok(()));
        let outcome = listener.take(&[0x7c, 0x45, 2], 0, false);
        assert_eq!(outcome, Err(PayloadError::FragmentWithoutStart));
        assert_eq!(listener.take(&[0x65, 3], 0, true), Ok(()));
        assert_eq!(listener.frames().len(), 0);
    }

    #[test]
    fn empty_fragments_are_joined() {
        let payloads = [&[0x7c, 0x85][..], &[0x7c, 0x05, 1], &[0x7c, 0x05], &[0x7c, 0x45]];
        assert_eq!(receive_all(&H264::default(), &payloads), Ok(vec![vec![0x65, 1]]));
    }

    #[test]
    fn the_reserved_bit_of_the_fu_header_is_ignored() {
        let payloads = [&[0x7c, 0xa5, 1][..], &[0x7c, 0x65, 2]];
        assert_eq!(receive_all(&H264::default(), &payloads), Ok(vec![vec![0x65, 1, 2]]));
    }

    #[test]
    fn a_unit_with_a_missing_fragment_is_dropped_whole() {
        let mut listener = Listener::new(&H264::default(), Delivery::Unit);
        assert_eq!(listener.take(&[0x7c, 0x85, 1], 0, false), Ok(()));
        listener.lose(1);
        let outcome = listener.take(&[0x7c, 0x45, 3], 0, false);
        assert_eq!(outcome, Err(PayloadError::FragmentWithoutStart));
        assert_eq!(listener.take(&[0x41, 4], 0, true), Ok(()));
        assert_eq!(listener.units(), [[0x41, 4]]);
    }
}
