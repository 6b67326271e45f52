//! Every other system: no batches, and waiting by short sleeps.

use std::io;
use std::net::Ipv4Addr;
use std::net::UdpSocket;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use socket2::Socket;

use crate::error::NetError;
use crate::group::Limits;
use crate::sys::Awake;
use crate::sys::Head;
use crate::sys::Parcel;
use crate::sys::Taken;

/// How long to sleep between two looks at a socket.
const NAP: Duration = Duration::from_millis(1);

fn unsupported() -> io::Error {
    io::Error::from(io::ErrorKind::Unsupported)
}

/// Sends no batches.
pub(crate) struct Outbox;

impl Outbox {
    pub(crate) fn new() -> Self {
        Self
    }

    #[allow(clippy::unused_self, reason = "as on Linux")]
    pub(crate) fn send(&mut self, _: &UdpSocket, _: Parcel<'_>, _: Limits) -> io::Result<Taken> {
        Err(unsupported())
    }
}

/// Receives no batches.
pub(crate) struct Inbox;

impl Inbox {
    pub(crate) fn new(_messages: usize) -> Self {
        Self
    }

    #[allow(clippy::unused_self, reason = "as on Linux")]
    pub(crate) fn receive(
        &mut self,
        _: &UdpSocket,
        _: &mut [u8],
        _: usize,
        _: &mut Vec<Head>,
    ) -> io::Result<()> {
        Err(unsupported())
    }
}

pub(crate) fn offer_gso(_: &UdpSocket) -> io::Result<()> {
    Err(unsupported())
}

pub(crate) fn offer_gro(_: &UdpSocket) -> io::Result<()> {
    Err(unsupported())
}

pub(crate) fn force_send_buffer(_: &Socket, _: usize) -> io::Result<()> {
    Err(unsupported())
}

pub(crate) fn force_receive_buffer(_: &Socket, _: usize) -> io::Result<()> {
    Err(unsupported())
}

pub(crate) fn usable_buffer(reported: usize) -> usize {
    reported
}

pub(crate) fn kernel_drops(_: &UdpSocket) -> u64 {
    0
}

pub(crate) fn bind_device(_: &Socket, _: &str) -> Result<(), NetError> {
    Err(NetError::Unsupported { what: "binding to a network interface by name" })
}

pub(crate) fn set_traffic_class_v6(_: &Socket, _: u32) -> io::Result<()> {
    Err(unsupported())
}

pub(crate) fn forbid_fragments(_: &Socket, _: bool) -> io::Result<()> {
    Err(unsupported())
}

pub(crate) fn interface_index(_: &str) -> Result<u32, NetError> {
    Err(NetError::Unsupported { what: "a network interface by name" })
}

pub(crate) fn join_v4(_: &Socket, _: Ipv4Addr, _: u32) -> io::Result<()> {
    Err(unsupported())
}

/// Ends a blocked [`receive`](crate::UdpSocket::receive) from another thread.
#[derive(Debug, Default)]
pub struct Waker {
    awake: AtomicBool,
}

impl Waker {
    /// A waker that has not been woken.
    ///
    /// # Errors
    /// None here; on Linux [`NetError::Waker`] if the process has no file descriptor left.
    #[allow(clippy::unnecessary_wraps, reason = "as on Linux")]
    pub fn new() -> Result<Self, NetError> {
        Ok(Self::default())
    }

    /// Makes the receive that waits now, or the next one that would wait, return.
    pub fn wake(&self) {
        self.awake.store(true, Ordering::Release);
    }

    fn reset(&self) -> bool {
        self.awake.swap(false, Ordering::AcqRel)
    }
}

fn nap(deadline: Instant) {
    thread::sleep(NAP.min(deadline.saturating_duration_since(Instant::now())));
}

/// Sleeps a little, or until woken.
#[allow(clippy::unnecessary_wraps, reason = "as on Linux")]
pub(crate) fn wait_readable(
    _: &UdpSocket,
    beside: Option<&UdpSocket>,
    waker: Option<&Waker>,
    deadline: Instant,
) -> io::Result<Awake> {
    if waker.is_some_and(Waker::reset) {
        return Ok(Awake::Woken);
    }
    nap(deadline);
    Ok(if beside.is_some() { Awake::Beside } else { Awake::Here })
}

/// Sleeps a little.
#[allow(clippy::unnecessary_wraps, reason = "as on Linux")]
pub(crate) fn wait_writable(_: &UdpSocket, deadline: Instant) -> io::Result<()> {
    nap(deadline);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wake_ends_one_wait_only() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let waker = Waker::new().unwrap();
        let now = Instant::now();
        assert_eq!(wait_readable(&socket, None, Some(&waker), now).unwrap(), Awake::Here);
        waker.wake();
        waker.wake();
        assert_eq!(wait_readable(&socket, None, Some(&waker), now).unwrap(), Awake::Woken);
        assert_eq!(wait_readable(&socket, None, Some(&waker), now).unwrap(), Awake::Here);
    }
}
