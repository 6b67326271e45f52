//! What can go wrong with a socket, and what to do about it.

use std::io;
use std::net::IpAddr;
use std::net::SocketAddr;

use thiserror::Error;

/// Why a socket could not be opened or read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NetError {
    /// Another program, or another socket of this one, has the port.
    #[error("{address} is in use; choose another port, or 0 for a free one")]
    AddressInUse {
        /// The address asked for.
        address: SocketAddr,
    },
    /// The address is not one of this host's, or needs rights that the program lacks.
    #[error("cannot bind to {address}: {source}")]
    Bind {
        /// The address asked for.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The multicast group cannot be joined.
    #[error("cannot join the multicast group {group}: {source}")]
    Multicast {
        /// The group.
        group: IpAddr,
        /// What the system said.
        source: io::Error,
    },
    /// A socket option cannot be set.
    #[error("cannot set {option}: {source}")]
    Option {
        /// The option, by its name in the system's headers.
        option: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The socket cannot be read.
    #[error("cannot receive: {0}")]
    Receive(#[source] io::Error),
    /// A host name has no address.
    #[error("no address for host {host:?}: {source}")]
    Resolve {
        /// The name.
        host: String,
        /// What the resolver said.
        source: io::Error,
    },
    /// The system has no more sockets for this program.
    #[error("cannot open a socket: {0}")]
    Socket(#[source] io::Error),
}

/// Why a batch was not sent to its end.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SendError {
    /// There was no room in the send buffer until the deadline.
    #[error("the send buffer stayed full; {sent} datagrams of the batch were sent")]
    Timeout {
        /// Datagrams accepted before.
        sent: usize,
    },
    /// A datagram is larger than the system or the path lets through.
    #[error(
        "a datagram of {len} octets is too large for the path; lower the MTU \
         ({sent} datagrams of the batch were sent)"
    )]
    TooLarge {
        /// Its length in octets.
        len: usize,
        /// Datagrams accepted before.
        sent: usize,
    },
    /// Anything else that the system said.
    #[error("cannot send to {to}: {source} ({sent} datagrams of the batch were sent)")]
    Io {
        /// Where to.
        to: SocketAddr,
        /// Datagrams accepted before.
        sent: usize,
        /// What the system said.
        source: io::Error,
    },
}

impl SendError {
    /// Datagrams of the batch that were accepted before the failure.
    pub fn sent(&self) -> usize {
        match self {
            Self::Timeout { sent } | Self::TooLarge { sent, .. } | Self::Io { sent, .. } => *sent,
        }
    }
}
