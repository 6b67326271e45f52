//! One datagram of RTCP: a chain of packets (RFC 3550 section 6.1, appendix A.2).

use super::app::App;
use super::bye::Bye;
use super::error::{RtcpError, need};
use super::feedback::{PayloadFeedback, TransportFeedback};
use super::half_word;
use super::report::{ReceiverReport, SenderReport};
use super::sdes::SourceDescription;
use super::xr::ExtendedReport;

/// Octets in the header that all RTCP packets share.
pub(super) const HEADER_LEN: usize = 4;

/// One datagram whose chain of headers adds up to exactly its length.
#[derive(Clone, Copy, Debug)]
pub struct Compound<'p> {
    bytes: &'p [u8],
}

/// One RTCP packet.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Packet<'p> {
    /// A sender's statistics, and its reception reports on other sources.
    SenderReport(SenderReport<'p>),
    /// A participant's reception reports.
    ReceiverReport(ReceiverReport<'p>),
    /// Descriptions of sources.
    SourceDescription(SourceDescription<'p>),
    /// Sources that leave the session.
    Bye(Bye<'p>),
    /// An application-defined packet.
    App(App<'p>),
    /// Feedback on packets (RFC 4585 section 6.2).
    TransportFeedback(TransportFeedback<'p>),
    /// Feedback on pictures (RFC 4585 section 6.3).
    PayloadFeedback(PayloadFeedback<'p>),
    /// Further measurements (RFC 3611).
    ExtendedReport(ExtendedReport<'p>),
    /// A packet of an unknown type, which receivers must ignore (RFC 3550 section 6.1).
    Unknown {
        /// Its packet type.
        packet_type: u8,
        /// Its octets after the header.
        body: &'p [u8],
    },
}

/// The count and the body of one packet, without padding.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part<'p> {
    /// The five bits after version and padding: a count, a subtype or a feedback message type.
    pub(super) count: u8,
    pub(super) body: &'p [u8],
}

impl<'p> Compound<'p> {
    /// Checks the chain of headers of a datagram.
    ///
    /// A datagram of one packet that is not a report is accepted, because RFC 5506 allows it if
    /// both sides agree; see [`is_reduced_size`](Self::is_reduced_size).
    ///
    /// # Errors
    /// [`RtcpError`] if a version is not 2, a packet type is not one of RTCP's, a length exceeds
    /// the datagram, or a packet other than the last is padded.
    pub fn parse(bytes: &'p [u8]) -> Result<Self, RtcpError> {
        if bytes.is_empty() {
            return Err(RtcpError::Empty);
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            need("the RTCP header", HEADER_LEN, rest.len())?;
            if rest[0] >> 6 != 2 {
                return Err(RtcpError::Version(rest[0] >> 6));
            }
            if !(192..=223).contains(&rest[1]) {
                return Err(RtcpError::PacketType(rest[1]));
            }
            let len = packet_len(rest);
            need("the RTCP packet", len, rest.len())?;
            let padded = rest[0] & 0x20 != 0;
            if padded && len != rest.len() {
                return Err(RtcpError::PaddingInside);
            }
            if padded {
                check_padding(&rest[HEADER_LEN..])?;
            }
            rest = &rest[len..];
        }
        Ok(Self { bytes })
    }

    /// Returns whether the first packet is no report, as in reduced-size RTCP only (RFC 5506).
    pub fn is_reduced_size(&self) -> bool {
        !matches!(self.bytes.get(1), Some(&(super::SENDER_REPORT | super::RECEIVER_REPORT)))
    }

    /// Returns the octets in the datagram.
    #[allow(clippy::len_without_is_empty, reason = "a datagram is never empty")]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the packets in order; a malformed packet yields an error in its place.
    pub fn packets(&self) -> Packets<'p> {
        Packets { rest: self.bytes }
    }
}

/// The packets of a [`Compound`].
#[derive(Clone, Debug)]
pub struct Packets<'p> {
    rest: &'p [u8],
}

impl<'p> Iterator for Packets<'p> {
    type Item = Result<Packet<'p>, RtcpError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.len() < HEADER_LEN {
            return None;
        }
        let len = packet_len(self.rest).min(self.rest.len());
        let (packet, rest) = self.rest.split_at(len);
        self.rest = rest;
        let mut body = &packet[HEADER_LEN..];
        if packet[0] & 0x20 != 0 {
            let padding = body.last().map_or(0, |count| usize::from(*count));
            body = &body[..body.len().saturating_sub(padding)];
        }
        let part = Part { count: packet[0] & 0x1f, body };
        Some(parse_packet(packet[1], part))
    }
}

fn parse_packet(packet_type: u8, part: Part<'_>) -> Result<Packet<'_>, RtcpError> {
    Ok(match packet_type {
        super::SENDER_REPORT => Packet::SenderReport(SenderReport::parse(part)?),
        super::RECEIVER_REPORT => Packet::ReceiverReport(ReceiverReport::parse(part)?),
        super::SOURCE_DESCRIPTION => Packet::SourceDescription(SourceDescription::parse(part)?),
        super::BYE => Packet::Bye(Bye::parse(part)?),
        super::APP => Packet::App(App::parse(part)?),
        super::TRANSPORT_FEEDBACK => Packet::TransportFeedback(TransportFeedback::parse(part)?),
        super::PAYLOAD_FEEDBACK => Packet::PayloadFeedback(PayloadFeedback::parse(part)?),
        super::EXTENDED_REPORT => Packet::ExtendedReport(ExtendedReport::parse(part)?),
        _ => Packet::Unknown { packet_type, body: part.body },
    })
}

/// Returns the octets of the first packet of `bytes`, including its header, from its length field.
fn packet_len(bytes: &[u8]) -> usize {
    HEADER_LEN * (usize::from(half_word(bytes, 2)) + 1)
}

fn check_padding(body: &[u8]) -> Result<(), RtcpError> {
    let count = body.last().copied().unwrap_or(0);
    if count == 0 || count % 4 != 0 || usize::from(count) > body.len() {
        return Err(RtcpError::Padding { count, len: body.len() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_must_add_up_to_the_datagram() {
        let report = [0x80, 201, 0, 1, 0, 0, 0, 7];
        assert!(Compound::parse(&report).is_ok());
        assert_eq!(Compound::parse(&[]).unwrap_err(), RtcpError::Empty);
        let truncated = RtcpError::Truncated { field: "the RTCP packet", need: 8, have: 7 };
        assert_eq!(Compound::parse(&report[..7]).unwrap_err(), truncated);
        let mut trailing = report.to_vec();
        trailing.extend([0x80, 202]);
        let truncated = RtcpError::Truncated { field: "the RTCP header", need: 4, have: 2 };
        assert_eq!(Compound::parse(&trailing).unwrap_err(), truncated);
        assert_eq!(Compound::parse(&[0x40, 201, 0, 0]).unwrap_err(), RtcpError::Version(1));
        assert_eq!(Compound::parse(&[0x80, 96, 0, 0]).unwrap_err(), RtcpError::PacketType(96));
    }

    #[test]
    fn padding_belongs_to_the_last_packet_only() {
        let padded = [0xa0, 201, 0, 2, 0, 0, 0, 7, 0, 0, 0, 4];
        let compound = Compound::parse(&padded).unwrap();
        assert!(matches!(compound.packets().next(), Some(Ok(Packet::ReceiverReport(_)))));
        let twice = [padded, padded].concat();
        assert_eq!(Compound::parse(&twice).unwrap_err(), RtcpError::PaddingInside);
        for count in [0, 3, 12] {
            let mut wrong = padded;
            wrong[11] = count;
            let error = RtcpError::Padding { count, len: 8 };
            assert_eq!(Compound::parse(&wrong).unwrap_err(), error);
        }
    }

    #[test]
    fn a_malformed_packet_does_not_silence_its_neighbours() {
        // A sender report too short for its sender information, then a BYE.
        let bytes = [0x80, 200, 0, 1, 0, 0, 0, 7, 0x81, 203, 0, 1, 0, 0, 0, 7];
        let compound = Compound::parse(&bytes).unwrap();
        let packets: Vec<_> = compound.packets().collect();
        assert!(matches!(packets[..], [Err(RtcpError::Truncated { .. }), Ok(Packet::Bye(_))]));
        assert!(!compound.is_reduced_size());
    }

    #[test]
    fn unknown_packet_types_are_skipped_whole() {
        let bytes = [0x80, 210, 0, 1, 1, 2, 3, 4, 0x80, 201, 0, 1, 0, 0, 0, 7];
        let compound = Compound::parse(&bytes).unwrap();
        let mut packets = compound.packets();
        let unknown = packets.next().unwrap().unwrap();
        assert!(matches!(unknown, Packet::Unknown { packet_type: 210, body: [1, 2, 3, 4] }));
        assert!(matches!(packets.next(), Some(Ok(Packet::ReceiverReport(_)))));
        assert!(packets.next().is_none());
        assert!(compound.is_reduced_size());
    }
}
