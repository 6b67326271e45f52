//! STUN messages as far as the crate `is` does not serve: views without allocation, and requests to servers
//! (RFC 8489).

use std::net::{IpAddr, SocketAddr};

/// Octets of a header.
const HEADER: usize = 20;

/// The second word of a header.
const MAGIC_COOKIE: [u8; 4] = [0x21, 0x12, 0xA4, 0x42];

/// The longest message that is read: no check is longer than a packet.
const MAX_LENGTH: usize = 1500;

const USERNAME: u16 = 0x0006;
const ERROR_CODE: u16 = 0x0009;
const XOR_MAPPED_ADDRESS: u16 = 0x0020;

/// The method Binding (section 18.2), without the bits of the class.
const BINDING: u16 = 0x0001;

/// What 96 bits tell a transaction from all others (section 5).
pub(super) type TransactionId = [u8; 12];

/// The class of a message (section 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Request,
    Indication,
    Success,
    Error,
}

/// A Binding message, whose attributes lie within it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Binding<'d> {
    class: Class,
    id: TransactionId,
    attributes: &'d [u8],
}

impl<'d> Binding<'d> {
    /// Reads a whole datagram. `None` is another protocol, another method, or malformed.
    pub(super) fn parse(datagram: &'d [u8]) -> Option<Self> {
        let (header, attributes) = datagram.split_first_chunk::<HEADER>()?;
        let kind = u16::from_be_bytes([header[0], header[1]]);
        let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let is_whole = length == attributes.len() && length.is_multiple_of(4);
        if kind >> 14 != 0 || header[4..8] != MAGIC_COOKIE || !is_whole {
            return None;
        }
        if datagram.len() > MAX_LENGTH || kind & !0x0110 != BINDING {
            return None;
        }
        let class = match kind & 0x0110 {
            0x0000 => Class::Request,
            0x0010 => Class::Indication,
            0x0100 => Class::Success,
            _ => Class::Error,
        };
        let mut id = [0; 12];
        id.copy_from_slice(&header[8..]);
        let binding = Self { class, id, attributes };
        let mut rest = attributes;
        while !rest.is_empty() {
            rest = attribute(rest)?.2;
        }
        Some(binding)
    }

    pub(super) fn class(&self) -> Class {
        self.class
    }

    pub(super) fn id(&self) -> TransactionId {
        self.id
    }

    /// Returns the two user name fragments of USERNAME: the receiver's, then the sender's.
    pub(super) fn ufrags(&self) -> Option<(&'d str, &'d str)> {
        let name = std::str::from_utf8(self.find(USERNAME)?).ok()?;
        name.split_once(':').filter(|(local, remote)| !local.is_empty() && !remote.is_empty())
    }

    /// Returns the address that the sender of a response saw (section 14.2).
    pub(super) fn mapped_address(&self) -> Option<SocketAddr> {
        let value = self.find(XOR_MAPPED_ADDRESS)?;
        let (head, octets) = value.split_first_chunk::<4>()?;
        let port = u16::from_be_bytes([head[2], head[3]]) ^ 0x2112;
        let mut mask = [0; 16];
        mask[..4].copy_from_slice(&MAGIC_COOKIE);
        mask[4..].copy_from_slice(&self.id);
        let ip = match head[1] {
            1 => IpAddr::from(unmask::<4>(octets, &mask)?),
            2 => IpAddr::from(unmask::<16>(octets, &mask)?),
            _ => return None,
        };
        Some(SocketAddr::new(ip, port))
    }

    /// Returns the code of an error response, from 300 to 699 (section 14.8).
    pub(super) fn error_code(&self) -> Option<u16> {
        let head = self.find(ERROR_CODE)?.first_chunk::<4>()?;
        Some(u16::from(head[2] & 7) * 100 + u16::from(head[3]))
    }

    /// Returns the first attribute of a type.
    fn find(&self, kind: u16) -> Option<&'d [u8]> {
        let mut rest = self.attributes;
        while let Some((found, value, next)) = attribute(rest) {
            if found == kind {
                return Some(value);
            }
            rest = next;
        }
        None
    }
}

/// Splits the first attribute off: its type, its value, and what follows its padding (section 14).
fn attribute(octets: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let (head, rest) = octets.split_first_chunk::<4>()?;
    let kind = u16::from_be_bytes([head[0], head[1]]);
    let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
    let value = rest.get(..length)?;
    Some((kind, value, rest.get(length.next_multiple_of(4)..)?))
}

fn unmask<const N: usize>(octets: &[u8], mask: &[u8; 16]) -> Option<[u8; N]> {
    let mut address: [u8; N] = octets.try_into().ok()?;
    for (octet, mask) in address.iter_mut().zip(mask) {
        *octet ^= mask;
    }
    Some(address)
}

/// Writes a Binding request to a STUN server, which needs no attribute (section 3).
pub(super) fn server_request(id: &TransactionId) -> Vec<u8> {
    let mut request = Vec::with_capacity(HEADER);
    request.extend_from_slice(&BINDING.to_be_bytes());
    request.extend_from_slice(&[0, 0]);
    request.extend_from_slice(&MAGIC_COOKIE);
    request.extend_from_slice(id);
    request
}

/// Returns the user name fragments of a Binding request: that of the agent which it is for, then that of its
/// sender.
///
/// A server with many agents behind one socket finds the agent by the first. Nothing is allocated, and
/// nothing is authenticated: only the agent can do that.
pub fn ufrags_of(datagram: &[u8]) -> Option<(&str, &str)> {
    Binding::parse(datagram).filter(|binding| binding.class == Class::Request)?.ufrags()
}
