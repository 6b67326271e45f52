//! Ending another thread's wait.

use crate::error::NetError;
use crate::sys;

/// Makes a [`receive`](crate::UdpSocket::receive) in progress, or the next one, return at once
/// and empty.
#[derive(Debug)]
pub struct Waker(pub(crate) sys::Wake);

impl Waker {
    /// A waker that nobody has used.
    ///
    /// # Errors
    /// [`NetError::Socket`] if the system has no more descriptors.
    pub fn new() -> Result<Self, NetError> {
        sys::Wake::new().map(Self).map_err(NetError::Socket)
    }

    /// Wakes the receiver, from any thread.
    pub fn wake(&self) {
        self.0.wake();
    }
}
