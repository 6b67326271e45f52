//! `MSG_ZEROCOPY`: messages that the kernel reads in place, and its notifications about them.
//!
//! The lender gives the memory away ([`Lending::lend`]), so that no safe code can write to it or
//! free it; the [`Ledger`] returns it after the kernel's notification. The socket is a duplicate of
//! the caller's, with the same message numbers, so that no other socket can be used by mistake.
//!
//! The kernel gives each message that it borrows the next number. A call that fails may or may not
//! have used a number: a message that was built and then discarded (segmentation refused, a
//! firewall) has used one, a message that was refused before it was built (no room, no memory for
//! the bookkeeping, an earlier error pending) has not. The notification of a discarded message is
//! available when the call returns. Without a notification, the number is used again if the error
//! is one of the second kind. After any other error it is unknown whether the number is used, and
//! no further message is lent.

use std::net::UdpSocket;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{fmt, io};

use crate::group::Limits;
use crate::lend::{Loan, Returns};
use crate::sys::address::Finished;
use crate::sys::ledger::Ledger;
use crate::sys::messages::Notifications;
use crate::sys::{Outbox, Parcel, Taken, address, linux};

/// How long a dropped socket waits for the kernel. Slabs not released by then are never freed.
const LAST_WAIT: Duration = Duration::from_millis(100);

/// The zero-copy state of one socket.
#[derive(Debug)]
pub(crate) struct Lending {
    socket: UdpSocket,
    state: Mutex<LendingState>,
    is_enabled: AtomicBool,
    /// Number of lent messages at the last update.
    away: AtomicU64,
    back: AtomicU64,
    copied: AtomicU64,
}

#[derive(Debug)]
struct LendingState {
    ledger: Ledger,
    notifications: Notifications,
}

/// A loan that is being sent. When dropped, it stays with the kernel, or returns to the lender if
/// the kernel has none of its messages.
pub(crate) struct Lent<'a> {
    lending: &'a Lending,
    returns: Returns,
    place: usize,
    loan: Loan,
}

impl Lending {
    /// Enables lending through `socket`, if the system supports it.
    pub(crate) fn enable(socket: &UdpSocket) -> io::Result<Self> {
        let socket = socket.try_clone()?;
        linux::enable_zero_copy(&socket)?;
        Ok(Self {
            socket,
            state: Mutex::new(LendingState {
                ledger: Ledger::new(),
                notifications: Notifications::new(),
            }),
            is_enabled: AtomicBool::new(true),
            away: AtomicU64::new(0),
            back: AtomicU64::new(0),
            copied: AtomicU64::new(0),
        })
    }

    /// Returns whether messages can still be lent.
    pub(crate) fn is_enabled(&self) -> bool {
        self.is_enabled.load(Relaxed)
    }

    /// Returns whether notifications are outstanding.
    pub(crate) fn is_awaited(&self) -> bool {
        self.away.load(Relaxed) > 0
    }

    /// Returns the number of released messages, and how many of them the kernel copied.
    pub(crate) fn settled(&self) -> (u64, u64) {
        (self.back.load(Relaxed), self.copied.load(Relaxed))
    }

    /// Takes a loan, whose messages may then be sent.
    pub(crate) fn lend(&self, loan: Loan, returns: Returns) -> Lent<'_> {
        let place = self.lock().ledger.begin();
        Lent { lending: self, returns, place, loan }
    }

    /// Reads the kernel's notifications; returns the number of released messages.
    pub(crate) fn settle(&self) -> usize {
        self.settle_in(&mut self.lock())
    }

    fn settle_in(&self, state: &mut LendingState) -> usize {
        let LendingState { ledger, notifications } = state;
        let mut settled = 0;
        loop {
            let (read, is_all) = notifications.read(&self.socket);
            for control in read {
                let Some(finished) = address::decode_finished(control) else { continue };
                let Finished { first, last, copied } = finished;
                match ledger.settle(first, last) {
                    Ok(count) => {
                        settled += count;
                        self.back.fetch_add(count as u64, Relaxed);
                        self.copied.fetch_add(if copied { count as u64 } else { 0 }, Relaxed);
                    }
                    Err(differ) => self.disable(&differ),
                }
            }
            if is_all {
                break;
            }
        }
        self.away.store(ledger.away() as u64, Relaxed);
        settled
    }

    /// Waits until there is a notification, or until the deadline.
    pub(crate) fn wait(&self, deadline: Instant) -> io::Result<()> {
        linux::wait_notification(&self.socket, deadline)
    }

    fn disable(&self, reason: &impl fmt::Display) {
        if self.is_enabled.swap(false, Relaxed) {
            tracing::warn!(%reason, "zero-copy sending has stopped, data is copied from now on");
        }
    }

    fn lock(&self) -> MutexGuard<'_, LendingState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Lending {
    fn drop(&mut self) {
        let deadline = Instant::now() + LAST_WAIT;
        while self.is_awaited() {
            self.settle();
            if !self.is_awaited() || Instant::now() >= deadline || self.wait(deadline).is_err() {
                break;
            }
        }
        // Slabs that are still lent stay in the ledger, whose entries free nothing.
    }
}

impl Lent<'_> {
    /// Returns the slab of the loan.
    pub(crate) fn slab(&self) -> &[u8] {
        &self.loan.slab
    }

    /// Lends the first message of the parcel, which is in the slab. Returns `None` if it cannot be
    /// lent.
    pub(crate) fn send(
        &self,
        outbox: &mut Outbox,
        parcel: Parcel<'_>,
        limits: Limits,
    ) -> io::Result<Option<Taken>> {
        let (slab, part) = (self.slab().as_ptr_range(), parcel.bytes.as_ptr_range());
        if part.start < slab.start || slab.end < part.end {
            return Ok(None);
        }
        let mut state = self.lending.lock();
        if !state.ledger.record(self.place) {
            self.lending.settle_in(&mut state);
            if !state.ledger.record(self.place) {
                return Ok(None);
            }
        }
        // SAFETY: the octets lie in the slab, which this loan owns: it is only read while the loan
        // is being sent, and then kept by the ledger, which has just recorded the message under the
        // number that the kernel gives it. The ledger releases the slab only after the kernel's
        // notification that it has released that number, or here below, if the kernel has not taken
        // the message.
        let outcome = unsafe { outbox.lend(&self.lending.socket, parcel, limits) };
        self.lending.away.store(state.ledger.away() as u64, Relaxed);
        match outcome {
            Ok(taken) => Ok(Some(taken)),
            Err(error) => self.handle_error(&mut state, error),
        }
    }

    /// Determines whether the kernel has the message in spite of the error.
    fn handle_error(
        &self,
        state: &mut LendingState,
        error: io::Error,
    ) -> io::Result<Option<Taken>> {
        let code = error.raw_os_error();
        self.lending.settle_in(state);
        if state.ledger.is_last_open() {
            if let Some(libc::ENOBUFS | libc::EAGAIN | libc::ECONNREFUSED) = code {
                state.ledger.take_back();
                self.lending.away.store(state.ledger.away() as u64, Relaxed);
            } else {
                state.ledger.doubt();
                self.lending.disable(&error);
            }
        }
        // The kernel has no more memory for its notifications, or the process may pin no more
        // pages.
        if code == Some(libc::ENOBUFS) { Ok(None) } else { Err(error) }
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let loan = std::mem::take(&mut self.loan);
        self.lending.lock().ledger.seal(self.place, loan, self.returns.clone());
    }
}
