//! Accepting connections; failures of single connections do not stop the listener.

use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, Socket, Type};

use crate::buffer::BufferSizes;
use crate::error::NetError;
use crate::sys;
use crate::sys::{AcceptFault, Waker};
use crate::tcp::options::configure;
use crate::tcp::{Interest, TcpOptions, TcpSocket};

/// Maximum connections that wait to be accepted; the system may allow fewer.
const BACKLOG: i32 = 128;

/// Pause before the next attempt to accept when the process has no descriptors left.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(10);

/// A listener for TCP connections.
#[derive(Debug)]
pub struct TcpListener {
    listener: StdListener,
    local: SocketAddr,
    buffers: BufferSizes,
    /// Why connections cannot be accepted now.
    resource_error: Mutex<Option<String>>,
}

impl TcpListener {
    /// Listens on `local`; port 0 lets the system choose one. `options` apply to the connections
    /// too.
    ///
    /// With an IPv6 address it accepts IPv6 only. An address is free again as soon as its listener
    /// is dropped (`SO_REUSEADDR`), except on Windows, where this option would let another program
    /// take the port.
    ///
    /// # Errors
    /// [`NetError::AddressInUse`], [`NetError::AddressNotAvailable`] and [`NetError::Bind`] for the
    /// address; [`NetError::Create`] and [`NetError::Option`] for the socket.
    pub fn bind(local: SocketAddr, options: &TcpOptions) -> Result<Self, NetError> {
        let named = |option| move |source| NetError::Option { option, source };
        let socket = Socket::new(Domain::for_address(local), Type::STREAM, Some(Protocol::TCP))
            .map_err(NetError::Create)?;
        let buffers = configure(&socket, options)?;
        socket.set_nonblocking(true).map_err(named("non-blocking"))?;
        if local.is_ipv6() {
            socket.set_only_v6(true).map_err(named("IPv6 only"))?;
        }
        if cfg!(unix) {
            socket.set_reuse_address(true).map_err(named("reuse address"))?;
        }
        let bound = socket.bind(&local.into()).and_then(|()| socket.listen(BACKLOG));
        bound.map_err(|source| match source.kind() {
            io::ErrorKind::AddrInUse => NetError::AddressInUse { address: local },
            io::ErrorKind::AddrNotAvailable => NetError::AddressNotAvailable { address: local },
            _ => NetError::Bind { address: local, source },
        })?;
        let listener = StdListener::from(socket);
        let local = listener.local_addr().map_err(NetError::Create)?;
        Ok(Self { listener, local, buffers, resource_error: Mutex::default() })
    }

    /// Returns the listener's own address, with the port that the system chose.
    pub fn local_address(&self) -> SocketAddr {
        self.local
    }

    /// Returns the system's error while waiting connections cannot be accepted for lack of
    /// descriptors or memory. `None` after a connection was accepted again.
    pub fn resource_error(&self) -> Option<String> {
        self.lock_resource_error().clone()
    }

    fn lock_resource_error(&self) -> MutexGuard<'_, Option<String>> {
        self.resource_error.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, attempt: &Attempt) {
        match attempt {
            Attempt::Exhausted(source) => {
                let mut resource_error = self.lock_resource_error();
                if resource_error.is_none() {
                    tracing::warn!(%source, "new connections to {} have to wait", self.local);
                    *resource_error = Some(source.to_string());
                }
            }
            Attempt::Taken(_) => *self.lock_resource_error() = None,
            Attempt::Nothing => {}
        }
    }

    /// Waits for the next connection until `deadline`, or indefinitely without one.
    ///
    /// Returns `None` at the deadline and after [`Waker::wake`], but a connection that is already
    /// waiting first. With a deadline in the past it does not wait.
    ///
    /// Failures of single connections are not returned, so that no peer can stop a server:
    /// - a connection that failed before it was accepted (`ECONNABORTED`, a network error) is
    ///   skipped;
    /// - without descriptors or memory (`EMFILE`, `ENFILE`, `ENOBUFS`, `ENOMEM`) the connection
    ///   waits and accepting is retried every 10 ms until the deadline, with one warning;
    ///   [`resource_error`](Self::resource_error) returns the reason.
    ///
    /// # Errors
    /// [`NetError::Accept`] if the listener itself is broken, [`NetError::Wait`] if the system
    /// refuses to wait.
    pub fn accept(
        &self,
        deadline: Option<Instant>,
        waker: Option<&Waker>,
    ) -> Result<Option<TcpSocket>, NetError> {
        loop {
            let attempt = self.accept_now()?;
            self.record(&attempt);
            if let Attempt::Taken(socket) = attempt {
                return Ok(Some(socket));
            }
            if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return Ok(None);
            }
            if let Attempt::Exhausted(_) = attempt {
                // The listener stays readable, so waiting for it would return at once.
                let pause = Instant::now() + EXHAUSTED_PAUSE;
                let pause = deadline.map_or(pause, |deadline| deadline.min(pause));
                if sys::wait_woken(waker, pause).map_err(NetError::Wait)? {
                    return Ok(None);
                }
                continue;
            }
            let ready = sys::wait_ready(&self.listener, Interest::Readable, waker, deadline)
                .map_err(NetError::Wait)?;
            if ready.woken && !ready.readable {
                return Ok(None);
            }
            if ready.woken {
                // The connection is returned first; the wake is kept for the next call.
                waker.into_iter().for_each(Waker::wake);
            }
        }
    }

    /// Accepts a waiting connection.
    fn accept_now(&self) -> Result<Attempt, NetError> {
        loop {
            let source = match self.listener.accept() {
                Ok((stream, peer)) => match TcpSocket::accepted(stream, peer, self.buffers) {
                    Ok(socket) => return Ok(Attempt::Taken(socket)),
                    // Some systems refuse to set options on a connection that is already broken.
                    Err(source) => {
                        tracing::debug!(%source, %peer, "a connection failed while being accepted");
                        continue;
                    }
                },
                Err(source) => source,
            };
            match sys::accept_fault(&source) {
                AcceptFault::Nothing => return Ok(Attempt::Nothing),
                AcceptFault::Exhausted => return Ok(Attempt::Exhausted(source)),
                AcceptFault::Passing => {
                    tracing::debug!(%source, "a connection failed before it was accepted");
                }
                AcceptFault::Lasting => {
                    return Err(NetError::Accept { address: self.local, source });
                }
            }
        }
    }
}

/// The outcome of an attempt to accept.
enum Attempt {
    Taken(TcpSocket),
    Nothing,
    Exhausted(io::Error),
}
