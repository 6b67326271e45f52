//! STUN messages as far as the crate `is` does not serve: views without allocation, and requests to servers
//! (RFC 8489).

use std::net::{IpAddr, SocketAddr};

use aws_lc_rs::{constant_time, hmac};

/// Octets of a header.
pub(super) const HEADER: usize = 20;

/// Octets of MESSAGE-INTEGRITY.
pub(super) const INTEGRITY: usize = 24;

/// The second word of a header.
pub(super) const MAGIC_COOKIE: [u8; 4] = [0x21, 0x12, 0xA4, 0x42];

/// The longest message that is read: no check is longer than a packet.
const MAX_LENGTH: usize = 1500;

pub(super) const USERNAME: u16 = 0x0006;
pub(super) const MESSAGE_INTEGRITY: u16 = 0x0008;
const ERROR_CODE: u16 = 0x0009;
const XOR_MAPPED_ADDRESS: u16 = 0x0020;
const USE_CANDIDATE: u16 = 0x0025;

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

/// A message, whose attributes lie within it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Message<'d> {
    method: u16,
    class: Class,
    id: TransactionId,
    /// The header, and the attributes that count.
    header: &'d [u8; HEADER],
    attributes: &'d [u8],
}

impl<'d> Message<'d> {
    /// Reads a whole datagram as a Binding message. `None` is another protocol, another method, or malformed.
    pub(super) fn binding(datagram: &'d [u8]) -> Option<Self> {
        Self::parse(datagram).filter(|message| message.method == BINDING)
    }

    /// Reads a whole datagram. `None` is another protocol, or malformed.
    pub(super) fn parse(datagram: &'d [u8]) -> Option<Self> {
        let (header, attributes) = datagram.split_first_chunk::<HEADER>()?;
        let kind = u16::from_be_bytes([header[0], header[1]]);
        let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let is_whole = length == attributes.len() && length.is_multiple_of(4);
        if kind >> 14 != 0 || header[4..8] != MAGIC_COOKIE || !is_whole {
            return None;
        }
        if datagram.len() > MAX_LENGTH {
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
        let method = kind & 0x000F | (kind & 0x00E0) >> 1 | (kind & 0x3E00) >> 2;
        let message = Self { method, class, id, header, attributes };
        let mut rest = attributes;
        while !rest.is_empty() {
            rest = attribute(rest)?.2;
        }
        Some(message)
    }

    /// Returns the message as far as MESSAGE-INTEGRITY covers it, if it is right under `key` (section 14.5): what
    /// follows does not count.
    pub(super) fn authenticated(self, key: &hmac::Key) -> Option<Self> {
        let mut rest = self.attributes;
        loop {
            let covered = self.attributes.len() - rest.len();
            let (kind, value, next) = attribute(rest)?;
            if kind == MESSAGE_INTEGRITY {
                let attributes = self.attributes.get(..covered)?;
                let mut context = hmac::Context::with_key(key);
                let length = u16::try_from(covered + INTEGRITY).ok()?;
                context.update(&self.header[..2]);
                context.update(&length.to_be_bytes());
                context.update(&self.header[4..]);
                context.update(attributes);
                let tag = context.sign();
                let is_right = constant_time::verify_slices_are_equal(tag.as_ref(), value).is_ok();
                return is_right.then_some(Self { attributes, ..self });
            }
            rest = next;
        }
    }

    pub(super) fn method(&self) -> u16 {
        self.method
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

    /// Returns whether a check nominates its pair (RFC 8445 section 7.1.2).
    pub(super) fn is_nomination(&self) -> bool {
        self.find(USE_CANDIDATE).is_some()
    }

    /// Returns the address that the sender of a response saw (section 14.2).
    pub(super) fn mapped_address(&self) -> Option<SocketAddr> {
        self.address(XOR_MAPPED_ADDRESS)
    }

    /// Returns the address in an attribute that has the form of XOR-MAPPED-ADDRESS.
    pub(super) fn address(&self, kind: u16) -> Option<SocketAddr> {
        let value = self.find(kind)?;
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
    pub(super) fn find(&self, kind: u16) -> Option<&'d [u8]> {
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
    Message::binding(datagram).filter(|binding| binding.class == Class::Request)?.ufrags()
}
