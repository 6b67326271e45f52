//! `sendmmsg` and `recvmmsg`.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::{fmt, io, mem, ptr};

use crate::group::{Group, Limits, next_group};
use crate::sys::address::{CONTROL_LEN, Control, NAME_LEN, Name};
use crate::sys::{Head, Parcel, Parcels, Taken, address};

/// Messages in one `sendmmsg` call.
const MESSAGES: usize = 64;

/// Message headers and the memory that they point to.
struct Headers {
    messages: Vec<libc::mmsghdr>,
    slices: Vec<libc::iovec>,
    controls: Vec<Control>,
    names: Vec<Name>,
}

// SAFETY: the pointers in it are rewritten before each system call and dereferenced only by that
// call; between calls they are never used.
unsafe impl Send for Headers {}

impl Headers {
    fn new(messages: usize, names: usize) -> Self {
        // SAFETY: `mmsghdr` is a C structure of integers and pointers; all zeros are valid.
        let header: libc::mmsghdr = unsafe { mem::zeroed() };
        let slice = libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 };
        Self {
            messages: vec![header; messages],
            slices: vec![slice; messages],
            controls: vec![Control([0; CONTROL_LEN]); messages],
            names: vec![Name([0; NAME_LEN]); names],
        }
    }

    /// Makes room for so many messages. It is not given back; a sender of small frames never needs much.
    fn grow(&mut self, messages: usize) {
        if self.messages.len() < messages {
            let names = self.names.len();
            *self = Self::new(messages, names);
        }
    }
}

/// The scratch space for sending.
pub(crate) struct Outbox {
    headers: Headers,
    taken: Vec<Taken>,
}

impl Outbox {
    pub(crate) fn new() -> Self {
        Self { headers: Headers::new(0, 1), taken: Vec::new() }
    }

    /// Passes the front of the parcel to the kernel in one system call.
    pub(crate) fn send(
        &mut self,
        socket: &UdpSocket,
        parcel: Parcel<'_>,
        limits: Limits,
    ) -> io::Result<Taken> {
        let count = self.fill_headers(parcel, limits) as libc::c_uint;
        let headers = self.headers.messages.as_mut_ptr();
        // SAFETY: `fill_headers` has just filled the first `count` headers with pointers into
        // `parcel` and `self.headers`; both outlive the call, which writes to `msg_len` only.
        let sent = unsafe { libc::sendmmsg(socket.as_raw_fd(), headers, count, 0) };
        let Ok(sent) = usize::try_from(sent) else {
            return Err(io::Error::last_os_error());
        };
        Ok(self.sum(sent))
    }

    /// Passes the front of datagrams with several destinations to the kernel in one system call.
    pub(crate) fn send_runs(
        &mut self,
        socket: &UdpSocket,
        parcels: Parcels<'_>,
        limits: Limits,
    ) -> io::Result<Taken> {
        let count = self.fill_runs(parcels, limits) as libc::c_uint;
        let headers = self.headers.messages.as_mut_ptr();
        // SAFETY: `fill_runs` has just filled the first `count` headers with pointers into `parcels` and
        // `self.headers`; both outlive the call, which writes to `msg_len` only.
        let sent = unsafe { libc::sendmmsg(socket.as_raw_fd(), headers, count, 0) };
        let Ok(sent) = usize::try_from(sent) else {
            return Err(io::Error::last_os_error());
        };
        Ok(self.sum(sent))
    }

    /// Returns what the first `sent` messages contain.
    fn sum(&self, sent: usize) -> Taken {
        let sum = |sum: Taken, one: &Taken| Taken {
            datagrams: sum.datagrams + one.datagrams,
            bytes: sum.bytes + one.bytes,
        };
        self.taken.iter().take(sent).fold(Taken::default(), sum)
    }

    /// Fills the headers for the part of the parcels that fits one call; returns their number.
    fn fill_runs(&mut self, parcels: Parcels<'_>, limits: Limits) -> usize {
        self.headers.grow(parcels.lengths.len().min(MESSAGES));
        let Headers { messages, slices, controls, names } = &mut self.headers;
        names.resize(messages.len(), Name([0; NAME_LEN]));
        self.taken.clear();
        let Parcels { mut bytes, mut lengths, runs } = parcels;
        let mut runs = runs.iter().copied();
        let mut run = runs.next();
        let places = messages.iter_mut().zip(slices).zip(controls).zip(names);
        for (((header, slice), control), name) in places {
            while run.is_some_and(|(_, left)| left == 0) {
                run = runs.next();
            }
            let Some((to, left)) = &mut run else { break };
            let of_run = lengths.get(..*left).unwrap_or(lengths);
            let Some(group) = next_group(of_run, limits) else { break };
            *left -= group.datagrams;
            lengths = &lengths[group.datagrams..];
            let (of_group, rest) = bytes.split_at(group.bytes);
            bytes = rest;
            self.taken.push(Taken { datagrams: group.datagrams, bytes: group.bytes });
            let name_len = address::encode(to, name);
            fill(header, slice, control, of_group, group);
            header.msg_hdr.msg_name = ptr::from_mut(name).cast();
            header.msg_hdr.msg_namelen = name_len as _;
        }
        self.taken.len()
    }

    /// Fills headers for the part of the parcel that fits one call; returns their number.
    fn fill_headers(&mut self, mut parcel: Parcel<'_>, limits: Limits) -> usize {
        self.headers.grow(parcel.lengths.len().min(MESSAGES));
        let Headers { messages, slices, controls, names } = &mut self.headers;
        let (name, name_len) = if parcel.connected {
            (ptr::null_mut(), 0)
        } else {
            let len = address::encode(&parcel.to, &mut names[0]);
            (names.as_mut_ptr().cast(), len)
        };
        self.taken.clear();
        let places = messages.iter_mut().zip(slices).zip(controls);
        for ((header, slice), control) in places {
            let Some(group) = next_group(parcel.lengths, limits) else { break };
            let (bytes, rest) = parcel.bytes.split_at(group.bytes);
            parcel.bytes = rest;
            parcel.lengths = &parcel.lengths[group.datagrams..];
            self.taken.push(Taken { datagrams: group.datagrams, bytes: group.bytes });

            fill(header, slice, control, bytes, group);
            header.msg_hdr.msg_name = name;
            header.msg_hdr.msg_namelen = name_len as _;
        }
        self.taken.len()
    }
}

/// Fills the header of a message with its octets and how they are cut.
fn fill(
    header: &mut libc::mmsghdr,
    slice: &mut libc::iovec,
    control: &mut Control,
    bytes: &[u8],
    group: Group,
) {
    slice.iov_base = bytes.as_ptr().cast_mut().cast();
    slice.iov_len = bytes.len();
    let message = &mut header.msg_hdr;
    message.msg_iov = slice;
    message.msg_iovlen = 1;
    if group.datagrams > 1 {
        message.msg_controllen = address::encode_segment(group.segment, control) as _;
        message.msg_control = ptr::from_mut(control).cast();
    } else {
        message.msg_controllen = 0;
        message.msg_control = ptr::null_mut();
    }
}

/// The scratch space for receiving.
pub(crate) struct Inbox {
    headers: Headers,
}

impl Inbox {
    pub(crate) fn new(messages: usize) -> Self {
        Self { headers: Headers::new(messages, messages) }
    }

    /// Receives the available messages, each into its own `stride` octets of `buffer`.
    pub(crate) fn receive(
        &mut self,
        socket: &UdpSocket,
        buffer: &mut [u8],
        stride: usize,
        heads: &mut Vec<Head>,
    ) -> io::Result<()> {
        let count = self.fill_headers(buffer, stride);
        let headers = self.headers.messages.as_mut_ptr();
        let fd = socket.as_raw_fd();
        let (count, forever) = (count as libc::c_uint, ptr::null_mut());
        // SAFETY: `fill_headers` has just filled the first `count` headers with pointers into
        // `buffer` and `self.headers`, with the lengths of those places; both outlive the call. The
        // socket does not block, so the missing timeout is never used.
        let received = unsafe { libc::recvmmsg(fd, headers, count, 0, forever) };
        let Ok(received) = usize::try_from(received) else {
            return Err(io::Error::last_os_error());
        };
        let Headers { messages, controls, names, .. } = &self.headers;
        for ((header, control), name) in messages.iter().zip(controls).zip(names).take(received) {
            let message = &header.msg_hdr;
            #[allow(clippy::unnecessary_cast, reason = "its type differs between C libraries")]
            let control_len = message.msg_controllen as usize;
            let unknown = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
            heads.push(Head {
                length: header.msg_len as usize,
                segment: address::decode_segment(control, control_len),
                from: address::decode(name).unwrap_or(unknown),
                truncated: message.msg_flags & libc::MSG_TRUNC != 0,
                stamp: address::decode_stamp(control, control_len),
                ecn: address::decode_ecn(control, control_len),
            });
        }
        Ok(())
    }

    fn fill_headers(&mut self, buffer: &mut [u8], stride: usize) -> usize {
        let Headers { messages, slices, controls, names } = &mut self.headers;
        let places = messages.iter_mut().zip(slices).zip(controls).zip(names);
        let mut count = 0;
        for ((((header, slice), control), name), place) in
            places.zip(buffer.chunks_exact_mut(stride))
        {
            slice.iov_base = place.as_mut_ptr().cast();
            slice.iov_len = place.len();
            let message = &mut header.msg_hdr;
            message.msg_name = ptr::from_mut(name).cast();
            message.msg_namelen = NAME_LEN as _;
            message.msg_iov = slice;
            message.msg_iovlen = 1;
            message.msg_control = ptr::from_mut(control).cast();
            message.msg_controllen = CONTROL_LEN as _;
            message.msg_flags = 0;
            count += 1;
        }
        count
    }
}

/// Notifications read at once.
const NOTIFICATIONS: usize = 8;

/// The memory for the kernel's notifications about sent datagrams.
pub(super) struct Notifications {
    headers: Headers,
}

impl fmt::Debug for Notifications {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notifications").finish_non_exhaustive()
    }
}

impl Notifications {
    pub(super) fn new() -> Self {
        Self { headers: Headers::new(NOTIFICATIONS, 0) }
    }

    /// Reads and returns pending notifications, and whether these were all.
    pub(super) fn read(&mut self, socket: &UdpSocket) -> (&[Control], bool) {
        let Headers { messages, controls, .. } = &mut self.headers;
        for (header, control) in messages.iter_mut().zip(&mut *controls) {
            control.0.fill(0);
            header.msg_hdr.msg_control = ptr::from_mut(control).cast();
            header.msg_hdr.msg_controllen = CONTROL_LEN as _;
        }
        let headers = messages.as_mut_ptr();
        let (count, flags) =
            (NOTIFICATIONS as libc::c_uint, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT);
        // SAFETY: there are `count` headers, each with the place and length of its control messages
        // and with no other place; all outlive the call, which does not block, so the missing
        // timeout is never used.
        let read = unsafe {
            libc::recvmmsg(socket.as_raw_fd(), headers, count, flags as _, ptr::null_mut())
        };
        let read = usize::try_from(read).unwrap_or(0);
        (controls.get(..read).unwrap_or_default(), read < NOTIFICATIONS)
    }
}
