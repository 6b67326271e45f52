//! Statistics of a socket.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Statistics since the socket was created. Each number is exact, but they are not read at one
/// instant.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Counters {
    /// System calls made to send.
    pub send_calls: u64,
    /// System calls made to receive, including those that found nothing.
    pub receive_calls: u64,
    /// Times that a thread waited for the socket.
    pub wait_calls: u64,
    /// Datagrams that the system accepted for sending.
    pub sent_datagrams: u64,
    /// Octets in these datagrams, without headers.
    pub sent_bytes: u64,
    /// Datagrams received.
    pub received_datagrams: u64,
    /// Octets in these datagrams, without headers.
    pub received_bytes: u64,
    /// Times that sending found the send buffer full.
    pub buffer_full_waits: u64,
    /// ICMP messages reporting that the destination port is closed; see
    /// [`enable_refusals`](crate::UdpSocket::enable_refusals).
    pub refused: u64,
    /// Datagrams dropped because they were larger than any UDP datagram can be.
    pub truncated: u64,
    /// Messages that the kernel dropped because the receive buffer was full; one may hold a run of
    /// datagrams (Linux only).
    pub kernel_drops: u64,
}

impl Counters {
    /// Returns the number of system calls of all kinds.
    pub fn calls(&self) -> u64 {
        self.send_calls + self.receive_calls + self.wait_calls
    }
}

/// The live counters behind [`Counters`].
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) send_calls: AtomicU64,
    pub(crate) receive_calls: AtomicU64,
    pub(crate) wait_calls: AtomicU64,
    pub(crate) sent_datagrams: AtomicU64,
    pub(crate) sent_bytes: AtomicU64,
    pub(crate) received_datagrams: AtomicU64,
    pub(crate) received_bytes: AtomicU64,
    pub(crate) buffer_full_waits: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) truncated: AtomicU64,
}

/// Counts `amount` more events.
#[inline]
pub(crate) fn count(counter: &AtomicU64, amount: usize) {
    counter.fetch_add(amount as u64, Relaxed);
}

impl Tally {
    /// Returns the current numbers; the caller adds the kernel's drops.
    pub(crate) fn read(&self) -> Counters {
        Counters {
            send_calls: self.send_calls.load(Relaxed),
            receive_calls: self.receive_calls.load(Relaxed),
            wait_calls: self.wait_calls.load(Relaxed),
            sent_datagrams: self.sent_datagrams.load(Relaxed),
            sent_bytes: self.sent_bytes.load(Relaxed),
            received_datagrams: self.received_datagrams.load(Relaxed),
            received_bytes: self.received_bytes.load(Relaxed),
            buffer_full_waits: self.buffer_full_waits.load(Relaxed),
            refused: self.refused.load(Relaxed),
            truncated: self.truncated.load(Relaxed),
            ..Counters::default()
        }
    }
}
