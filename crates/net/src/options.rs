//! The settings of a socket.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

use thiserror::Error;

use crate::error::NetError;

/// Settings of a socket.
#[allow(clippy::struct_excessive_bools, reason = "they are independent of each other")]
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SocketOptions {
    /// Octets that the kernel may hold for sending; 0 selects the system's default. 4 MiB by
    /// default.
    ///
    /// Use at least 128 KiB: with less, batches are split into parts that fit.
    pub send_buffer: usize,
    /// Octets that the kernel may hold unread; 0 selects the system's default. 4 MiB by default.
    pub receive_buffer: usize,
    /// `DiffServ` code point of every datagram, 0 to 63 (RFC 2474; RFC 8837 has values for media).
    pub dscp: Option<u8>,
    /// ECN codepoint of every datagram (RFC 3168 section 5): 0 Not-ECT, the default, 1 ECT(1) or 2
    /// ECT(0).
    ///
    /// Routers mark datagrams of ECT(0) and ECT(1) instead of dropping them. A sender must then
    /// lower its rate as it would for a loss (ECT(0)) or as RFC 9331 requires (ECT(1)), so only an
    /// application that controls its rate may set this.
    pub ecn: u8,
    /// A multicast group to join, and the settings for sending to groups.
    pub multicast: Option<MulticastOptions>,
    /// Name of the only network interface to use (`SO_BINDTODEVICE`; Linux).
    pub interface: Option<String>,
    /// The send path; [`SendPath::Auto`] by default.
    pub send_path: SendPath,
    /// The receive path; [`ReceivePath::Auto`] by default.
    pub receive_path: ReceivePath,
    /// Whether a socket bound to `[::]` receives IPv4 too. `false` by default.
    ///
    /// IPv4 addresses appear as IPv4 addresses, in received datagrams and for sending. The socket
    /// takes the port in both IP versions.
    pub dual_stack: bool,
    /// Whether several sockets may bind the same port (`SO_REUSEADDR`). `false` by default;
    /// multicast implies it, because several receivers of one group on one machine are common.
    pub reuse_address: bool,
    /// Whether IP fragments are forbidden (`IP_PMTUDISC_DO`; Linux). `false` by default.
    ///
    /// By default the system decides as for any UDP socket: a datagram larger than the path's MTU
    /// is fragmented. It is then more likely to be lost and cannot be offloaded; a warning is
    /// logged once. With `true` it is refused as [`TooLarge`](crate::SendErrorKind::TooLarge).
    pub forbid_fragments: bool,
}

impl Default for SocketOptions {
    fn default() -> Self {
        Self {
            send_buffer: 4 << 20,
            receive_buffer: 4 << 20,
            dscp: None,
            ecn: 0,
            multicast: None,
            interface: None,
            send_path: SendPath::Auto,
            receive_path: ReceivePath::Auto,
            dual_stack: false,
            reuse_address: false,
            forbid_fragments: false,
        }
    }
}

/// Membership of a socket in a multicast group.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MulticastOptions {
    /// The group to join, of the socket's IP version.
    pub group: IpAddr,
    /// The only hosts from which to receive what is sent to the group (RFC 4607, by version 3 of IGMP
    /// or 2 of MLD); empty: any host. Linux allows ten of IPv4 by default. On Linux only, except for
    /// IPv4 groups with an interface given by its address or chosen by the system.
    pub sources: Vec<IpAddr>,
    /// The interface to join and send through; with `None` the system chooses.
    pub interface: Option<Interface>,
    /// IPv4 TTL or IPv6 hop limit, 0 to 255: the number of routers that a datagram may pass, plus
    /// one.
    pub ttl: u32,
    /// Whether receivers on this machine receive the datagrams that this socket sends.
    pub loop_back: bool,
}

impl MulticastOptions {
    /// Creates options to join `group` through an interface that the system chooses, on this
    /// network only (TTL 1), with loop-back.
    pub fn new(group: IpAddr) -> Self {
        Self { group, sources: Vec::new(), interface: None, ttl: 1, loop_back: true }
    }

    /// Checks that the sources can send to the group, as joining does.
    ///
    /// # Errors
    /// [`NetError::NotASource`], with the first one that cannot.
    pub fn check_sources(&self) -> Result<(), NetError> {
        let group = self.group;
        let is_source = |it: &IpAddr| it.is_ipv4() == group.is_ipv4() && !it.is_multicast();
        match self.sources.iter().find(|it| !is_source(it)) {
            Some(host) => Err(NetError::NotASource { group, host: *host }),
            None => Ok(()),
        }
    }
}

/// A network interface, given by address, index or name.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Interface {
    /// By its IPv4 address; for IPv4 groups only.
    Address(Ipv4Addr),
    /// By its index; for IPv4 groups on Linux only.
    Index(u32),
    /// By its name; on Linux only.
    Name(String),
}

impl FromStr for Interface {
    type Err = std::convert::Infallible;

    /// Parses an IPv4 address or an index; any other text is a name.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let address = text.parse().map(Self::Address);
        let index = || text.parse().map(Self::Index);
        Ok(address.or_else(|_| index()).unwrap_or_else(|_| Self::Name(text.to_owned())))
    }
}

/// How datagrams are passed to the kernel.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[repr(u8)]
pub enum SendPath {
    /// The first of the other paths that works, found by probing.
    #[default]
    Auto,
    /// Runs of equally long datagrams as one message (`UDP_SEGMENT`; Linux 4.18).
    Gso,
    /// Many messages in one system call (Linux).
    Sendmmsg,
    /// One system call for each datagram, on every system.
    Single,
}

/// How datagrams are taken from the kernel.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[repr(u8)]
pub enum ReceivePath {
    /// The first of the other paths that works, found by probing.
    #[default]
    Auto,
    /// Runs of equally long datagrams as one message (`UDP_GRO`; Linux 5.0).
    Gro,
    /// Many messages in one system call (Linux).
    Recvmmsg,
    /// One system call for each datagram, on every system.
    Single,
}

/// The error of parsing the name of a send or receive path.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("unknown path `{word}`; supported: {known}")]
pub struct UnknownPath {
    /// The name given.
    pub word: String,
    /// The known names.
    pub known: &'static str,
}

impl fmt::Display for SendPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Auto => "auto",
            Self::Gso => "gso",
            Self::Sendmmsg => "sendmmsg",
            Self::Single => "single",
        })
    }
}

impl FromStr for SendPath {
    type Err = UnknownPath;

    fn from_str(word: &str) -> Result<Self, UnknownPath> {
        match word {
            "auto" => Ok(Self::Auto),
            "gso" => Ok(Self::Gso),
            "sendmmsg" => Ok(Self::Sendmmsg),
            "single" => Ok(Self::Single),
            _ => Err(UnknownPath { word: word.to_owned(), known: "auto, gso, sendmmsg, single" }),
        }
    }
}

impl fmt::Display for ReceivePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Auto => "auto",
            Self::Gro => "gro",
            Self::Recvmmsg => "recvmmsg",
            Self::Single => "single",
        })
    }
}

impl FromStr for ReceivePath {
    type Err = UnknownPath;

    fn from_str(word: &str) -> Result<Self, UnknownPath> {
        match word {
            "auto" => Ok(Self::Auto),
            "gro" => Ok(Self::Gro),
            "recvmmsg" => Ok(Self::Recvmmsg),
            "single" => Ok(Self::Single),
            _ => Err(UnknownPath { word: word.to_owned(), known: "auto, gro, recvmmsg, single" }),
        }
    }
}
