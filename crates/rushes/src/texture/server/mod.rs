//! The server, which sends frames.

mod binding;
mod choose;
mod connection;
mod encoding;
mod fec;
mod feed;
mod group;
mod host;
mod job;
mod ladder;
mod link;
mod options;
mod pace;
mod packing;
mod pending;
mod places;
mod scaled;
mod session;
mod shared;
mod statistics;
mod work;

pub use fec::Fec;
pub use feed::Timing;
pub use group::MulticastGroup;
pub(super) use group::{interface_of, unit_address};
pub use ladder::Adaptation;
pub use options::ServerOptions;
pub use statistics::{SentFrame, ServerCounts};

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{fmt, thread};

use rushes_delivery::control::{FrameRate, Reason, Report, Stopped, Timeline, Token};
use rushes_net::{TcpListener, Waker};
use rushes_texture::source::Live;
use rushes_texture::{Encoder, Format, Layout, Source};

use self::binding::Binding;
use self::choose::Refusal;
use self::feed::Feed;
use self::group::Group;
use self::pace::SessionPace;
use self::pending::PendingConnections;
use self::places::{Full, Places};
use self::statistics::Tally;
use self::work::Sent;
use super::error::TextureError;
use super::sealing::{End, Sealing};
use super::{OnPanic, lock};

/// Maximum connections, including those of sessions and those being closed; further ones are
/// refused.
const CONNECTIONS_MAX: usize = 512;

/// Pause of the accepting thread after a failure.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Sends a source's frames to every client that connects.
///
/// One thread accepts connections, one takes pictures from the source, and each client has one for
/// the control connection and one for each unit, of which a multicast group has one set for all its clients. Dropping the server ends them all and notifies the
/// clients.
///
/// ```
/// use rushes::texture::{ServerOptions, TextureServer};
/// use rushes::texture::source::{RawHint, open};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let pattern = open("pattern:320x180@60".as_ref(), &RawHint::default())?;
/// let server = TextureServer::serve("127.0.0.1:0".parse()?, pattern, ServerOptions::default())?;
/// assert_ne!(server.local_address().port(), 0);
/// # Ok(())
/// # }
/// ```
pub struct TextureServer {
    inner: Arc<Inner>,
    listener: Arc<TcpListener>,
    threads: Vec<JoinHandle<()>>,
    /// The source as a live source, if it is one.
    live: Option<Arc<dyn Live>>,
}

/// State shared by all threads of a server.
struct Inner {
    options: ServerOptions,
    sealing: Sealing,
    rate: FrameRate,
    timeline: Timeline,
    feed: Feed,
    tally: Tally,
    sessions: Mutex<Places<Binding>>,
    /// The sender of the multicast group, while it has clients.
    group: Mutex<Option<Arc<Group>>>,
    /// Locked while a session begins, so that sessions begin one at a time.
    beginning: Mutex<()>,
    connections: AtomicUsize,
    /// Connections whose clients are to hear of the end of their sessions.
    closing: AtomicUsize,
    pending: PendingConnections,
    /// The number of format changes by the application, and the latest format.
    wanted: Mutex<(u64, Option<Format>)>,
    stopped: AtomicBool,
    waker: Waker,
}

impl fmt::Debug for TextureServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextureServer").field("listener", &self.listener).finish_non_exhaustive()
    }
}

impl TextureServer {
    /// Listens on `local` (port 0 selects a free one) and serves clients until it is dropped.
    ///
    /// The source plays from its beginning whenever the first client connects after a time without
    /// clients. A [live source](Source::live) plays once: its frames are passed on when they
    /// arrive, and discarded while there is no client, unless [`ServerOptions::timing`] requires
    /// every frame. If the source [changes its layout](Source::layout), each client is offered the new
    /// one, in the format that it has; clients by multicast are disconnected.
    ///
    /// # Errors
    ///
    /// [`TextureError::Net`] if the server cannot listen on the address, [`TextureError::Codec`] if
    /// the source's pictures cannot be encoded to the format of the options,
    /// [`TextureError::Stream`] if the pacing or the ratio of repair packets is out of range,
    /// [`TextureError::Group`] if the address is no multicast group, and [`TextureError::Thread`] if the
    /// operating system could not start a thread.
    pub fn serve(
        local: SocketAddr,
        source: impl Source + 'static,
        options: ServerOptions,
    ) -> Result<Self, TextureError> {
        let layout = *source.layout();
        let format = options.format.unwrap_or_else(|| layout.format());
        Encoder::new(layout.format(), format, layout.width(), layout.height())?;
        if let Some(bits) = source.rounded_from() {
            tracing::warn!("the source's samples of {bits} bits are rounded to 8");
        }
        if let Some(points) = source.unknown_colour() {
            tracing::warn!(
                "the source's colours {points:?} (H.273) are unknown and taken to be as in sRGB"
            );
        }
        let rate = source.rate();
        let rate = FrameRate { numerator: rate.numerator(), denominator: rate.denominator() };
        SessionPace::new(options.paced(options.transport), rate)?;
        options.fec.check()?;
        if let Some(group) = options.multicast.as_ref().filter(|it| !group::is_group(it.address)) {
            return Err(TextureError::Group(group.address));
        }
        if options.fec != Fec::Off {
            // The tables that all encoders share take long to compute, and no frame should wait for them.
            drop(rushes_delivery::Encoder::new());
        }
        let sealing = Sealing::new(options.security.as_ref(), End::Server)?;
        let listener = Arc::new(TcpListener::bind(local, &options.tcp)?);
        let inner = Arc::new(Inner {
            sealing,
            rate,
            timeline: Timeline::new(Instant::now()),
            feed: Feed::new(layout),
            tally: Tally::default(),
            sessions: Mutex::default(),
            group: Mutex::default(),
            beginning: Mutex::default(),
            connections: AtomicUsize::new(0),
            closing: AtomicUsize::new(0),
            pending: PendingConnections::default(),
            wanted: Mutex::new((0, options.format)),
            stopped: AtomicBool::new(false),
            waker: Waker::new()?,
            options,
        });
        let mut server =
            Self { inner, listener: listener.clone(), threads: Vec::new(), live: None };
        let inner = server.inner.clone();
        server.spawn("rushes-accept", move || accept(&inner, &listener))?;
        let inner = server.inner.clone();
        server.live = source.live();
        let mut source = source;
        server.spawn("rushes-source", move || {
            let guard = OnPanic(|| inner.feed.fail("the source panicked".into()));
            inner.feed.run(&mut source, inner.options.timing, inner.options.loops);
            drop(guard);
        })?;
        Ok(server)
    }

    fn spawn(
        &mut self,
        name: &str,
        run: impl FnOnce() + Send + 'static,
    ) -> Result<(), TextureError> {
        let thread = thread::Builder::new().name(name.into()).spawn(run);
        self.threads.push(thread.map_err(TextureError::Thread)?);
        Ok(())
    }

    /// Returns the address that the server listens on.
    pub fn local_address(&self) -> SocketAddr {
        self.listener.local_address()
    }

    /// Returns the operating system's error that makes new clients wait, if there is one.
    ///
    /// The process has no descriptors or memory left. Existing clients are served as before.
    pub fn shortage(&self) -> Option<String> {
        self.listener.resource_error()
    }

    /// Returns the layout of frames before they are encoded, which the source may change.
    pub fn layout(&self) -> Layout {
        self.inner.feed.source().layout
    }

    /// Encodes to another format from now on, for existing and new clients.
    ///
    /// A client that does not accept the format keeps its own, and so do clients by multicast.
    ///
    /// # Errors
    ///
    /// [`TextureError::Codec`] if the source's pictures cannot be encoded to it; nothing is changed
    /// then.
    pub fn set_format(&self, format: Format) -> Result<(), TextureError> {
        let layout = self.layout();
        Encoder::new(layout.format(), format, layout.width(), layout.height())?;
        let mut wanted = lock(&self.inner.wanted);
        *wanted = (wanted.0 + 1, Some(format));
        drop(wanted);
        self.inner.wake_sessions();
        Ok(())
    }

    /// Returns the counters so far.
    pub fn counts(&self) -> ServerCounts {
        ServerCounts {
            clients: lock(&self.inner.sessions).sessions().len(),
            closing: self.inner.closing.load(Ordering::Acquire),
            ..self.inner.tally.counts()
        }
    }

    /// Removes and returns the timings of the latest frames, oldest first; 1 024 are kept.
    pub fn take_frames(&self) -> Vec<SentFrame> {
        self.inner.tally.take_frames()
    }

    /// Removes and returns the client's address and the outcome of each ended session; 64 are kept.
    pub fn take_ends(&self) -> Vec<(SocketAddr, Stopped)> {
        self.inner.tally.take_ends()
    }

    /// Removes and returns the address of each client that was refused, and why; 64 are kept.
    pub fn take_refusals(&self) -> Vec<(SocketAddr, Stopped)> {
        self.inner.tally.take_refusals()
    }

    /// Returns the short authentication strings of sessions whose keys were agreed on by ZRTP.
    #[cfg(feature = "zrtp")]
    pub fn sas(&self) -> Vec<crate::agreement::SasStatus> {
        lock(&self.inner.sessions).sessions().filter_map(|binding| binding.sas()).collect()
    }

    /// Returns the latest report of each client.
    pub fn reports(&self) -> Vec<Report> {
        lock(&self.inner.sessions).sessions().map(|binding| binding.report()).collect()
    }
}

impl Drop for TextureServer {
    fn drop(&mut self) {
        self.inner.stopped.store(true, Ordering::Release);
        self.inner.feed.stop();
        if let Some(live) = &self.live {
            live.close();
        }
        self.inner.waker.wake();
        self.inner.wake_sessions();
        for thread in self.threads.drain(..) {
            // A source may drop its own server; its thread must not join itself.
            if thread.thread().id() != thread::current().id() {
                // A panic has been reported already.
                let _ = thread.join();
            }
        }
    }
}

impl Inner {
    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    fn wanted(&self) -> (u64, Option<Format>) {
        *lock(&self.wanted)
    }

    /// Returns the number of units available to the next session.
    fn units_left(&self) -> usize {
        lock(&self.sessions).units_left(&self.options.limits())
    }

    /// Makes room for another session.
    fn make_room(&self, peer: IpAddr) -> Result<(), Refusal> {
        let limits = self.options.limits();
        let evicted = lock(&self.sessions).make_room(peer, &limits).map_err(|full| {
            let text = match full {
                Full::Host => format!("this host already has {} clients", limits.per_host),
                Full::All => format!("the server already has {} clients", limits.all),
            };
            (Reason::Busy, text)
        })?;
        if let Some(binding) = evicted {
            binding.evict();
        }
        Ok(())
    }

    fn forget(&self, binding: &Arc<Binding>) {
        lock(&self.sessions).leave(binding);
    }

    fn find(&self, token: Token) -> Option<Arc<Binding>> {
        lock(&self.sessions).sessions().find(|binding| binding.token == token).cloned()
    }

    fn wake_sessions(&self) {
        lock(&self.sessions).sessions().for_each(|binding| binding.waker.wake());
    }

    fn note_sent(&self, sent: &Sent, units: usize, dropped_before: u64) {
        self.tally.note_sent(sent, units, dropped_before);
    }

    fn note_end(&self, peer: SocketAddr, stopped: &Stopped) {
        self.tally.note_end(peer, stopped);
    }
}

/// Counts a connection until it is dropped, even by a panic.
struct Counted(Arc<Inner>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Creates an unpredictable token.
fn token() -> Result<Token, Refusal> {
    let mut token = [0; 16];
    match getrandom::fill(&mut token) {
        Ok(()) => Ok(Token(token)),
        Err(error) => Err((Reason::Unsupported, error.to_string())),
    }
}

/// Accepts until the server stops, then waits for every connection to end.
fn accept(inner: &Arc<Inner>, listener: &TcpListener) {
    while !inner.is_stopped() {
        let socket = match listener.accept(None, Some(&inner.waker)) {
            Ok(Some(socket)) => socket,
            Ok(None) => continue,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                thread::sleep(ACCEPT_PAUSE);
                continue;
            }
        };
        if inner.connections.fetch_add(1, Ordering::AcqRel) >= CONNECTIONS_MAX {
            tracing::warn!(
                peer = %socket.peer_address(),
                "a connection was closed: {CONNECTIONS_MAX} others are open"
            );
            inner.connections.fetch_sub(1, Ordering::AcqRel);
            continue;
        }
        let socket = Arc::new(socket);
        if let Some(oldest) = inner.pending.add(socket.peer_address().ip(), &socket) {
            tracing::info!(peer = %oldest.peer_address(), "closed a pending connection to make room for a newer one");
            oldest.shut_down();
        }
        let (shared, waiting) = (inner.clone(), socket.clone());
        let spawned = thread::Builder::new().name("rushes-control".into()).spawn(move || {
            let _counted = Counted(shared.clone());
            connection::serve(&shared, socket);
        });
        if let Err(error) = spawned {
            tracing::warn!(%error, "a connection was closed: no thread could be started for it");
            inner.pending.remove(&waiting);
            inner.connections.fetch_sub(1, Ordering::AcqRel);
        }
    }
    // Connections without a session check for the stop every half second.
    while inner.connections.load(Ordering::Acquire) > 0 {
        thread::sleep(Duration::from_millis(2));
    }
}
