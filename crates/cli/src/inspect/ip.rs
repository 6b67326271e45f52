//! IPv4, IPv6 and UDP headers: only as far as needed to find a datagram.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The protocol number of UDP.
pub(crate) const UDP: u8 = 17;

/// Maximum number of extension headers; real packets have fewer.
const HEADERS_MAX: usize = 16;

/// Octets in a UDP header.
const UDP_HEADER_LEN: usize = 8;

/// An IP packet without its headers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct IpPacket<'p> {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    /// The number of the transport protocol.
    pub(crate) protocol: u8,
    /// The captured part of the payload.
    pub(crate) payload: &'p [u8],
    /// Octets of the whole packet, by its header.
    pub(crate) len: usize,
    /// The position of the payload, if it is a fragment.
    pub(crate) fragment: Option<FragmentHeader>,
}

/// The position of a fragment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct FragmentHeader {
    pub(crate) identification: u32,
    /// The offset of the payload in octets.
    pub(crate) offset: usize,
    /// Whether more fragments follow.
    pub(crate) more: bool,
}

/// A UDP datagram without its header.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Udp<'p> {
    pub(crate) source: u16,
    pub(crate) destination: u16,
    /// The captured part of the data.
    pub(crate) data: &'p [u8],
    /// Octets of the data, by its header.
    pub(crate) len: usize,
}

/// Reads an IP packet; returns `None` if it is none, or is cut off within its headers.
pub(crate) fn parse(packet: &[u8]) -> Option<IpPacket<'_>> {
    match packet.first()? >> 4 {
        4 => parse_v4(packet),
        6 => parse_v6(packet),
        _ => None,
    }
}

/// Reads an IPv4 packet (RFC 791 section 3.1).
fn parse_v4(packet: &[u8]) -> Option<IpPacket<'_>> {
    let head = packet.first_chunk::<20>()?;
    let header_len = usize::from(head[0] & 0x0f) * 4;
    // The length is zero in packets that the network interface will segment.
    let len = match usize::from(u16::from_be_bytes([head[2], head[3]])) {
        0 => packet.len(),
        len => len,
    };
    if header_len < 20 || len < header_len {
        return None;
    }
    let flags = u16::from_be_bytes([head[6], head[7]]);
    let (offset, more) = (usize::from(flags & 0x1fff) * 8, flags & 0x2000 != 0);
    let identification = u32::from(u16::from_be_bytes([head[4], head[5]]));
    Some(IpPacket {
        source: Ipv4Addr::new(head[12], head[13], head[14], head[15]).into(),
        destination: Ipv4Addr::new(head[16], head[17], head[18], head[19]).into(),
        protocol: head[9],
        payload: packet.get(header_len..len.min(packet.len()))?,
        len,
        fragment: (more || offset > 0).then_some(FragmentHeader { identification, offset, more }),
    })
}

/// Reads an IPv6 packet (RFC 8200 sections 3 and 4).
fn parse_v6(packet: &[u8]) -> Option<IpPacket<'_>> {
    let head = packet.first_chunk::<40>()?;
    let len = match usize::from(u16::from_be_bytes([head[4], head[5]])) {
        0 => packet.len(),
        len => 40 + len,
    };
    let address = |at: usize| -> Option<IpAddr> {
        let octets: [u8; 16] = *head[at..].first_chunk()?;
        Some(Ipv6Addr::from(octets).into())
    };
    let (source, destination) = (address(8)?, address(24)?);
    let mut payload = packet.get(40..len.min(packet.len()))?;
    let mut protocol = head[6];
    let mut fragment = None;
    for _ in 0..HEADERS_MAX {
        let &[next, units, a, b, ..] = payload.first_chunk::<8>()?;
        let header_len = match protocol {
            // Hop-by-hop, routing, destination options, mobility, HIP, shim6.
            0 | 43 | 60 | 135 | 139 | 140 => usize::from(units) * 8 + 8,
            // The authentication header counts in words (RFC 4302 section 2.2).
            51 => usize::from(units) * 4 + 8,
            44 => {
                let identification = payload.get(4..).and_then(|rest| rest.first_chunk::<4>())?;
                let (offset, more) = (usize::from(u16::from_be_bytes([a, b]) & 0xfff8), b & 1 != 0);
                let identification = u32::from_be_bytes(*identification);
                fragment = Some(FragmentHeader { identification, offset, more })
                    .filter(|fragment| fragment.more || fragment.offset > 0);
                8
            }
            _ => return Some(IpPacket { source, destination, protocol, payload, len, fragment }),
        };
        protocol = next;
        payload = payload.get(header_len..)?;
        if fragment.is_some_and(|fragment| fragment.offset > 0) {
            // The payload of a later fragment has no headers to read.
            return Some(IpPacket { source, destination, protocol, payload, len, fragment });
        }
    }
    None
}

/// Reads a UDP datagram (RFC 768); `None` if it is cut within its header or inconsistent.
pub(crate) fn parse_udp(payload: &[u8]) -> Option<Udp<'_>> {
    let (head, data) = payload.split_first_chunk::<UDP_HEADER_LEN>()?;
    let field = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let len = match usize::from(field(4)) {
        // The datagram is longer than the field can express; the network interface will segment it.
        0 => data.len(),
        len => len.checked_sub(UDP_HEADER_LEN)?,
    };
    let data = &data[..len.min(data.len())];
    Some(Udp { source: field(0), destination: field(2), data, len })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn v4(options: usize, flags: u16, payload: &[u8]) -> Vec<u8> {
        let len = (20 + options + payload.len()) as u16;
        let mut packet = vec![0x45 + (options / 4) as u8, 0];
        packet.extend(len.to_be_bytes());
        packet.extend([0, 7]);
        packet.extend(flags.to_be_bytes());
        packet.extend([64, UDP, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
        packet.resize(20 + options, 1);
        packet.extend(payload);
        packet
    }

    fn v6(next: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x60, 0, 0, 0];
        packet.extend((payload.len() as u16).to_be_bytes());
        packet.extend([next, 64]);
        packet.extend(Ipv6Addr::LOCALHOST.octets());
        packet.extend(Ipv6Addr::LOCALHOST.octets());
        packet.extend(payload);
        packet
    }

    #[test]
    fn options_and_padding_are_no_payload() {
        let mut packet = v4(8, 0x4000, b"payload");
        packet.extend([0; 6]);
        let parsed = parse(&packet).unwrap();
        assert_eq!(parsed.payload, b"payload");
        assert_eq!((parsed.len, parsed.protocol, parsed.fragment), (35, UDP, None));
        assert_eq!(parsed.source.to_string(), "192.0.2.1");
        assert_eq!(parsed.destination.to_string(), "192.0.2.2");
    }

    #[test]
    fn fragments_say_where_they_belong() {
        let fragment = |packet: &[u8]| parse(packet).unwrap().fragment;
        let expected = |offset, more| Some(FragmentHeader { identification: 7, offset, more });
        assert_eq!(fragment(&v4(0, 0x2000, b"12345678")), expected(0, true));
        assert_eq!(fragment(&v4(0, 1, b"9")), expected(8, false));
        let header = |offset: u8| [UDP, 0, 0, offset, 0, 0, 0, 7, b'1', 2, 3, 4, 5, 6, 7, 8];
        let first = v6(44, &header(1));
        assert_eq!(fragment(&first), expected(0, true));
        let last = v6(44, &header(8));
        assert_eq!(fragment(&last), expected(8, false));
        assert_eq!(parse(&last).unwrap().payload, &header(8)[8..]);
        // An atomic fragment (RFC 6946) is whole.
        assert_eq!(fragment(&v6(44, &header(0))), None);
    }

    #[test]
    fn extension_headers_are_passed_over() {
        let mut payload = vec![60, 0, 1, 4, 0, 0, 0, 0];
        payload.extend([51, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        payload.extend([UDP, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        payload.extend(b"datagram");
        let packet = v6(0, &payload);
        let parsed = parse(&packet).unwrap();
        assert_eq!((parsed.protocol, parsed.payload), (UDP, &b"datagram"[..]));
    }

    #[test]
    fn a_cut_packet_still_has_its_original_length() {
        let packet = v4(0, 0, &[7; 100]);
        let parsed = parse(&packet[..60]).unwrap();
        assert_eq!((parsed.payload.len(), parsed.len), (40, 120));
        assert_eq!(parse(&packet[..19]), None);
        let datagram = [0, 1, 0, 2, 0, 20, 0, 0, 9, 9];
        let udp = parse_udp(&datagram).unwrap();
        assert_eq!((udp.source, udp.destination, udp.data, udp.len), (1, 2, &[9, 9][..], 12));
        assert_eq!(parse_udp(&[0, 1, 0, 2, 0, 7, 0, 0, 9]), None);
    }

    proptest! {
        #[test]
        fn arbitrary_octets_are_read_within_bounds(
            version in prop::sample::select(vec![0x45_u8, 0x4f, 0x60]),
            next in prop::sample::select(vec![0_u8, 17, 43, 44, 51, 60, 135]),
            mut packet in prop::collection::vec(any::<u8>(), 1..120),
        ) {
            packet[0] = version;
            if let Some(octet) = packet.get_mut(6) {
                *octet = next;
            }
            if let Some(parsed) = parse(&packet) {
                prop_assert!(parsed.payload.len() < packet.len());
                if let Some(udp) = parse_udp(parsed.payload) {
                    prop_assert!(udp.data.len() <= udp.len);
                }
            }
        }

        #[test]
        fn what_was_written_is_read(
            options in 0_usize..11,
            payload in prop::collection::vec(any::<u8>(), 0..64),
        ) {
            let packet = v4(options * 4, 0, &payload);
            prop_assert_eq!(parse(&packet).unwrap().payload, &payload[..]);
            let mut extended = vec![UDP, options as u8];
            extended.resize(8 + options * 8, 0);
            extended.extend(&payload);
            extended.extend([0; 8]);
            let packet = v6(60, &extended);
            prop_assert_eq!(parse(&packet).unwrap().payload, &extended[8 + options * 8..]);
        }
    }
}
