//! A received RTP packet, checked once.

use std::ops::Range;

use super::HEADER_LEN;
use super::error::ParseError;
use super::extension::Elements;
use crate::seq::SequenceNumber;
use crate::ssrc::Ssrc;
use crate::time::RtpTimestamp;

/// A view of one RTP packet (RFC 3550 section 5.1).
///
/// It borrows the datagram and copies no payload. `parse` checks every length once, so that no
/// accessor can fail.
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// |V=2|P|X|  CC   |M|     PT      |       sequence number         |
/// |                           timestamp                           |
/// |                             SSRC                              |
/// |              CSRC list (CC words), then extension if X        |
/// ```
#[derive(Clone, Debug)]
pub struct Packet<'a> {
    datagram: &'a [u8],
    head: [u8; HEADER_LEN],
    extension: Option<Extension<'a>>,
    payload: Range<usize>,
}

/// A header extension (RFC 3550 section 5.3.1).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Extension<'a> {
    /// The 16 bits "defined by profile": the format of the data.
    pub profile: u16,
    /// The data, a multiple of 4 octets.
    pub data: &'a [u8],
}

impl<'a> Extension<'a> {
    /// Returns the data as RFC 8285 elements; `None` if the profile denotes neither of their forms.
    pub fn elements(&self) -> Option<Elements<'a>> {
        Elements::new(self.profile, self.data)
    }
}

impl<'a> Packet<'a> {
    /// Checks `datagram` and returns a view of it.
    ///
    /// # Errors
    /// - [`ParseError::Version`] if the version is not 2;
    /// - [`ParseError::Truncated`] if the header, CSRC list or extension exceeds the datagram;
    /// - [`ParseError::Padding`] if the padding count is zero or reaches into the header.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, ParseError> {
        let truncated = |field, need| ParseError::Truncated { field, need, have: datagram.len() };
        let Some(&head) = datagram.first_chunk::<HEADER_LEN>() else {
            return Err(truncated("fixed header", HEADER_LEN));
        };
        if head[0] >> 6 != 2 {
            return Err(ParseError::Version(head[0] >> 6));
        }
        let mut start = HEADER_LEN + 4 * usize::from(head[0] & 0x0f);
        if datagram.len() < start {
            return Err(truncated("CSRC list", start));
        }
        let mut extension = None;
        if head[0] & 0x10 != 0 {
            let Some(&[p1, p0, l1, l0]) = datagram[start..].first_chunk::<4>() else {
                return Err(truncated("extension header", start + 4));
            };
            let data = start + 4;
            start = data + 4 * usize::from(u16::from_be_bytes([l1, l0]));
            let Some(data) = datagram.get(data..start) else {
                return Err(truncated("extension", start));
            };
            extension = Some(Extension { profile: u16::from_be_bytes([p1, p0]), data });
        }
        let rest = datagram.len() - start;
        let padding = match (head[0] & 0x20, datagram[start..].last()) {
            (0, _) => 0,
            (_, Some(&count)) if count > 0 && usize::from(count) <= rest => usize::from(count),
            (_, last) => {
                let count = last.copied().unwrap_or(0);
                return Err(ParseError::Padding { count, payload: rest });
            }
        };
        let payload = start..datagram.len() - padding;
        Ok(Self { datagram, head, extension, payload })
    }

    /// Returns the marker bit, whose meaning depends on the payload format.
    #[inline]
    pub fn marker(&self) -> bool {
        self.head[1] & 0x80 != 0
    }

    /// Returns the payload type, 0..=127.
    #[inline]
    pub fn payload_type(&self) -> u8 {
        self.head[1] & 0x7f
    }

    /// Returns the sequence number.
    #[inline]
    pub fn sequence(&self) -> SequenceNumber {
        SequenceNumber(u16::from_be_bytes([self.head[2], self.head[3]]))
    }

    /// Returns the sampling instant, in ticks of the payload's clock rate.
    #[inline]
    pub fn timestamp(&self) -> RtpTimestamp {
        let [_, _, _, _, a, b, c, d, ..] = self.head;
        RtpTimestamp(u32::from_be_bytes([a, b, c, d]))
    }

    /// Returns the synchronisation source.
    #[inline]
    pub fn ssrc(&self) -> Ssrc {
        let [.., a, b, c, d] = self.head;
        Ssrc(u32::from_be_bytes([a, b, c, d]))
    }

    /// Returns the contributing sources, at most 15.
    pub fn contributing_sources(&self) -> impl ExactSizeIterator<Item = Ssrc> + use<'a> {
        let end = HEADER_LEN + 4 * usize::from(self.head[0] & 0x0f);
        let words: &'a [u8] = &self.datagram[HEADER_LEN..end];
        words
            .chunks_exact(4)
            .map(|word| Ssrc(u32::from_be_bytes([word[0], word[1], word[2], word[3]])))
    }

    /// Returns the header extension, if the X bit is set.
    pub fn extension(&self) -> Option<Extension<'a>> {
        self.extension
    }

    /// Returns the octets of padding at the end, including the count.
    pub fn padding_len(&self) -> usize {
        self.datagram.len() - self.payload.end
    }

    /// Returns the payload, without padding.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        &self.datagram[self.payload.clone()]
    }

    /// Returns the octets before the payload: the length of the header with all its parts.
    pub fn header_len(&self) -> usize {
        self.payload.start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Version 2, padding, extension, two CSRCs, marker, payload type 97.
    #[rustfmt::skip]
    const FULL: [u8; 36] = [
        0xb2, 0xe1, 0x12, 0x34, // V=2 P X CC=2, M PT=97, sequence number
        0x00, 0x01, 0x5f, 0x90, // timestamp 90 000
        0xde, 0xad, 0xbe, 0xef, // SSRC
        0x00, 0x00, 0x00, 0x01, // CSRC
        0x00, 0x00, 0x00, 0x02, // CSRC
        0xbe, 0xde, 0x00, 0x01, // extension: profile, one word
        0x10, 0xaa, 0x00, 0x00, // element 1, one octet; padding
        b'd', b'a', b't', b'a',
        0x00, 0x00, 0x00, 0x04, // padding
    ];

    #[test]
    fn every_field_of_a_full_header_is_read() {
        let packet = Packet::parse(&FULL).unwrap();
        assert!(packet.marker());
        assert_eq!(packet.payload_type(), 97);
        assert_eq!(packet.sequence(), SequenceNumber(0x1234));
        assert_eq!(packet.timestamp(), RtpTimestamp(90_000));
        assert_eq!(packet.ssrc(), Ssrc(0xdead_beef));
        assert_eq!(packet.contributing_sources().collect::<Vec<_>>(), [Ssrc(1), Ssrc(2)]);
        assert_eq!(packet.extension().unwrap().profile, 0xbede);
        assert_eq!(packet.padding_len(), 4);
        assert_eq!(packet.payload(), b"data");
        assert_eq!(packet.header_len(), 28);
    }

    #[test]
    fn every_prefix_is_an_error_or_a_shorter_packet() {
        for len in 0..FULL.len() {
            match Packet::parse(&FULL[..len]) {
                Ok(packet) => assert!(packet.payload().len() < len),
                Err(ParseError::Truncated { need, have, .. }) => {
                    assert_eq!(have, len);
                    assert!(need > len);
                }
                Err(ParseError::Padding { .. }) => assert!(len >= 28),
                Err(error) => panic!("{len}: {error}"),
            }
        }
    }

    #[test]
    fn versions_other_than_2_are_refused() {
        for version in [0, 1, 3] {
            let mut packet = FULL;
            packet[0] = packet[0] & 0x3f | version << 6;
            assert_eq!(Packet::parse(&packet).unwrap_err(), ParseError::Version(version));
        }
    }

    #[test]
    fn padding_of_zero_or_more_than_the_payload_is_refused() {
        for count in [0, 9, 255] {
            let mut packet = FULL;
            packet[35] = count;
            let error = ParseError::Padding { count, payload: 8 };
            assert_eq!(Packet::parse(&packet).unwrap_err(), error);
        }
    }

    #[test]
    fn a_packet_may_consist_of_padding_only() {
        let mut packet = FULL;
        packet[35] = 8;
        assert_eq!(Packet::parse(&packet).unwrap().payload(), b"");
    }

    /// uvgRTP reads the extension's length beyond the end of a packet of 12 octets and crashes.
    #[test]
    fn an_extension_bit_without_an_extension_is_refused() {
        let mut packet = FULL;
        packet[0] = 0x90;
        let error = ParseError::Truncated { field: "extension header", need: 16, have: 12 };
        assert_eq!(Packet::parse(&packet[..12]).unwrap_err(), error);
    }

    #[test]
    fn an_extension_longer_than_the_packet_is_refused() {
        let mut packet = FULL;
        packet[22..24].copy_from_slice(&[0xff, 0xff]);
        let error = ParseError::Truncated { field: "extension", need: 24 + 4 * 65_535, have: 36 };
        assert_eq!(Packet::parse(&packet).unwrap_err(), error);
    }

    #[test]
    fn more_csrcs_than_octets_are_refused() {
        let error = ParseError::Truncated { field: "CSRC list", need: 72, have: 12 };
        let packet = [0x8f, 96, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(Packet::parse(&packet).unwrap_err(), error);
    }
}
