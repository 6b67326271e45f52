//! Many sockets, waited for together.

#[cfg(target_os = "linux")]
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::time::Instant;

use crate::error::NetError;
use crate::socket::UdpSocket;
use crate::sys;
use crate::sys::Waker;

/// A set of sockets that one thread waits for at once, however many they are.
///
/// On Linux a wait costs as much as there are sockets that are ready (`epoll`), and the set itself is a
/// descriptor that other event loops can wait for. Elsewhere a wait sleeps for a millisecond at most and
/// reports every socket, so that each is read without waiting.
#[derive(Debug)]
pub struct PollSet {
    set: sys::Epoll,
}

/// What a [`PollSet`] has found; reused from wait to wait.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The keys of sockets that may be readable.
    pub ready: Vec<u64>,
    /// Those among them whose error queue is not empty: call [`UdpSocket::settle_errors`], or the next
    /// wait ends at once.
    pub failed: Vec<u64>,
    /// Whether the set's waker was woken.
    pub woken: bool,
}

impl PollSet {
    /// Keys of sockets are below this number.
    pub const KEY_MAX: u64 = u64::MAX - 2;

    /// Creates an empty set.
    ///
    /// # Errors
    /// [`NetError::Wait`] or [`NetError::Waker`] if the process has no file descriptor left; the set takes
    /// three on Linux.
    pub fn new() -> Result<Self, NetError> {
        let set = sys::Epoll::new(Arc::new(Waker::new()?)).map_err(NetError::Wait)?;
        Ok(Self { set })
    }

    /// Returns the waker that ends a wait for the set, or the next one if there is none.
    pub fn waker(&self) -> &Arc<Waker> {
        self.set.waker()
    }

    /// Adds a socket under a key, below [`KEY_MAX`](Self::KEY_MAX). A socket that is closed leaves the set.
    ///
    /// # Errors
    /// [`NetError::Wait`] if the socket is in the set already, or if the system's limit of watched
    /// sockets is reached.
    pub fn add(&self, socket: &UdpSocket, key: u64) -> Result<(), NetError> {
        debug_assert!(key < Self::KEY_MAX, "a key that is used otherwise");
        self.set.add(&socket.socket, key).map_err(NetError::Wait)
    }

    /// Removes a socket that was added under `key`; without effect if it is not in the set.
    pub fn remove(&self, socket: &UdpSocket, key: u64) {
        let _ = key;
        #[cfg(target_os = "linux")]
        let _ = self.set.remove(&socket.socket);
        #[cfg(not(target_os = "linux"))]
        {
            let _ = socket;
            self.set.remove(key);
        }
    }

    /// Waits until a socket is readable, the waker is woken, or `deadline`; with a deadline in the past it
    /// does not wait. It may end up to a millisecond late, or early after a signal. `found` is overwritten.
    ///
    /// # Errors
    /// [`NetError::Wait`] if the system refuses.
    pub fn wait(&self, found: &mut Found, deadline: Instant) -> Result<(), NetError> {
        found.ready.clear();
        found.failed.clear();
        let Found { ready, failed, woken } = found;
        *woken = self.set.wait(ready, failed, deadline).map_err(NetError::Wait)?;
        Ok(())
    }

    /// Makes the set's descriptor readable from `at` on, and not by time with `None`. Waits do not end by
    /// it. Without effect where the set is no descriptor.
    ///
    /// # Errors
    /// [`NetError::Wait`] if the system refuses.
    pub fn set_timer(&self, at: Option<Instant>) -> Result<(), NetError> {
        self.set.set_timer(at).map_err(NetError::Wait)
    }
}

/// The descriptor is readable while a socket of the set is, after a wake until the next wait, and from the
/// time of the timer on. It must be waited for only: do not read it, and add nothing to it.
#[cfg(target_os = "linux")]
impl AsFd for PollSet {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.set.as_fd()
    }
}

#[cfg(target_os = "linux")]
impl AsRawFd for PollSet {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl UdpSocket {
    /// Reads what the kernel reports of sent datagrams, such as closed ports. Until it is read, every wait
    /// for the socket ends at once; single waits read it themselves.
    pub fn settle_errors(&self) {
        self.read_errors();
    }
}
