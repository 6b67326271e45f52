//! The UDP socket: its construction, and its send and receive paths.

use std::net::{SocketAddr, UdpSocket as StdSocket};
use std::sync::OnceLock;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::{fmt, io};

use socket2::{Domain, Protocol, Socket, Type};

use crate::buffer::{BufferSizes, receive_buffer, send_buffer};
use crate::counters::{Counters, Tally};
use crate::error::NetError;
use crate::group::{Limits, MAX_MESSAGE, MAX_SEGMENTS};
use crate::options::{ReceivePath, SendPath, SocketOptions};
use crate::receive::Arena;
use crate::send::SendQueue;
use crate::sys::ErrorQueue;
use crate::{multicast, sys};

/// The share of the send buffer that one message may take: the kernel charges up to twice a
/// message's octets, and a second message should fit while the first one is being sent.
const BUFFER_SHARE: usize = 4;

/// A UDP socket for batches.
///
/// Threads may share it; each uses its own [`SendQueue`] and [`Arena`].
pub struct UdpSocket {
    pub(crate) socket: StdSocket,
    pub(crate) tally: Tally,
    /// The connected peer; sending to it needs no address.
    pub(crate) peer: OnceLock<SocketAddr>,
    /// Whether the socket also receives IPv4, although `local` is an IPv6 address.
    pub(crate) dual_stack: bool,
    local: SocketAddr,
    buffers: BufferSizes,
    demanded: SendPath,
    first: SendPath,
    receive_path: ReceivePath,
    /// Largest message with several datagrams that the send buffer holds, in octets.
    message_limit: usize,
    /// Largest datagram for which segmentation has not been refused yet, in octets.
    segment_limit: AtomicUsize,
    /// Whether segmentation was refused; the next field is the same for batching.
    gso_refused: AtomicBool,
    sendmmsg_refused: AtomicBool,
    /// ICMP messages about sent datagrams, if they were requested.
    pub(crate) errors: OnceLock<ErrorQueue>,
}

impl UdpSocket {
    /// Binds a socket to `local`; port 0 lets the system choose one.
    ///
    /// An IPv6 address gives a socket for IPv6 only, unless
    /// [`dual_stack`](SocketOptions::dual_stack) is set. The available send and receive paths are
    /// probed; a buffer smaller than requested is logged as a warning.
    ///
    /// # Errors
    /// [`NetError::AddressInUse`] if another socket has the port, and a variant for each option
    /// that this system does not support.
    pub fn bind(local: SocketAddr, options: &SocketOptions) -> Result<Self, NetError> {
        let domain = Domain::for_address(local);
        let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP));
        let socket = socket.map_err(NetError::Create)?;
        let buffers = configure(&socket, local, options)?;
        socket.bind(&local.into()).map_err(|source| match source.kind() {
            io::ErrorKind::AddrInUse => NetError::AddressInUse { address: local },
            io::ErrorKind::AddrNotAvailable => NetError::AddressNotAvailable { address: local },
            _ => NetError::Bind { address: local, source },
        })?;
        if let Some(membership) = &options.multicast {
            multicast::join(&socket, local.ip(), membership)?;
        }
        let socket = StdSocket::from(socket);
        let local = socket.local_addr().map_err(NetError::Create)?;
        let reported = socket2::SockRef::from(&socket).send_buffer_size().unwrap_or(0);
        Ok(Self {
            tally: Tally::default(),
            peer: OnceLock::new(),
            dual_stack: is_dual_stack(local, options),
            local,
            buffers,
            demanded: options.send_path,
            first: probe_send(&socket, options.send_path)?,
            receive_path: probe_receive(&socket, options.receive_path)?,
            message_limit: MAX_MESSAGE.min(reported / BUFFER_SHARE),
            segment_limit: AtomicUsize::new(MAX_MESSAGE),
            gso_refused: AtomicBool::new(false),
            sendmmsg_refused: AtomicBool::new(false),
            errors: OnceLock::new(),
            socket,
        })
    }

    /// Returns the socket's local address, with the port that the system chose.
    pub fn local_address(&self) -> SocketAddr {
        self.local
    }

    /// Connects the socket: it then receives from `peer` only and counts its ICMP port-unreachable
    /// errors ([`refused`](Counters::refused)). The peer cannot be changed later; calls to send
    /// still take the address.
    ///
    /// # Errors
    /// [`NetError::Connect`] if there is no route, or if the socket is already connected to another
    /// peer.
    pub fn connect(&self, peer: SocketAddr) -> Result<(), NetError> {
        let failed = |source| NetError::Connect { peer, source };
        if self.peer.get().is_some_and(|&before| before != peer) {
            return Err(failed(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "the socket is connected to another address",
            )));
        }
        self.socket.connect(self.kernel_address(peer)).map_err(failed)?;
        self.peer.get_or_init(|| peer);
        Ok(())
    }

    /// Returns the buffers that the system granted.
    pub fn buffers(&self) -> BufferSizes {
        self.buffers
    }

    /// Returns the statistics of the socket.
    pub fn counters(&self) -> Counters {
        let kernel_drops = sys::kernel_drops(&self.socket);
        Counters { kernel_drops, ..self.tally.read() }
    }

    /// Makes the kernel report when and with which ECN codepoint each datagram arrives
    /// (`SO_TIMESTAMPNS`, `IP_RECVTOS`, `IPV6_RECVTCLASS`; Linux, not with
    /// [`ReceivePath::Single`]). Where it cannot, datagrams keep the time of reading and no mark.
    ///
    /// Off by default, because receiving then takes 7 to 30 % more time, most without coalescing.
    pub fn enable_arrival_details(&self) {
        let is_ipv4 = self.local.is_ipv4();
        if let Err(reason) = sys::enable_arrival_details(&self.socket, is_ipv4, self.dual_stack) {
            tracing::debug!(%reason, "the system does not report when datagrams arrive");
        }
    }

    /// Returns the current send path; never [`SendPath::Auto`].
    pub fn send_path(&self) -> SendPath {
        match self.first {
            SendPath::Gso if !self.gso_refused.load(Relaxed) => SendPath::Gso,
            SendPath::Gso | SendPath::Sendmmsg if !self.sendmmsg_refused.load(Relaxed) => {
                SendPath::Sendmmsg
            }
            _ => SendPath::Single,
        }
    }

    /// Returns the receive path; never [`ReceivePath::Auto`].
    pub fn receive_path(&self) -> ReceivePath {
        self.receive_path
    }

    /// Creates the scratch space that [`send`](Self::send) needs, one for each sending thread.
    pub fn send_queue(&self) -> SendQueue {
        SendQueue::new()
    }

    /// Creates the buffers that [`receive`](Self::receive) needs, one for each receiving thread.
    pub fn arena(&self) -> Arena {
        Arena::new(self.receive_path)
    }

    /// Returns whether the socket may switch to another send path.
    pub(crate) fn can_fall_back(&self) -> bool {
        self.demanded == SendPath::Auto
    }

    /// Stops using `path` permanently.
    pub(crate) fn disable_path(&self, path: SendPath, reason: &io::Error) {
        let flag = match path {
            SendPath::Gso => &self.gso_refused,
            _ => &self.sendmmsg_refused,
        };
        if !flag.swap(true, Relaxed) {
            tracing::debug!(%path, %reason, "sending falls back to {}", self.send_path());
        }
    }

    /// Stops segmentation of datagrams of `segment` octets and more.
    pub(crate) fn lower_segment_limit(&self, segment: usize, reason: &io::Error) {
        let before = self.segment_limit.fetch_min(segment.saturating_sub(1), Relaxed);
        if before >= segment {
            tracing::warn!(
                %reason,
                "the system does not segment datagrams of {segment} octets, which are probably \
                 larger than the path's MTU; they are sent one by one, perhaps in fragments: lower \
                 the packet size"
            );
        }
    }

    /// Returns the limits of one message on `path`.
    pub(crate) fn limits(&self, path: SendPath) -> Limits {
        let segments = if path == SendPath::Gso { MAX_SEGMENTS } else { 1 };
        let segment = self.segment_limit.load(Relaxed);
        Limits { segments, bytes: self.message_limit, segment }
    }
}

impl fmt::Debug for UdpSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UdpSocket")
            .field("local", &self.local)
            .field("send_path", &self.send_path())
            .field("receive_path", &self.receive_path)
            .finish_non_exhaustive()
    }
}

/// Returns whether a socket bound to `local` receives IPv4 beside IPv6.
fn is_dual_stack(local: SocketAddr, options: &SocketOptions) -> bool {
    options.dual_stack && local.is_ipv6() && local.ip().is_unspecified()
}

/// Sets every option that must be set before binding.
fn configure(
    socket: &Socket,
    local: SocketAddr,
    options: &SocketOptions,
) -> Result<BufferSizes, NetError> {
    let named = |option| move |source| NetError::Option { option, source };
    socket.set_nonblocking(true).map_err(named("non-blocking"))?;
    if local.is_ipv6() {
        let only_v6 = !is_dual_stack(local, options);
        socket.set_only_v6(only_v6).map_err(named("IPv6 only"))?;
    }
    if options.reuse_address || options.multicast.is_some() {
        socket.set_reuse_address(true).map_err(named("reuse_address"))?;
    }
    set_traffic_class(socket, local, options)?;
    if let Some(name) = &options.interface {
        sys::bind_device(socket, name)?;
    }
    if options.forbid_fragments {
        sys::forbid_fragments(socket, local.is_ipv4()).map_err(named("forbid_fragments"))?;
    }
    Ok(BufferSizes {
        send: send_buffer(socket, options.send_buffer).map_err(named("send_buffer"))?,
        receive: receive_buffer(socket, options.receive_buffer).map_err(named("receive_buffer"))?,
    })
}

/// Sets the traffic class octet: the DSCP (RFC 2474 section 3) and the ECN codepoint.
fn set_traffic_class(
    socket: &Socket,
    local: SocketAddr,
    options: &SocketOptions,
) -> Result<(), NetError> {
    let (dscp, ecn) = (options.dscp.unwrap_or(0), options.ecn);
    if dscp > 63 {
        return Err(NetError::Range { option: "dscp", value: dscp.into(), range: "0 to 63" });
    }
    // Only routers set the codepoint 3, CE.
    if ecn > 2 {
        return Err(NetError::Range { option: "ecn", value: ecn.into(), range: "0 to 2" });
    }
    if options.dscp.is_none() && ecn == 0 {
        return Ok(());
    }
    let option = if ecn == 0 { "dscp" } else { "ecn" };
    let failed = |source| NetError::Option { option, source };
    let class = u32::from(dscp << 2 | ecn);
    // The system keeps the class of IPv4 datagrams apart, also on a socket for both versions.
    if local.is_ipv4() || is_dual_stack(local, options) {
        socket.set_tos_v4(class).map_err(failed)?;
    }
    if local.is_ipv6() {
        sys::set_traffic_class_v6(socket, class).map_err(failed)?;
    }
    Ok(())
}

fn probe_send(socket: &StdSocket, demanded: SendPath) -> Result<SendPath, NetError> {
    let failed = |source| NetError::SendPath { path: demanded, source };
    match demanded {
        SendPath::Auto if sys::probe_gso(socket).is_ok() => Ok(SendPath::Gso),
        SendPath::Auto if cfg!(target_os = "linux") => Ok(SendPath::Sendmmsg),
        SendPath::Gso => sys::probe_gso(socket).map(|()| demanded).map_err(failed),
        SendPath::Sendmmsg if !cfg!(target_os = "linux") => {
            Err(failed(io::ErrorKind::Unsupported.into()))
        }
        SendPath::Sendmmsg => Ok(demanded),
        SendPath::Auto | SendPath::Single => Ok(SendPath::Single),
    }
}

fn probe_receive(socket: &StdSocket, demanded: ReceivePath) -> Result<ReceivePath, NetError> {
    let failed = |source| NetError::ReceivePath { path: demanded, source };
    match demanded {
        ReceivePath::Auto if sys::enable_gro(socket).is_ok() => Ok(ReceivePath::Gro),
        ReceivePath::Auto if cfg!(target_os = "linux") => Ok(ReceivePath::Recvmmsg),
        ReceivePath::Gro => sys::enable_gro(socket).map(|()| demanded).map_err(failed),
        ReceivePath::Recvmmsg if !cfg!(target_os = "linux") => {
            Err(failed(io::ErrorKind::Unsupported.into()))
        }
        ReceivePath::Recvmmsg => Ok(demanded),
        ReceivePath::Auto | ReceivePath::Single => Ok(ReceivePath::Single),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_send_buffer_holds_two_messages_of_the_largest_size() {
        for send_buffer in [1, 50_000, 4 << 20] {
            let options = SocketOptions { send_buffer, ..SocketOptions::default() };
            let socket = UdpSocket::bind("127.0.0.1:0".parse().unwrap(), &options).unwrap();
            let reported = socket2::SockRef::from(&socket.socket).send_buffer_size().unwrap();
            let bytes = socket.limits(SendPath::Gso).bytes;
            assert!(2 * bytes <= reported, "{bytes} of {reported}");
            assert!(bytes <= MAX_MESSAGE);
        }
    }
}
