//! A UDP socket that sends and receives in batches.

use std::io;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::net::SocketAddr;
use std::sync::atomic::AtomicU8;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use std::time::Instant;

use socket2::Domain;
use socket2::Protocol;
use socket2::Socket;
use socket2::Type;

use crate::arena::{Arena, Datagrams};
use crate::counters::{Counters, Counting, add};
use crate::error::{NetError, SendError};
use crate::options::{MulticastOptions, ReceivePath, SendPath, SocketOptions};
use crate::runs::{MESSAGE_LEN_MAX, Message, next_run, next_single};
use crate::sys;
use crate::waker::Waker;

/// Messages given to the kernel in one call.
pub(crate) const MESSAGES_MAX: usize = 64;

/// How long to wait when the kernel has no memory: no event tells that it has some again.
const NO_MEMORY_PAUSE: Duration = Duration::from_micros(200);

/// A UDP socket that sends and receives in batches, from any thread.
#[derive(Debug)]
pub struct UdpSocket {
    inner: sys::Inner,
    local: SocketAddr,
    buffers: BufferSizes,
    send_path: AtomicU8,
    send_path_asked: SendPath,
    receive_path: ReceivePath,
    message_len_max: usize,
    counting: Counting,
}

/// Socket buffers as asked for and as given, in octets of the kernel's accounting.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BufferSizes {
    /// Send buffer asked for.
    pub send_asked: usize,
    /// Send buffer given.
    pub send: usize,
    /// Receive buffer asked for.
    pub receive_asked: usize,
    /// Receive buffer given.
    pub receive: usize,
}

/// Room for the messages of one send call; one per sending thread.
#[derive(Debug)]
pub struct SendQueue(Vec<Message>);

impl SendQueue {
    /// An empty queue.
    pub fn new() -> Self {
        Self(Vec::with_capacity(MESSAGES_MAX))
    }
}

impl Default for SendQueue {
    fn default() -> Self {
        Self::new()
    }
}

impl UdpSocket {
    /// Opens a socket on `local`; port 0 takes a free one.
    ///
    /// # Errors
    /// [`NetError::AddressInUse`], [`NetError::Bind`], [`NetError::Multicast`], or
    /// [`NetError::Option`] naming what the system refused.
    pub fn bind(local: SocketAddr, options: &SocketOptions) -> Result<Self, NetError> {
        let domain = if local.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
        let socket =
            Socket::new(domain, Type::DGRAM, Some(Protocol::UDP)).map_err(NetError::Socket)?;
        let option = |option, result: io::Result<()>| {
            result.map_err(|source| NetError::Option { option, source })
        };
        if local.is_ipv6() {
            option("IPV6_V6ONLY", socket.set_only_v6(true))?;
        }
        if let Some(name) = &options.interface {
            option("SO_BINDTODEVICE", sys::bind_to_interface(&socket, name))?;
        }
        if options.multicast.is_some() {
            // Several members of a group may share a host.
            option("SO_REUSEADDR", socket.set_reuse_address(true))?;
        }
        let buffers = set_buffers(&socket, options)?;
        if let Some(dscp) = options.dscp {
            let class = u32::from(dscp) << 2;
            let set = if local.is_ipv4() {
                socket.set_tos_v4(class)
            } else {
                sys::set_traffic_class_v6(&socket, class)
            };
            option("the differentiated services code point", set)?;
        }
        socket.bind(&local.into()).map_err(|source| match source.kind() {
            ErrorKind::AddrInUse => NetError::AddressInUse { address: local },
            _ => NetError::Bind { address: local, source },
        })?;
        if let Some(multicast) = &options.multicast {
            join(&socket, multicast)?;
        }
        let bound = socket.local_addr().map_err(NetError::Socket)?;
        let local = bound.as_socket().unwrap_or(local);
        Self::with_paths(socket, local, buffers, options)
    }

    fn with_paths(
        socket: Socket,
        local: SocketAddr,
        buffers: BufferSizes,
        options: &SocketOptions,
    ) -> Result<Self, NetError> {
        let unsupported = |option| move |source| NetError::Option { option, source };
        let send_path = match options.send_path {
            SendPath::Auto => sys::probe_send(&socket),
            SendPath::Gso => {
                sys::require_gso(&socket).map_err(unsupported("UDP_SEGMENT"))?;
                SendPath::Gso
            }
            path => path,
        };
        let receive_path = match options.receive_path {
            ReceivePath::Auto => sys::enable_receive(&socket),
            ReceivePath::Gro => {
                sys::enable_gro(&socket).map_err(unsupported("UDP_GRO"))?;
                ReceivePath::Gro
            }
            path => path,
        };
        Ok(Self {
            inner: sys::Inner::new(socket).map_err(NetError::Socket)?,
            local,
            buffers,
            send_path: AtomicU8::new(send_path as u8),
            send_path_asked: options.send_path,
            receive_path,
            // A message that the send buffer cannot hold would never leave.
            message_len_max: MESSAGE_LEN_MAX.min(buffers.send / 2),
            counting: Counting::default(),
        })
    }

    /// The address that the socket is bound to.
    pub fn local_address(&self) -> SocketAddr {
        self.local
    }

    /// Socket buffers as asked for and as given.
    pub fn buffers(&self) -> BufferSizes {
        self.buffers
    }

    /// How datagrams are given to the kernel, as found by trying.
    pub fn send_path(&self) -> SendPath {
        match self.send_path.load(Relaxed) {
            n if n == SendPath::Gso as u8 => SendPath::Gso,
            n if n == SendPath::Sendmmsg as u8 => SendPath::Sendmmsg,
            _ => SendPath::Single,
        }
    }

    /// How datagrams are taken from the kernel, as found by trying.
    pub fn receive_path(&self) -> ReceivePath {
        self.receive_path
    }

    /// What the socket has done so far.
    pub fn counters(&self) -> Counters {
        self.counting.snapshot(sys::kernel_drops(&self.inner))
    }

    /// Sends only to, and receives only from, `peer` from now on. The kernel then tells when
    /// nobody listens there; such news are counted and do not stop a stream.
    ///
    /// # Errors
    /// What the system said.
    pub fn connect(&self, peer: SocketAddr) -> io::Result<()> {
        self.inner.connect(peer)
    }

    /// Sends the datagrams that stand back to back in `octets`, `lengths` octets each, to `to`.
    /// Waits for room in the send buffer, at most until `deadline`.
    ///
    /// # Errors
    /// [`SendError`], which says how many datagrams went before.
    pub fn send(
        &self,
        queue: &mut SendQueue,
        octets: &[u8],
        lengths: &[u16],
        to: SocketAddr,
        deadline: Instant,
    ) -> Result<(), SendError> {
        let (mut sent, mut start) = (0, 0);
        while sent < lengths.len() {
            let path = self.send_path();
            self.queue(queue, &lengths[sent..], start, path);
            add(&self.counting.send_calls, 1);
            match self.inner.send(octets, &queue.0, to) {
                Ok(messages) => {
                    for message in &queue.0[..messages] {
                        sent += message.datagrams;
                        start += message.len;
                        add(&self.counting.octets_sent, message.len);
                        add(&self.counting.datagrams_sent, message.datagrams);
                    }
                }
                Err(error) => {
                    let first = queue.0.first().copied().unwrap_or_default();
                    self.overcome(error, path, first, (sent, to, deadline))?;
                }
            }
        }
        Ok(())
    }

    /// Receives what is there, and waits for it until `deadline` if there is nothing. Empty if
    /// nothing came or `waker` ended the wait; a deadline in the past asks once.
    ///
    /// # Errors
    /// [`NetError::Receive`].
    pub fn receive<'a>(
        &self,
        arena: &'a mut Arena,
        deadline: Instant,
        waker: Option<&Waker>,
    ) -> Result<Datagrams<'a>, NetError> {
        loop {
            add(&self.counting.receive_calls, 1);
            match self.inner.receive(arena, &self.counting) {
                Ok(()) if arena.count > 0 => {
                    self.count_received(arena);
                    break;
                }
                // Only truncated datagrams came.
                Ok(()) => {}
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                        if Instant::now() >= deadline {
                            break;
                        }
                        add(&self.counting.wait_calls, 1);
                        let wake = waker.map(|waker| &waker.0);
                        let woken =
                            self.inner.wait_readable(deadline, wake).map_err(NetError::Receive)?;
                        if woken {
                            break;
                        }
                    }
                    ErrorKind::Interrupted => {}
                    ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset => {
                        add(&self.counting.refused, 1);
                    }
                    _ => return Err(NetError::Receive(error)),
                },
            }
        }
        Ok(arena.datagrams())
    }

    /// Puts the next messages of a batch into the queue.
    fn queue(&self, queue: &mut SendQueue, mut lengths: &[u16], mut start: usize, path: SendPath) {
        queue.0.clear();
        let messages = if path == SendPath::Single { 1 } else { MESSAGES_MAX };
        while queue.0.len() < messages && !lengths.is_empty() {
            let message = match path {
                SendPath::Gso => next_run(lengths, start, self.message_len_max),
                _ => next_single(lengths, start),
            };
            lengths = &lengths[message.datagrams..];
            start += message.len;
            queue.0.push(message);
        }
    }

    /// Waits or falls back after an error, so that the same datagrams can be tried again.
    fn overcome(
        &self,
        error: io::Error,
        path: SendPath,
        first: Message,
        (sent, to, deadline): (usize, SocketAddr, Instant),
    ) -> Result<(), SendError> {
        let fallback = match path {
            SendPath::Gso if first.datagrams > 1 && sys::refuses_gso(&error) => SendPath::Sendmmsg,
            SendPath::Sendmmsg if error.kind() == ErrorKind::Unsupported => SendPath::Single,
            _ => path,
        };
        if fallback != path && self.send_path_asked == SendPath::Auto {
            tracing::debug!(%error, %fallback, "the device refuses; falling back for this socket");
            self.send_path.store(fallback as u8, Relaxed);
            return Ok(());
        }
        if sys::is_too_large(&error) {
            return Err(SendError::TooLarge { len: usize::from(first.segment), sent });
        }
        match error.kind() {
            ErrorKind::Interrupted => Ok(()),
            ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset => {
                // News of an earlier datagram; reading them cleared them.
                add(&self.counting.refused, 1);
                Ok(())
            }
            _ if Instant::now() >= deadline && sys::is_full(&error) => {
                Err(SendError::Timeout { sent })
            }
            ErrorKind::WouldBlock => {
                add(&self.counting.buffer_full, 1);
                add(&self.counting.wait_calls, 1);
                let waited = self.inner.wait_writable(deadline);
                waited.map_err(|source| SendError::Io { to, sent, source })
            }
            _ if sys::is_full(&error) => {
                add(&self.counting.buffer_full, 1);
                std::thread::sleep(NO_MEMORY_PAUSE);
                Ok(())
            }
            _ => Err(SendError::Io { to, sent, source: error }),
        }
    }

    fn count_received(&self, arena: &Arena) {
        let (mut datagrams, mut octets) = (0, 0);
        for received in &arena.received[..arena.count] {
            datagrams += received.len.div_ceil(received.segment.max(1)).max(1);
            octets += received.len;
        }
        let count = |counter: &AtomicU64, count: usize| add(counter, count);
        count(&self.counting.datagrams_received, datagrams);
        count(&self.counting.octets_received, octets);
    }
}

/// Sets both buffers, past the system's limit if this program may, and reads them back.
fn set_buffers(socket: &Socket, options: &SocketOptions) -> Result<BufferSizes, NetError> {
    let option = |option| move |source| NetError::Option { option, source };
    sys::set_receive_buffer(socket, options.receive_buffer).map_err(option("SO_RCVBUF"))?;
    sys::set_send_buffer(socket, options.send_buffer).map_err(option("SO_SNDBUF"))?;
    let given = BufferSizes {
        send_asked: options.send_buffer,
        send: socket.send_buffer_size().map_err(option("SO_SNDBUF"))? / sys::BUFFER_FACTOR,
        receive_asked: options.receive_buffer,
        receive: socket.recv_buffer_size().map_err(option("SO_RCVBUF"))? / sys::BUFFER_FACTOR,
    };
    if given.receive < given.receive_asked {
        tracing::warn!(
            asked = given.receive_asked,
            given = given.receive,
            "the receive buffer is smaller than asked for; raise net.core.rmem_max"
        );
    }
    if given.send < given.send_asked {
        tracing::warn!(
            asked = given.send_asked,
            given = given.send,
            "the send buffer is smaller than asked for; raise net.core.wmem_max"
        );
    }
    Ok(given)
}

/// Joins a group, and sets how what is sent to it travels.
fn join(socket: &Socket, options: &MulticastOptions) -> Result<(), NetError> {
    let group = options.group;
    let joined = match (group, options.interface) {
        (IpAddr::V4(group), interface) => {
            let interface = match interface {
                Some(IpAddr::V4(interface)) => interface,
                _ => std::net::Ipv4Addr::UNSPECIFIED,
            };
            socket
                .join_multicast_v4(&group, &interface)
                .and_then(|()| socket.set_multicast_if_v4(&interface))
                .and_then(|()| socket.set_multicast_ttl_v4(options.ttl))
                .and_then(|()| socket.set_multicast_loop_v4(options.loop_back))
        }
        (IpAddr::V6(group), _) => socket
            .join_multicast_v6(&group, options.interface_index)
            .and_then(|()| socket.set_multicast_if_v6(options.interface_index))
            .and_then(|()| socket.set_multicast_hops_v6(options.ttl))
            .and_then(|()| socket.set_multicast_loop_v6(options.loop_back)),
    };
    joined.map_err(|source| NetError::Multicast { group, source })
}
