//! Datagrams that pass through a relay: each follows the number of its channel and its length (TURN, RFC 8656
//! section 12.4).

use std::net::SocketAddr;
use std::time::Instant;

use rushes_net::{Datagram, SendError, SendErrorKind, SendQueue, UdpSocket};

/// Octets before each datagram.
const HEADER_LEN: usize = 4;

/// The number of the first channel; others follow.
const FIRST_CHANNEL: u16 = 0x4000;

/// Where datagrams for a peer go.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Hop {
    /// The peer's address.
    pub(crate) peer: SocketAddr,
    /// The relay's address and the channel there, unless they go directly.
    through: Option<(SocketAddr, u16)>,
}

impl Hop {
    pub(crate) fn direct(peer: SocketAddr) -> Self {
        Self { peer, through: None }
    }

    #[cfg(feature = "webrtc")]
    pub(crate) fn through(peer: SocketAddr, server: SocketAddr, channel: u16) -> Self {
        Self { peer, through: Some((server, channel)) }
    }

    pub(crate) fn is_direct(self) -> bool {
        self.through.is_none()
    }

    /// Sends datagrams as [`UdpSocket::send`] does. Through a relay they are copied once.
    pub(crate) fn send(
        self,
        socket: &UdpSocket,
        queue: &mut SendQueue,
        (bytes, lengths): (&[u8], &[u16]),
        deadline: Instant,
    ) -> Result<(), SendError> {
        let Some((server, channel)) = self.through else {
            return socket.send(queue, bytes, lengths, self.peer, deadline);
        };
        let (bytes, lengths) = wrap(channel, bytes, lengths).map_err(|length| {
            let kind = SendErrorKind::TooLarge { length, to: self.peer };
            SendError { kind, sent: 0 }
        })?;
        socket.send(queue, &bytes, &lengths, server, deadline)
    }
}

/// Returns datagrams with the header of a channel before each, or the length of one that is too long.
fn wrap(channel: u16, mut bytes: &[u8], lengths: &[u16]) -> Result<(Vec<u8>, Vec<u16>), usize> {
    let mut wrapped = Vec::with_capacity(bytes.len() + HEADER_LEN * lengths.len());
    let mut all = Vec::with_capacity(lengths.len());
    for length in lengths {
        let with_header =
            length.checked_add(HEADER_LEN as u16).ok_or_else(|| usize::from(*length))?;
        let (datagram, rest) = bytes.split_at(usize::from(*length).min(bytes.len()));
        wrapped.extend_from_slice(&channel.to_be_bytes());
        wrapped.extend_from_slice(&length.to_be_bytes());
        wrapped.extend_from_slice(datagram);
        all.push(with_header);
        bytes = rest;
    }
    Ok((wrapped, all))
}

/// A relay, and the peers of its channels in the order of their numbers.
#[derive(Clone, Debug)]
pub(crate) struct Relay {
    server: SocketAddr,
    peers: Vec<SocketAddr>,
}

impl Relay {
    #[cfg_attr(not(feature = "webrtc"), allow(dead_code, reason = "only WebRTC has relays"))]
    pub(crate) fn new(server: SocketAddr) -> Self {
        Self { server, peers: Vec::new() }
    }

    #[cfg_attr(not(feature = "webrtc"), allow(dead_code, reason = "only WebRTC has relays"))]
    pub(crate) fn set(&mut self, channel: u16, peer: SocketAddr) {
        let place = usize::from(channel.saturating_sub(FIRST_CHANNEL));
        match self.peers.get_mut(place) {
            Some(known) => *known = peer,
            // Each number follows the one before.
            None => self.peers.push(peer),
        }
    }

    /// Returns whether a datagram is of the relay, which may contain one of a peer.
    #[inline]
    pub(crate) fn is_from(&self, from: SocketAddr) -> bool {
        self.server == from
    }

    /// Returns the datagram of a peer that one of the relay contains. Checks of the path (STUN) remain as they
    /// are, because it matters to these how they have come.
    pub(crate) fn unwrap<'d>(&'d self, datagram: Datagram<'d>) -> Datagram<'d> {
        let Datagram { data, from, arrival, ecn } = datagram;
        let Some((peer, end)) = self.find(data) else {
            return Datagram { data, from, arrival, ecn };
        };
        let data = data.get_mut(HEADER_LEN..end).unwrap_or_default();
        Datagram { data, from: peer, arrival, ecn }
    }

    /// Returns the peer whose datagram this one contains, and where that ends.
    fn find(&self, datagram: &[u8]) -> Option<(&SocketAddr, usize)> {
        let (head, data) = datagram.split_first_chunk::<HEADER_LEN>()?;
        let channel = u16::from_be_bytes([head[0], head[1]]);
        let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
        let peer = self.peers.get(usize::from(channel.checked_sub(FIRST_CHANNEL)?))?;
        // RFC 7983 section 7: STUN begins with 0 to 3.
        let is_check = data.get(..length)?.first().is_none_or(|first| *first < 4);
        (!is_check).then_some((peer, HEADER_LEN + length))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], port))
    }

    fn relay() -> Relay {
        let mut relay = Relay::new(address(3478));
        relay.set(FIRST_CHANNEL, address(9));
        (1..=3).for_each(|port| relay.set(FIRST_CHANNEL + port - 1, address(port)));
        relay
    }

    proptest! {
        #[test]
        fn datagrams_arrive_as_they_were_sent(
            datagrams in prop::collection::vec(prop::collection::vec(4_u8.., 1..100), 1..20),
            place in 0..3_u16,
        ) {
            let lengths: Vec<_> = datagrams.iter().map(|it| it.len() as u16).collect();
            let wrapped = wrap(0x4000 + place, &datagrams.concat(), &lengths);
            let (mut bytes, lengths) = wrapped.unwrap();
            let mut rest = &mut bytes[..];
            for (sent, length) in datagrams.iter().zip(lengths) {
                let (data, others) = rest.split_at_mut(length.into());
                let arrival = Instant::now();
                let relay = relay();
                let from = address(3478);
                let unwrapped = relay.unwrap(Datagram { data, from: &from, arrival, ecn: 0 });
                prop_assert_eq!(&*unwrapped.data, &sent[..]);
                prop_assert_eq!(*unwrapped.from, address(place + 1));
                rest = others;
            }
            prop_assert!(rest.is_empty());
        }

        #[test]
        fn any_datagram_of_a_relay_is_read(
            mut octets in prop::collection::vec(any::<u8>(), 0..40),
            channel in 0x3FFE..0x4006_u16,
            is_framed: bool,
        ) {
            if is_framed && octets.len() >= 4 {
                octets[..2].copy_from_slice(&channel.to_be_bytes());
                octets[2] = 0;
                octets[3] &= 63;
            }
            let (relay, from, before) = (relay(), address(3478), octets.clone());
            let data = &mut octets[..];
            let arrival = Instant::now();
            let unwrapped = relay.unwrap(Datagram { data, from: &from, arrival, ecn: 0 });
            let is_changed = *unwrapped.from != from;
            let expected = if is_changed {
                let length = usize::from(before[3]);
                prop_assert!(before[4] >= 4);
                &before[4..4 + length]
            } else {
                &before[..]
            };
            prop_assert_eq!(&*unwrapped.data, expected);
        }
    }

    #[test]
    fn checks_and_unknown_channels_remain_as_they_are() {
        let relay = relay();
        for octets in [&b"\x40\0\0\x01\x03"[..], b"\x40\x03\0\x01\x80", b"\x40\0\0\x02\x80"] {
            assert_eq!(relay.find(octets), None);
        }
        // Over UDP, padding may follow.
        assert_eq!(relay.find(b"\x40\0\0\x01\x80\0\0\0"), Some((&address(1), 5)));
    }

    #[test]
    fn a_datagram_that_is_too_long_with_its_header_is_refused() {
        let bytes = vec![0; 65_533];
        assert_eq!(wrap(0x4000, &bytes, &[65_533]), Err(65_533));
    }
}
