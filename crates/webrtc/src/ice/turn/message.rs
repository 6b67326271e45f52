//! Messages to and from a TURN server: requests (RFC 8656 section 18), and data in channels (section 12.4).

use std::net::{IpAddr, SocketAddr};

use aws_lc_rs::hmac;

use super::super::stun::{
    Class, HEADER, INTEGRITY, MAGIC_COOKIE, MESSAGE_INTEGRITY, Message, TransactionId,
};

pub(super) const ALLOCATE: u16 = 0x0003;
pub(super) const REFRESH: u16 = 0x0004;
const DATA_METHOD: u16 = 0x0007;
pub(super) const CHANNEL_BIND: u16 = 0x0009;

pub(super) const CHANNEL_NUMBER: u16 = 0x000C;
pub(super) const LIFETIME: u16 = 0x000D;
pub(super) const XOR_PEER_ADDRESS: u16 = 0x0012;
const DATA: u16 = 0x0013;
pub(super) const REALM: u16 = 0x0014;
pub(super) const NONCE: u16 = 0x0015;
pub(super) const XOR_RELAYED_ADDRESS: u16 = 0x0016;
pub(super) const REQUESTED_TRANSPORT: u16 = 0x0019;

/// Octets before the data of a channel: its number and the length.
pub(super) const CHANNEL_HEADER: usize = 4;

/// A request that is being written. Values are ours or have a limit, so that all lengths fit.
pub(super) struct Writer(Vec<u8>);

impl Writer {
    pub(super) fn new(method: u16, id: &TransactionId) -> Self {
        let mut octets = Vec::with_capacity(128);
        // The methods of TURN have no bits around those of the class, which are 0 in a request.
        octets.extend_from_slice(&method.to_be_bytes());
        octets.extend_from_slice(&[0, 0]);
        octets.extend_from_slice(&MAGIC_COOKIE);
        octets.extend_from_slice(id);
        Self(octets)
    }

    pub(super) fn attribute(&mut self, kind: u16, value: &[u8]) {
        self.0.extend_from_slice(&kind.to_be_bytes());
        self.0.extend_from_slice(&(value.len() as u16).to_be_bytes());
        self.0.extend_from_slice(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }

    /// Adds an address in the form of XOR-MAPPED-ADDRESS (RFC 8489 section 14.2).
    pub(super) fn address(&mut self, kind: u16, address: SocketAddr) {
        let mask: Vec<u8> = self.0.iter().skip(4).take(16).copied().collect();
        let (family, octets) = match address.ip() {
            IpAddr::V4(ip) => (1, ip.octets().to_vec()),
            IpAddr::V6(ip) => (2, ip.octets().to_vec()),
        };
        let mut value = vec![0, family];
        value.extend_from_slice(&(address.port() ^ 0x2112).to_be_bytes());
        value.extend(octets.iter().zip(mask).map(|(octet, mask)| octet ^ mask));
        self.attribute(kind, &value);
    }

    /// Ends the message, with MESSAGE-INTEGRITY if there is a key.
    pub(super) fn finish(mut self, key: Option<&hmac::Key>) -> Vec<u8> {
        let body = self.0.len() - HEADER + if key.is_some() { INTEGRITY } else { 0 };
        self.0[2..4].copy_from_slice(&(body as u16).to_be_bytes());
        if let Some(key) = key {
            let tag = hmac::sign(key, &self.0);
            self.attribute(MESSAGE_INTEGRITY, tag.as_ref());
        }
        self.0
    }
}

/// Reads a Data indication: the peer, and its datagram (RFC 8656 section 11.4).
pub(super) fn data_indication(datagram: &[u8]) -> Option<(SocketAddr, &[u8])> {
    let message = Message::parse(datagram)?;
    let is_data = message.method() == DATA_METHOD && message.class() == Class::Indication;
    let peer = message.address(XOR_PEER_ADDRESS).filter(|_| is_data)?;
    Some((peer, message.find(DATA)?))
}

/// Reads data in a channel: its number, and the peer's datagram. Over UDP padding may follow (section 12.5).
pub(super) fn channel_data(datagram: &[u8]) -> Option<(u16, &[u8])> {
    let (head, data) = datagram.split_first_chunk::<CHANNEL_HEADER>()?;
    let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
    Some((u16::from_be_bytes([head[0], head[1]]), data.get(..length)?))
}

/// Returns data in a channel, `None` if it is too long for any datagram.
pub(super) fn in_channel(number: u16, data: &[u8]) -> Option<Vec<u8>> {
    let length = u16::try_from(data.len()).ok()?;
    let mut datagram = Vec::with_capacity(CHANNEL_HEADER + data.len());
    datagram.extend_from_slice(&number.to_be_bytes());
    datagram.extend_from_slice(&length.to_be_bytes());
    datagram.extend_from_slice(data);
    Some(datagram)
}
