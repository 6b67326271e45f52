//! Linux: socket options, probing and waiting.

use std::ffi::CString;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Instant;
use std::{io, ptr};

use libc::c_int;
use socket2::{InterfaceIndexOrAddress, SockRef, Socket};

use crate::error::NetError;
use crate::sys::WaitOutcome;
use crate::sys::address::{NAME_LEN, Name, encode};
use crate::tcp::{Interest, Ready};

fn set_option(socket: &impl AsRawFd, level: c_int, name: c_int, value: &[u8]) -> io::Result<()> {
    let (fd, len) = (socket.as_raw_fd(), value.len() as libc::socklen_t);
    // SAFETY: the pointer and length are those of `value`, which the kernel copies.
    let status = unsafe { libc::setsockopt(fd, level, name, value.as_ptr().cast(), len) };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reads an option of at most `value.len()` bytes.
fn option(socket: &impl AsRawFd, level: c_int, name: c_int, value: &mut [u8]) -> io::Result<()> {
    let (fd, mut len) = (socket.as_raw_fd(), value.len() as libc::socklen_t);
    // SAFETY: the pointer and length are those of `value`, and the kernel writes no more.
    let status =
        unsafe { libc::getsockopt(fd, level, name, value.as_mut_ptr().cast(), &raw mut len) };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Returns whether the kernel supports `UDP_SEGMENT`; a device may still refuse it.
pub(crate) fn probe_gso(socket: &UdpSocket) -> io::Result<()> {
    option(socket, libc::SOL_UDP, libc::UDP_SEGMENT, &mut [0; 4])
}

/// Turns `UDP_GRO` on.
pub(crate) fn enable_gro(socket: &UdpSocket) -> io::Result<()> {
    set_option(socket, libc::SOL_UDP, libc::UDP_GRO, &1_i32.to_ne_bytes())
}

/// Makes the kernel attach the time of arrival and the traffic class to each received message.
pub(crate) fn enable_arrival_details(
    socket: &UdpSocket,
    is_ipv4: bool,
    is_dual_stack: bool,
) -> io::Result<()> {
    enable_for(socket, is_ipv4, is_dual_stack, [libc::IP_RECVTOS, libc::IPV6_RECVTCLASS])?;
    set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1_i32.to_ne_bytes())
}

/// Makes the kernel queue the ICMP messages about datagrams that the socket has sent.
pub(crate) fn enable_errors(
    socket: &UdpSocket,
    is_ipv4: bool,
    is_dual_stack: bool,
) -> io::Result<()> {
    enable_for(socket, is_ipv4, is_dual_stack, [libc::IP_RECVERR, libc::IPV6_RECVERR])
}

/// Enables an option, given as that of IPv4 and that of IPv6. A socket for both IP versions needs
/// both.
fn enable_for(
    socket: &UdpSocket,
    is_ipv4: bool,
    is_dual_stack: bool,
    [ipv4, ipv6]: [c_int; 2],
) -> io::Result<()> {
    let on = 1_i32.to_ne_bytes();
    if is_ipv4 || is_dual_stack {
        set_option(socket, libc::IPPROTO_IP, ipv4, &on)?;
    }
    if !is_ipv4 {
        set_option(socket, libc::IPPROTO_IPV6, ipv6, &on)?;
    }
    Ok(())
}

fn force(socket: &Socket, name: c_int, size: usize) -> io::Result<()> {
    let size = i32::try_from(size).unwrap_or(i32::MAX);
    set_option(socket, libc::SOL_SOCKET, name, &size.to_ne_bytes())
}

/// Sets the send buffer beyond `net.core.wmem_max`, which needs `CAP_NET_ADMIN`.
pub(crate) fn force_send_buffer(socket: &Socket, size: usize) -> io::Result<()> {
    force(socket, libc::SO_SNDBUFFORCE, size)
}

/// Sets the receive buffer beyond `net.core.rmem_max`, which needs `CAP_NET_ADMIN`.
pub(crate) fn force_receive_buffer(socket: &Socket, size: usize) -> io::Result<()> {
    force(socket, libc::SO_RCVBUFFORCE, size)
}

/// Converts the size that the kernel reports to the requested one: the kernel doubles it for its
/// own overhead.
pub(crate) fn usable_buffer(reported: usize) -> usize {
    reported / 2
}

/// Returns the number of datagrams dropped for lack of buffer space.
pub(crate) fn kernel_drops(socket: &UdpSocket) -> u64 {
    // `SK_MEMINFO_DROPS` is the ninth of the numbers of `SO_MEMINFO`.
    let mut numbers = [0; 36];
    match option(socket, libc::SOL_SOCKET, libc::SO_MEMINFO, &mut numbers) {
        Ok(()) => {
            let [.., a, b, c, d] = numbers;
            u64::from(u32::from_ne_bytes([a, b, c, d]))
        }
        Err(_) => 0,
    }
}

/// Restricts the socket to one network interface.
pub(crate) fn bind_device(socket: &Socket, name: &str) -> Result<(), NetError> {
    socket.bind_device(Some(name.as_bytes())).map_err(|source| match source.raw_os_error() {
        Some(libc::ENODEV) => NetError::UnknownInterface { name: name.to_owned() },
        _ => NetError::Option { option: "interface", source },
    })
}

/// Sets the IPv6 traffic class.
pub(crate) fn set_traffic_class_v6(socket: &Socket, class: u32) -> io::Result<()> {
    socket.set_tclass_v6(class)
}

/// Refuses datagrams larger than the path's MTU instead of fragmenting them.
pub(crate) fn forbid_fragments(socket: &Socket, v4: bool) -> io::Result<()> {
    let (level, name, value) = if v4 {
        (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO)
    } else {
        (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_DO)
    };
    set_option(socket, level, name, &value.to_ne_bytes())
}

/// Returns the index of an interface.
pub(crate) fn interface_index(name: &str) -> Result<u32, NetError> {
    let unknown = || NetError::UnknownInterface { name: name.to_owned() };
    let c_name = CString::new(name).map_err(|_| unknown())?;
    // SAFETY: the pointer is that of a C string that outlives the call.
    let index = unsafe { libc::if_nametoindex(c_name.as_ptr()) };
    if index == 0 { Err(unknown()) } else { Ok(index) }
}

/// Joins an IPv4 group through the interface with this index.
pub(crate) fn join_v4(socket: &Socket, group: Ipv4Addr, index: u32) -> io::Result<()> {
    socket.join_multicast_v4_n(&group, &InterfaceIndexOrAddress::Index(index))
}

/// Bytes of `sockaddr_storage`.
const STORAGE_LEN: usize = 128;

/// Joins a group for what one host sends to it, through the interface with this index (RFC 3678
/// section 5.1); 0: chosen by the system.
pub(crate) fn join_source(
    socket: &Socket,
    group: IpAddr,
    source: IpAddr,
    index: u32,
) -> io::Result<()> {
    let level = if group.is_ipv4() { libc::IPPROTO_IP } else { libc::IPPROTO_IPV6 };
    // `group_source_req`: the index, padded to a word; the group and the source in two
    // `sockaddr_storage`.
    let mut request = [0; size_of::<usize>() + 2 * STORAGE_LEN];
    request[..4].copy_from_slice(&index.to_ne_bytes());
    for (address, at) in [(group, size_of::<usize>()), (source, size_of::<usize>() + STORAGE_LEN)] {
        let mut name = Name([0; NAME_LEN]);
        let len = encode(&SocketAddr::new(address, 0), &mut name);
        request[at..at + len].copy_from_slice(&name.0[..len]);
    }
    set_option(socket, level, libc::MCAST_JOIN_SOURCE_GROUP, &request)
}

/// From `linux/in6.h`; since Linux 4.20.
const IPV6_MULTICAST_ALL: c_int = 29;

/// Keeps out what is sent to groups that other sockets on the same port have joined.
pub(crate) fn receive_own_groups_only(socket: &Socket, local: IpAddr) -> io::Result<()> {
    let off = 0_i32.to_ne_bytes();
    if local.is_ipv4() {
        return set_option(socket, libc::IPPROTO_IP, libc::IP_MULTICAST_ALL, &off);
    }
    match set_option(socket, libc::IPPROTO_IPV6, IPV6_MULTICAST_ALL, &off) {
        Err(error) if error.raw_os_error() == Some(libc::ENOPROTOOPT) => Ok(()),
        set => set,
    }
}

/// Sends to IPv4 groups through the interface with this index.
pub(crate) fn send_v4_through(socket: &Socket, index: u32) -> io::Result<()> {
    // `ip_mreqn`: group, address, index.
    let mut request = [0; 12];
    request[8..].copy_from_slice(&index.to_ne_bytes());
    set_option(socket, libc::IPPROTO_IP, libc::IP_MULTICAST_IF, &request)
}

/// Ends a wait for a socket, such as a blocked [`receive`](crate::UdpSocket::receive), from another
/// thread.
#[derive(Debug)]
pub struct Waker {
    event: File,
}

impl Waker {
    /// Creates a waker that has not been woken.
    ///
    /// # Errors
    /// [`NetError::Waker`] if the process has no file descriptor left.
    pub fn new() -> Result<Self, NetError> {
        // SAFETY: the call takes no pointer.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(NetError::Waker(io::Error::last_os_error()));
        }
        // SAFETY: the descriptor is new and valid, and nothing else owns it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self { event: File::from(fd) })
    }

    /// Ends the wait in progress or, if there is none, the next one.
    pub fn wake(&self) {
        // This can fail only if 2^64 wakes are pending, and then the waker is woken anyway.
        let _ = (&self.event).write(&1_u64.to_ne_bytes());
    }

    /// Returns the descriptor that is readable after a wake.
    pub(super) fn descriptor(&self) -> RawFd {
        self.event.as_raw_fd()
    }

    /// Consumes a pending wake; returns whether there was one.
    pub(super) fn reset(&self) -> bool {
        (&self.event).read(&mut [0; 8]).is_ok()
    }
}

/// Waits for an event, a signal or the deadline; without a deadline, indefinitely.
fn wait(events: &mut [libc::pollfd], deadline: Option<Instant>) -> io::Result<()> {
    #[allow(clippy::useless_conversion, reason = "the fields are wider on 64-bit systems")]
    let timeout = deadline.map(|deadline| {
        let left = deadline.saturating_duration_since(Instant::now());
        libc::timespec {
            tv_sec: i32::try_from(left.as_secs()).unwrap_or(i32::MAX).into(),
            tv_nsec: left.subsec_nanos().cast_signed().into(),
        }
    });
    let timeout = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
    let (list, count) = (events.as_mut_ptr(), events.len() as libc::nfds_t);
    // SAFETY: the list has `count` entries and outlives the call, as does the timeout, if any.
    let status = unsafe { libc::ppoll(list, count, timeout, ptr::null()) };
    if status >= 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    if error.kind() == io::ErrorKind::Interrupted { Ok(()) } else { Err(error) }
}

/// Waits until `socket` or `beside` may be readable, or until woken.
pub(crate) fn wait_readable(
    socket: &UdpSocket,
    beside: Option<&UdpSocket>,
    waker: Option<&Waker>,
    deadline: Instant,
) -> io::Result<WaitOutcome> {
    let on = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // A negative descriptor is skipped by the kernel.
    let event = waker.map_or(-1, |waker| waker.event.as_raw_fd());
    let beside = beside.map_or(-1, AsRawFd::as_raw_fd);
    let mut events = [on(socket.as_raw_fd()), on(event), on(beside)];
    wait(&mut events, Some(deadline))?;
    if events[1].revents != 0 && waker.is_some_and(Waker::reset) {
        return Ok(WaitOutcome::Woken);
    }
    Ok(if events[2].revents != 0 {
        WaitOutcome::Beside
    } else if events[0].revents & libc::POLLERR != 0 {
        WaitOutcome::Errors
    } else {
        WaitOutcome::Ready
    })
}

/// Waits until there may be room to write.
pub(crate) fn wait_writable(socket: &UdpSocket, deadline: Instant) -> io::Result<()> {
    let fd = socket.as_raw_fd();
    wait(&mut [libc::pollfd { fd, events: libc::POLLOUT, revents: 0 }], Some(deadline))
}

/// Waits for `interest`, a wake, a signal or the deadline.
pub(crate) fn wait_ready(
    socket: &impl AsRawFd,
    interest: Interest,
    waker: Option<&Waker>,
    deadline: Option<Instant>,
) -> io::Result<Ready> {
    let input = if interest == Interest::Writable { 0 } else { libc::POLLIN };
    let output = if interest == Interest::Readable { 0 } else { libc::POLLOUT };
    let event = waker.map_or(-1, |waker| waker.event.as_raw_fd());
    let mut events = [
        libc::pollfd { fd: socket.as_raw_fd(), events: input | output, revents: 0 },
        libc::pollfd { fd: event, events: libc::POLLIN, revents: 0 },
    ];
    wait(&mut events, deadline)?;
    // A broken connection is ready for every requested event: reading or writing then returns why.
    let error_events = libc::POLLERR | libc::POLLHUP | libc::POLLNVAL;
    let is_ready = |wanted| wanted != 0 && events[0].revents & (wanted | error_events) != 0;
    Ok(Ready {
        readable: is_ready(input),
        writable: is_ready(output),
        woken: events[1].revents != 0 && waker.is_some_and(Waker::reset),
    })
}

/// Sleeps until a wake or the deadline; returns whether it was woken.
pub(crate) fn wait_woken(waker: Option<&Waker>, deadline: Instant) -> io::Result<bool> {
    let fd = waker.map_or(-1, |waker| waker.event.as_raw_fd());
    wait(&mut [libc::pollfd { fd, events: libc::POLLIN, revents: 0 }], Some(deadline))?;
    Ok(waker.is_some_and(Waker::reset))
}

/// Sets the congestion control of a socket's connections.
pub(crate) fn set_congestion(socket: &Socket, name: &str) -> io::Result<()> {
    socket.set_tcp_congestion(name.as_bytes())
}

/// Returns the name of the congestion control.
pub(crate) fn congestion(socket: &TcpStream) -> Option<String> {
    let mut name = SockRef::from(socket).tcp_congestion().ok()?;
    // The system pads the name with zeros.
    let end = name.iter().position(|&octet| octet == 0).unwrap_or(name.len());
    name.truncate(end);
    String::from_utf8(name).ok()
}

/// Wakes a reader of the stream only when this many octets are available.
pub(crate) fn set_low_water(socket: &TcpStream, octets: usize) -> io::Result<()> {
    let octets = i32::try_from(octets).unwrap_or(i32::MAX).max(1);
    set_option(socket, libc::SOL_SOCKET, libc::SO_RCVLOWAT, &octets.to_ne_bytes())
}

/// Accepts no more octets while this many wait to be sent.
pub(crate) fn set_unsent_max(socket: &TcpStream, octets: usize) -> io::Result<()> {
    SockRef::from(socket).set_tcp_notsent_lowat(u32::try_from(octets).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::error::SendErrorKind;
    use crate::options::{SendPath, SocketOptions};
    use crate::socket::UdpSocket;

    /// Creates a sender whose segmented messages the kernel refuses (`EINVAL`, because it cannot
    /// segment without checksums), and a receiver.
    fn refused_by_the_kernel(send_path: SendPath) -> (UdpSocket, UdpSocket) {
        let options = SocketOptions { send_path, ..SocketOptions::default() };
        let bind = || UdpSocket::bind("127.0.0.1:0".parse().unwrap(), &options).unwrap();
        let sender = bind();
        set_option(&sender.socket, libc::SOL_SOCKET, libc::SO_NO_CHECK, &1_i32.to_ne_bytes())
            .unwrap();
        (sender, bind())
    }

    #[test]
    fn a_batch_whose_segmentation_is_refused_is_sent_datagram_by_datagram() {
        let (sender, receiver) = refused_by_the_kernel(SendPath::Auto);
        assert_eq!(sender.send_path(), SendPath::Gso);
        let deadline = Instant::now() + Duration::from_secs(5);
        let (to, mut queue) = (receiver.local_address(), sender.send_queue());
        sender.send(&mut queue, b"aabbcc", &[2; 3], to, deadline).unwrap();
        assert_eq!(sender.counters().send_calls, 2);
        // The refusal is remembered.
        sender.send(&mut queue, b"ddeeff", &[2; 3], to, deadline).unwrap();
        assert_eq!(sender.counters().send_calls, 3);
        let mut arena = receiver.arena();
        let mut seen = Vec::new();
        while seen.len() < 12 {
            let datagrams = receiver.receive(&mut arena, deadline, None).unwrap();
            assert!(!datagrams.is_empty());
            datagrams.for_each(|datagram| seen.extend_from_slice(datagram.data));
        }
        assert_eq!(seen, b"aabbccddeeff");
    }

    #[test]
    fn demanded_segmentation_does_not_fall_back() {
        let (sender, receiver) = refused_by_the_kernel(SendPath::Gso);
        let (to, mut queue) = (receiver.local_address(), sender.send_queue());
        let error = sender.send(&mut queue, b"aabbcc", &[2; 3], to, Instant::now()).unwrap_err();
        assert!(
            matches!(error.kind, SendErrorKind::PathRefused { path: SendPath::Gso, .. }),
            "{error}"
        );
        assert_eq!(error.sent, 0);
    }
}
