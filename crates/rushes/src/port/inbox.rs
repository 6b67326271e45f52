//! The receiving half of a stream, shared by the stream's reader and the thread that reads the
//! port.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard};

use rushes_proto::stream::{Demux, Receiver, Route};

use super::{Port, Watches};
use crate::error::Error;
use crate::lock::lock;
use crate::stats::Histogram;
use std::sync::Arc;

/// The receiver of a stream on a port.
#[derive(Debug)]
pub(crate) struct Inbox {
    pub(super) id: u64,
    receiver: Mutex<Receiver>,
    uncollected: AtomicU64,
    /// The times from capture to delivery.
    latencies: Mutex<Histogram>,
    /// The poller of the stream's frames.
    watches: Watches,
}

impl Inbox {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Receiver> {
        lock(&self.receiver)
    }

    /// Returns the number of datagrams dropped because too many finished frames had not been
    /// pulled.
    pub(crate) fn uncollected(&self) -> u64 {
        self.uncollected.load(Relaxed)
    }

    pub(crate) fn latencies(&self) -> MutexGuard<'_, Histogram> {
        lock(&self.latencies)
    }

    /// Returns the places that note new packets and events.
    pub(crate) fn watches(&self) -> &Watches {
        &self.watches
    }

    pub(super) fn note_uncollected(&self, datagrams: usize) {
        self.uncollected.fetch_add(datagrams as u64, Relaxed);
    }
}

/// The streams on a port.
#[derive(Debug, Default)]
pub(super) struct Inboxes {
    demux: Demux,
    list: Vec<Arc<Inbox>>,
    next_id: u64,
}

impl Inboxes {
    /// Returns the inbox for a datagram.
    #[inline]
    pub(super) fn route(&self, datagram: &[u8]) -> Option<u64> {
        self.demux.route(datagram)
    }

    pub(super) fn find(&self, id: u64) -> Option<&Inbox> {
        self.list.iter().find(|inbox| inbox.id == id).map(|inbox| &**inbox)
    }
}

impl Port {
    /// Adds a stream for the datagrams that `route` selects; without it, for none.
    pub(crate) fn add(
        &self,
        route: Option<Route>,
        receiver: Receiver,
    ) -> Result<Arc<Inbox>, Error> {
        let mut inboxes = lock(&self.inboxes);
        let id = inboxes.next_id;
        if route.is_some_and(|route| !inboxes.demux.add(id, route)) {
            return Err(Error::SharedPort { port: self.local_address().port() });
        }
        inboxes.next_id += 1;
        let receiver = Mutex::new(receiver);
        let (uncollected, latencies) = (AtomicU64::new(0), Mutex::default());
        let watches = Watches::default();
        let inbox = Arc::new(Inbox { id, receiver, uncollected, latencies, watches });
        inboxes.list.push(inbox.clone());
        Ok(inbox)
    }

    /// Removes a stream.
    pub(crate) fn remove(&self, inbox: &Inbox) {
        let mut inboxes = lock(&self.inboxes);
        inboxes.demux.remove(inbox.id);
        inboxes.list.retain(|other| other.id != inbox.id);
    }
}
