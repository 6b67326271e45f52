//! Errors in RTCP packets.

use thiserror::Error;

/// The reason why a datagram is not valid RTCP.
///
/// Small, `Copy` and free of allocation, because an attacker determines how often it is created.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum RtcpError {
    /// A count is higher than a receiver accepts.
    #[error("{field} is {count}, which is too high")]
    Count {
        /// The field, named as in its specification.
        field: &'static str,
        /// Its value.
        count: u16,
    },
    /// The datagram is empty.
    #[error("the RTCP datagram is empty")]
    Empty,
    /// The packet type is not one of RTCP's, 192 to 223.
    #[error("packet type {0} is not RTCP")]
    PacketType(u8),
    /// The padding count is zero, not a multiple of four, or longer than the packet.
    #[error("a padding count of {count} does not fit {len} octets")]
    Padding {
        /// The value of the packet's last octet.
        count: u8,
        /// Octets after the packet's header.
        len: usize,
    },
    /// A packet that is not the last of its datagram is padded (RFC 3550 section 6.4.1).
    #[error("a packet before the last of the datagram has padding")]
    PaddingInside,
    /// A field extends beyond its packet, or the packet beyond the datagram.
    #[error("{field} needs {need} octets, but only {have} are left")]
    Truncated {
        /// The field that did not fit, named as in the RFC.
        field: &'static str,
        /// Octets needed.
        need: usize,
        /// Octets present.
        have: usize,
    },
    /// The version is not 2.
    #[error("RTCP version {0} is not 2")]
    Version(u8),
}

/// Returns an error unless `have` is at least `need`.
pub(super) fn need(field: &'static str, need: usize, have: usize) -> Result<(), RtcpError> {
    if have < need { Err(RtcpError::Truncated { field, need, have }) } else { Ok(()) }
}
