//! The system's part: messages in batches, probing, waiting.
//!
//! Linux has all of it. Elsewhere the same names exist, say `Unsupported` and wait by short sleeps,
//! so that the rest of the crate has no conditions.

use std::io;
use std::net::SocketAddr;

#[cfg(target_os = "linux")]
mod address;
#[cfg(target_os = "linux")]
mod ledger;
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "MSG_ZEROCOPY and the queue of what has become of it")]
mod lending;
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
pub(crate) use lending::{Lending, Lent};
#[cfg(target_os = "linux")]
pub use linux::Waker;
#[cfg(target_os = "linux")]
pub(crate) use linux::{
    bind_device, congestion, forbid_fragments, force_receive_buffer, force_send_buffer,
    interface_index, join_v4, kernel_drops, offer_gro, offer_gso, set_congestion, set_low_water,
    set_traffic_class_v6, usable_buffer, wait_readable, wait_ready, wait_woken, wait_writable,
};
#[cfg(target_os = "linux")]
pub(crate) use messages::{Inbox, Outbox};
#[cfg(not(target_os = "linux"))]
pub use portable::Waker;
#[cfg(not(target_os = "linux"))]
pub(crate) use portable::{
    Inbox, Lending, Lent, Outbox, bind_device, congestion, forbid_fragments, force_receive_buffer,
    force_send_buffer, interface_index, join_v4, kernel_drops, offer_gro, offer_gso,
    set_congestion, set_low_water, set_traffic_class_v6, usable_buffer, wait_readable, wait_ready,
    wait_woken, wait_writable,
};

/// What the front of a batch is and where it goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parcel<'a> {
    /// Datagrams back to back.
    pub(crate) bytes: &'a [u8],
    /// Their lengths.
    pub(crate) lengths: &'a [u16],
    /// The destination.
    pub(crate) to: SocketAddr,
    /// Whether the socket is connected to it. Then the address is not told again, which saves the
    /// kernel a search for the route.
    pub(crate) connected: bool,
}

/// Why a wait ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Awake {
    /// There may be something to read, or the deadline came.
    Here,
    /// There may be something to read on the socket beside.
    Beside,
    /// A wake.
    Woken,
}

/// What one system call took.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Taken {
    /// Datagrams.
    pub(crate) datagrams: usize,
    /// Octets in them.
    pub(crate) bytes: usize,
}

/// What is known of a received message beside its octets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    /// Octets received.
    pub(crate) length: usize,
    /// Octets of each datagram in the message but the last; 0 if it is one datagram.
    pub(crate) segment: usize,
    /// The source.
    pub(crate) from: SocketAddr,
    /// Whether octets were lost because the buffer was too short.
    pub(crate) truncated: bool,
}

/// What an error of sending or receiving means.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Fault {
    /// A signal came; nothing happened.
    Interrupted,
    /// Nothing to read, or no room to write.
    WouldBlock,
    /// The device's queue is full.
    NoBuffers,
    /// Nobody listens at the destination of an earlier datagram.
    Refused,
    /// The datagram, or what it would be cut into, is too large.
    TooLarge,
    /// The kernel does not understand the message.
    Invalid,
    /// The device cannot do the offload.
    Device,
    /// The kernel has no such system call.
    Missing,
    /// Anything else.
    Other,
}

/// A flag of sending: a broken connection is an error, and never the signal that ends a program.
#[cfg(target_os = "linux")]
pub(crate) const NO_SIGNAL: i32 = libc::MSG_NOSIGNAL;
/// Elsewhere `socket2` and the standard library see to it, or there is no such signal.
#[cfg(not(target_os = "linux"))]
pub(crate) const NO_SIGNAL: i32 = 0;

#[cfg(unix)]
use libc::{EINVAL, EIO, EMSGSIZE, ENOBUFS, ENOSYS};

/// The numbers of Winsock, which are not those of its C library.
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

/// What `error` means.
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

/// Whether `error` is of the network between here and there, or of the machine's means, and may pass.
pub(crate) fn is_transient(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    let is_of_network = matches!(
        error.kind(),
        Kind::NetworkDown | Kind::NetworkUnreachable | Kind::HostUnreachable | Kind::OutOfMemory
    );
    is_of_network || error.raw_os_error().is_some_and(|code| TRANSIENT.contains(&code))
}

/// A firewall's refusal, or a full table of connections, is `EPERM`; an interface that is unplugged
/// `ENODEV` or `ENXIO`.
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

/// What an error of accepting means.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum AcceptFault {
    /// No connection is waiting.
    Nothing,
    /// One connection failed before it was taken, or a signal came: the next may be well.
    Passing,
    /// The process or the system has no descriptor or no memory for it: it waits on.
    Exhausted,
    /// The listener is of no more use.
    Lasting,
}

/// What `error` of accepting means.
pub(crate) fn accept_fault(error: &io::Error) -> AcceptFault {
    use io::ErrorKind as Kind;
    match error.kind() {
        Kind::WouldBlock => return AcceptFault::Nothing,
        // A firewall's refusal is one of the peer, not of the listener.
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
/// Linux tells errors of the network that were pending on the new connection (accept(2)).
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
    fn what_may_pass_is_told_from_what_is_wrong() {
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
