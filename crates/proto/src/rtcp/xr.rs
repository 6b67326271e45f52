//! Extended reports (RFC 3611): round-trip times for participants that send no media.

use super::compound::Part;
use super::error::RtcpError;
use super::report::source;
use super::{half_word, word};
use crate::ssrc::Ssrc;
use crate::time::NtpTime;

/// Octets in the header of a report block.
const BLOCK_HEADER_LEN: usize = 4;

/// One block of an extended report.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum XrBlock<'p> {
    /// The receiver's wall clock at the report (RFC 3611 section 4.4).
    ReferenceTime(NtpTime),
    /// Answers to reference times (RFC 3611 section 4.5).
    Delays(Delays<'p>),
    /// A block of a type that this library does not know, which receivers must ignore.
    Unknown {
        /// Its block type.
        block_type: u8,
        /// Its type-specific octet.
        specific: u8,
        /// Its octets after the header.
        body: &'p [u8],
    },
}

/// The answers of one block.
#[derive(Clone, Copy, Debug)]
pub struct Delays<'p> {
    body: &'p [u8],
}

impl<'p> Delays<'p> {
    /// Returns the answers, one for each receiver.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Dlrr> + use<'p> {
        self.body.chunks_exact(12).map(|delay| Dlrr {
            ssrc: Ssrc(word(delay, 0)),
            last_reference_time: word(delay, 4),
            delay: word(delay, 8),
        })
    }
}

/// The delay since the last receiver reference time: an answer to one receiver.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Dlrr {
    /// The receiver.
    pub ssrc: Ssrc,
    /// The middle 32 bits of the receiver's last reference time; 0 if none arrived.
    pub last_reference_time: u32,
    /// The time since that reference time arrived, in 1/65 536 s; 0 if none arrived.
    pub delay: u32,
}

impl Dlrr {
    pub(super) fn to_bytes(self) -> [u8; 12] {
        let mut bytes = [0; 12];
        bytes[..4].copy_from_slice(&self.ssrc.0.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.last_reference_time.to_be_bytes());
        bytes[8..].copy_from_slice(&self.delay.to_be_bytes());
        bytes
    }
}

/// An extended report.
#[derive(Clone, Copy, Debug)]
pub struct ExtendedReport<'p> {
    ssrc: Ssrc,
    blocks: &'p [u8],
}

impl<'p> ExtendedReport<'p> {
    pub(super) fn parse(part: Part<'p>) -> Result<Self, RtcpError> {
        let (ssrc, blocks) = source(part.body)?;
        Ok(Self { ssrc, blocks })
    }

    /// Returns the reporting participant.
    pub fn ssrc(&self) -> Ssrc {
        self.ssrc
    }

    /// Returns its blocks, up to the first one whose length exceeds the packet.
    pub fn blocks(&self) -> impl Iterator<Item = XrBlock<'p>> + use<'p> {
        let mut rest = self.blocks;
        std::iter::from_fn(move || {
            let (header, tail) = rest.split_first_chunk::<BLOCK_HEADER_LEN>()?;
            let len = usize::from(half_word(header, 2)) * 4;
            let (body, tail) = tail.split_at_checked(len)?;
            rest = tail;
            Some(match (header[0], body.len()) {
                (4, 8) => {
                    let (high, low) = (u64::from(word(body, 0)), u64::from(word(body, 4)));
                    XrBlock::ReferenceTime(NtpTime(high << 32 | low))
                }
                (5, _) => XrBlock::Delays(Delays { body }),
                (block_type, _) => XrBlock::Unknown { block_type, specific: header[1], body },
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_other_kinds_are_skipped_by_their_length() {
        let body = [
            0, 0, 0, 1, // sender
            7, 9, 0, 1, 1, 2, 3, 4, // a block of VoIP metrics, cut short
            4, 0, 0, 2, 0, 0, 0, 1, 0x80, 0, 0, 0, // 1.5 s after 1900
            5, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, //
            4, 0, 0, 9, // beyond the end
        ];
        let report = ExtendedReport::parse(Part { count: 0, body: &body }).unwrap();
        let blocks: Vec<_> = report.blocks().collect();
        assert_eq!(blocks.len(), 3);
        assert!(matches!(blocks[0], XrBlock::Unknown { block_type: 7, specific: 9, .. }));
        assert!(matches!(blocks[1], XrBlock::ReferenceTime(NtpTime(0x1_8000_0000))));
        let XrBlock::Delays(delays) = blocks[2] else { panic!() };
        let delay = Dlrr { ssrc: Ssrc(2), last_reference_time: 3, delay: 4 };
        assert_eq!(delays.iter().collect::<Vec<_>>(), [delay]);
    }
}
