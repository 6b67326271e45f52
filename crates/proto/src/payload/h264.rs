//! H.264 in RTP: RFC 6184, packetization mode 1 (non-interleaved).
//!
//! Sent and received: single NAL unit packets, STAP-A, FU-A. STAP-B, MTAP16, MTAP24 and FU-B
//! belong to the interleaved mode; they are recognised, counted and never delivered.

use std::ops::RangeInclusive;

use super::Depacketiser;
use super::Packetiser;
use super::PayloadFormat;
use super::builder::Framing;
use super::join::NalDepacketiser;
use super::layout::{Layout, NalHeader, Numbering, PayloadKind, Position};
use super::split::NalPacketiser;
use crate::time::ClockRate;

/// H.264 by RFC 6184 in packetization mode 1.
#[derive(Clone, Copy, Debug)]
pub struct H264 {
    /// How NAL units are set apart in the frames to send.
    pub input: Framing,
    /// Whether neighbouring small NAL units share a packet (STAP-A).
    pub aggregate: bool,
}

impl Default for H264 {
    /// Start codes, and aggregation.
    fn default() -> Self {
        Self { input: Framing::AnnexB, aggregate: true }
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
        Box::new(NalPacketiser::<Avc>::new(self.input, self.aggregate, Numbering::None))
    }

    fn depacketiser(&self) -> Box<dyn Depacketiser> {
        Box::new(NalDepacketiser::<Avc>::new(Numbering::None))
    }

    fn has_nal_units(&self) -> bool {
        true
    }
}

/// STAP-A (RFC 6184 section 5.7.1).
const STAP_A: u8 = 24;

/// FU-A (RFC 6184 section 5.8).
const FU_A: u8 = 28;

/// Access unit delimiter (ITU-T H.264 table 7-1).
const ACCESS_UNIT_DELIMITER: u8 = 9;

/// The header octet of AVC: F, NRI (2 bits), Type (5 bits) (RFC 6184 section 1.3).
#[derive(Debug)]
struct Avc;

impl Layout for Avc {
    const HEADER_LEN: usize = 1;
    const NAL_TYPES: RangeInclusive<u8> = 1..=23;
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

    /// F is set if any unit's is; NRI is the highest of all units (RFC 6184 section 5.7).
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

    fn is_slice(unit: &[u8]) -> bool {
        (1..=5).contains(&(unit[0] & 0x1f))
    }

    /// `first_mb_in_slice`, ue(v), is 0 if its first bit is 1 (ITU-T H.264 section 7.3.3).
    #[inline]
    fn continues_picture(header: NalHeader, body: &[u8]) -> bool {
        matches!(Self::nal_type(header), 1 | 5) && body.first().is_some_and(|octet| octet >> 7 == 0)
    }
}
