//! One connection: writing from several places, reading in place, waiting.

use std::fmt;
use std::io;
use std::io::IoSlice;
use std::io::IoSliceMut;
use std::io::Read as _;
use std::net::Shutdown;
use std::net::SocketAddr;
use std::net::TcpStream;
use std::time::Duration;
use std::time::Instant;

use socket2::Domain;
use socket2::Protocol;
use socket2::SockRef;
use socket2::Socket;
use socket2::Type;

use crate::buffer::BufferSizes;
use crate::error::NetError;
use crate::error::WriteError;
use crate::error::WriteErrorKind;
use crate::sys;
use crate::sys::Waker;
use crate::tcp::Interest;
use crate::tcp::Ready;
use crate::tcp::TcpOptions;
use crate::tcp::options::configure;

/// Parts that one system call takes (`IOV_MAX` of Linux and most others).
const PARTS: usize = 1024;

/// A TCP connection.
///
/// It never blocks but in [`write_all`](Self::write_all) and [`wait`](Self::wait), and may be shared
/// between threads: one may write while another reads. Two that write at once mix their octets.
pub struct TcpSocket {
    pub(super) stream: TcpStream,
    local: SocketAddr,
    peer: SocketAddr,
    buffers: BufferSizes,
}

/// What a look at the stream found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Read {
    /// So many octets, from the front of the place or places given.
    Octets(usize),
    /// Nothing has come since.
    Nothing,
    /// The peer has ended its side, and all that it wrote was read.
    End,
}

impl TcpSocket {
    /// Connects to `peer`; waits for its answer until `deadline`.
    ///
    /// # Errors
    /// [`NetError::Connect`] if nobody listens there, there is no way to it, or
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
        // Nothing at all would be an error.
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        socket
            .connect_timeout(&peer.into(), left)
            .and_then(|()| Self::ready(socket.into(), peer, buffers))
            .map_err(|source| NetError::Connect { peer, source })
    }

    /// A connection that a listener took.
    pub(super) fn accepted(
        stream: TcpStream,
        peer: SocketAddr,
        buffers: BufferSizes,
    ) -> io::Result<Self> {
        // Not every system hands this down from the listener.
        stream.set_nodelay(true)?;
        Self::ready(stream, peer, buffers)
    }

    fn ready(stream: TcpStream, peer: SocketAddr, buffers: BufferSizes) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let local = stream.local_addr()?;
        Ok(Self { stream, local, peer, buffers })
    }

    /// This end's address.
    pub fn local_address(&self) -> SocketAddr {
        self.local
    }

    /// The other end's address.
    pub fn peer_address(&self) -> SocketAddr {
        self.peer
    }

    /// The buffers that the system granted.
    pub fn buffers(&self) -> BufferSizes {
        self.buffers
    }

    /// The name of what answers congestion on this connection, such as `cubic`; `None` where the
    /// system does not tell.
    pub fn congestion(&self) -> Option<String> {
        sys::congestion(&self.stream)
    }

    /// Writes all `parts`, one after another; waits while the peer does not take them, until
    /// `deadline` or without one for as long as it takes.
    ///
    /// The parts are used up: what they hold afterwards, after an error too, has no meaning. A
    /// deadline in the past means not to wait; a wake shows only when it would have to. Nothing is
    /// allocated.
    ///
    /// # Errors
    /// A [`WriteError`] says how many octets had been accepted; [`WriteErrorKind::Deadline`] and
    /// [`WriteErrorKind::Woken`] leave the connection usable, if the rest is written next.
    pub fn write_all(
        &self,
        mut parts: &mut [IoSlice<'_>],
        deadline: Option<Instant>,
        waker: Option<&Waker>,
    ) -> Result<(), WriteError> {
        let mut written = 0;
        let stopped = |written, kind| WriteError { kind, written };
        loop {
            // Empty parts are no reason to write.
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

    /// Writes what the system takes now of `parts`, one after another; returns how many octets, 0 if
    /// its buffer is full.
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

    /// Reads what is there into the front of `into`.
    ///
    /// An empty `into` finds [`Read::Octets`] of 0.
    ///
    /// # Errors
    /// [`NetError::Broken`] if the connection failed; what had come before may be lost with it.
    pub fn read(&self, into: &mut [u8]) -> Result<Read, NetError> {
        let empty = into.is_empty();
        self.found(empty, |mut stream| stream.read(into))
    }

    /// Reads what is there into `places`, each full before the next is begun.
    ///
    /// Places without octets find [`Read::Octets`] of 0. One call may fill 1 024 places at most.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_vectored(&self, places: &mut [IoSliceMut<'_>]) -> Result<Read, NetError> {
        // An empty place is no end of the stream, even if there are very many before the others.
        let begin = places.iter().position(|place| !place.is_empty()).unwrap_or(places.len());
        let places = &mut places[begin..];
        let empty = places.is_empty();
        self.found(empty, |mut stream| stream.read_vectored(places))
    }

    fn found(
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

    /// Waits until there may be what `interest` says, until a wake, or until `deadline`; without
    /// one, for as long as it takes.
    ///
    /// Where the system cannot wait for a socket and a wake together, it sleeps for a millisecond
    /// and then says that there may be.
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

    /// Lets [`wait`](Self::wait) find the stream readable only when `octets` have come, or its end
    /// (`SO_RCVLOWAT`; Linux): fewer wakes for a long read.
    ///
    /// It is in force until it is said again, so say 1 before waiting for less. Half of the receive
    /// buffer is the most that the system heeds, and a system without it wakes for any octet.
    pub fn set_wanted(&self, octets: usize) {
        if let Err(error) = sys::set_low_water(&self.stream, octets) {
            tracing::trace!(%error, "every octet wakes");
        }
    }

    /// Ends the connection: the peer reads what was written and then the end, and every wait of
    /// another thread for this socket ends. Nothing can be read or written here any more.
    pub fn shut_down(&self) {
        // It fails only if the connection has ended already.
        if let Err(error) = self.stream.shutdown(Shutdown::Both) {
            tracing::trace!(%error, peer = %self.peer, "the connection had ended");
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
