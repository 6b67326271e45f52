//! The receiving half of a stream, shared by the stream's reader and the thread that reads the
//! port.

use std::ptr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard};

use rushes_proto::Ssrc;
use rushes_proto::stream::{Demux, Receiver, Route};

use super::{Port, Watches};
use crate::error::Error;
use crate::lock::lock;
use crate::stats::Histogram;

/// The receiver of a stream on a port.
#[derive(Debug)]
pub(crate) struct Inbox {
    pub(super) id: u64,
    /// The place of the stream's RTCP on the port; [`NO_PLACE`] before it has one.
    place: AtomicUsize,
    route: Option<Route>,
    receiver: Mutex<Receiver>,
    uncollected: AtomicU64,
    /// The times from capture to delivery.
    latencies: Mutex<Histogram>,
    /// The poller of the stream's frames.
    watches: Watches,
}

/// The place of a stream whose RTCP is not registered.
const NO_PLACE: usize = usize::MAX;

impl Inbox {
    /// Returns the SSRCs of the peer's media, retransmissions and repair packets that were agreed on.
    pub(crate) fn named(&self) -> impl Iterator<Item = Ssrc> + use<> {
        self.route.into_iter().flat_map(|route| route.named())
    }

    /// Returns the place of the stream's RTCP on the port.
    pub(super) fn place(&self) -> Option<usize> {
        Some(self.place.load(Relaxed)).filter(|place| *place != NO_PLACE)
    }

    pub(super) fn set_place(&self, place: usize) {
        self.place.store(place, Relaxed);
    }

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
    /// By their numbers, which are given out again.
    places: Vec<Option<Arc<Inbox>>>,
    free: Vec<usize>,
}

impl Inboxes {
    /// Returns the inbox for a datagram.
    #[inline]
    pub(super) fn route(&self, datagram: &[u8]) -> Option<u64> {
        self.demux.route(datagram)
    }

    pub(super) fn find(&self, id: u64) -> Option<&Inbox> {
        self.places.get(usize::try_from(id).ok()?)?.as_deref()
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
        let number = inboxes.free.last().copied().unwrap_or(inboxes.places.len());
        let id = number as u64;
        if route.is_some_and(|route| !inboxes.demux.add(id, route)) {
            return Err(Error::SharedPort { port: self.local_address().port() });
        }
        if inboxes.free.pop().is_none() {
            inboxes.places.push(None);
        }
        let receiver = Mutex::new(receiver);
        let (uncollected, latencies) = (AtomicU64::new(0), Mutex::default());
        let (place, watches) = (AtomicUsize::new(NO_PLACE), Watches::default());
        let inbox = Inbox { id, place, route, receiver, uncollected, latencies, watches };
        let inbox = Arc::new(inbox);
        inboxes.places[number] = Some(inbox.clone());
        Ok(inbox)
    }

    /// Removes a stream.
    pub(crate) fn remove(&self, inbox: &Inbox) {
        let mut inboxes = lock(&self.inboxes);
        let number = inbox.id as usize;
        // A stream is removed once: its number may be another's afterwards.
        if inboxes
            .places
            .get(number)
            .and_then(Option::as_deref)
            .is_some_and(|it| ptr::eq(it, inbox))
        {
            inboxes.demux.remove(inbox.id);
            inboxes.places[number] = None;
            inboxes.free.push(number);
        }
    }
}
