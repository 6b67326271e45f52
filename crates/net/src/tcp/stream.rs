//! A TCP connection: vectored writes and reads, and waiting.

use std::io::{IoSlice, IoSliceMut, Read as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use std::{fmt, io};

use socket2::{Domain, Protocol, SockRef, Socket, Type};

use crate::buffer::{BufferSizes, receive_buffer};
use crate::error::{NetError, WriteError, WriteErrorKind};
use crate::sys;
use crate::sys::Waker;
use crate::tcp::options::configure;
use crate::tcp::{Interest, Ready, TcpOptions};

/// Maximum number of buffers in one system call (`IOV_MAX` of Linux and most others).
const PARTS: usize = 1024;

/// A TCP connection.
///
/// It blocks only in [`write_all`](Self::write_all) and [`wait`](Self::wait), and may be shared
/// between threads: one may write while another reads. Concurrent writes mix their octets.
pub struct TcpSocket {
    pub(super) stream: TcpStream,
    local: SocketAddr,
    peer: SocketAddr,
    buffers: BufferSizes,
}

/// The outcome of a read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Read {
    /// Number of octets read, into the front of the given buffer or buffers.
    Octets(usize),
    /// Nothing has arrived.
    Nothing,
    /// The peer has closed its side, and everything that it wrote was read.
    End,
}

impl TcpSocket {
    /// Connects to `peer`; waits for an answer until `deadline`.
    ///
    /// # Errors
    /// [`NetError::Connect`] if the port is closed, there is no route, or
    /// ([`io::ErrorKind::TimedOut`]) no answer came; [`NetError::Create`] and [`NetError::Option`]
    /// for the socket.
    pub fn connect(
        peer: SocketAddr,
        options: &TcpOptions,
        deadline: Instant,
    ) -> Result<Self, NetError> {
        let socket = Socket::new(Domain::for_address(peer), Type::STREAM, Some(Protocol::TCP))
            .map_err(NetError::Create)?;
        let buffers = configure(&socket, options)?;
        // A timeout of zero would be an error.
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        socket
            .connect_timeout(&peer.into(), left)
            .and_then(|()| Self::ready(socket.into(), peer, buffers))
            .map_err(|source| NetError::Connect { peer, source })
    }

    /// Wraps a connection that a listener accepted.
    pub(super) fn accepted(
        stream: TcpStream,
        peer: SocketAddr,
        buffers: BufferSizes,
    ) -> io::Result<Self> {
        // On some systems a connection does not inherit this from the listener.
        stream.set_nodelay(true)?;
        Self::ready(stream, peer, buffers)
    }

    fn ready(stream: TcpStream, peer: SocketAddr, buffers: BufferSizes) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let local = stream.local_addr()?;
        Ok(Self { stream, local, peer, buffers })
    }

    /// Returns the local address.
    pub fn local_address(&self) -> SocketAddr {
        self.local
    }

    /// Returns the peer's address.
    pub fn peer_address(&self) -> SocketAddr {
        self.peer
    }

    /// Returns the buffers that the system granted on connecting.
    pub fn buffers(&self) -> BufferSizes {
        self.buffers
    }

    /// Returns the name of the connection's congestion control, such as `cubic`, or `None` where
    /// the system does not report it.
    pub fn congestion(&self) -> Option<String> {
        sys::congestion(&self.stream)
    }

    /// Writes all `parts` in order; waits for the peer until `deadline`, or indefinitely without
    /// one.
    ///
    /// The parts are consumed; their contents afterwards are unspecified, even after an error. With
    /// a deadline in the past it does not wait. A wake has an effect only if it would wait. Nothing
    /// is allocated.
    ///
    /// # Errors
    /// A [`WriteError`] contains the number of octets that were accepted; after
    /// [`WriteErrorKind::Deadline`] and [`WriteErrorKind::Woken`] the connection stays usable if
    /// the rest is written next.
    pub fn write_all(
        &self,
        mut parts: &mut [IoSlice<'_>],
        deadline: Option<Instant>,
        waker: Option<&Waker>,
    ) -> Result<(), WriteError> {
        let mut written = 0;
        let stopped = |written, kind| WriteError { kind, written };
        loop {
            // Skips empty parts: without octets nothing is written.
            IoSlice::advance_slices(&mut parts, 0);
            if parts.is_empty() {
                return Ok(());
            }
            let octets = self.write_some(parts).map_err(|error| stopped(written, error.into()))?;
            IoSlice::advance_slices(&mut parts, octets);
            written += octets;
            if octets > 0 {
                continue;
            }
            if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return Err(stopped(written, WriteErrorKind::Deadline));
            }
            let ready = self
                .wait(Interest::Writable, deadline, waker)
                .map_err(|error| stopped(written, error.into()))?;
            if ready.woken {
                return Err(stopped(written, WriteErrorKind::Woken));
            }
        }
    }

    /// Writes as much of `parts` as the system accepts now, in order. Returns the number of octets,
    /// which is 0 if the system's buffer is full.
    ///
    /// # Errors
    /// [`NetError::Broken`] if the peer or this end closed the connection, or it failed.
    pub fn write_some(&self, parts: &[IoSlice<'_>]) -> Result<usize, NetError> {
        let parts = parts.get(..PARTS).unwrap_or(parts);
        let socket = SockRef::from(&self.stream);
        loop {
            match socket.send_vectored_with_flags(parts, sys::NO_SIGNAL) {
                Ok(octets) => return Ok(octets),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(NetError::Broken { peer: self.peer, source }),
            }
        }
    }

    /// Reads the available octets into the front of `into`.
    ///
    /// If `into` is empty, the result is [`Read::Octets`] of 0.
    ///
    /// # Errors
    /// [`NetError::Broken`] if the connection failed; octets that had arrived may then be lost.
    pub fn read(&self, into: &mut [u8]) -> Result<Read, NetError> {
        let empty = into.is_empty();
        self.read_with(empty, |mut stream| stream.read(into))
    }

    /// Reads the available octets into `places`, filling each one before the next.
    ///
    /// If all places are empty, the result is [`Read::Octets`] of 0. One call fills at most 1 024
    /// places.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_vectored(&self, places: &mut [IoSliceMut<'_>]) -> Result<Read, NetError> {
        // Leading empty places must not look like the end of the stream, however many there are.
        let begin = places.iter().position(|place| !place.is_empty()).unwrap_or(places.len());
        let places = &mut places[begin..];
        let empty = places.is_empty();
        self.read_with(empty, |mut stream| stream.read_vectored(places))
    }

    fn read_with(
        &self,
        empty: bool,
        mut read: impl FnMut(&TcpStream) -> io::Result<usize>,
    ) -> Result<Read, NetError> {
        if empty {
            return Ok(Read::Octets(0));
        }
        loop {
            match read(&self.stream) {
                Ok(0) => return Ok(Read::End),
                Ok(octets) => return Ok(Read::Octets(octets)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(Read::Nothing);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(NetError::Broken { peer: self.peer, source }),
            }
        }
    }

    /// Waits for `interest`, a wake or `deadline`; indefinitely without a deadline.
    ///
    /// Where the system cannot wait for a socket and a wake together, it sleeps for a millisecond
    /// and then reports that the socket may be ready.
    ///
    /// # Errors
    /// [`NetError::Wait`] if the system refuses.
    pub fn wait(
        &self,
        interest: Interest,
        deadline: Option<Instant>,
        waker: Option<&Waker>,
    ) -> Result<Ready, NetError> {
        sys::wait_ready(&self.stream, interest, waker, deadline).map_err(NetError::Wait)
    }

    /// Sets the number of octets that must arrive before [`wait`](Self::wait) reports the stream as
    /// readable (`SO_RCVLOWAT`; Linux), to save wake-ups in a long read. The end of the stream is
    /// always reported.
    ///
    /// The value stays set, so set 1 before waiting for fewer octets. The system limits it to half
    /// of the receive buffer; a system without the option reports any octet.
    pub fn set_low_water(&self, octets: usize) {
        if let Err(error) = sys::set_low_water(&self.stream, octets) {
            tracing::trace!(%error, "no low-water mark: every octet wakes the reader");
        }
    }

    /// Limits the octets that wait in the kernel to be sent for the first time
    /// (`TCP_NOTSENT_LOWAT`; Linux), so that data is written late, when the network takes it. Octets
    /// on the way to the peer do not count.
    ///
    /// The system may accept one segment more than this limit, up to 64 KiB; it reports the stream
    /// as writable when less than half of the limit waits. A system without the option accepts as
    /// much as the send buffer holds.
    pub fn set_unsent_max(&self, octets: usize) {
        if let Err(error) = sys::set_unsent_max(&self.stream, octets) {
            tracing::trace!(%error, "the send buffer alone limits unsent octets");
        }
    }

    /// Changes the number of octets that the kernel may hold unread. More than
    /// [`TcpOptions::receive_buffer`] may have no effect, because the window scale stays.
    pub fn set_receive_buffer(&self, octets: usize) {
        if let Err(error) = receive_buffer(&SockRef::from(&self.stream), octets) {
            tracing::debug!(%error, "the receive buffer stays as it was");
        }
    }

    /// Ends the direction to the peer, which reads the octets that were written and then the end. What the peer sends
    /// can still be read.
    pub fn end_writing(&self) {
        self.shut(Shutdown::Write);
    }

    /// Ends the connection. The peer reads the octets that were written and then the end; waits of
    /// other threads for this socket end. Nothing can be read or written here afterwards.
    pub fn shut_down(&self) {
        self.shut(Shutdown::Both);
    }

    fn shut(&self, directions: Shutdown) {
        // This fails only if the connection has already ended.
        if let Err(error) = self.stream.shutdown(directions) {
            tracing::trace!(%error, peer = %self.peer, "the connection had already ended");
        }
    }
}

impl fmt::Debug for TcpSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TcpSocket")
            .field("local", &self.local)
            .field("peer", &self.peer)
            .finish_non_exhaustive()
    }
}
