//! The formats of repair packets: their FEC headers, written and read.

use super::error::FecError;
use super::header;
use super::parity::Parity;
use super::protected::Protected;
use crate::ssrc::Ssrc;

/// The format of repair packets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FecFormat {
    /// `FlexFEC` with a flexible mask (RFC 8627 section 4.2.2.1), in a stream of its own. The RTP
    /// header of a repair packet names the protected source as its CSRC.
    FlexFec,
    /// As [`FlexFec`](Self::FlexFec), written with L columns and D rows instead of a mask (section
    /// 4.2.2.2). Both read all variants.
    FlexFecFixed,
    /// `FlexFEC` of draft-ietf-payload-flexible-fec-scheme-03 (`flexfec-03`), in a stream of its own.
    FlexFec03,
    /// ULPFEC with one level of protection (RFC 5109), in the source's stream, within RED.
    Ulp,
}

/// The contents of a repair packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Repair<'a> {
    /// The parity of several packets.
    Parity { source: Option<Ssrc>, protected: Protected, fields: [u8; 8], payload: &'a [u8] },
    /// A whole source packet, except that its version may be another.
    Retransmission(&'a [u8]),
}

impl FecFormat {
    /// Returns the maximum number of packets in a block.
    pub fn packets_max(self) -> u16 {
        match self {
            Self::FlexFec | Self::FlexFecFixed => 110,
            Self::FlexFec03 => 109,
            Self::Ulp => 48,
        }
    }

    /// Returns the maximum octets by which the payload of a repair packet exceeds the longest source
    /// packet without its fixed header.
    pub fn header_len_max(self) -> usize {
        match self {
            Self::FlexFec => 24,
            Self::FlexFecFixed => 12,
            Self::FlexFec03 => 32,
            Self::Ulp => 18,
        }
    }

    /// Returns whether repair packets are in the stream of the media, within RED, rather than in a
    /// stream of their own.
    pub fn is_in_red(self) -> bool {
        self == Self::Ulp
    }

    /// Appends the payload of a repair packet that protects packets of `source`.
    pub(super) fn write(
        self,
        source: Ssrc,
        protected: Protected,
        parity: &Parity,
        out: &mut Vec<u8>,
    ) {
        match self {
            Self::FlexFec => header::write_flexible(protected, parity, out),
            Self::FlexFecFixed => header::write_fixed(protected, parity, out),
            Self::FlexFec03 => header::write_draft_03(source, protected, parity, out),
            Self::Ulp => header::write_ulp(protected, parity, out),
        }
        out.extend_from_slice(&parity.payload);
    }

    /// Reads the payload of a repair packet whose RTP header has the contributing sources `sources`.
    pub(super) fn parse<'a>(
        self,
        sources: &[Ssrc],
        payload: &'a [u8],
    ) -> Result<Repair<'a>, FecError> {
        match self {
            Self::FlexFec | Self::FlexFecFixed => header::parse_rfc_8627(sources, payload),
            Self::FlexFec03 => header::parse_draft_03(payload),
            Self::Ulp => header::parse_ulp(payload),
        }
    }
}
