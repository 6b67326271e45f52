//! What a socket is told before it opens.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use thiserror::Error;

/// What a socket is told before it opens.
#[derive(Clone, Debug)]
pub struct SocketOptions {
    /// Octets asked for in the send buffer; 4 MiB by default.
    pub send_buffer: usize,
    /// Octets asked for in the receive buffer; 4 MiB by default.
    pub receive_buffer: usize,
    /// Differentiated services code point of what is sent, 0..=63 (RFC 2474).
    pub dscp: Option<u8>,
    /// The network interface to use, by name (Linux).
    pub interface: Option<String>,
    /// A multicast group to join and to send to.
    pub multicast: Option<MulticastOptions>,
    /// How datagrams are given to the kernel.
    pub send_path: SendPath,
    /// How datagrams are taken from the kernel.
    pub receive_path: ReceivePath,
}

impl Default for SocketOptions {
    fn default() -> Self {
        Self {
            send_buffer: 4 << 20,
            receive_buffer: 4 << 20,
            dscp: None,
            interface: None,
            multicast: None,
            send_path: SendPath::Auto,
            receive_path: ReceivePath::Auto,
        }
    }
}

/// How a multicast group is joined and reached.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MulticastOptions {
    /// The group.
    pub group: IpAddr,
    /// The interface to join on and send from: its IPv4 address, for an IPv4 group. By default
    /// the system chooses.
    pub interface: Option<IpAddr>,
    /// The interface's index, for an IPv6 group; 0, the default, lets the system choose.
    pub interface_index: u32,
    /// Hops that what is sent may take; 1, the default, stays on the link.
    pub ttl: u32,
    /// Whether this host hears what it sends; by default it does.
    pub loop_back: bool,
}

impl MulticastOptions {
    /// The defaults for `group`.
    pub fn new(group: IpAddr) -> Self {
        Self { group, interface: None, interface_index: 0, ttl: 1, loop_back: true }
    }
}

/// How datagrams are given to the kernel.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum SendPath {
    /// The fastest that works here, found out by trying.
    #[default]
    Auto,
    /// Runs of equal length in one message each (`UDP_SEGMENT`, Linux 4.18).
    Gso,
    /// Up to 64 datagrams in one system call (`sendmmsg`).
    Sendmmsg,
    /// One system call per datagram.
    Single,
}

/// How datagrams are taken from the kernel.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ReceivePath {
    /// The fastest that works here, found out by trying.
    #[default]
    Auto,
    /// Runs of equal length in one message each (`UDP_GRO`, Linux 5.0), several to a call.
    Gro,
    /// Up to 64 datagrams in one system call (`recvmmsg`).
    Recvmmsg,
    /// One system call per datagram.
    Single,
}

/// A path's name is not known.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("{name:?} is not one of {known}")]
pub struct UnknownPath {
    name: String,
    known: &'static str,
}

impl SendPath {
    fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Gso => "gso",
            Self::Sendmmsg => "sendmmsg",
            Self::Single => "single",
        }
    }
}

impl fmt::Display for SendPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for SendPath {
    type Err = UnknownPath;

    fn from_str(name: &str) -> Result<Self, UnknownPath> {
        [Self::Auto, Self::Gso, Self::Sendmmsg, Self::Single]
            .into_iter()
            .find(|path| path.name() == name)
            .ok_or_else(|| UnknownPath {
                name: name.to_owned(),
                known: "auto, gso, sendmmsg, single",
            })
    }
}

impl ReceivePath {
    fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Gro => "gro",
            Self::Recvmmsg => "recvmmsg",
            Self::Single => "single",
        }
    }
}

impl fmt::Display for ReceivePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ReceivePath {
    type Err = UnknownPath;

    fn from_str(name: &str) -> Result<Self, UnknownPath> {
        [Self::Auto, Self::Gro, Self::Recvmmsg, Self::Single]
            .into_iter()
            .find(|path| path.name() == name)
            .ok_or_else(|| UnknownPath {
                name: name.to_owned(),
                known: "auto, gro, recvmmsg, single",
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_named_and_found_by_name() {
        for path in [SendPath::Auto, SendPath::Gso, SendPath::Sendmmsg, SendPath::Single] {
            assert_eq!(path.to_string().parse(), Ok(path));
        }
        for path in
            [ReceivePath::Auto, ReceivePath::Gro, ReceivePath::Recvmmsg, ReceivePath::Single]
        {
            assert_eq!(path.to_string().parse(), Ok(path));
        }
        assert!("GSO".parse::<SendPath>().is_err());
    }
}
