//! Linux: `sendmsg`, `sendmmsg`, `recvmmsg`, `ppoll` and `eventfd`.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::io::Read;
use std::io::Write;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::os::fd::FromRawFd;
use std::os::fd::OwnedFd;
use std::os::fd::RawFd;
use std::time::Instant;

use socket2::Socket;

use super::wire::{CONTROL_LEN, Control, NAME_LEN, Name};
use crate::arena::{Arena, BUFFER_LEN};
use crate::counters::{Counting, add};
use crate::options::{ReceivePath, SendPath};
use crate::runs::Message;
use crate::udp::MESSAGES_MAX;

/// The kernel doubles what is asked for, to pay for its own overhead, and reports the double.
pub(crate) const BUFFER_FACTOR: usize = 2;

/// `SK_MEMINFO_DROPS` of `linux/sock_diag.h`: its place in what `SO_MEMINFO` gives.
const MEMINFO_DROPS: usize = 8;

/// A socket that never blocks.
#[derive(Debug)]
pub(crate) struct Inner(Socket);

impl Inner {
    pub(crate) fn new(socket: Socket) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self(socket))
    }

    pub(crate) fn connect(&self, peer: SocketAddr) -> io::Result<()> {
        self.0.connect(&peer.into())
    }

    /// Sends `messages`, parts of `octets`; how many the kernel took.
    pub(crate) fn send(
        &self,
        octets: &[u8],
        messages: &[Message],
        to: SocketAddr,
    ) -> io::Result<usize> {
        match messages {
            [one] => self.send_one(octets, one, to),
            many => self.send_many(octets, many, to),
        }
    }

    fn send_one(&self, octets: &[u8], message: &Message, to: SocketAddr) -> io::Result<usize> {
        let (mut name, name_len) = Name::of(to);
        let mut part = io_vector(&octets[message.start..message.start + message.len]);
        let (mut control, control_len) = control(message);
        let mut header = empty_header();
        header.msg_name = (&raw mut name).cast();
        header.msg_namelen = name_len as u32;
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        if control_len > 0 {
            header.msg_control = (&raw mut control).cast();
            header.msg_controllen = control_len as _;
        }
        // SAFETY: the header's name, vector and control point to locals that outlive the call, with
        // their true lengths; the kernel only reads them.
        let sent = unsafe { libc::sendmsg(self.0.as_raw_fd(), &raw const header, 0) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(1) }
    }

    fn send_many(&self, octets: &[u8], messages: &[Message], to: SocketAddr) -> io::Result<usize> {
        let (mut name, name_len) = Name::of(to);
        let mut parts = [io_vector(&[]); MESSAGES_MAX];
        let mut controls = [Control::EMPTY; MESSAGES_MAX];
        let mut headers = [empty_multi_header(); MESSAGES_MAX];
        let count = messages.len().min(MESSAGES_MAX);
        for (n, message) in messages[..count].iter().enumerate() {
            parts[n] = io_vector(&octets[message.start..message.start + message.len]);
            let control_len;
            (controls[n], control_len) = control(message);
            let header = &mut headers[n].msg_hdr;
            header.msg_name = (&raw mut name).cast();
            header.msg_namelen = name_len as u32;
            header.msg_iov = &raw mut parts[n];
            header.msg_iovlen = 1;
            if control_len > 0 {
                header.msg_control = (&raw mut controls[n]).cast();
                header.msg_controllen = control_len as _;
            }
        }
        // SAFETY: the first `count` headers are filled, and all they point to are locals that
        // outlive the call, with their true lengths.
        let sent =
            unsafe { libc::sendmmsg(self.0.as_raw_fd(), headers.as_mut_ptr(), count as u32, 0) };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }

    /// Fills `arena` with what is there.
    pub(crate) fn receive(&self, arena: &mut Arena, counting: &Counting) -> io::Result<()> {
        arena.count = 0;
        let messages = arena.received.len().min(MESSAGES_MAX);
        let mut names = [Name::EMPTY; MESSAGES_MAX];
        let mut controls = [const { MaybeUninit::<Control>::uninit() }; MESSAGES_MAX];
        let mut parts = [io_vector(&[]); MESSAGES_MAX];
        let mut headers = [empty_multi_header(); MESSAGES_MAX];
        for (n, buffer) in arena.octets.chunks_exact_mut(BUFFER_LEN).take(messages).enumerate() {
            controls[n].write(Control::EMPTY);
            parts[n] = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
            let header = &mut headers[n].msg_hdr;
            header.msg_name = (&raw mut names[n]).cast();
            header.msg_namelen = NAME_LEN as u32;
            header.msg_iov = &raw mut parts[n];
            header.msg_iovlen = 1;
            header.msg_control = controls[n].as_mut_ptr().cast();
            header.msg_controllen = CONTROL_LEN as _;
        }
        let flags = libc::MSG_DONTWAIT;
        let nothing = std::ptr::null_mut();
        // SAFETY: the first `messages` headers are filled; their names, buffers and controls are
        // distinct, live for the whole call and have the lengths given.
        let came = unsafe {
            let fd = self.0.as_raw_fd();
            libc::recvmmsg(fd, headers.as_mut_ptr(), messages as u32, flags as _, nothing)
        };
        let came = usize::try_from(came).map_err(|_| io::Error::last_os_error())?;
        for n in 0..came {
            let header = &headers[n];
            // SAFETY: the first `messages` controls were written above, and `came` is no more.
            let control = unsafe { controls[n].assume_init_ref() };
            let cut = header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0;
            let (false, Some(from)) = (cut, names[n].address()) else {
                add(&counting.truncated, 1);
                arena.received[n].len = 0;
                continue;
            };
            let len = header.msg_len as usize;
            let received = &mut arena.received[n];
            received.segment = control.coalesced(header.msg_hdr.msg_controllen as _).unwrap_or(len);
            received.len = len;
            received.from = from;
        }
        arena.count = came;
        Ok(())
    }

    /// Waits until a datagram is there or `deadline`; whether `wake` ended the wait.
    pub(crate) fn wait_readable(&self, deadline: Instant, wake: Option<&Wake>) -> io::Result<bool> {
        let wake_fd = wake.map_or(-1, |wake| wake.0.as_raw_fd());
        let mut waits =
            [poll_for(self.0.as_raw_fd(), libc::POLLIN), poll_for(wake_fd, libc::POLLIN)];
        poll(&mut waits, deadline)?;
        let woken = waits[1].revents & libc::POLLIN != 0;
        if let (true, Some(wake)) = (woken, wake) {
            wake.clear();
        }
        Ok(woken)
    }

    /// Waits until there is room in the send buffer or `deadline`.
    pub(crate) fn wait_writable(&self, deadline: Instant) -> io::Result<()> {
        poll(&mut [poll_for(self.0.as_raw_fd(), libc::POLLOUT)], deadline)
    }
}

/// An event that ends a wait.
#[derive(Debug)]
pub(crate) struct Wake(File);

impl Wake {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: no memory is passed.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and nobody else's.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }.into()))
    }

    pub(crate) fn wake(&self) {
        // It fails only if it is woken 2^64 - 2 times already, which is awake enough.
        let _ = (&self.0).write(&1_u64.to_ne_bytes());
    }

    fn clear(&self) {
        let _ = (&self.0).read(&mut [0; 8]);
    }
}

/// The fastest way to send that the kernel has.
pub(crate) fn probe_send(socket: &Socket) -> SendPath {
    if require_gso(socket).is_ok() { SendPath::Gso } else { SendPath::Sendmmsg }
}

/// Whether the kernel knows segmentation offload; devices may still refuse it later.
pub(crate) fn require_gso(socket: &Socket) -> io::Result<()> {
    set_option(socket.as_raw_fd(), libc::SOL_UDP, libc::UDP_SEGMENT, 1400)?;
    set_option(socket.as_raw_fd(), libc::SOL_UDP, libc::UDP_SEGMENT, 0)
}

/// Turns on the fastest way to receive that the kernel has.
pub(crate) fn enable_receive(socket: &Socket) -> ReceivePath {
    if enable_gro(socket).is_ok() { ReceivePath::Gro } else { ReceivePath::Recvmmsg }
}

pub(crate) fn enable_gro(socket: &Socket) -> io::Result<()> {
    set_option(socket.as_raw_fd(), libc::SOL_UDP, libc::UDP_GRO, 1)
}

pub(crate) fn bind_to_interface(socket: &Socket, name: &str) -> io::Result<()> {
    socket.bind_device(Some(name.as_bytes()))
}

pub(crate) fn set_traffic_class_v6(socket: &Socket, class: u32) -> io::Result<()> {
    socket.set_tclass_v6(class)
}

/// Sets the receive buffer past `net.core.rmem_max` if this program may, else up to it.
pub(crate) fn set_receive_buffer(socket: &Socket, len: usize) -> io::Result<()> {
    let value = libc::c_int::try_from(len).unwrap_or(libc::c_int::MAX);
    set_option(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, value)
        .or_else(|_| socket.set_recv_buffer_size(len))
}

/// Sets the send buffer past `net.core.wmem_max` if this program may, else up to it.
pub(crate) fn set_send_buffer(socket: &Socket, len: usize) -> io::Result<()> {
    let value = libc::c_int::try_from(len).unwrap_or(libc::c_int::MAX);
    set_option(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, value)
        .or_else(|_| socket.set_send_buffer_size(len))
}

/// Messages that the kernel threw away because the receive buffer was full.
pub(crate) fn kernel_drops(inner: &Inner) -> u64 {
    let mut info = [0_u32; MEMINFO_DROPS + 1];
    let mut len = size_of_val(&info) as libc::socklen_t;
    // SAFETY: `info` is writable for `len` octets and outlives the call.
    let result = unsafe {
        let info = info.as_mut_ptr().cast();
        libc::getsockopt(
            inner.0.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            info,
            &raw mut len,
        )
    };
    if result == 0 { u64::from(info[MEMINFO_DROPS]) } else { 0 }
}

/// Whether the error says that this device, or this path, cannot segment: EIO without checksum
/// offload, EINVAL or EMSGSIZE where a segment exceeds the MTU.
pub(crate) fn refuses_gso(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EIO | libc::EINVAL | libc::EMSGSIZE))
}

pub(crate) fn is_too_large(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EMSGSIZE)
}

/// Whether the error will pass when the send buffer or the kernel's memory is free again.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::ENOBUFS))
}

fn control(message: &Message) -> (Control, usize) {
    if message.datagrams > 1 { Control::segment(message.segment) } else { (Control::EMPTY, 0) }
}

fn io_vector(octets: &[u8]) -> libc::iovec {
    libc::iovec { iov_base: octets.as_ptr().cast_mut().cast(), iov_len: octets.len() }
}

fn empty_header() -> libc::msghdr {
    // SAFETY: null pointers and zero lengths are a valid header.
    unsafe { MaybeUninit::zeroed().assume_init() }
}

fn empty_multi_header() -> libc::mmsghdr {
    libc::mmsghdr { msg_hdr: empty_header(), msg_len: 0 }
}

fn poll_for(fd: RawFd, events: libc::c_short) -> libc::pollfd {
    libc::pollfd { fd, events, revents: 0 }
}

fn poll(waits: &mut [libc::pollfd], deadline: Instant) -> io::Result<()> {
    let time = deadline.saturating_duration_since(Instant::now());
    let time = libc::timespec {
        tv_sec: libc::time_t::try_from(time.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: time.subsec_nanos() as _,
    };
    // SAFETY: `waits` and `time` outlive the call; no signal mask is given.
    let ready = unsafe {
        let count = waits.len() as libc::nfds_t;
        libc::ppoll(waits.as_mut_ptr(), count, &raw const time, std::ptr::null())
    };
    let error = io::Error::last_os_error();
    if ready < 0 && error.kind() != io::ErrorKind::Interrupted { Err(error) } else { Ok(()) }
}

fn set_option(fd: RawFd, level: i32, name: i32, value: libc::c_int) -> io::Result<()> {
    // SAFETY: `value` is a local integer of the length given.
    let result = unsafe {
        let len = size_of::<libc::c_int>() as libc::socklen_t;
        libc::setsockopt(fd, level, name, (&raw const value).cast(), len)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
