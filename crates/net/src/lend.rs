//! Zero-copy sending: slabs are lent to the kernel and returned by it.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::counters::count;
use crate::error::{SendError, SendErrorKind};
use crate::group::{Limits, next_group};
use crate::options::SendPath;
use crate::send::SendQueue;
use crate::socket::UdpSocket;
use crate::sys::{Lending, Lent, Parcel, Taken};

/// Minimum octets of a message for which lending is cheaper than copying: for a loan the kernel
/// must look up, pin and release every page, and notify the sender.
pub const LEND_MIN: usize = 16 << 10;

/// Memory that is lent to the kernel. The loan owns it, so that no other code can write to it or
/// free it while the kernel reads it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Loan {
    /// Memory with datagrams in it.
    pub slab: Box<[u8]>,
    /// Offset of the first datagram in the slab.
    pub start: usize,
    /// A number by which the lender recognises the slab.
    pub number: usize,
}

/// Returned loans that wait for their lender.
#[derive(Clone, Debug)]
pub(crate) struct Returns(Arc<Mutex<Vec<Loan>>>);

/// Number of one lender's loans that can be returned without an allocation.
const RETURNS: usize = 256;

impl Returns {
    pub(crate) fn new() -> Self {
        Self(Arc::default())
    }

    /// Reserves room, so that returning allocates nothing.
    pub(crate) fn prepare(&self) {
        let mut loans = self.lock();
        if loans.capacity() == 0 {
            loans.reserve(RETURNS);
        }
    }

    pub(crate) fn put(&self, loan: Loan) {
        self.lock().push(loan);
    }

    pub(crate) fn take(&self) -> Option<Loan> {
        self.lock().pop()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Loan>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SendQueue {
    /// Removes and returns a slab that the kernel has released, if there is one; see
    /// [`UdpSocket::send_lent`]. It makes no system call.
    pub fn take_returned(&mut self) -> Option<Loan> {
        let loan = self.returns.take()?;
        self.away -= 1;
        Some(loan)
    }

    /// Returns the number of slabs sent by [`UdpSocket::send_lent`] that
    /// [`take_returned`](Self::take_returned) has not returned yet.
    pub fn away(&self) -> usize {
        self.away
    }
}

impl UdpSocket {
    /// Returns whether slabs are lent to the kernel rather than copied: lending was
    /// [enabled](crate::SocketOptions::zero_copy), and the system has not refused it.
    pub fn zero_copy(&self) -> bool {
        self.lending.as_ref().is_some_and(Lending::is_enabled)
    }

    /// Sends datagrams like [`send`](Self::send), but without a copy: they are in `loan`, from its
    /// start on, and the kernel may read them there long after this returns, until the device has
    /// sent them.
    ///
    /// In every case [`SendQueue::take_returned`] eventually returns the loan;
    /// [`reclaim`](Self::reclaim) waits for one. It contains the same memory, or a copy after an
    /// error that leaves open whether the kernel still reads the memory. If the queue is dropped
    /// first, the slab is freed when the kernel has released it; if the socket is dropped, slabs
    /// that the kernel still holds after 100 ms are never freed.
    ///
    /// Messages shorter than [`LEND_MIN`], and those that the kernel refuses to borrow, are copied.
    /// Where zero-copy sending is not available, everything is copied and the loan is returned at
    /// once.
    ///
    ///
    /// # Errors
    /// As [`send`](Self::send). After an error that leaves open whether the kernel has a message,
    /// the socket stops lending.
    pub fn send_lent(
        &self,
        queue: &mut SendQueue,
        loan: Loan,
        lengths: &[u16],
        to: SocketAddr,
        deadline: Instant,
    ) -> Result<(), SendError> {
        queue.away += 1;
        let sum = lengths.iter().map(|&length| usize::from(length)).sum::<usize>();
        let bytes = loan.slab.get(loan.start..).map_or(0, <[u8]>::len);
        if sum > bytes {
            queue.returns.put(loan);
            let kind = SendErrorKind::Mismatch { lengths: sum, bytes };
            return Err(SendError { kind, sent: 0 });
        }
        let range = loan.start..loan.start + sum;
        let connected = self.is_connected_to(to);
        let to = self.kernel_address(to);
        let Some(lending) = &self.lending else {
            let parcel = Parcel { bytes: &loan.slab[range], lengths, to, connected };
            let outcome = self.send_all(queue, parcel, deadline, Self::send_once);
            queue.returns.put(loan);
            return outcome;
        };
        let lent = lending.lend(loan, queue.returns.clone());
        let parcel = Parcel { bytes: &lent.slab()[range], lengths, to, connected };
        self.send_all(queue, parcel, deadline, |this, queue, path, parcel| {
            this.send_once_lent(queue, &lent, path, parcel)
        })
    }

    /// Waits until `deadline` for a slab that the kernel returns. Returns `None` at the deadline,
    /// or if none is lent. With a deadline in the past it does not wait.
    ///
    /// # Errors
    /// If waiting fails.
    pub fn reclaim(&self, queue: &mut SendQueue, deadline: Instant) -> io::Result<Option<Loan>> {
        loop {
            if let Some(loan) = queue.take_returned() {
                return Ok(Some(loan));
            }
            let Some(lending) = self.lending.as_ref().filter(|_| queue.away > 0) else {
                return Ok(None);
            };
            if lending.settle() > 0 {
                continue;
            }
            // Another thread may have read the notification for this one.
            if let Some(loan) = queue.take_returned() {
                return Ok(Some(loan));
            }
            if Instant::now() >= deadline {
                return Ok(None);
            }
            count(&self.tally.wait_calls, 1);
            lending.wait(deadline)?;
        }
    }

    /// Reads the notifications about lent messages, if there are any. Until they are read, the
    /// socket counts as ready in every wait.
    pub(crate) fn settle(&self) {
        if let Some(lending) = &self.lending
            && lending.is_awaited()
        {
            lending.settle();
        }
    }

    /// Lends the first message if it is large, or copies the messages before the first large one.
    fn send_once_lent(
        &self,
        queue: &mut SendQueue,
        lent: &Lent<'_>,
        path: SendPath,
        parcel: Parcel<'_>,
    ) -> io::Result<Taken> {
        if path != SendPath::Gso || !self.zero_copy() {
            return self.send_once(queue, path, parcel);
        }
        let limits = self.limits(path);
        let small = small_front(parcel.lengths, limits);
        if small.datagrams > 0 {
            return self.send_once(queue, path, parcel.front(small));
        }
        count(&self.tally.send_calls, 1);
        if let Some(taken) = lent.send(&mut queue.outbox, parcel, limits)? {
            count(&self.tally.lent, 1);
            return Ok(taken);
        }
        count(&self.tally.lent_refused, 1);
        self.send_once(queue, path, parcel.front(self.front(path, &parcel)))
    }
}

/// Returns the messages before the first one that is large enough to lend.
fn small_front(mut lengths: &[u16], limits: Limits) -> Taken {
    let mut small = Taken::default();
    while let Some(group) = next_group(lengths, limits) {
        // A single long datagram may be fragmented by the kernel, which copies it.
        if group.bytes >= LEND_MIN && group.datagrams > 1 {
            break;
        }
        lengths = &lengths[group.datagrams..];
        small.datagrams += group.datagrams;
        small.bytes += group.bytes;
    }
    small
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::{MAX_MESSAGE, MAX_SEGMENTS};

    const GSO: Limits = Limits { segments: MAX_SEGMENTS, bytes: MAX_MESSAGE, segment: MAX_MESSAGE };

    #[test]
    fn only_large_messages_of_several_datagrams_are_lent() {
        let datagrams = |lengths: &[u16]| small_front(lengths, GSO).datagrams;
        assert_eq!(datagrams(&[1400; 46]), 0);
        assert_eq!(datagrams(&[1400; 11]), 11);
        assert_eq!(datagrams(&[60_000]), 1);
        let mixed = [&[100; 3][..], &[1400; 20], &[50]].concat();
        assert_eq!(small_front(&mixed, GSO), Taken { datagrams: 3, bytes: 300 });
        assert_eq!(datagrams(&[]), 0);
    }
}
