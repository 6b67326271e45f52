//! ZRTP packets: sequence number, cookie, SSRC and checksum around a message or a fragment of one
//! (RFC 6189 section 5, draft section "ZRTP Packet Formats").

use thiserror::Error;

use super::crc::checksum;
use super::fragment::{Fragment, FragmentError};

/// The magic cookie, "ZRTP".
const COOKIE: [u8; 4] = *b"ZRTP";

/// The first octet of a packet with a whole message.
const WHOLE: u8 = 16;

/// The first octet of a packet with a fragment.
const FRAGMENT: u8 = 17;

/// Octets before the message.
pub(super) const HEADER_LEN: usize = 12;

/// Octets of the checksum.
pub(super) const CRC_LEN: usize = 4;

/// The reason why octets are not a ZRTP packet. Such octets are discarded without an answer.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PacketError {
    /// The packet is too short for header and checksum.
    #[error("a packet of {0} octets is too short for header and checksum")]
    TooShort(usize),
    /// The first octet is neither 16 nor 17.
    #[error("the packet begins with octet {0}, neither 16 nor 17")]
    Kind(u8),
    /// The magic cookie is not "ZRTP".
    #[error("the cookie is {0:02x?} instead of \"ZRTP\"")]
    Cookie([u8; 4]),
    /// The checksum does not match: the packet was changed in transit.
    #[error("the packet has checksum {claimed:02x?}, but its octets give {computed:02x?}")]
    Crc {
        /// The checksum in the packet.
        claimed: [u8; 4],
        /// The checksum of its octets.
        computed: [u8; 4],
    },
    /// The header of a fragment contradicts itself or the packet.
    #[error(transparent)]
    Fragment(#[from] FragmentError),
}

/// The content of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content<'a> {
    /// A whole message.
    Message(&'a [u8]),
    /// A part of a message.
    Fragment(Fragment<'a>),
}

/// A view of one packet whose checksum matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The number of the packet among those sent, modulo 2^16.
    pub sequence: u16,
    /// The RTP source to which the packet belongs.
    pub ssrc: u32,
    /// The message, or a fragment of one.
    pub content: Content<'a>,
}

impl<'a> Packet<'a> {
    /// Checks a datagram and returns a view of it.
    ///
    /// The second octet is unused and ignored (RFC 6189 section 5). The message inside is not
    /// parsed: see [`Message::parse`](super::Message::parse).
    pub fn parse(octets: &'a [u8]) -> Result<Self, PacketError> {
        let too_short = PacketError::TooShort(octets.len());
        let (covered, &claimed) = octets.split_last_chunk::<CRC_LEN>().ok_or(too_short)?;
        let (header, body) = covered.split_first_chunk::<HEADER_LEN>().ok_or(too_short)?;
        let [kind, _, s0, s1, c0, c1, c2, c3, ssrc @ ..] = *header;
        if kind != WHOLE && kind != FRAGMENT {
            return Err(PacketError::Kind(kind));
        }
        if [c0, c1, c2, c3] != COOKIE {
            return Err(PacketError::Cookie([c0, c1, c2, c3]));
        }
        let computed = checksum(covered);
        if claimed != computed {
            return Err(PacketError::Crc { claimed, computed });
        }
        let content = if kind == WHOLE {
            Content::Message(body)
        } else {
            Content::Fragment(Fragment::parse(body)?)
        };
        let sequence = u16::from_be_bytes([s0, s1]);
        Ok(Self { sequence, ssrc: u32::from_be_bytes(ssrc), content })
    }
}

/// Appends the packet of a whole message.
///
/// The packet is 16 octets longer than the message.
pub fn write_packet(sequence: u16, ssrc: u32, message: &[u8], out: &mut Vec<u8>) {
    write(WHOLE, sequence, ssrc, out, |out| out.extend_from_slice(message));
}

/// Appends the packet of one fragment.
///
/// The packet is 24 octets longer than the part of the message in it.
pub fn write_fragment(sequence: u16, ssrc: u32, fragment: &Fragment<'_>, out: &mut Vec<u8>) {
    write(FRAGMENT, sequence, ssrc, out, |out| fragment.write(out));
}

fn write(kind: u8, sequence: u16, ssrc: u32, out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[kind, 0]);
    out.extend_from_slice(&sequence.to_be_bytes());
    out.extend_from_slice(&COOKIE);
    out.extend_from_slice(&ssrc.to_be_bytes());
    body(out);
    let crc = checksum(out.get(start..).unwrap_or_default());
    out.extend_from_slice(&crc);
}

/// Sets the sequence number of a written packet, because queued packets are numbered in the order
/// in which they are sent.
pub(super) fn set_sequence(packet: &mut [u8], sequence: u16) {
    let Some((covered, crc)) = packet.split_last_chunk_mut::<CRC_LEN>() else { return };
    if let Some(field) = covered.get_mut(2..4) {
        field.copy_from_slice(&sequence.to_be_bytes());
        *crc = checksum(covered);
    }
}

/// Returns whether a datagram on a shared port is ZRTP: it has a first octet of 16 to 19 (RFC 7983
/// section 7) and the magic cookie.
#[inline]
pub fn is_zrtp(octets: &[u8]) -> bool {
    matches!(octets, [16..=19, _, _, _, b'Z', b'R', b'T', b'P', ..])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn packet() -> Vec<u8> {
        let mut octets = Vec::new();
        write_packet(0x1234, 0x0102_0304, b"a message...", &mut octets);
        octets
    }

    #[test]
    fn the_header_is_laid_out_as_in_figure_2() {
        let octets = packet();
        assert_eq!(octets[..12], *b"\x10\x00\x12\x34ZRTP\x01\x02\x03\x04");
        assert!(is_zrtp(&octets));
    }

    #[test]
    fn a_packet_that_is_numbered_later_is_the_same() {
        let mut octets = Vec::new();
        write_packet(0, 0x0102_0304, b"a message...", &mut octets);
        set_sequence(&mut octets, 0x1234);
        assert_eq!(octets, packet());
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let octets = packet();
        for bit in 0..octets.len() * 8 {
            let mut changed = octets.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(Packet::parse(&changed).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn every_truncation_is_an_error() {
        let octets = packet();
        for len in 0..octets.len() {
            assert!(Packet::parse(&octets[..len]).is_err(), "{len} octets");
        }
    }

    #[test]
    fn the_unused_octet_is_ignored() {
        let mut octets = packet();
        octets[1] = 0xff;
        let end = octets.len() - CRC_LEN;
        let crc = checksum(&octets[..end]);
        octets[end..].copy_from_slice(&crc);
        assert!(Packet::parse(&octets).is_ok());
    }

    #[test]
    fn other_protocols_of_a_shared_port_are_not_zrtp() {
        assert!(!is_zrtp(b"\x80\x00\x12\x34ZRTP"));
        assert!(!is_zrtp(b"\x14\x00\x12\x34ZRTP"));
        assert!(!is_zrtp(b"\x10\x00\x12\x34ZRT"));
        assert_eq!(Packet::parse(&[0x12; 16]), Err(PacketError::Kind(0x12)));
    }

    proptest! {
        #[test]
        fn a_packet_survives_writing(sequence: u16, ssrc: u32, message: Vec<u8>) {
            let mut octets = Vec::new();
            write_packet(sequence, ssrc, &message, &mut octets);
            let content = Content::Message(&message);
            let expected = Packet { sequence, ssrc, content };
            prop_assert_eq!(Packet::parse(&octets), Ok(expected));
        }
    }
}
