//! The errors of sockets, and whether they are transient.

use std::io;
use std::net::{IpAddr, SocketAddr};

use thiserror::Error;

use crate::options::{ReceivePath, SendPath};
use crate::sys;

/// Why a socket could not be created, configured or read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NetError {
    /// Another socket holds the port.
    #[error("{address} is in use by another socket: choose another port, or close the other one")]
    AddressInUse {
        /// The requested address.
        address: SocketAddr,
    },
    /// No interface of this machine has the address.
    #[error("{address} is not an address of this machine")]
    AddressNotAvailable {
        /// The requested address.
        address: SocketAddr,
    },
    /// The address cannot be bound for another reason.
    #[error("{address} cannot be bound: {source}")]
    Bind {
        /// The requested address.
        address: SocketAddr,
        /// The operating system's error.
        source: io::Error,
    },
    /// The system cannot create a socket of this kind.
    #[error("cannot create the socket: {0}")]
    Create(#[source] io::Error),
    /// The system refuses a socket option.
    #[error("the socket option {option} cannot be set: {source}")]
    Option {
        /// The option.
        option: &'static str,
        /// The operating system's error.
        source: io::Error,
    },
    /// An option has a value outside its range.
    #[error("{option} is {value}, but must be {range}")]
    Range {
        /// The field of [`SocketOptions`](crate::SocketOptions).
        option: &'static str,
        /// The value given.
        value: u32,
        /// The values allowed.
        range: &'static str,
    },
    /// This system does not support a feature.
    #[error("{what} is not available on this system")]
    Unsupported {
        /// The requested feature.
        what: &'static str,
    },
    /// There is no such network interface, or it has no index.
    #[error("there is no network interface `{name}`")]
    UnknownInterface {
        /// The requested name.
        name: String,
    },
    /// The multicast group cannot be joined through this interface.
    #[error("{group} cannot be joined: {source}")]
    Multicast {
        /// The requested group.
        group: IpAddr,
        /// The operating system's error.
        source: io::Error,
    },
    /// The address is no host from which a multicast group can be received.
    #[error("{host} is no host that can send to {group}: give a unicast address of its IP version")]
    NotASource {
        /// The group.
        group: IpAddr,
        /// The address given.
        host: IpAddr,
    },
    /// The address is not a multicast group, or not of the socket's IP version.
    #[error("{group} is not a multicast group that a socket on {local} can join")]
    NotAGroup {
        /// The address given.
        group: IpAddr,
        /// The socket's local address.
        local: IpAddr,
    },
    /// This system does not support the requested receive path.
    #[error("receive path `{path}` is not supported on this system; use `auto`: {source}")]
    ReceivePath {
        /// The demanded path.
        path: ReceivePath,
        /// The operating system's error.
        source: io::Error,
    },
    /// This system does not support the requested send path.
    #[error("send path `{path}` is not supported on this system; use `auto`: {source}")]
    SendPath {
        /// The demanded path.
        path: SendPath,
        /// The operating system's error.
        source: io::Error,
    },
    /// The socket cannot be connected.
    #[error("the socket cannot be connected to {peer}: {source}")]
    Connect {
        /// The requested address.
        peer: SocketAddr,
        /// The operating system's error.
        source: io::Error,
    },
    /// The host name has no address.
    #[error("the host name `{host}` has no address: {source}")]
    Resolve {
        /// The requested name.
        host: String,
        /// The resolver's error.
        source: io::Error,
    },
    /// Receiving failed.
    #[error("receiving failed: {0}")]
    Receive(#[source] io::Error),
    /// Waiting for the socket failed.
    #[error("waiting for the socket failed: {0}")]
    Wait(#[source] io::Error),
    /// Listening on the address failed, or the listener can accept no more connections.
    #[error("connections to {address} cannot be accepted: {source}")]
    Accept {
        /// The listener's local address.
        address: SocketAddr,
        /// The operating system's error.
        source: io::Error,
    },
    /// The connection was reset or closed, or it timed out.
    #[error("the connection to {peer} is broken: {source}")]
    Broken {
        /// The other end.
        peer: SocketAddr,
        /// The operating system's error.
        source: io::Error,
    },
    /// The waker could not be created.
    #[error("cannot create the waker: {0}")]
    Waker(#[source] io::Error),
}

/// A batch that was not sent completely.
#[derive(Debug, Error)]
#[error("{kind} (after {sent} datagrams of the batch)")]
pub struct SendError {
    /// Why sending stopped.
    #[source]
    pub kind: SendErrorKind,
    /// Number of datagrams that the system accepted before the failure, which is also the index of
    /// the failed one.
    pub sent: usize,
}

impl SendError {
    /// Returns whether the same batch may succeed later; see [`SendErrorKind::is_transient`].
    pub fn is_transient(&self) -> bool {
        self.kind.is_transient()
    }
}

/// Why a batch was not sent completely.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SendErrorKind {
    /// The send buffer was full until the deadline.
    #[error("the send buffer was full until the deadline")]
    BufferFull,
    /// The datagram is larger than UDP allows or, where fragments are forbidden, than the path to
    /// the destination can carry.
    #[error("a datagram of {length} octets is too large for the path to {to}: lower the MTU")]
    TooLarge {
        /// Octets of the datagram, without UDP and IP headers.
        length: usize,
        /// The destination.
        to: SocketAddr,
    },
    /// The system or the device refuses the requested send path.
    #[error("send path `{path}` was refused; use `auto` to fall back to another: {source}")]
    PathRefused {
        /// The demanded path.
        path: SendPath,
        /// The operating system's error.
        source: io::Error,
    },
    /// The lengths do not add up to the number of octets given; nothing was sent.
    #[error("the lengths add up to {lengths} octets, but {bytes} were given")]
    Mismatch {
        /// Sum of the lengths.
        lengths: usize,
        /// Octets given.
        bytes: usize,
    },
    /// The system refuses to send for another reason.
    #[error("sending to {to} failed: {source}")]
    Io {
        /// The destination.
        to: SocketAddr,
        /// The operating system's error.
        source: io::Error,
    },
}

impl SendErrorKind {
    /// Returns whether the cause is the network or the machine rather than the datagram: no route
    /// or no neighbour, an interface that is down or gone, a firewall, no memory or no room in a
    /// queue. The socket stays usable, and later datagrams may be sent.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::BufferFull => true,
            Self::Io { source, .. } => sys::is_transient(source),
            Self::TooLarge { .. } | Self::PathRefused { .. } | Self::Mismatch { .. } => false,
        }
    }
}

impl NetError {
    /// Returns whether reading the socket may succeed later, as for
    /// [`SendErrorKind::is_transient`]. Errors while creating or configuring a socket are never
    /// transient.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Receive(source) | Self::Wait(source) => sys::is_transient(source),
            _ => false,
        }
    }
}

/// Octets that were not written completely.
#[derive(Debug, Error)]
#[error("{kind} (after {written} octets)")]
pub struct WriteError {
    /// Why writing stopped.
    #[source]
    pub kind: WriteErrorKind,
    /// Number of octets that the system accepted before the failure, counted over all parts. They
    /// cannot be taken back: the peer can use them only if the rest follows.
    pub written: usize,
}

/// Why the octets were not written completely.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WriteErrorKind {
    /// The peer did not accept all octets before the deadline.
    #[error("the peer did not accept all octets before the deadline")]
    Deadline,
    /// A [`Waker`](crate::Waker) ended the wait.
    #[error("writing was interrupted by a waker")]
    Woken,
    /// The connection failed.
    #[error(transparent)]
    Failed(#[from] NetError),
}
