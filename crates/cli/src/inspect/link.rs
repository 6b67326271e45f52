//! Link layers: the start of the IP packet in a captured frame.

use std::fmt;

/// A link type of the registry of tcpdump.org.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct LinkType(pub(crate) i32);

/// The reason why a frame contains no IP packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum NoIp {
    /// Another network protocol, or none.
    Other,
    /// The frame ends within its own header.
    TooShort,
    /// An unsupported link layer.
    Link(LinkType),
}

/// Maximum number of consecutive VLAN tags; two are common.
const TAGS_MAX: usize = 4;

impl LinkType {
    pub(crate) const ETHERNET: Self = Self(1);
    const NULL: Self = Self(0);
    /// `DLT_RAW` as some systems write it instead of 101.
    const RAW_BSD: Self = Self(12);
    const RAW_OPENBSD: Self = Self(14);
    const RAW: Self = Self(101);
    const LOOP: Self = Self(108);
    const LINUX_SLL: Self = Self(113);
    const IPV4: Self = Self(228);
    const IPV6: Self = Self(229);
    const LINUX_SLL2: Self = Self(276);

    /// Returns the IP packet in `frame`, possibly followed by the link layer's padding.
    pub(crate) fn ip_packet(self, frame: &[u8]) -> Result<&[u8], NoIp> {
        match self {
            Self::RAW | Self::RAW_BSD | Self::RAW_OPENBSD | Self::IPV4 | Self::IPV6 => {
                versioned(frame)
            }
            // The header is an address family in four octets, in the byte order of the capturing
            // host. The version in the IP header is used instead, which does not depend on the byte
            // order.
            Self::NULL | Self::LOOP => versioned(frame.get(4..).ok_or(NoIp::TooShort)?),
            Self::ETHERNET => typed(frame, 12, 14),
            Self::LINUX_SLL => typed(frame, 14, 16),
            Self::LINUX_SLL2 => typed(frame, 0, 20),
            other => Err(NoIp::Link(other)),
        }
    }
}

impl fmt::Display for LinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            Self::ETHERNET => "Ethernet",
            Self::NULL | Self::LOOP => "BSD loopback",
            Self::RAW | Self::RAW_BSD | Self::RAW_OPENBSD => "raw IP",
            Self::IPV4 => "raw IPv4",
            Self::IPV6 => "raw IPv6",
            Self::LINUX_SLL => "Linux cooked",
            Self::LINUX_SLL2 => "Linux cooked v2",
            Self(other) => return write!(f, "link type {other}"),
        })
    }
}

/// Returns the packet after a header of `header_len` octets and VLAN tags. The number of the
/// protocol is at `type_at`.
fn typed(frame: &[u8], type_at: usize, header_len: usize) -> Result<&[u8], NoIp> {
    let mut ether_type = half_word(frame, type_at)?;
    let mut start = header_len;
    for _ in 0..TAGS_MAX {
        if !matches!(ether_type, 0x8100 | 0x88a8 | 0x9100) {
            break;
        }
        ether_type = half_word(frame, start + 2)?;
        start += 4;
    }
    match ether_type {
        0x0800 | 0x86dd => versioned(frame.get(start..).ok_or(NoIp::TooShort)?),
        _ => Err(NoIp::Other),
    }
}

fn versioned(packet: &[u8]) -> Result<&[u8], NoIp> {
    match packet.first().map(|first| first >> 4) {
        Some(4 | 6) => Ok(packet),
        Some(_) => Err(NoIp::Other),
        None => Err(NoIp::TooShort),
    }
}

fn half_word(frame: &[u8], at: usize) -> Result<u16, NoIp> {
    let word = frame.get(at..).and_then(|rest| rest.first_chunk::<2>());
    word.map(|word| u16::from_be_bytes(*word)).ok_or(NoIp::TooShort)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PACKET: &[u8] = b"\x45rest";

    fn frame(header: &[u8]) -> Vec<u8> {
        [header, PACKET].concat()
    }

    #[test]
    fn the_packet_is_found_behind_each_link_layer() {
        let ethernet = [&[1; 12][..], &[8, 0]].concat();
        let cooked = [&[0; 14][..], &[8, 0]].concat();
        let cooked2 = [&[8, 0][..], &[0; 18]].concat();
        for (link, header) in [
            (0, &[2, 0, 0, 0][..]),
            (108, &[0, 0, 0, 2]),
            (1, &ethernet),
            (12, &[]),
            (14, &[]),
            (101, &[]),
            (228, &[]),
            (113, &cooked),
            (276, &cooked2),
        ] {
            assert_eq!(LinkType(link).ip_packet(&frame(header)), Ok(PACKET), "{link}");
        }
    }

    #[test]
    fn vlan_tags_are_passed_over() {
        let tags = [0x88, 0xa8, 0, 7, 0x81, 0, 0, 9, 8, 0];
        let ethernet = [&[1; 12][..], &tags].concat();
        assert_eq!(LinkType(1).ip_packet(&frame(&ethernet)), Ok(PACKET));
        let cooked2 = [&[0x81, 0][..], &[0; 18], &[0, 7, 8, 0]].concat();
        assert_eq!(LinkType(276).ip_packet(&frame(&cooked2)), Ok(PACKET));
    }

    #[test]
    fn other_protocols_and_layers_are_distinguished() {
        let arp = [&[1; 12][..], &[8, 6, 0, 0]].concat();
        assert_eq!(LinkType(1).ip_packet(&arp), Err(NoIp::Other));
        assert_eq!(LinkType(101).ip_packet(&[0x50]), Err(NoIp::Other));
        assert_eq!(LinkType(1).ip_packet(&[1; 13]), Err(NoIp::TooShort));
        assert_eq!(LinkType(105).ip_packet(PACKET), Err(NoIp::Link(LinkType(105))));
    }

    proptest! {
        #[test]
        fn the_packet_is_always_the_end_of_the_frame(
            link in prop::sample::select(vec![0, 1, 12, 14, 101, 108, 113, 228, 229, 276, 7]),
            frame in prop::collection::vec(any::<u8>(), 0..80),
        ) {
            if let Ok(packet) = LinkType(link).ip_packet(&frame) {
                prop_assert!(frame.ends_with(packet));
                prop_assert!(!packet.is_empty());
            }
        }
    }
}
