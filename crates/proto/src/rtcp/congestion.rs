//! Congestion control feedback: when each packet arrived (RFC 8888 section 3.1).

use std::time::Duration;

use super::error::{RtcpError, need};
use super::{half_word, word};
use crate::ecn::Ecn;
use crate::seq::SequenceNumber;
use crate::ssrc::Ssrc;

/// The arrival of one packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PacketReport {
    /// The packet.
    pub sequence: SequenceNumber,
    /// Its mark and its arrival; `None` if it did not arrive.
    pub arrival: Option<(Ecn, Arrival)>,
}

/// When a packet arrived, relative to the instant of the report.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Arrival {
    /// The time of arrival before that instant, in steps of 1/1 024 s, at most 8 189 steps.
    Before(Duration),
    /// The packet arrived earlier than the format can express.
    LongBefore,
    /// The arrival is unknown, or after the instant of the report.
    Unknown,
}

/// Octets before the first packet report of a block.
const BLOCK_HEADER_LEN: usize = 8;

/// Maximum number of packets in one block.
const REPORTS_MAX: usize = 16_384;

/// The arrivals of one source, packet by packet from `begin` on.
#[derive(Clone, Copy, Debug)]
pub struct CongestionBlock<'p> {
    /// The source.
    pub ssrc: Ssrc,
    /// The first packet of the block.
    pub begin: SequenceNumber,
    reports: &'p [u8],
}

impl<'p> CongestionBlock<'p> {
    /// Returns the packets in order.
    pub fn packets(&self) -> impl ExactSizeIterator<Item = PacketReport> + use<'p> {
        let begin = self.begin;
        self.reports.chunks_exact(2).enumerate().map(move |(n, report)| PacketReport {
            sequence: begin.plus(n as u16),
            arrival: parse_report(half_word(report, 0)),
        })
    }
}

/// One report on the arrivals of any number of sources.
#[derive(Clone, Copy, Debug)]
pub struct CongestionFeedback<'p> {
    blocks: &'p [u8],
    instant: u32,
}

impl<'p> CongestionFeedback<'p> {
    /// The feedback message type.
    pub const FORMAT: u8 = 11;

    pub(super) fn parse(control: &'p [u8]) -> Result<Self, RtcpError> {
        need("the report timestamp", 4, control.len())?;
        let (blocks, instant) = control.split_at(control.len() - 4);
        let mut rest = blocks;
        while !rest.is_empty() {
            rest = split_block(rest)?.1;
        }
        Ok(Self { blocks, instant: word(instant, 0) })
    }

    /// Returns the instant from which arrivals are counted back: the middle 32 bits of an NTP time.
    pub fn instant(&self) -> u32 {
        self.instant
    }

    /// Returns the block of each source.
    pub fn blocks(&self) -> impl Iterator<Item = CongestionBlock<'p>> + use<'p> {
        let mut rest = self.blocks;
        std::iter::from_fn(move || {
            let (block, tail) = split_block(rest).ok()?;
            rest = tail;
            Some(block)
        })
    }
}

fn split_block(bytes: &[u8]) -> Result<(CongestionBlock<'_>, &[u8]), RtcpError> {
    need("the header of a congestion block", BLOCK_HEADER_LEN, bytes.len())?;
    let mut len = 2 * usize::from(half_word(bytes, 6));
    let rest = &bytes[BLOCK_HEADER_LEN..];
    let padded = len.next_multiple_of(4);
    need("the packet metric blocks", padded, rest.len())?;
    // Before erratum 8166, RFC 8888 could be read as one report more than the count, and SCReAM's
    // reference implementation writes so. That report stands where padding must be zero, or it is
    // the first of four octets that are too few for another block.
    let is_inclusive = padded > len && half_word(rest, len) != 0 || rest.len() == padded + 4;
    if is_inclusive {
        len += 2;
    }
    let block = CongestionBlock {
        ssrc: Ssrc(word(bytes, 0)),
        begin: SequenceNumber(half_word(bytes, 4)),
        reports: &rest[..len],
    };
    Ok((block, &rest[len.next_multiple_of(4)..]))
}

fn parse_report(report: u16) -> Option<(Ecn, Arrival)> {
    (report & 0x8000 != 0).then_some(())?;
    let ecn = Ecn::from_bits((report >> 13) as u8);
    let arrival = match report & 0x1fff {
        0x1fff => Arrival::Unknown,
        0x1ffe => Arrival::LongBefore,
        steps => Arrival::Before(Duration::from_nanos(u64::from(steps) * 1_000_000_000 / 1024)),
    };
    Some((ecn, arrival))
}

fn report_bits(arrival: Option<(Ecn, Arrival)>) -> u16 {
    let Some((ecn, arrival)) = arrival else { return 0 };
    let ecn = ecn as u16;
    let steps = match arrival {
        Arrival::Unknown => 0x1fff,
        Arrival::LongBefore => 0x1ffe,
        Arrival::Before(time) => {
            // The number is rounded, so that a value that was read is written unchanged.
            let steps = (time.as_nanos() * 1024 + 500_000_000) / 1_000_000_000;
            if steps > 8189 { 0x1ffe } else { steps as u16 }
        }
    };
    0x8000 | ecn << 13 | steps
}

/// Appends one block to `out`, with at most the first 16 384 packets.
pub(super) fn write_block(
    out: &mut Vec<u8>,
    ssrc: Ssrc,
    begin: SequenceNumber,
    arrivals: impl IntoIterator<Item = Option<(Ecn, Arrival)>>,
) {
    out.extend(ssrc.0.to_be_bytes());
    out.extend(begin.0.to_be_bytes());
    let count_at = out.len();
    out.extend([0, 0]);
    let mut count: u16 = 0;
    for arrival in arrivals.into_iter().take(REPORTS_MAX) {
        out.extend(report_bits(arrival).to_be_bytes());
        count += 1;
    }
    if count % 2 == 1 {
        out.extend([0, 0]);
    }
    out[count_at..count_at + 2].copy_from_slice(&count.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_read_as_written_across_a_wrap() {
        let before =
            |steps: u64| Arrival::Before(Duration::from_nanos(steps * 1_000_000_000 / 1024));
        let arrivals = [
            Some((Ecn::NotCapable, before(0))),
            None,
            Some((Ecn::Congestion, before(8189))),
            Some((Ecn::CapableOne, Arrival::LongBefore)),
            Some((Ecn::CapableZero, Arrival::Unknown)),
        ];
        let mut control = Vec::new();
        write_block(&mut control, Ssrc(1), SequenceNumber(65_534), arrivals);
        write_block(&mut control, Ssrc(2), SequenceNumber(9), []);
        control.extend(77_u32.to_be_bytes());
        let feedback = CongestionFeedback::parse(&control).unwrap();
        assert_eq!(feedback.instant(), 77);
        let blocks: Vec<_> = feedback.blocks().collect();
        assert_eq!(blocks.len(), 2);
        let reports: Vec<_> = blocks[0].packets().collect();
        assert_eq!(reports.iter().map(|report| report.arrival).collect::<Vec<_>>(), arrivals);
        assert_eq!(reports[2].sequence, SequenceNumber(0));
        assert_eq!(blocks[1].packets().len(), 0);
    }

    /// Senders that read the text before erratum 8166 write one report more than they count.
    #[test]
    fn a_report_beyond_the_count_is_read_where_nothing_else_can_be() {
        let received = Some((Ecn::NotCapable, Arrival::Before(Duration::ZERO)));
        for reports in 1..6_u16 {
            let mut control = Vec::new();
            let arrivals = (0..reports).map(|_| received);
            write_block(&mut control, Ssrc(1), SequenceNumber(9), arrivals);
            control[6..8].copy_from_slice(&(reports - 1).to_be_bytes());
            control.extend(77_u32.to_be_bytes());
            let feedback = CongestionFeedback::parse(&control).unwrap();
            let blocks: Vec<_> = feedback.blocks().collect();
            assert_eq!(blocks.len(), 1);
            let read: Vec<_> = blocks[0].packets().map(|report| report.arrival).collect();
            assert_eq!(read, vec![received; reports.into()]);
        }
    }

    #[test]
    fn an_arrival_beyond_the_range_is_long_before() {
        let late = Some((Ecn::NotCapable, Arrival::Before(Duration::from_secs(8))));
        assert_eq!(report_bits(late), 0x8000 | 0x1ffe);
    }

    #[test]
    fn a_count_beyond_the_packet_is_refused() {
        let control = [0, 0, 0, 1, 0, 0, 0, 3, 0x80, 0, 0x80, 0, 0, 0, 0, 0];
        let error = CongestionFeedback::parse(&control).unwrap_err();
        let expected = RtcpError::Truncated { field: "the packet metric blocks", need: 8, have: 4 };
        assert_eq!(error, expected);
    }
}
