//! The ZRTP exchange of one session, with its sockets and timeouts.

use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Instant;

use rushes_proto::Ssrc;
use rushes_zrtp::{
    Config, ErrorCode, Event, MemoryStore, SasStatus, SecretStore, Session, StreamId, Warning,
    is_zrtp,
};
#[cfg(feature = "texture")]
use zeroize::Zeroizing;

use super::ZrtpConfig;
use super::file_store::FileStore;
use crate::error::{Error, ZrtpError};
use crate::lock::lock;
use crate::port::{Port, SideProtocol};

/// Maximum number of queued warnings.
const WARNINGS_MAX: usize = 64;

/// The key agreement of a session, shared by its streams.
pub(crate) struct Agreement {
    inner: Mutex<Inner>,
}

struct Inner {
    session: Session,
    /// Whether the random number generator failed: messages made since then must not be sent.
    is_predictable: Arc<AtomicBool>,
    streams: Vec<Attached>,
    warnings: VecDeque<Warning>,
}

/// A stream and the port that carries its messages.
struct Attached {
    id: StreamId,
    port: Weak<Port>,
    events: VecDeque<Event>,
}

/// The ZRTP of one stream on its port.
#[derive(Debug)]
pub(crate) struct Channel {
    pub(crate) agreement: Arc<Agreement>,
    pub(crate) id: StreamId,
}

impl SideProtocol for Channel {
    fn owns(&self, datagram: &[u8]) -> bool {
        is_zrtp(datagram)
    }

    fn handle_datagram(&self, now: Instant, from: SocketAddr, datagram: &[u8]) {
        self.agreement.handle_datagram(now, self.id, from, datagram);
    }
}

impl Agreement {
    pub(crate) fn new(config: &ZrtpConfig) -> Result<Self, Error> {
        let (zid, store): (_, Box<dyn SecretStore + Send>) = if let Some(path) = &config.cache {
            let store = FileStore::open(path).map_err(ZrtpError::Store)?;
            (store.zid(), Box::new(store))
        } else {
            let mut zid = [0; 12];
            getrandom::fill(&mut zid).map_err(|error| Error::Random(error.to_string()))?;
            (zid, Box::new(VolatileStore(MemoryStore::new())))
        };
        let is_predictable = Arc::new(AtomicBool::new(false));
        let failed = is_predictable.clone();
        let entropy = Box::new(move |octets: &mut [u8]| {
            if let Err(error) = getrandom::fill(octets) {
                tracing::error!(%error, "no random numbers are available: the key agreement fails");
                failed.store(true, Relaxed);
            }
        });
        let config = Config {
            algorithms: config.algorithms.clone(),
            is_passive: config.is_passive,
            allows_preshared: config.allows_preshared,
            aux_secret: config.aux_secret.clone(),
            policy: config.peer_policy(),
            ..Config::new(zid)
        };
        let session = Session::new(config, entropy, store).map_err(ZrtpError::Config)?;
        let (streams, warnings) = (Vec::new(), VecDeque::new());
        Ok(Self { inner: Mutex::new(Inner { session, is_predictable, streams, warnings }) })
    }

    /// Adds a stream, which sends Hello at once if the peer's address is known.
    pub(crate) fn attach(
        &self,
        ssrc: Ssrc,
        h0: [u8; 32],
        port: &Arc<Port>,
        peer: Option<SocketAddr>,
        peer_hello_hash: Option<[u8; 32]>,
    ) -> Result<StreamId, Error> {
        let mut inner = self.lock();
        let id = inner.session.add_stream_with(ssrc.0, h0, peer, Instant::now());
        let id = id.ok_or(ZrtpError::TooManyStreams)?;
        if let Some(hash) = peer_hello_hash {
            inner.session.expect_hello(id, hash);
        }
        let port = Arc::downgrade(port);
        inner.streams.push(Attached { id, port, events: VecDeque::new() });
        Ok(id)
    }

    /// Returns the hash of the Hello of a stream whose hash chain begins with `h0`.
    pub(crate) fn hello_hash(&self, h0: [u8; 32]) -> [u8; 32] {
        self.lock().session.hello_hash_with(h0)
    }

    /// Handles a datagram received on stream `id`.
    pub(crate) fn handle_datagram(
        &self,
        now: Instant,
        id: StreamId,
        from: SocketAddr,
        datagram: &[u8],
    ) {
        let mut inner = self.lock();
        inner.session.handle_datagram(now, id, from, datagram);
        inner.process_output();
    }

    /// Performs the actions due by `now`; returns when the next one is due.
    pub(crate) fn serve(&self, now: Instant) -> Option<Instant> {
        let mut inner = self.lock();
        if inner.session.next_timeout().is_some_and(|due| due <= now) {
            inner.session.handle_timeout(now);
        }
        inner.process_output();
        inner.session.next_timeout()
    }

    /// Records that authentic media arrived on stream `id`.
    pub(crate) fn note_media(&self, now: Instant, id: StreamId) {
        let mut inner = self.lock();
        inner.session.handle_authentic_media(now, id);
        inner.process_output();
    }

    pub(crate) fn poll_event(&self, id: StreamId) -> Option<Event> {
        let mut inner = self.lock();
        inner.streams.iter_mut().find(|stream| stream.id == id)?.events.pop_front()
    }

    pub(crate) fn sas(&self) -> Option<SasStatus> {
        self.lock().session.sas().cloned()
    }

    #[cfg(feature = "texture")]
    pub(crate) fn exported_key(&self) -> Option<Zeroizing<Vec<u8>>> {
        let inner = self.lock();
        inner.session.exported_key().map(|key| Zeroizing::new(key.as_slice().to_vec()))
    }

    pub(crate) fn verify_sas(&self, are_equal: bool) -> bool {
        self.lock().session.verify_sas(are_equal)
    }

    pub(crate) fn poll_warning(&self) -> Option<Warning> {
        self.lock().warnings.pop_front()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        lock(&self.inner)
    }
}

impl Inner {
    /// Sends pending datagrams, and queues events by stream.
    fn process_output(&mut self) {
        if self.is_predictable.load(Relaxed) {
            self.fail_all();
            return;
        }
        while let Some((id, to, datagram)) = self.session.poll_datagram() {
            let stream = self.streams.iter().find(|stream| stream.id == id);
            if let Some(port) = stream.and_then(|stream| stream.port.upgrade()) {
                port.send_on_media(&datagram, to);
            }
        }
        while let Some((id, event)) = self.session.poll_event() {
            if let Event::Warning(warning) = event {
                // Logged for debugging only: the application polls warnings and decides whether to
                // show them.
                tracing::debug!(%warning, "ZRTP");
                if self.warnings.len() < WARNINGS_MAX {
                    self.warnings.push_back(warning);
                }
                continue;
            }
            if let Some(stream) = self.streams.iter_mut().find(|stream| stream.id == id) {
                stream.events.push_back(event);
            }
        }
    }

    /// Discards messages and events made without random numbers, and fails all streams.
    fn fail_all(&mut self) {
        while self.session.poll_datagram().is_some() {}
        while self.session.poll_event().is_some() {}
        for stream in &mut self.streams {
            let error = ErrorCode::CriticalSoftware;
            stream.events.clear();
            stream.events.push_back(Event::Failed { error, by_peer: false });
        }
    }
}

impl fmt::Debug for Agreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agreement").finish_non_exhaustive()
    }
}

/// A store for one session only: the peer is asked not to retain secrets.
struct VolatileStore(MemoryStore);

impl SecretStore for VolatileStore {
    fn load(&mut self, peer: &[u8; 12]) -> rushes_zrtp::Retained {
        self.0.load(peer)
    }

    fn save(&mut self, peer: &[u8; 12], retained: &rushes_zrtp::Retained) {
        self.0.save(peer, retained);
    }

    fn keeps(&self) -> bool {
        false
    }
}
