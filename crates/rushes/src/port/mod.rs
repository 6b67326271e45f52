//! A local port: its sockets and the streams on it.
//!
//! A port has no thread. A thread that waits for a frame takes the lock on the socket's buffers,
//! reads one batch, passes each datagram to its stream and releases the lock; other threads wait
//! until then. With one stream on the port this costs a function call and two uncontended locks per
//! batch.
//!
//! The modules above it (a stream's reports, key agreement) register with the port: see `traits`.

mod control;
mod destinations;
mod inbox;
mod named;
mod outbox;
#[cfg_attr(not(feature = "webrtc"), allow(dead_code, reason = "only WebRTC looks for paths"))]
mod path;
mod read;
mod relay;
mod reporters;
mod retransmissions;
mod traits;
mod watch;

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rushes_net::{SendQueue, UdpSocket, Waker};
use rushes_proto::{Batch, SequenceNumber};

use self::inbox::Inboxes;
use self::read::ReadState;
use self::reporters::Reporters;
use crate::error::Error;
use crate::lock::lock;
use crate::rate::Wide;

pub(crate) use self::destinations::{DESTINATIONS_MAX, Destinations, Targets};
pub(crate) use self::inbox::Inbox;
pub(crate) use self::outbox::{Outbox, SendState};
pub(crate) use self::path::Path;
pub(crate) use self::read::{BATCH_LEN, Progress, Wait};
pub(crate) use self::relay::Hop;
pub(crate) use self::retransmissions::Retransmissions;
pub(crate) use self::traits::Reports;
#[cfg(any(feature = "webrtc", feature = "zrtp"))]
pub(crate) use self::traits::SideProtocol;
pub(crate) use self::watch::{Changes, Watch, Watches};

/// A peer whose datagrams are accepted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct OnlyFrom {
    pub(crate) host: IpAddr,
    /// The port of its media; `None` accepts any port of the host. Its reports may come from any
    /// port.
    pub(crate) port: Option<u16>,
}

impl OnlyFrom {
    fn sends_media(self, from: SocketAddr) -> bool {
        self.host == from.ip() && self.port.is_none_or(|port| port == from.port())
    }
}

/// The place of a port's RTCP.
#[derive(Debug)]
pub(crate) enum Control {
    /// No RTCP.
    Off,
    /// On the media's own port (RFC 5761).
    Muxed,
    /// On a separate socket, by default one port above (RFC 3550 section 11).
    Separate(Box<UdpSocket>),
}

/// The only hosts that are heard in a multicast group.
#[derive(Debug)]
pub(crate) struct Sources {
    /// Their addresses; all hosts if empty.
    pub(crate) hosts: Vec<IpAddr>,
    /// Whether RTCP is taken from all hosts. A sender needs it: every member of the group reports what
    /// it receives.
    pub(crate) only_of_media: bool,
}

impl Sources {
    fn contain(&self, host: IpAddr) -> bool {
        self.hosts.is_empty() || self.hosts.contains(&host)
    }
}

#[derive(Debug)]
pub(crate) struct Port {
    socket: UdpSocket,
    control: Control,
    /// Created by the first thread that waits, since a port that is only polled needs none.
    waker: OnceLock<Waker>,
    /// The only peers whose datagrams are accepted; any if empty.
    accepted: Vec<OnlyFrom>,
    sources: Sources,
    /// Locked by the reading thread.
    read_state: Mutex<ReadState>,
    inboxes: Mutex<Inboxes>,
    reports: Mutex<Reporters>,
    /// For datagrams of RTCP.
    queue: Mutex<SendQueue>,
    scratch: Mutex<Scratch>,
    /// The time at which the next reports are due, in nanoseconds after `epoch`; written under the lock
    /// of `reports`, which knows it for each stream.
    due: AtomicU64,
    epoch: Instant,
    waiting: Mutex<Waiting>,
    woken: Condvar,
    foreign: AtomicU64,
    unrouted: AtomicU64,
    /// Pollers that read the port.
    watches: Watches,
    /// The transport-wide numbers of the packets of all streams.
    wide: Arc<Wide>,
    /// Where the peer is, if that may change; all streams of the port follow it.
    path: OnceLock<Arc<Path>>,
    #[cfg(any(feature = "webrtc", feature = "zrtp"))]
    side: Mutex<Option<Arc<dyn SideProtocol>>>,
}

/// Memory for packets on their way to the kernel. All streams of a port use the same, which then stays in the
/// cache: with many streams, that of the stream itself would not be there.
#[derive(Debug)]
pub(crate) struct Scratch {
    pub(crate) batch: Batch,
    pub(crate) queue: SendQueue,
}

/// Counts waiting threads, and wake-ups so that no thread misses one.
#[derive(Debug, Default)]
struct Waiting {
    wake_ups: u64,
    threads: usize,
}

impl Port {
    pub(crate) fn new(
        socket: UdpSocket,
        control: Control,
        accepted: Vec<OnlyFrom>,
        sources: Sources,
    ) -> Result<Self, Error> {
        let random = getrandom::u32().map_err(|error| Error::Random(error.to_string()))?;
        let first_number = random as u16;
        let control_arena = match &control {
            Control::Separate(socket) => Some(socket.arena()),
            Control::Off | Control::Muxed => None,
        };
        Ok(Self {
            read_state: Mutex::new(ReadState::new(socket.arena(), control_arena)),
            reports: Mutex::default(),
            queue: Mutex::new(socket.send_queue()),
            scratch: Mutex::new(Scratch { batch: Batch::new(), queue: socket.send_queue() }),
            due: AtomicU64::new(u64::MAX),
            epoch: Instant::now(),
            control,
            socket,
            waker: OnceLock::new(),
            accepted,
            sources,
            inboxes: Mutex::default(),
            waiting: Mutex::default(),
            woken: Condvar::new(),
            foreign: AtomicU64::new(0),
            unrouted: AtomicU64::new(0),
            watches: Watches::default(),
            wide: Arc::new(Wide::new(SequenceNumber(first_number))),
            path: OnceLock::new(),
            #[cfg(any(feature = "webrtc", feature = "zrtp"))]
            side: Mutex::default(),
        })
    }

    /// Returns whether media from this address is accepted.
    fn accepts_media(&self, from: SocketAddr) -> bool {
        let is_accepted =
            self.accepted.is_empty() || self.accepted.iter().any(|only| only.sends_media(from));
        is_accepted && self.sources.contain(from.ip())
    }

    /// Returns whether RTCP from this host is accepted.
    pub(crate) fn accepts_reports(&self, host: IpAddr) -> bool {
        let is_source = self.sources.only_of_media || self.sources.contain(host);
        is_source && (self.accepted.is_empty() || self.accepted.iter().any(|it| it.host == host))
    }

    pub(crate) fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// Returns the memory for packets that streams share; `None` while another thread sends with it.
    pub(crate) fn scratch(&self) -> Option<MutexGuard<'_, Scratch>> {
        self.scratch.try_lock().ok()
    }

    pub(crate) fn local_address(&self) -> SocketAddr {
        self.socket.local_address()
    }

    /// Returns an instant before all arrivals, from which all streams count them.
    pub(crate) fn epoch(&self) -> Instant {
        self.epoch
    }

    /// Returns the transport-wide numbers of the port's packets.
    pub(crate) fn wide(&self) -> &Arc<Wide> {
        &self.wide
    }

    /// Returns whether an address is the peer's, as far as that is known.
    fn follows(&self, from: SocketAddr) -> bool {
        self.path.get().is_none_or(|path| path.admits(from))
    }

    /// Returns where the peer is, if that may change.
    pub(crate) fn path(&self) -> Option<&Arc<Path>> {
        self.path.get()
    }

    /// Returns the way to an address: through a relay if it is the peer's and the path leads there.
    fn hop(&self, to: SocketAddr) -> Hop {
        let selected = self.path.get().and_then(|path| path.hop());
        selected.filter(|hop| hop.peer == to).unwrap_or_else(|| Hop::direct(to))
    }

    /// Lets the streams of the port follow `path`; it cannot be replaced.
    #[cfg(feature = "webrtc")]
    pub(crate) fn follow(&self, path: Arc<Path>) {
        let _ = self.path.set(path);
    }

    /// Counts an ignored datagram whose address is not its source's.
    pub(crate) fn note_foreign(&self) {
        self.foreign.fetch_add(1, Relaxed);
    }

    fn note_unrouted(&self) {
        self.unrouted.fetch_add(1, Relaxed);
    }

    /// Returns the numbers of ignored datagrams: those from other hosts, and those without a
    /// matching stream.
    pub(crate) fn ignored(&self) -> (u64, u64) {
        (self.foreign.load(Relaxed), self.unrouted.load(Relaxed))
    }

    /// Registers a protocol beside RTP; `false` if there is one already.
    #[cfg(any(feature = "webrtc", feature = "zrtp"))]
    pub(crate) fn set_side_protocol(&self, protocol: Arc<dyn SideProtocol>) -> bool {
        let mut side = lock(&self.side);
        let is_free = side.is_none();
        if is_free {
            *side = Some(protocol);
        }
        is_free
    }

    /// Removes `protocol`, if it is registered.
    #[cfg(any(feature = "webrtc", feature = "zrtp"))]
    pub(crate) fn clear_side_protocol(&self, protocol: &Arc<dyn SideProtocol>) {
        lock(&self.side).take_if(|registered| Arc::ptr_eq(registered, protocol));
    }

    /// Ends every [`read_or_wait`](Self::read_or_wait) in progress.
    pub(crate) fn wake(&self) {
        self.wake_reading();
        self.wake_waiting();
    }

    /// Ends the wait of the thread that reads the port. Without a waker no thread has waited yet, and the
    /// first one looks again before it does.
    fn wake_reading(&self) {
        if let Some(waker) = self.waker.get() {
            waker.wake();
        }
    }

    /// Returns the number of wake-ups so far.
    pub(crate) fn wake_ups(&self) -> u64 {
        lock(&self.waiting).wake_ups
    }

    /// Wakes the waiting threads: a batch was read, or no thread is reading.
    fn wake_waiting(&self) {
        let mut waiting = lock(&self.waiting);
        waiting.wake_ups += 1;
        // A notification is a system call even if no thread waits.
        if waiting.threads > 0 {
            self.woken.notify_all();
        }
    }

    /// Waits until there were more than `seen` wake-ups, or until `until`.
    fn wait_for_wake_up(&self, seen: u64, until: Instant) {
        let time = until.saturating_duration_since(Instant::now());
        let mut waiting = lock(&self.waiting);
        waiting.threads += 1;
        let (mut waiting, _) = self
            .woken
            .wait_timeout_while(waiting, time, |waiting| waiting.wake_ups == seen)
            .unwrap_or_else(PoisonError::into_inner);
        waiting.threads -= 1;
    }

    /// Returns the time at which the next reports are due.
    pub(crate) fn due(&self) -> Option<Instant> {
        match self.due.load(Relaxed) {
            u64::MAX => None,
            nanos => Some(self.epoch + Duration::from_nanos(nanos)),
        }
    }

    /// Makes the protocol beside RTP due at `due`.
    pub(crate) fn due_at(&self, due: Instant) {
        let mut reports = lock(&self.reports);
        reports.side_due = reports.side_due.min(self.nanos(due));
        self.note_due(&reports);
    }

    /// Makes the reports of a stream due at `due`.
    pub(crate) fn stream_due_at(&self, stream: &Inbox, due: Instant) {
        let Some(place) = stream.place() else { return };
        let mut reports = lock(&self.reports);
        reports.set_due(place, self.nanos(due));
        self.note_due(&reports);
    }

    /// Notes when the next of all reports are due.
    fn note_due(&self, reports: &Reporters) {
        let due = reports.first_due();
        if self.due.swap(due, Relaxed) > due {
            self.watches.note();
        }
    }

    fn nanos(&self, at: Instant) -> u64 {
        at.saturating_duration_since(self.epoch).as_nanos() as u64
    }
}

#[cfg(any(feature = "webrtc", feature = "zrtp"))]
impl Drop for Port {
    fn drop(&mut self) {
        let Some(side) = lock(&self.side).take() else { return };
        for (to, datagram) in side.leave(Instant::now()) {
            self.send_on_media(&datagram, to);
        }
    }
}

/// Returns the earlier of two optional instants.
pub(crate) fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
