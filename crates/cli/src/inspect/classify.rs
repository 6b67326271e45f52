//! The kind of a datagram, by its first octets (RFC 7983 section 7, RFC 5761 section 4).

use rushes::PayloadType;
use rushes::proto::rtcp::is_rtcp;
use rushes::proto::rtp::Packet;

/// The kind of a datagram.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub(crate) enum Kind {
    Rtp,
    Rtcp,
    Stun,
    Turn,
    Dtls,
    Zrtp,
    /// An empty datagram, which keeps a path open.
    Empty,
    Other,
}

impl Kind {
    pub(crate) const ALL: [Self; 8] = [
        Self::Rtp,
        Self::Rtcp,
        Self::Stun,
        Self::Turn,
        Self::Dtls,
        Self::Zrtp,
        Self::Empty,
        Self::Other,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Rtp => "RTP",
            Self::Rtcp => "RTCP",
            Self::Stun => "STUN",
            Self::Turn => "TURN channel data",
            Self::Dtls => "DTLS",
            Self::Zrtp => "ZRTP",
            Self::Empty => "empty",
            Self::Other => "other",
        }
    }

    /// Returns the kind as a JSON key.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Rtp => "rtp",
            Self::Rtcp => "rtcp",
            Self::Stun => "stun",
            Self::Turn => "turn_channel_data",
            Self::Dtls => "dtls",
            Self::Zrtp => "zrtp",
            Self::Empty => "empty",
            Self::Other => "other",
        }
    }

    /// Returns the kind of `datagram`. By the first octet alone, many DNS queries would count as
    /// STUN, so a second property is required if the protocol has one.
    pub(crate) fn of(datagram: &[u8]) -> Self {
        match datagram {
            [] => Self::Empty,
            // The magic cookies: RFC 8489 section 5, RFC 6189 section 5.
            [0..=3, _, _, _, 0x21, 0x12, 0xa4, 0x42, ..] => Self::Stun,
            [16..=19, _, _, _, b'Z', b'R', b'T', b'P', ..] => Self::Zrtp,
            // A defined content type and a version of DTLS (RFC 9147 section 4).
            [20..=26, 0xfe, 0xfc..=0xff, ..] => Self::Dtls,
            // A length that matches the datagram's, except for padding (RFC 8656 section 12.4).
            [64..=79, _, high, low, rest @ ..]
                if (0..4).contains(
                    &rest.len().wrapping_sub(usize::from(u16::from_be_bytes([*high, *low]))),
                ) =>
            {
                Self::Turn
            }
            _ if is_rtcp(datagram) && datagram.len() >= 8 => Self::Rtcp,
            _ if is_rtcp(datagram) => Self::Other,
            _ if is_rtp(datagram) => Self::Rtp,
            _ => Self::Other,
        }
    }
}

fn is_rtp(datagram: &[u8]) -> bool {
    let packet = Packet::parse(datagram);
    packet.is_ok_and(|packet| PayloadType::new(packet.payload_type()).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_protocol_has_its_sign() {
        let rtp = [0x80, 96, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3];
        for (datagram, kind) in [
            (&[][..], Kind::Empty),
            (&rtp, Kind::Rtp),
            (&rtp[..11], Kind::Other),
            (&[0x80, 70, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3], Kind::Other),
            (&[0x80, 201, 0, 1, 0, 0, 0, 7], Kind::Rtcp),
            (&[0x80, 201, 0, 1], Kind::Other),
            (&[0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42, 0], Kind::Stun),
            (&[0, 1, 1, 0, 0, 1, 0, 0], Kind::Other),
            (&[0x10, 0, 0, 1, b'Z', b'R', b'T', b'P'], Kind::Zrtp),
            (&[22, 0xfe, 0xfd, 0, 0], Kind::Dtls),
            (&[22, 3, 1, 0, 0], Kind::Other),
            (&[0x40, 0, 0, 2, 1, 2], Kind::Turn),
            (&[0x40, 0, 0, 9, 1, 2], Kind::Other),
        ] {
            assert_eq!(Kind::of(datagram), kind, "{datagram:?}");
        }
    }
}
