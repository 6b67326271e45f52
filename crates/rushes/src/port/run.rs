//! A run of datagrams for one stream.

use std::array;
use std::net::SocketAddr;
use std::sync::MutexGuard;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use rushes_proto::stream::Receiver;

use super::Inbox;

/// Octets of finished frames that may wait for a stream's reader while another stream's reader
/// drives the port.
const UNCOLLECTED_MAX: usize = 64 << 20;

/// Datagrams that a stream is given together.
const RUN_MAX: usize = 64;

/// Datagrams for one stream from one address, kept until there are enough to be taken together.
#[derive(Debug)]
pub(super) struct Run<'i, 'd> {
    now: Instant,
    stream: Option<(&'i Inbox, MutexGuard<'i, Receiver>)>,
    /// Whether the stream's own reader is the one that reads.
    is_own: bool,
    from: Option<&'d SocketAddr>,
    datagrams: [&'d mut [u8]; RUN_MAX],
    len: usize,
}

impl<'i, 'd> Run<'i, 'd> {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            now,
            stream: None,
            is_own: false,
            from: None,
            datagrams: array::from_fn(|_| &mut [][..]),
            len: 0,
        }
    }

    /// Whether the run is for stream `id`.
    #[inline]
    pub(super) fn is_of(&self, id: u64) -> bool {
        self.stream.as_ref().is_some_and(|(inbox, _)| inbox.id == id)
    }

    /// Begins a run for `inbox`; the one before must have ended.
    pub(super) fn begin(&mut self, inbox: &'i Inbox, is_own: bool) {
        self.is_own = is_own;
        self.stream = Some((inbox, inbox.lock()));
    }

    /// Adds a datagram.
    #[inline]
    pub(super) fn add(&mut self, from: &'d SocketAddr, octets: &'d mut [u8]) {
        // Datagrams of one message come from one place in memory too.
        let is_same = |before: &'d SocketAddr| std::ptr::eq(before, from) || before == from;
        if self.len == RUN_MAX || !self.from.is_some_and(is_same) {
            self.flush();
            self.from = Some(from);
        }
        self.datagrams[self.len] = octets;
        self.len += 1;
    }

    /// Ends the run, and gives the stream back if there was one.
    pub(super) fn end(&mut self) -> Option<(&'i Inbox, MutexGuard<'i, Receiver>)> {
        self.flush();
        self.stream.take()
    }

    fn flush(&mut self) {
        let len = std::mem::take(&mut self.len);
        let (Some((inbox, receiver)), Some(from)) = (&mut self.stream, self.from) else { return };
        if len == 0 {
            return;
        }
        if !self.is_own && receiver.ready_octets() > UNCOLLECTED_MAX {
            inbox.uncollected.fetch_add(len as u64, Relaxed);
            return;
        }
        receiver.handle_datagrams(self.now, *from, &mut self.datagrams[..len]);
    }
}
