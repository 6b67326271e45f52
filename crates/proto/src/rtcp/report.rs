//! Sender and receiver reports (RFC 3550 section 6.4).

use super::compound::Part;
use super::error::{RtcpError, need};
use super::word;
use crate::ssrc::Ssrc;
use crate::time::{NtpTime, RtpTimestamp};

/// Octets in a report block.
pub(super) const BLOCK_LEN: usize = 24;

/// Octets in the sender information.
pub(super) const INFO_LEN: usize = 20;

/// The sender information of a sender report (RFC 3550 section 6.4.1).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct SenderInfo {
    /// The wall-clock instant of the report; zero if the sender has no clock.
    pub ntp: NtpTime,
    /// The same instant on the clock of its media.
    pub rtp: RtpTimestamp,
    /// Packets sent under its SSRC, modulo 2³².
    pub packets: u32,
    /// Octets of payload sent, without headers and padding, modulo 2³².
    pub octets: u32,
}

/// A participant's reception statistics of one source (RFC 3550 section 6.4.1).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ReportBlock {
    /// The source.
    pub ssrc: Ssrc,
    /// The share of packets lost since the last report, in 1/256.
    pub fraction_lost: u8,
    /// Packets lost since the start, −2²³..2²³; negative if duplicates arrived. Clamped to this
    /// range when written.
    pub cumulative_lost: i32,
    /// The highest sequence number received; the upper 16 bits count its wraps.
    pub highest: u32,
    /// The jitter of arrivals, in ticks of the media's clock.
    pub jitter: u32,
    /// The middle 32 bits of the NTP time of the last sender report; 0 if none arrived.
    pub last_sender_report: u32,
    /// The time since that report arrived, in 1/65 536 s; 0 if none arrived.
    pub delay: u32,
}

impl ReportBlock {
    fn parse(block: &[u8]) -> Self {
        let lost = word(block, 4);
        Self {
            ssrc: Ssrc(word(block, 0)),
            fraction_lost: (lost >> 24) as u8,
            // The number has 24 bits and a sign; the arithmetic shift extends the sign.
            cumulative_lost: (lost << 8).cast_signed() >> 8,
            highest: word(block, 8),
            jitter: word(block, 12),
            last_sender_report: word(block, 16),
            delay: word(block, 20),
        }
    }

    pub(super) fn to_bytes(self) -> [u8; BLOCK_LEN] {
        let mut bytes = [0; BLOCK_LEN];
        let lost = self.cumulative_lost.clamp(-(1 << 23), (1 << 23) - 1).cast_unsigned();
        let lost = (u32::from(self.fraction_lost) << 24) | (lost & 0x00ff_ffff);
        let words =
            [self.ssrc.0, lost, self.highest, self.jitter, self.last_sender_report, self.delay];
        for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }
}

/// A sender report.
#[derive(Clone, Copy, Debug)]
pub struct SenderReport<'p> {
    ssrc: Ssrc,
    info: SenderInfo,
    blocks: &'p [u8],
    extension: &'p [u8],
}

impl<'p> SenderReport<'p> {
    pub(super) fn parse(part: Part<'p>) -> Result<Self, RtcpError> {
        let (ssrc, rest) = source(part.body)?;
        need("the sender information", INFO_LEN, rest.len())?;
        let info = SenderInfo {
            ntp: NtpTime(u64::from(word(rest, 0)) << 32 | u64::from(word(rest, 4))),
            rtp: RtpTimestamp(word(rest, 8)),
            packets: word(rest, 12),
            octets: word(rest, 16),
        };
        let (blocks, extension) = split_blocks(part.count, &rest[INFO_LEN..])?;
        Ok(Self { ssrc, info, blocks, extension })
    }

    /// Returns the sender.
    pub fn ssrc(&self) -> Ssrc {
        self.ssrc
    }

    /// Returns the sender information.
    pub fn info(&self) -> SenderInfo {
        self.info
    }

    /// Returns its reports on other sources.
    pub fn blocks(&self) -> impl ExactSizeIterator<Item = ReportBlock> + use<'p> {
        self.blocks.chunks_exact(BLOCK_LEN).map(ReportBlock::parse)
    }

    /// Returns the profile-specific extension after the blocks.
    pub fn extension(&self) -> &'p [u8] {
        self.extension
    }
}

/// A receiver report.
#[derive(Clone, Copy, Debug)]
pub struct ReceiverReport<'p> {
    ssrc: Ssrc,
    blocks: &'p [u8],
    extension: &'p [u8],
}

impl<'p> ReceiverReport<'p> {
    pub(super) fn parse(part: Part<'p>) -> Result<Self, RtcpError> {
        let (ssrc, rest) = source(part.body)?;
        let (blocks, extension) = split_blocks(part.count, rest)?;
        Ok(Self { ssrc, blocks, extension })
    }

    /// Returns the reporting participant.
    pub fn ssrc(&self) -> Ssrc {
        self.ssrc
    }

    /// Returns its reports on the sources it received.
    pub fn blocks(&self) -> impl ExactSizeIterator<Item = ReportBlock> + use<'p> {
        self.blocks.chunks_exact(BLOCK_LEN).map(ReportBlock::parse)
    }

    /// Returns the profile-specific extension after the blocks.
    pub fn extension(&self) -> &'p [u8] {
        self.extension
    }
}

/// Returns the SSRC at the start of `body`, and the rest.
pub(super) fn source(body: &[u8]) -> Result<(Ssrc, &[u8]), RtcpError> {
    need("the SSRC", 4, body.len())?;
    Ok((Ssrc(word(body, 0)), &body[4..]))
}

fn split_blocks(count: u8, rest: &[u8]) -> Result<(&[u8], &[u8]), RtcpError> {
    let len = usize::from(count) * BLOCK_LEN;
    need("the report blocks", len, rest.len())?;
    Ok(rest.split_at(len))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_read_as_written_with_its_signs() {
        for (lost, expected) in [
            (-1, -1),
            (0, 0),
            (8_388_607, 8_388_607),
            (i32::MAX, 8_388_607),
            (i32::MIN, -8_388_608),
        ] {
            let block = ReportBlock {
                ssrc: Ssrc(1),
                fraction_lost: 255,
                cumulative_lost: lost,
                highest: 0x0001_ffff,
                jitter: 3,
                last_sender_report: 4,
                delay: 5,
            };
            let parsed = ReportBlock::parse(&block.to_bytes());
            assert_eq!(parsed, ReportBlock { cumulative_lost: expected, ..block });
        }
    }

    #[test]
    fn a_count_beyond_the_packet_is_refused() {
        let body = [0; 4 + BLOCK_LEN];
        assert!(ReceiverReport::parse(Part { count: 1, body: &body }).is_ok());
        let error = ReceiverReport::parse(Part { count: 2, body: &body }).unwrap_err();
        let expected = RtcpError::Truncated { field: "the report blocks", need: 48, have: 24 };
        assert_eq!(error, expected);
    }

    #[test]
    fn octets_after_the_blocks_are_the_profiles_extension() {
        let mut body = [0; 4 + BLOCK_LEN + 4];
        body[4 + BLOCK_LEN] = 9;
        let report = ReceiverReport::parse(Part { count: 1, body: &body }).unwrap();
        assert_eq!(report.extension(), [9, 0, 0, 0]);
        assert_eq!(report.blocks().len(), 1);
    }
}
