//! The DTLS handshake of one stream on its port, with the addresses that it may be with.

use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Instant;

use rushes_webrtc::demux::{self, Kind};
use rushes_webrtc::dtls::{Association, Config, DtlsError, Event, Keys};

use crate::lock::lock;
use crate::port::{Port, SideProtocol, earlier};

/// Maximum addresses with which handshakes go on at a time.
const CANDIDATES_MAX: usize = 8;
/// Maximum of them at one host.
const CANDIDATES_OF_HOST_MAX: usize = 4;

/// Maximum events that wait to be polled; the oldest are dropped.
const EVENTS_MAX: usize = 32;

/// What happened in a handshake.
#[derive(Debug)]
pub(crate) enum HandshakeEvent {
    /// The peer is the expected one.
    Keys(Keys),
    /// An address is not that of the peer.
    Refused(SocketAddr, DtlsError),
    /// There will be no keys.
    Failed(DtlsError),
}

/// The DTLS of one stream on its port.
pub(crate) struct Handshake {
    inner: Mutex<Inner>,
    port: Weak<Port>,
}

struct Inner {
    config: Config,
    /// The peer's address: given to a client, learnt by a server.
    peer: Option<SocketAddr>,
    associations: Vec<(SocketAddr, Association)>,
    /// Whether the keys are known.
    is_complete: bool,
    events: VecDeque<HandshakeEvent>,
}

impl Handshake {
    /// Creates the handshake on `port`, which a client begins at once with `peer`.
    pub(crate) fn new(
        port: &Arc<Port>,
        config: Config,
        peer: Option<SocketAddr>,
    ) -> Result<Self, DtlsError> {
        let mut associations = Vec::new();
        if config.expected.is_empty() {
            return Err(DtlsError::NoFingerprint);
        }
        if let Some(peer) = peer.filter(|_| config.is_client) {
            associations.push((peer, Association::new(config.clone(), Instant::now())?));
        }
        let peer = peer.filter(|_| config.is_client);
        let inner =
            Inner { config, peer, associations, is_complete: false, events: VecDeque::new() };
        Ok(Self { inner: Mutex::new(inner), port: Arc::downgrade(port) })
    }

    pub(crate) fn poll_event(&self) -> Option<HandshakeEvent> {
        self.lock().events.pop_front()
    }

    /// Returns whether the keys are known.
    pub(crate) fn is_complete(&self) -> bool {
        self.lock().is_complete
    }

    /// Returns why the last attempt failed, if one did.
    pub(crate) fn last_error(&self) -> Option<DtlsError> {
        let inner = self.lock();
        inner.associations.iter().find_map(|(_, association)| association.last_error().cloned())
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        lock(&self.inner)
    }

    /// Sends pending datagrams, and notes what happened; returns when the next timeout is due.
    fn process_output(&self, inner: &mut Inner) -> Option<Instant> {
        let port = self.port.upgrade();
        for (to, association) in &mut inner.associations {
            while let Some(datagram) = association.poll_datagram() {
                if let Some(port) = &port {
                    port.send_on_media(&datagram, *to);
                }
            }
        }
        inner.process_events();
        let timeouts = inner.associations.iter().map(|(_, association)| association.next_timeout());
        let due = timeouts.fold(None, earlier);
        if let (Some(port), Some(due)) = (port, due) {
            port.due_at(due);
        }
        due
    }
}

impl SideProtocol for Handshake {
    fn owns(&self, datagram: &[u8]) -> bool {
        demux::kind(datagram) == Kind::Dtls
    }

    fn handle_datagram(&self, now: Instant, from: SocketAddr, datagram: &[u8]) {
        let mut inner = self.lock();
        if inner.peer.is_none() && Association::begins_with(datagram) {
            inner.add(now, from);
        }
        if let Some((_, association)) = inner.associations.iter_mut().find(|(it, _)| *it == from) {
            association.handle_datagram(now, datagram);
            self.process_output(&mut inner);
        }
    }

    fn serve(&self, now: Instant) -> Option<Instant> {
        let mut inner = self.lock();
        for (_, association) in &mut inner.associations {
            if association.next_timeout().is_some_and(|due| due <= now) {
                association.handle_timeout(now);
            }
        }
        self.process_output(&mut inner)
    }

    fn leave(&self, now: Instant) -> Vec<(SocketAddr, Vec<u8>)> {
        let mut datagrams = Vec::new();
        for (to, association) in &mut self.lock().associations {
            association.close(now);
            while let Some(datagram) = association.poll_datagram() {
                datagrams.push((*to, datagram));
            }
        }
        datagrams
    }
}

impl Inner {
    /// Begins to listen to an address, in place of the oldest that has not proved that it exists.
    fn add(&mut self, now: Instant, from: SocketAddr) {
        if self.associations.iter().any(|(address, _)| *address == from) {
            return;
        }
        // One host must not take all places.
        let of_host = |(address, _): &&(SocketAddr, _)| address.ip() == from.ip();
        let is_crowded = self.associations.iter().filter(of_host).count() >= CANDIDATES_OF_HOST_MAX;
        if is_crowded || self.associations.len() >= CANDIDATES_MAX {
            let unproved = |(address, it): &(SocketAddr, Association)| {
                !it.has_proved_address() && (!is_crowded || address.ip() == from.ip())
            };
            let Some(oldest) = self.associations.iter().position(unproved) else { return };
            self.associations.remove(oldest);
        }
        if let Ok(association) = Association::new(self.config.clone(), now) {
            self.associations.push((from, association));
        }
    }

    fn process_events(&mut self) {
        let mut n = 0;
        while let Some((address, association)) = self.associations.get_mut(n) {
            let address = *address;
            match association.poll_event() {
                Some(Event::Keys(keys)) => {
                    self.peer = Some(address);
                    self.is_complete = true;
                    self.note(HandshakeEvent::Keys(keys));
                    self.associations.retain(|(other, _)| *other == address);
                    n = 0;
                }
                Some(Event::Failed(error)) => {
                    self.associations.remove(n);
                    if self.peer.is_some() {
                        tracing::debug!(%error, %address, "the DTLS association has ended");
                        self.note(HandshakeEvent::Failed(error));
                    } else {
                        self.note(HandshakeEvent::Refused(address, error));
                    }
                }
                Some(Event::Closed) => {
                    tracing::debug!(%address, "the peer has ended the DTLS association");
                    self.associations.remove(n);
                }
                None => n += 1,
            }
        }
    }

    fn note(&mut self, event: HandshakeEvent) {
        if self.events.len() >= EVENTS_MAX {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }
}

impl fmt::Debug for Handshake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handshake").finish_non_exhaustive()
    }
}
