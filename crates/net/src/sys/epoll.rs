//! Many sockets, waited for together: `epoll`, with a waker and a timer among them.

use std::net::UdpSocket;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{io, ptr};

use libc::c_int;

use crate::sys::Waker;

/// Sockets that one call reports at most; the kernel then begins with the others.
const EVENTS_MAX: u8 = 128;

/// The key of the waker.
const WAKER: u64 = u64::MAX;

/// The key of the timer.
const TIMER: u64 = u64::MAX - 1;

/// The sockets of a set, their waker and their timer.
#[derive(Debug)]
pub(crate) struct Epoll {
    set: OwnedFd,
    timer: OwnedFd,
    waker: Arc<Waker>,
}

/// Owns the descriptor that a system call has returned.
fn owned(fd: c_int) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and valid, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

impl Epoll {
    pub(crate) fn new(waker: Arc<Waker>) -> io::Result<Self> {
        // SAFETY: the call takes no pointer.
        let set = owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
        // SAFETY: the call takes no pointer.
        let timer = owned(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, flags) })?;
        let new = Self { set, timer, waker };
        new.control(libc::EPOLL_CTL_ADD, new.waker.descriptor(), WAKER)?;
        new.control(libc::EPOLL_CTL_ADD, new.timer.as_raw_fd(), TIMER)?;
        Ok(new)
    }

    pub(crate) fn waker(&self) -> &Arc<Waker> {
        &self.waker
    }

    pub(crate) fn add(&self, socket: &UdpSocket, key: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, socket.as_raw_fd(), key)
    }

    pub(crate) fn remove(&self, socket: &UdpSocket) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, socket.as_raw_fd(), 0)
    }

    fn control(&self, action: c_int, fd: RawFd, key: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: key };
        // SAFETY: the event outlives the call, which only reads it.
        let status = unsafe { libc::epoll_ctl(self.set.as_raw_fd(), action, fd, &raw mut event) };
        if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Adds the keys of sockets that are ready to `ready`, and those with a waiting error to `failed`;
    /// returns whether the waker was woken.
    pub(crate) fn wait(
        &self,
        ready: &mut Vec<u64>,
        failed: &mut Vec<u64>,
        deadline: Instant,
    ) -> io::Result<bool> {
        let left = deadline.saturating_duration_since(Instant::now());
        // Rounded up: a wait that ended early would only be repeated.
        let millis = left.as_nanos().div_ceil(1_000_000);
        let timeout = c_int::try_from(millis).unwrap_or(c_int::MAX);
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS_MAX as usize];
        let (list, count) = (events.as_mut_ptr(), c_int::from(EVENTS_MAX));
        // SAFETY: the list has `count` entries and outlives the call.
        let found = unsafe { libc::epoll_wait(self.set.as_raw_fd(), list, count, timeout) };
        let Ok(found) = usize::try_from(found) else {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::Interrupted { Ok(false) } else { Err(error) };
        };
        let mut is_woken = false;
        for event in events.iter().take(found) {
            // The structure is packed: its fields are copied, never referred to.
            let (key, flags) = (event.u64, event.events);
            match key {
                WAKER => is_woken |= self.waker.reset(),
                // It would end every wait from now on.
                TIMER => self.set_timer(None)?,
                key => {
                    if flags & libc::EPOLLERR as u32 != 0 {
                        failed.push(key);
                    }
                    ready.push(key);
                }
            }
        }
        Ok(is_woken)
    }

    /// Makes the descriptor readable from `at` on; never with `None`.
    pub(crate) fn set_timer(&self, at: Option<Instant>) -> io::Result<()> {
        // Zero would turn the timer off.
        let left =
            at.map(|at| at.saturating_duration_since(Instant::now()).max(Duration::from_nanos(1)));
        let left = left.unwrap_or_default();
        #[allow(clippy::useless_conversion, reason = "the fields are wider on 64-bit systems")]
        let value = libc::timespec {
            tv_sec: i32::try_from(left.as_secs()).unwrap_or(i32::MAX).into(),
            tv_nsec: left.subsec_nanos().cast_signed().into(),
        };
        let never = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let time = libc::itimerspec { it_interval: never, it_value: value };
        let fd = self.timer.as_raw_fd();
        // SAFETY: the time outlives the call, which only reads it; the former value is not requested.
        let status = unsafe { libc::timerfd_settime(fd, 0, &raw const time, ptr::null_mut()) };
        if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

impl AsFd for Epoll {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.set.as_fd()
    }
}
