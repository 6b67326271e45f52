//! H.266 in RTP: RFC 9328, single-stream transmission.
//!
//! Sent and received: single NAL unit packets, aggregation packets, fragmentation units with the
//! P bit.
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

/// H.266 by RFC 9328.
#[derive(Clone, Copy, Debug)]
pub struct H266 {
    /// How NAL units are set apart in the frames to send.
    pub input: Framing,
    /// Whether neighbouring small NAL units share a packet.
    pub aggregate: bool,
    /// `sprop-max-don-diff`: above 0, DONL and DOND fields are sent and expected
    /// (RFC 9328 section 7.2).
    pub max_don_diff: u16,
}

impl Default for H266 {
    /// Start codes, aggregation, no decoding order numbers.
    fn default() -> Self {
        Self { input: Framing::AnnexB, aggregate: true, max_don_diff: 0 }
    }
}

impl H266 {
    fn numbering(self) -> Numbering {
        if self.max_don_diff > 0 { Numbering::Don } else { Numbering::None }
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
        Box::new(NalDepacketiser::<Vvc>::new(self.numbering()))
    }

    fn has_nal_units(&self) -> bool {
        true
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
    const HEADER_LEN: usize = 2;
    const NAL_TYPES: RangeInclusive<u8> = 0..=27;
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

    /// F is set if any unit's is; `LayerId` and TID are the lowest of all units
    /// (RFC 9328 section 4.3.2).
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

    fn is_slice(unit: &[u8]) -> bool {
        unit[1] >> 3 < 12
    }

    /// `sh_picture_header_in_slice_header_flag` is a slice's first bit; without it, a picture
    /// header must have come before (ITU-T H.266 section 7.3.7).
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
