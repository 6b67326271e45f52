//! H.265 in RTP: RFC 7798, single-stream transmission.
//!
//! Sent and received: single NAL unit packets, aggregation packets, fragmentation units. PACI
//! packets are unwrapped on receipt and never sent.
//!
//! With `sprop-max-don-diff` above 0, units carry decoding order numbers. Units are sent, and
//! delivered, in the order of transmission: a sender that interleaves is not put in order again.

use std::ops::RangeInclusive;

use super::Depacketiser;
use super::Packetiser;
use super::PayloadFormat;
use super::builder::Framing;
use super::join::NalDepacketiser;
use super::layout::{Layout, NalHeader, Numbering, PayloadKind, Position};
use super::split::NalPacketiser;
use crate::time::ClockRate;

/// H.265 by RFC 7798.
#[derive(Clone, Copy, Debug)]
pub struct H265 {
    /// How NAL units are set apart in the frames to send.
    pub input: Framing,
    /// Whether neighbouring small NAL units share a packet.
    pub aggregate: bool,
    /// `sprop-max-don-diff`: above 0, DONL and DOND fields are sent and expected
    /// (RFC 7798 section 7.1).
    pub max_don_diff: u16,
}

impl Default for H265 {
    /// Start codes, aggregation, no decoding order numbers.
    fn default() -> Self {
        Self { input: Framing::AnnexB, aggregate: true, max_don_diff: 0 }
    }
}

impl H265 {
    fn numbering(self) -> Numbering {
        if self.max_don_diff > 0 { Numbering::Don } else { Numbering::None }
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
        Box::new(NalDepacketiser::<Hevc>::new(self.numbering()))
    }

    fn has_nal_units(&self) -> bool {
        true
    }
}

/// Aggregation packet (RFC 7798 section 4.4.2).
const AGGREGATION_PACKET: u8 = 48;

/// Fragmentation unit (RFC 7798 section 4.4.3).
const FRAGMENTATION_UNIT: u8 = 49;

/// PACI packet (RFC 7798 section 4.4.4).
const CONTENT_INFORMATION: u8 = 50;

/// Access unit delimiter (ITU-T H.265 table 7-1).
const ACCESS_UNIT_DELIMITER: u8 = 35;

/// The header octets of HEVC: F, Type (6 bits), `LayerId` (6 bits), TID (3 bits)
/// (RFC 7798 section 1.1.4).
#[derive(Debug)]
struct Hevc;

impl Layout for Hevc {
    const HEADER_LEN: usize = 2;
    const NAL_TYPES: RangeInclusive<u8> = 0..=47;
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

    /// F is set if any unit's is; `LayerId` and TID are the lowest of all units
    /// (RFC 7798 section 4.4.2).
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

    fn is_slice(unit: &[u8]) -> bool {
        Self::nal_type([unit[0], 0]) < 32
    }

    /// `first_slice_segment_in_pic_flag` is a slice segment's first bit
    /// (ITU-T H.265 section 7.3.6.1).
    #[inline]
    fn continues_picture(header: NalHeader, body: &[u8]) -> bool {
        Self::nal_type(header) < 32 && body.first().is_some_and(|octet| octet >> 7 == 0)
    }
}
