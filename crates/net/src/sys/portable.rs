//! Systems without batches: one datagram per call, through the standard library.

use std::io;
use std::net::SocketAddr;
use std::net::UdpSocket;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use std::time::Instant;

use socket2::Socket;

use crate::arena::{Arena, BUFFER_LEN};
use crate::counters::Counting;
use crate::options::{ReceivePath, SendPath};
use crate::runs::Message;

/// These systems report what is asked for.
pub(crate) const BUFFER_FACTOR: usize = 1;

/// How often a wait looks whether it was ended.
const PATIENCE: Duration = Duration::from_millis(10);

/// A socket that never blocks.
#[derive(Debug)]
pub(crate) struct Inner(UdpSocket);

impl Inner {
    pub(crate) fn new(socket: Socket) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self(socket.into()))
    }

    pub(crate) fn connect(&self, peer: SocketAddr) -> io::Result<()> {
        self.0.connect(peer)
    }

    /// Sends the first of `messages`.
    pub(crate) fn send(
        &self,
        octets: &[u8],
        messages: &[Message],
        to: SocketAddr,
    ) -> io::Result<usize> {
        let Some(message) = messages.first() else { return Ok(0) };
        self.0.send_to(&octets[message.start..message.start + message.len], to)?;
        Ok(1)
    }

    /// Takes one datagram, if there is one.
    pub(crate) fn receive(&self, arena: &mut Arena, _counting: &Counting) -> io::Result<()> {
        arena.count = 0;
        let (len, from) = self.0.recv_from(&mut arena.octets[..BUFFER_LEN])?;
        let received = &mut arena.received[0];
        (received.len, received.segment, received.from) = (len, len, from);
        arena.count = 1;
        Ok(())
    }

    /// Waits until a datagram is there or `deadline`; whether `wake` ended the wait.
    pub(crate) fn wait_readable(&self, deadline: Instant, wake: Option<&Wake>) -> io::Result<bool> {
        loop {
            if wake.is_some_and(|wake| wake.0.swap(false, Relaxed)) {
                return Ok(true);
            }
            let time = deadline.saturating_duration_since(Instant::now()).min(PATIENCE);
            if time.is_zero() {
                return Ok(false);
            }
            self.0.set_nonblocking(false)?;
            self.0.set_read_timeout(Some(time))?;
            let peeked = self.0.peek_from(&mut [0; 1]);
            self.0.set_nonblocking(true)?;
            match peeked {
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
                    ) => {}
                // A datagram, or an error that the next call tells.
                _ => return Ok(false),
            }
        }
    }

    /// Waits a little for room in the send buffer.
    pub(crate) fn wait_writable(&self, deadline: Instant) -> io::Result<()> {
        let time = deadline.saturating_duration_since(Instant::now());
        std::thread::sleep(time.min(Duration::from_millis(1)));
        Ok(())
    }
}

/// A flag that ends a wait.
#[derive(Debug)]
pub(crate) struct Wake(AtomicBool);

impl Wake {
    #[allow(clippy::unnecessary_wraps, reason = "other systems may run out of descriptors")]
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(AtomicBool::new(false)))
    }

    pub(crate) fn wake(&self) {
        self.0.store(true, Relaxed);
    }
}

pub(crate) fn probe_send(_socket: &Socket) -> SendPath {
    SendPath::Single
}

pub(crate) fn require_gso(_socket: &Socket) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn enable_receive(_socket: &Socket) -> ReceivePath {
    ReceivePath::Single
}

pub(crate) fn enable_gro(_socket: &Socket) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn bind_to_interface(_socket: &Socket, _name: &str) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn set_traffic_class_v6(_socket: &Socket, _class: u32) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn set_receive_buffer(socket: &Socket, len: usize) -> io::Result<()> {
    socket.set_recv_buffer_size(len)
}

pub(crate) fn set_send_buffer(socket: &Socket, len: usize) -> io::Result<()> {
    socket.set_send_buffer_size(len)
}

pub(crate) fn kernel_drops(_inner: &Inner) -> u64 {
    0
}

pub(crate) fn refuses_gso(_error: &io::Error) -> bool {
    false
}

/// Windows' `WSAEMSGSIZE`, and the `EMSGSIZE` of BSD and macOS.
pub(crate) fn is_too_large(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(10_040 | 40))
}

pub(crate) fn is_full(error: &io::Error) -> bool {
    // ENOBUFS of BSD and macOS, WSAENOBUFS of Windows.
    error.kind() == io::ErrorKind::WouldBlock || matches!(error.raw_os_error(), Some(55 | 10_055))
}
