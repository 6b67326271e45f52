//! Systems other than Linux: no batches, and waiting by short sleeps.

use std::net::{IpAddr, Ipv4Addr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{io, thread};

use socket2::Socket;

use crate::error::NetError;
use crate::group::Limits;
use crate::sys::{Head, Parcel, Parcels, Reported, Taken, WaitOutcome};
use crate::tcp::{Interest, Ready};

/// The time to sleep between two checks of a socket.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

fn unsupported() -> io::Error {
    io::Error::from(io::ErrorKind::Unsupported)
}

/// Batched sending is not supported.
pub(crate) struct Outbox;

impl Outbox {
    pub(crate) fn new() -> Self {
        Self
    }

    #[allow(clippy::unused_self, reason = "the signature is that on Linux")]
    pub(crate) fn send(&mut self, _: &UdpSocket, _: Parcel<'_>, _: Limits) -> io::Result<Taken> {
        Err(unsupported())
    }

    #[allow(clippy::unused_self, reason = "the signature is that on Linux")]
    pub(crate) fn send_runs(
        &mut self,
        _: &UdpSocket,
        _: Parcels<'_>,
        _: Limits,
    ) -> io::Result<Taken> {
        Err(unsupported())
    }
}

/// ICMP messages are not reported to unconnected sockets: the type has no values.
#[derive(Debug)]
pub(crate) enum ErrorQueue {}

impl ErrorQueue {
    pub(crate) fn enable(_: &UdpSocket, _: bool, _: bool) -> io::Result<Self> {
        Err(unsupported())
    }

    pub(crate) fn read(&self, _: &UdpSocket) -> Reported {
        match *self {}
    }
}

/// Batched receiving is not supported.
pub(crate) struct Inbox;

impl Inbox {
    pub(crate) fn new(_messages: usize) -> Self {
        Self
    }

    #[allow(clippy::unused_self, reason = "the signature is that on Linux")]
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

pub(crate) fn probe_gso(_: &UdpSocket) -> io::Result<()> {
    Err(unsupported())
}

pub(crate) fn enable_gro(_: &UdpSocket) -> io::Result<()> {
    Err(unsupported())
}

pub(crate) fn enable_arrival_details(_: &UdpSocket, _: bool, _: bool) -> io::Result<()> {
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

pub(crate) fn join_source(_: &Socket, _: IpAddr, _: IpAddr, _: u32) -> io::Result<()> {
    Err(unsupported())
}

#[allow(clippy::unnecessary_wraps, reason = "as on Linux, where it can fail")]
pub(crate) fn receive_own_groups_only(_: &Socket, _: IpAddr) -> io::Result<()> {
    Ok(())
}

pub(crate) fn send_v4_through(_: &Socket, _: u32) -> io::Result<()> {
    Err(unsupported())
}

/// Ends a wait for a socket, such as a blocked [`receive`](crate::UdpSocket::receive), from another
/// thread.
#[derive(Debug, Default)]
pub struct Waker {
    awake: AtomicBool,
}

impl Waker {
    /// Creates a waker that has not been woken.
    ///
    /// # Errors
    /// None on this system; on Linux [`NetError::Waker`] if the process has no file descriptor
    /// left.
    #[allow(clippy::unnecessary_wraps, reason = "the signature is that on Linux")]
    pub fn new() -> Result<Self, NetError> {
        Ok(Self::default())
    }

    /// Ends the wait in progress or, if there is none, the next one.
    pub fn wake(&self) {
        self.awake.store(true, Ordering::Release);
    }

    fn reset(&self) -> bool {
        self.awake.swap(false, Ordering::AcqRel)
    }
}

fn sleep_briefly(deadline: Instant) {
    thread::sleep(POLL_INTERVAL.min(deadline.saturating_duration_since(Instant::now())));
}

/// The keys of many sockets, all of which are read after a short sleep.
#[derive(Debug)]
pub(crate) struct Epoll {
    keys: Mutex<Vec<u64>>,
    waker: Arc<Waker>,
}

#[allow(clippy::unnecessary_wraps, reason = "the signatures are those on Linux")]
impl Epoll {
    pub(crate) fn new(waker: Arc<Waker>) -> io::Result<Self> {
        Ok(Self { keys: Mutex::default(), waker })
    }

    pub(crate) fn waker(&self) -> &Arc<Waker> {
        &self.waker
    }

    fn keys(&self) -> MutexGuard<'_, Vec<u64>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, _: &UdpSocket, key: u64) -> io::Result<()> {
        self.keys().push(key);
        Ok(())
    }

    pub(crate) fn remove(&self, key: u64) {
        self.keys().retain(|other| *other != key);
    }

    pub(crate) fn wait(
        &self,
        ready: &mut Vec<u64>,
        _failed: &mut Vec<u64>,
        deadline: Instant,
    ) -> io::Result<bool> {
        let mut is_woken = self.waker.reset();
        if !is_woken {
            sleep_briefly(deadline);
            is_woken = self.waker.reset();
        }
        ready.extend_from_slice(&self.keys());
        Ok(is_woken)
    }

    #[allow(clippy::unused_self, reason = "the signature is that on Linux")]
    pub(crate) fn set_timer(&self, _: Option<Instant>) -> io::Result<()> {
        Ok(())
    }
}

/// Returns at once after a wake; otherwise sleeps for at most a millisecond.
#[allow(clippy::unnecessary_wraps, reason = "the signature is that on Linux")]
pub(crate) fn wait_readable(
    _: &UdpSocket,
    beside: Option<&UdpSocket>,
    waker: Option<&Waker>,
    deadline: Instant,
) -> io::Result<WaitOutcome> {
    if waker.is_some_and(Waker::reset) {
        return Ok(WaitOutcome::Woken);
    }
    sleep_briefly(deadline);
    Ok(if beside.is_some() { WaitOutcome::Beside } else { WaitOutcome::Ready })
}

/// Sleeps for at most a millisecond.
#[allow(clippy::unnecessary_wraps, reason = "the signature is that on Linux")]
pub(crate) fn wait_writable(_: &UdpSocket, deadline: Instant) -> io::Result<()> {
    sleep_briefly(deadline);
    Ok(())
}

/// Returns at once after a wake; otherwise sleeps for at most a millisecond.
#[allow(clippy::unnecessary_wraps, reason = "the signature is that on Linux")]
pub(crate) fn wait_ready<T>(
    _: &T,
    interest: Interest,
    waker: Option<&Waker>,
    deadline: Option<Instant>,
) -> io::Result<Ready> {
    if waker.is_some_and(Waker::reset) {
        return Ok(Ready { woken: true, ..Ready::default() });
    }
    let now = Instant::now();
    if deadline.is_some_and(|deadline| deadline <= now) {
        return Ok(Ready::default());
    }
    sleep_briefly(deadline.unwrap_or(now + POLL_INTERVAL));
    Ok(Ready {
        readable: interest != Interest::Writable,
        writable: interest != Interest::Readable,
        woken: false,
    })
}

/// Sleeps for at most a millisecond; returns whether there was a wake.
#[allow(clippy::unnecessary_wraps, reason = "the signature is that on Linux")]
pub(crate) fn wait_woken(waker: Option<&Waker>, deadline: Instant) -> io::Result<bool> {
    sleep_briefly(deadline);
    Ok(waker.is_some_and(Waker::reset))
}

pub(crate) fn set_congestion(_: &Socket, _: &str) -> io::Result<()> {
    Err(unsupported())
}

pub(crate) fn congestion(_: &TcpStream) -> Option<String> {
    None
}

pub(crate) fn set_low_water(_: &TcpStream, _: usize) -> io::Result<()> {
    Err(unsupported())
}

pub(crate) fn set_unsent_max(_: &TcpStream, _: usize) -> io::Result<()> {
    Err(unsupported())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wake_ends_one_wait_only() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let waker = Waker::new().unwrap();
        let now = Instant::now();
        assert_eq!(wait_readable(&socket, None, Some(&waker), now).unwrap(), WaitOutcome::Ready);
        waker.wake();
        waker.wake();
        assert_eq!(wait_readable(&socket, None, Some(&waker), now).unwrap(), WaitOutcome::Woken);
        assert_eq!(wait_readable(&socket, None, Some(&waker), now).unwrap(), WaitOutcome::Ready);
    }

    #[test]
    fn a_wait_for_many_sockets_reports_all_that_were_not_removed() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let set = Epoll::new(Arc::new(Waker::new().unwrap())).unwrap();
        (0..3).for_each(|key| set.add(&socket, key).unwrap());
        set.remove(1);
        let mut ready = Vec::new();
        let mut wait = || {
            ready.clear();
            let woken = set.wait(&mut ready, &mut Vec::new(), Instant::now()).unwrap();
            (woken, ready.clone())
        };
        assert_eq!(wait(), (false, vec![0, 2]));
        set.waker().wake();
        assert_eq!(wait(), (true, vec![0, 2]));
        assert_eq!(wait(), (false, vec![0, 2]));
    }

    #[test]
    fn a_wait_for_a_stream_ends_at_a_wake_and_at_the_deadline() {
        let waker = Waker::new().unwrap();
        let wait = |deadline| wait_ready(&(), Interest::Readable, Some(&waker), deadline).unwrap();
        let ready = Ready { readable: true, ..Ready::default() };
        assert_eq!(wait(None), ready);
        waker.wake();
        assert!(wait_woken(Some(&waker), Instant::now()).unwrap());
        assert!(!wait_woken(Some(&waker), Instant::now()).unwrap());
        waker.wake();
        assert_eq!(wait(None), Ready { woken: true, ..Ready::default() });
        assert_eq!(wait(None), ready);
        assert_eq!(wait(Some(Instant::now())), Ready::default());
    }
}
