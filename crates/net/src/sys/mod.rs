//! The interface to the operating system: batched messages, probing, waiting.
//!
//! Linux supports all functions. On other systems they return `Unsupported` or wait by short
//! sleeps, so that the rest of the crate needs few conditions.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

#[cfg(target_os = "linux")]
mod address;
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "epoll and its timer")]
mod epoll;
#[cfg(target_os = "linux")]
mod errors;
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "system calls that the standard library lacks")]
mod linux;
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "sendmmsg and recvmmsg")]
mod messages;
#[cfg(any(not(target_os = "linux"), test))]
#[cfg_attr(
    target_os = "linux",
    allow(dead_code, unreachable_pub, reason = "only its tests run here")
)]
mod portable;

#[cfg(target_os = "linux")]
pub(crate) use epoll::Epoll;
#[cfg(target_os = "linux")]
pub(crate) use errors::ErrorQueue;
#[cfg(target_os = "linux")]
pub use linux::Waker;
#[cfg(target_os = "linux")]
pub(crate) use linux::{
    bind_device, congestion, enable_arrival_details, enable_gro, forbid_fragments,
    force_receive_buffer, force_send_buffer, interface_index, join_source, join_v4, kernel_drops,
    probe_gso, receive_own_groups_only, send_v4_through, set_congestion, set_low_water,
    set_traffic_class_v6, set_unsent_max, usable_buffer, wait_readable, wait_ready, wait_woken,
    wait_writable,
};
#[cfg(target_os = "linux")]
pub(crate) use messages::{Inbox, Outbox};
#[cfg(not(target_os = "linux"))]
pub use portable::Waker;
#[cfg(not(target_os = "linux"))]
pub(crate) use portable::{
    Epoll, ErrorQueue, Inbox, Outbox, bind_device, congestion, enable_arrival_details, enable_gro,
    forbid_fragments, force_receive_buffer, force_send_buffer, interface_index, join_source,
    join_v4, kernel_drops, probe_gso, receive_own_groups_only, send_v4_through, set_congestion,
    set_low_water, set_traffic_class_v6, set_unsent_max, usable_buffer, wait_readable, wait_ready,
    wait_woken, wait_writable,
};

/// The front of a batch, and its destination.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parcel<'a> {
    /// Datagrams back to back.
    pub(crate) bytes: &'a [u8],
    /// Lengths of the datagrams.
    pub(crate) lengths: &'a [u16],
    /// The destination.
    pub(crate) to: SocketAddr,
    /// Whether the socket is connected to `to`. Then the address is not passed again, which saves
    /// the kernel a route lookup.
    pub(crate) connected: bool,
}

/// The front of a batch whose datagrams have several destinations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parcels<'a> {
    /// Datagrams back to back.
    pub(crate) bytes: &'a [u8],
    /// Lengths of the datagrams.
    pub(crate) lengths: &'a [u16],
    /// Destinations in the kernel's form, and how many of the datagrams are for each in turn.
    pub(crate) runs: &'a [(SocketAddr, usize)],
}

/// Numbers of ICMP messages about sent datagrams.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Reported {
    /// All messages.
    pub(crate) messages: usize,
    /// Those which report that the destination port is closed.
    pub(crate) refusals: usize,
}

/// Why a wait ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum WaitOutcome {
    /// The socket may be readable, or the deadline has passed.
    Ready,
    /// The socket's error queue is not empty; the socket may be readable, too.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "there is no such queue"))]
    Errors,
    /// The other socket, `beside`, may be readable.
    Beside,
    /// A waker was woken.
    Woken,
}

/// The part of a batch that one system call transferred.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Taken {
    /// Datagrams.
    pub(crate) datagrams: usize,
    /// Octets in them.
    pub(crate) bytes: usize,
}

/// The properties of a received message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    /// Octets received.
    pub(crate) length: usize,
    /// Octets of each datagram but the last in a coalesced message; 0 if the message is one
    /// datagram.
    pub(crate) segment: usize,
    /// The source.
    pub(crate) from: SocketAddr,
    /// Whether octets were lost because the buffer was too short.
    pub(crate) truncated: bool,
    /// When the message arrived, since 1970 by the system's clock, if the kernel noted it.
    pub(crate) stamp: Option<Duration>,
    /// The ECN codepoint of the message, 0..=3 (RFC 3168 section 5); 0 if unknown.
    pub(crate) ecn: u8,
}

/// The meaning of a send or receive error.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Fault {
    /// A signal arrived; nothing was transferred.
    Interrupted,
    /// There is nothing to read, or no room to write.
    WouldBlock,
    /// The device's queue is full.
    NoBuffers,
    /// The destination port of an earlier datagram is closed.
    Refused,
    /// The datagram, or a segment of the message, is too large.
    TooLarge,
    /// The kernel does not understand the message.
    Invalid,
    /// The device cannot do the offload.
    Device,
    /// The kernel has no such system call.
    Missing,
    /// Any other error.
    Other,
}

/// Send flag: a broken connection causes an error rather than the signal that ends a program.
#[cfg(target_os = "linux")]
pub(crate) const NO_SIGNAL: i32 = libc::MSG_NOSIGNAL;
/// Elsewhere `socket2` and the standard library suppress the signal, or there is none.
#[cfg(not(target_os = "linux"))]
pub(crate) const NO_SIGNAL: i32 = 0;

#[cfg(unix)]
use libc::{EINVAL, EIO, EMSGSIZE, ENOBUFS, ENOSYS};

/// The error codes of Winsock, which differ from those of its C library.
#[cfg(windows)]
mod winsock {
    pub(super) const EINVAL: i32 = 10_022;
    pub(super) const EIO: i32 = -1;
    pub(super) const EMSGSIZE: i32 = 10_040;
    pub(super) const ENOBUFS: i32 = 10_055;
    pub(super) const ENOSYS: i32 = -2;
}
#[cfg(windows)]
use winsock::{EINVAL, EIO, EMSGSIZE, ENOBUFS, ENOSYS};

/// Classifies `error`.
pub(crate) fn fault(error: &io::Error) -> Fault {
    match (error.kind(), error.raw_os_error()) {
        (io::ErrorKind::Interrupted, _) => Fault::Interrupted,
        (io::ErrorKind::WouldBlock, _) => Fault::WouldBlock,
        // Windows reports the ICMP message as a reset of a connection that UDP does not have.
        (io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset, _) => Fault::Refused,
        (io::ErrorKind::Unsupported, _) | (_, Some(ENOSYS)) => Fault::Missing,
        (_, Some(ENOBUFS)) => Fault::NoBuffers,
        (_, Some(EMSGSIZE)) => Fault::TooLarge,
        (_, Some(EINVAL)) => Fault::Invalid,
        (_, Some(EIO)) => Fault::Device,
        _ => Fault::Other,
    }
}

/// Returns whether `error` is a temporary condition of the network or of the machine's resources.
pub(crate) fn is_transient(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    let is_of_network = matches!(
        error.kind(),
        Kind::NetworkDown | Kind::NetworkUnreachable | Kind::HostUnreachable | Kind::OutOfMemory
    );
    is_of_network || error.raw_os_error().is_some_and(|code| TRANSIENT.contains(&code))
}

/// `EPERM` is a firewall's refusal or a full connection-tracking table; `ENODEV` and `ENXIO` are an
/// unplugged interface.
#[cfg(unix)]
const TRANSIENT: &[i32] = &[
    libc::ENETDOWN,
    libc::ENETUNREACH,
    libc::EHOSTDOWN,
    libc::EHOSTUNREACH,
    libc::EPERM,
    libc::ENODEV,
    libc::ENXIO,
    ENOBUFS,
];
/// `WSAENETDOWN`, `WSAENETUNREACH`, `WSAEHOSTDOWN` and `WSAEHOSTUNREACH`.
#[cfg(windows)]
const TRANSIENT: &[i32] = &[10_050, 10_051, 10_064, 10_065, ENOBUFS];

/// The meaning of an accept error.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum AcceptFault {
    /// No connection is waiting.
    Nothing,
    /// One connection failed before it was accepted, or a signal arrived; the next may succeed.
    Passing,
    /// The process or the system has no descriptor or no memory for the connection, which stays
    /// queued.
    Exhausted,
    /// The listener is unusable.
    Lasting,
}

/// Classifies an accept error.
pub(crate) fn accept_fault(error: &io::Error) -> AcceptFault {
    use io::ErrorKind as Kind;
    match error.kind() {
        Kind::WouldBlock => return AcceptFault::Nothing,
        // A firewall's refusal concerns the peer, not the listener.
        Kind::Interrupted
        | Kind::ConnectionAborted
        | Kind::ConnectionReset
        | Kind::NetworkDown
        | Kind::NetworkUnreachable
        | Kind::HostUnreachable
        | Kind::TimedOut
        | Kind::PermissionDenied => return AcceptFault::Passing,
        Kind::OutOfMemory => return AcceptFault::Exhausted,
        _ => {}
    }
    match error.raw_os_error() {
        Some(code) if EXHAUSTED.contains(&code) => AcceptFault::Exhausted,
        Some(code) if PASSING.contains(&code) => AcceptFault::Passing,
        _ => AcceptFault::Lasting,
    }
}

#[cfg(unix)]
const EXHAUSTED: &[i32] = &[libc::EMFILE, libc::ENFILE, ENOBUFS, libc::ENOMEM];
/// Linux returns network errors that were pending on the new connection (accept(2)).
#[cfg(unix)]
const PASSING: &[i32] = &[libc::EPROTO, libc::ENOPROTOOPT, libc::EHOSTDOWN];
/// `WSAEMFILE` and `WSAENOBUFS`.
#[cfg(windows)]
const EXHAUSTED: &[i32] = &[10_024, ENOBUFS];
#[cfg(windows)]
const PASSING: &[i32] = &[];

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn transient_errors_are_distinguished_from_lasting_ones() {
        let is_transient = |code| is_transient(&io::Error::from_raw_os_error(code));
        for code in [libc::ENETUNREACH, libc::EHOSTUNREACH, libc::ENETDOWN, ENOBUFS] {
            assert!(is_transient(code), "{code}");
        }
        for code in [libc::EBADF, EINVAL, EMSGSIZE, libc::EACCES, libc::EAFNOSUPPORT] {
            assert!(!is_transient(code), "{code}");
        }
    }

    #[test]
    fn a_failed_connection_is_not_a_failed_listener() {
        let meaning = |code| accept_fault(&io::Error::from_raw_os_error(code));
        assert_eq!(meaning(libc::EAGAIN), AcceptFault::Nothing);
        for code in [libc::ECONNABORTED, libc::EINTR, libc::EPROTO, libc::EPERM, libc::ENETDOWN] {
            assert_eq!(meaning(code), AcceptFault::Passing, "{code}");
        }
        for code in [libc::EMFILE, libc::ENFILE, ENOBUFS, libc::ENOMEM] {
            assert_eq!(meaning(code), AcceptFault::Exhausted, "{code}");
        }
        for code in [libc::EBADF, EINVAL, libc::ENOTSOCK] {
            assert_eq!(meaning(code), AcceptFault::Lasting, "{code}");
        }
    }
}
