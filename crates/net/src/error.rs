//! What can go wrong with a socket, and what its owner can do about it.

use std::io;
use std::net::IpAddr;
use std::net::SocketAddr;

use thiserror::Error;

use crate::options::ReceivePath;
use crate::options::SendPath;
use crate::sys;

/// Why a socket could not be made, configured or read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NetError {
    /// Another socket holds the port.
    #[error("{address} is in use by another socket: choose another port, or close the other one")]
    AddressInUse {
        /// The address asked for.
        address: SocketAddr,
    },
    /// No interface of this machine has the address.
    #[error("{address} is not an address of this machine")]
    AddressNotAvailable {
        /// The address asked for.
        address: SocketAddr,
    },
    /// The address cannot be bound for another reason.
    #[error("{address} cannot be bound: {source}")]
    Bind {
        /// The address asked for.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// The system gives no socket, or not of this kind.
    #[error("the system gives no such socket: {0}")]
    Create(#[source] io::Error),
    /// The system refuses a socket option.
    #[error("the socket option {option} cannot be set: {source}")]
    Option {
        /// What was to be set.
        option: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// An option has a value outside its range.
    #[error("{option} is {value}, but may be {range} only")]
    Range {
        /// The field of [`SocketOptions`](crate::SocketOptions).
        option: &'static str,
        /// The value given.
        value: u32,
        /// The values allowed.
        range: &'static str,
    },
    /// This system has no such thing.
    #[error("{what} is not available on this system")]
    Unsupported {
        /// What was asked for.
        what: &'static str,
    },
    /// There is no such network interface, or it has no index.
    #[error("there is no network interface `{name}`")]
    UnknownInterface {
        /// The name asked for.
        name: String,
    },
    /// The multicast group cannot be joined through this interface.
    #[error("{group} cannot be joined: {source}")]
    Multicast {
        /// The group asked for.
        group: IpAddr,
        /// What the system says.
        source: io::Error,
    },
    /// The address to join is not one of a multicast group, or not of the socket's IP version.
    #[error("{group} is not a multicast group that a socket on {local} can join")]
    NotAGroup {
        /// The address given.
        group: IpAddr,
        /// Where the socket is bound.
        local: IpAddr,
    },
    /// A way of receiving was demanded that this system does not offer.
    #[error("this system cannot receive by `{path}`; `auto` takes what it can: {source}")]
    ReceivePath {
        /// The way demanded.
        path: ReceivePath,
        /// What the system says.
        source: io::Error,
    },
    /// A way of sending was demanded that this system does not offer.
    #[error("this system cannot send by `{path}`; `auto` takes what it can: {source}")]
    SendPath {
        /// The way demanded.
        path: SendPath,
        /// What the system says.
        source: io::Error,
    },
    /// The socket cannot be connected.
    #[error("the socket cannot be connected to {peer}: {source}")]
    Connect {
        /// The address asked for.
        peer: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// No address belongs to the host name.
    #[error("the host name `{host}` has no address: {source}")]
    Resolve {
        /// The name asked for.
        host: String,
        /// What the resolver says.
        source: io::Error,
    },
    /// Receiving failed.
    #[error("receiving failed: {0}")]
    Receive(#[source] io::Error),
    /// Waiting for the socket failed.
    #[error("waiting for the socket failed: {0}")]
    Wait(#[source] io::Error),
    /// The address cannot be listened on, or nothing can be accepted there any more.
    #[error("connections to {address} cannot be accepted: {source}")]
    Accept {
        /// Where the listener is bound.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// The peer broke the connection off, or it was given up for want of an answer.
    #[error("the connection to {peer} is broken: {source}")]
    Broken {
        /// The other end.
        peer: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// The waker could not be made.
    #[error("the system gives no event to wake by: {0}")]
    Waker(#[source] io::Error),
}

/// A batch that was not sent to its end.
#[derive(Debug, Error)]
#[error("{kind} (after {sent} datagrams of the batch)")]
pub struct SendError {
    /// Why sending stopped.
    #[source]
    pub kind: SendErrorKind,
    /// Datagrams that the system had accepted before; the failed one is at this index.
    pub sent: usize,
}

impl SendError {
    /// Whether the same may go well later; see [`SendErrorKind::is_transient`].
    pub fn is_transient(&self) -> bool {
        self.kind.is_transient()
    }
}

/// Why a batch was not sent to its end.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SendErrorKind {
    /// The send buffer was full until the deadline.
    #[error("the send buffer was full until the deadline")]
    BufferFull,
    /// The datagram is larger than UDP, or the path to the destination where fragments are
    /// forbidden, can carry.
    #[error("a datagram of {length} octets is too large for the way to {to}: lower the MTU")]
    TooLarge {
        /// Octets of the datagram, without UDP and IP headers.
        length: usize,
        /// Where it was to go.
        to: SocketAddr,
    },
    /// The demanded way of sending is refused by the system or the device.
    #[error("sending by `{path}` is refused; `auto` falls back by itself: {source}")]
    PathRefused {
        /// The way demanded.
        path: SendPath,
        /// What the system says.
        source: io::Error,
    },
    /// Waiting for a slab that was lent failed.
    #[error("waiting for memory that the system reads failed: {0}")]
    Reclaim(#[source] io::Error),
    /// The lengths do not add up to the octets given; nothing was sent.
    #[error("the lengths add up to {lengths} octets, but {bytes} were given")]
    Mismatch {
        /// Sum of the lengths.
        lengths: usize,
        /// Octets given.
        bytes: usize,
    },
    /// The system refuses for another reason.
    #[error("sending to {to} failed: {source}")]
    Io {
        /// Where the datagram was to go.
        to: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
}

impl SendErrorKind {
    /// Whether the network is in the way rather than the datagram: no route or no neighbour, an
    /// interface that is down or gone, a firewall, no memory or no room in a queue. Such things
    /// pass; nothing is wrong with the socket meanwhile.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::BufferFull => true,
            Self::Io { source, .. } | Self::Reclaim(source) => sys::is_transient(source),
            Self::TooLarge { .. } | Self::PathRefused { .. } | Self::Mismatch { .. } => false,
        }
    }
}

impl NetError {
    /// Whether reading the socket may go well later, as for
    /// [`SendErrorKind::is_transient`]. What went wrong with setting one up is never transient.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Receive(source) | Self::Wait(source) => sys::is_transient(source),
            _ => false,
        }
    }
}

/// Octets that were not written to their end.
#[derive(Debug, Error)]
#[error("{kind} (after {written} octets)")]
pub struct WriteError {
    /// Why writing stopped.
    #[source]
    pub kind: WriteErrorKind,
    /// Octets that the system had accepted before, counted over all parts. They cannot be taken
    /// back: the stream makes sense only if the rest follows.
    pub written: usize,
}

/// Why octets were not written to their end.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WriteErrorKind {
    /// The peer did not take them before the deadline.
    #[error("the peer did not take everything before the deadline")]
    Deadline,
    /// A [`Waker`](crate::Waker) ended the wait.
    #[error("writing was ended by a wake")]
    Woken,
    /// The connection failed.
    #[error(transparent)]
    Failed(#[from] NetError),
}
