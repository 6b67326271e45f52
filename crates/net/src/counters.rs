//! What a socket has done.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// What a socket has done so far.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Counters {
    /// System calls that sent.
    pub send_calls: u64,
    /// System calls that received, those that found nothing included.
    pub receive_calls: u64,
    /// System calls that waited.
    pub wait_calls: u64,
    /// Datagrams accepted by the kernel.
    pub datagrams_sent: u64,
    /// Octets in them.
    pub octets_sent: u64,
    /// Datagrams received.
    pub datagrams_received: u64,
    /// Octets in them.
    pub octets_received: u64,
    /// Times that the send buffer was full.
    pub buffer_full: u64,
    /// Times that a host said that nobody listens there (ICMP port unreachable).
    pub refused: u64,
    /// Datagrams thrown away because they did not fit their buffer.
    pub truncated: u64,
    /// Messages thrown away by the kernel because the receive buffer was full; a message of a
    /// coalesced run counts once (Linux).
    pub kernel_drops: u64,
}

impl Counters {
    /// All system calls.
    pub fn calls(&self) -> u64 {
        self.send_calls + self.receive_calls + self.wait_calls
    }
}

/// The counters as they are counted, from any thread.
#[derive(Debug, Default)]
pub(crate) struct Counting {
    pub(crate) send_calls: AtomicU64,
    pub(crate) receive_calls: AtomicU64,
    pub(crate) wait_calls: AtomicU64,
    pub(crate) datagrams_sent: AtomicU64,
    pub(crate) octets_sent: AtomicU64,
    pub(crate) datagrams_received: AtomicU64,
    pub(crate) octets_received: AtomicU64,
    pub(crate) buffer_full: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) truncated: AtomicU64,
}

impl Counting {
    pub(crate) fn snapshot(&self, kernel_drops: u64) -> Counters {
        Counters {
            send_calls: self.send_calls.load(Relaxed),
            receive_calls: self.receive_calls.load(Relaxed),
            wait_calls: self.wait_calls.load(Relaxed),
            datagrams_sent: self.datagrams_sent.load(Relaxed),
            octets_sent: self.octets_sent.load(Relaxed),
            datagrams_received: self.datagrams_received.load(Relaxed),
            octets_received: self.octets_received.load(Relaxed),
            buffer_full: self.buffer_full.load(Relaxed),
            refused: self.refused.load(Relaxed),
            truncated: self.truncated.load(Relaxed),
            kernel_drops,
        }
    }
}

/// Adds `count` to a counter.
pub(crate) fn add(counter: &AtomicU64, count: usize) {
    counter.fetch_add(count as u64, Relaxed);
}
