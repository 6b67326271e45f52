//! Which protocol a datagram on the media's port is of (RFC 7983).

/// The protocol of a datagram.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// STUN, which ICE consists of (RFC 8489).
    Stun,
    /// ZRTP (RFC 6189).
    Zrtp,
    /// DTLS (RFC 6347, RFC 9147).
    Dtls,
    /// Data on a channel of a TURN server (RFC 8656).
    TurnChannel,
    /// RTP or RTCP, secured or not (RFC 3550, RFC 5761).
    Media,
    /// None of these; such a datagram must be dropped.
    Unknown,
}

/// Returns the protocol of a datagram by its first octet (RFC 7983 section 7).
///
/// The rest of the datagram is not looked at, so it may still be malformed.
pub fn kind(datagram: &[u8]) -> Kind {
    match datagram.first() {
        Some(0..=3) => Kind::Stun,
        Some(16..=19) => Kind::Zrtp,
        Some(20..=63) => Kind::Dtls,
        Some(64..=79) => Kind::TurnChannel,
        Some(128..=191) => Kind::Media,
        _ => Kind::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The figure of section 7: the last octet of each range, and its protocol.
    const FIGURE: [(u8, Kind); 9] = [
        (3, Kind::Stun),
        (15, Kind::Unknown),
        (19, Kind::Zrtp),
        (63, Kind::Dtls),
        (79, Kind::TurnChannel),
        (127, Kind::Unknown),
        (191, Kind::Media),
        (254, Kind::Unknown),
        (255, Kind::Unknown),
    ];

    #[test]
    fn every_first_octet_is_of_the_protocol_of_the_figure() {
        for octet in 0..=255 {
            let (_, expected) = FIGURE.iter().find(|(last, _)| octet <= *last).unwrap();
            assert_eq!(kind(&[octet]), *expected, "{octet}");
        }
        assert_eq!(kind(&[]), Kind::Unknown);
    }

    proptest::proptest! {
        #[test]
        fn only_the_first_octet_counts(octets: Vec<u8>, more: Vec<u8>) {
            if !octets.is_empty() {
                proptest::prop_assert_eq!(kind(&octets), kind(&[&octets[..], &more].concat()));
            }
        }
    }
}
