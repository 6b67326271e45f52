//! RTCP of one stream, where it meets sockets, clocks and the application's hooks.
//!
//! It has no thread: the one that reads the port, or pushes a frame, drives it when it is due.

use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::thread::ThreadId;
use std::time::Duration;
use std::time::Instant;

use rushes_proto::SequenceNumber;
use rushes_proto::Ssrc;
use rushes_proto::control::ControlEvent;
use rushes_proto::control::MediaSent;
use rushes_proto::control::Participant;
use rushes_proto::control::Reception;
use rushes_proto::stream::Event;
use rushes_proto::stream::Receiver;
use rushes_proto::stream::SentSoFar;
use rushes_proto::stream::SourceStatistics;

use crate::error::Error;
use crate::origin::Origins;
use crate::origin::all_speakers;
use crate::pace::sleep_until;
use crate::port::Inbox;
use crate::port::Port;
use crate::sending::Sending;

/// Events that wait for [`poll`](Reporter::poll_event); older ones are forgotten.
const EVENTS_MAX: usize = 256;

/// Pause before the next attempt when the send buffer is full.
const FULL_PAUSE: Duration = Duration::from_millis(1);

/// How long a goodbye waits for room in the send buffer.
const LEAVE_PATIENCE: Duration = Duration::from_millis(20);

/// Time after which a report is sent although there is no media yet.
const ANNOUNCE_AFTER: Duration = Duration::from_secs(1);

/// How often arrivals are reported.
const ARRIVALS_INTERVAL: Duration = Duration::from_millis(100);

/// How often to check whether a peer is known.
const NOBODY_YET: Duration = Duration::from_millis(50);

/// Own addresses remembered.
const ECHOES_MAX: usize = 16;

/// The application's function for control events.
pub(crate) type ReportHook = Box<dyn FnMut(ControlEvent) + Send>;

/// The configuration of a reporter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReporterConfig {
    /// The destination of reports; by default the address that the peer's reports come from.
    pub(crate) to: Option<SocketAddr>,
    /// The port of a peer that is not known yet.
    pub(crate) port: Option<u16>,
    /// How long the stream may be idle before something is sent to keep the path open.
    pub(crate) keep_alive: Option<Duration>,
}

pub(crate) struct Reporter {
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) sending: Arc<Sending>,
    config: ReporterConfig,
    state: Mutex<State>,
    events: Mutex<VecDeque<ControlEvent>>,
    hook: Mutex<Hooked>,
    rested: Condvar,
}

/// The application's hook, and the thread that runs it.
#[derive(Default)]
struct Hooked {
    /// `None` while it runs, too.
    hook: Option<ReportHook>,
    running: Option<ThreadId>,
}

/// A running hook; it is put back when it returns, unless it was replaced meanwhile.
struct Running<'a> {
    reporter: &'a Reporter,
    hook: Option<ReportHook>,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        // One that panics is not called again.
        let hook = self.hook.take().filter(|_| !std::thread::panicking());
        let mut hooked = lock(&self.reporter.hook);
        hooked.running = None;
        let old = if hooked.hook.is_none() {
            hooked.hook = hook;
            None
        } else {
            hook
        };
        drop(hooked);
        self.reporter.rested.notify_all();
        drop(old);
    }
}

struct State {
    /// `None` if the stream does without RTCP.
    participant: Option<Participant>,
    /// Where the last report came from.
    learnt: Option<SocketAddr>,
    /// Where the reports of media sources come from.
    origins: Origins,
    /// A report that the full send buffer had no room for; it goes before the next.
    unsent: Vec<u8>,
    /// Our own addresses, from which a multicast group sends us our own packets back.
    echoes: Vec<SocketAddr>,
    receptions: Vec<Reception>,
    sequences: Vec<SequenceNumber>,
    arrivals: Vec<Option<Instant>>,
    next_arrivals: Instant,
    next_keep_alive: Option<Instant>,
    opened: Instant,
    /// Whether the first report may be sent.
    announced: bool,
}

impl Reporter {
    pub(crate) fn new(
        inbox: Arc<Inbox>,
        sending: Arc<Sending>,
        participant: Option<Participant>,
        config: ReporterConfig,
    ) -> Self {
        Self {
            inbox,
            sending,
            config,
            state: Mutex::new(State {
                participant,
                learnt: None,
                origins: Origins::default(),
                unsent: Vec::new(),
                echoes: Vec::new(),
                receptions: Vec::new(),
                sequences: Vec::new(),
                arrivals: Vec::new(),
                next_arrivals: Instant::now(),
                next_keep_alive: None,
                opened: Instant::now(),
                announced: false,
            }),
            events: Mutex::default(),
            hook: Mutex::default(),
            rested: Condvar::new(),
        }
    }

    /// Calls `act` with the participant, if there is one.
    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut Participant) -> T) -> Option<T> {
        self.state().participant.as_mut().map(act)
    }

    /// Takes a datagram of RTCP.
    pub(crate) fn take(&self, port: &Port, now: Instant, from: SocketAddr, datagram: &[u8]) {
        let mut state = self.state();
        let State { participant, learnt, echoes, origins, .. } = &mut *state;
        let Some(participant) = participant else { return };
        if sender(datagram) == Some(participant.ssrc()) && is_echo(echoes, port, from) {
            return;
        }
        // An authentic datagram is its sender's own, wherever it comes from.
        let is_own = |ssrc| self.is_of_source(origins, port, (now, from), ssrc);
        if !participant.is_secured() && !all_speakers(datagram, is_own) {
            port.note_foreign();
            return;
        }
        if let Err(error) = participant.handle_datagram(now, Some(from), datagram) {
            tracing::debug!(%error, %from, "a datagram is not RTCP");
            return;
        }
        if let Some(ssrc) = sender(datagram) {
            self.inbox.lock().handle_report(now, ssrc, from.ip(), None);
        }
        // A stranger must not draw our reports away from the peer whose media we receive.
        if learnt.is_none() || self.sends_media(from, datagram) {
            *learnt = Some(from);
        }
        while let Some(event) = participant.poll_event() {
            match &event {
                ControlEvent::Bye { from: source, .. } => {
                    self.inbox.lock().handle_bye(now, *source, from.ip());
                    origins.forget(*source);
                }
                ControlEvent::SenderReport { from: source, info } => {
                    let sent = SentSoFar { packets: info.packets, at: info.rtp };
                    self.inbox.lock().handle_report(now, *source, from.ip(), Some(sent));
                }
                _ => {}
            }
            self.note(port, event);
        }
    }

    /// Whether a datagram of RTCP is of a source whose media is received, from the same host.
    fn sends_media(&self, from: SocketAddr, datagram: &[u8]) -> bool {
        let media = sender(datagram).and_then(|sender| self.inbox.lock().address_of(sender));
        media.is_some_and(|media| media.ip() == from.ip())
    }

    /// Whether a datagram from `from` may report for `ssrc`: if media of it is received, only the
    /// source itself may.
    fn is_of_source(
        &self,
        origins: &mut Origins,
        port: &Port,
        (now, from): (Instant, SocketAddr),
        ssrc: Ssrc,
    ) -> bool {
        let Some(media) = self.inbox.lock().address_of(ssrc) else { return true };
        let expected = self.control_address(port, media).unwrap_or(media);
        origins.admit(now, ssrc, expected, from)
    }

    /// Sends what is due at `now`; returns when something is due next.
    pub(crate) fn serve(&self, port: &Port, now: Instant) -> Option<Instant> {
        let mut state = self.state();
        let requests = self.look_at_receiver(&mut state, port, now);
        let State {
            participant,
            learnt,
            receptions,
            next_keep_alive,
            opened,
            announced,
            unsent,
            ..
        } = &mut *state;
        let mut due = earlier(requests, self.serve_wanted(port, now));
        let (opened, announced) = (*opened, announced);
        if let Some(participant) = participant {
            let sent = self.sending.media();
            if !*announced {
                // The first report is sent with the first media, so that it is not empty.
                let silent = sent.packets == 0 && receptions.is_empty();
                *announced = !silent || now.saturating_duration_since(opened) >= ANNOUNCE_AFTER;
                if *announced {
                    participant.report_at_once(now);
                }
                due = earlier(due, Some(now + NOBODY_YET));
            }
            if let Some(to) = self.destination(port, *learnt) {
                if send_reports(participant, port, to, unsent, (now, &sent, receptions)) {
                    due = earlier(due, participant.poll_timeout());
                } else {
                    due = earlier(due, Some(now + FULL_PAUSE));
                }
            } else {
                // There is no destination until a peer is heard.
                due = earlier(due, Some(now + NOBODY_YET));
            }
            while let Some(event) = participant.poll_event() {
                self.note(port, event);
            }
        }
        if let Some(interval) = self.config.keep_alive {
            let idle_since = self.sending.sent().last;
            let at = idle_since.map_or(now, |last| last + interval);
            if at <= now {
                self.keep_alive(port, now);
            }
            *next_keep_alive =
                Some(at.max(now) + if at <= now { interval } else { Duration::ZERO });
            due = earlier(due, *next_keep_alive);
        }
        due
    }

    /// Gives waiting events to the hook, if there is one.
    pub(crate) fn dispatch(&self) {
        if lock(&self.events).is_empty() {
            return;
        }
        while let Some(mut running) = self.take_hook() {
            let Some(hook) = &mut running.hook else { return };
            // Until it is replaced.
            while lock(&self.hook).hook.is_none() {
                let event = lock(&self.events).pop_front();
                let Some(event) = event else { return };
                hook(event);
            }
        }
    }

    /// The hook, to be run by this thread; `None` if there is none, or it runs already: a hook that
    /// drives the stream must not be called again while it runs.
    fn take_hook(&self) -> Option<Running<'_>> {
        let mut hooked = lock(&self.hook);
        let Hooked { hook, running } = &mut *hooked;
        let hook = hook.take_if(|_| running.is_none())?;
        *running = Some(std::thread::current().id());
        Some(Running { reporter: self, hook: Some(hook) })
    }

    /// Whether events wait, and a hook is set.
    pub(crate) fn has_events(&self) -> bool {
        let hooked = lock(&self.hook);
        let has_hook = hooked.hook.is_some() || hooked.running.is_some();
        drop(hooked);
        has_hook && !lock(&self.events).is_empty()
    }

    /// Replaces the hook, after waiting for one that runs on another thread. A hook that replaces
    /// itself is not called again.
    pub(crate) fn set_hook(&self, hook: ReportHook) {
        let own = std::thread::current().id();
        let mut hooked = lock(&self.hook);
        while hooked.running.is_some_and(|thread| thread != own) {
            hooked = self.rested.wait(hooked).unwrap_or_else(PoisonError::into_inner);
        }
        let old = hooked.hook.replace(hook);
        drop(hooked);
        drop(old);
    }

    pub(crate) fn poll_event(&self) -> Option<ControlEvent> {
        lock(&self.events).pop_front()
    }

    /// Leaves the session, if that is allowed at once.
    pub(crate) fn leave(&self, port: &Port, now: Instant, reason: &str) {
        // Only participants that have sent say goodbye: this one must know that it has.
        self.serve(port, now);
        self.with(|participant| {
            if !participant.is_gone() {
                participant.leave(now, reason);
            }
        });
        self.serve(port, now);
        // Without the lock, so that the thread that reads the port is not held up.
        while !self.state().unsent.is_empty() && now.elapsed() < LEAVE_PATIENCE {
            sleep_until(Instant::now() + FULL_PAUSE);
            self.serve(port, Instant::now());
        }
    }

    /// Retransmits requested packets that had no room before; returns when to try the rest.
    fn serve_wanted(&self, port: &Port, now: Instant) -> Option<Instant> {
        self.sending.serve(port.socket());
        self.sending.has_wanted().then(|| now + FULL_PAUSE)
    }

    /// Requests missing packets, notes conflicts, and collects reception statistics.
    fn look_at_receiver(&self, state: &mut State, port: &Port, now: Instant) -> Option<Instant> {
        let State { participant, receptions, sequences, arrivals, next_arrivals, echoes, .. } =
            state;
        let participant = participant.as_mut()?;
        let mut receiver = self.inbox.lock();
        while receiver.requests_due().is_some_and(|due| due <= now) {
            sequences.clear();
            for source in &*receptions {
                if let Some(time) = participant.round_trip_time_to(source.ssrc) {
                    receiver.set_round_trip(source.ssrc, time.smoothed);
                }
            }
            if let Some(media) = receiver.poll_requests(now, sequences)
                && !sequences.is_empty()
            {
                participant.request_packets(now, media, sequences);
            }
        }
        if let Some(from) = receiver.poll_conflict().filter(|from| !is_echo(echoes, port, *from)) {
            participant.handle_conflict(now, from);
        }
        if now >= *next_arrivals && receiver.config().arrivals {
            *next_arrivals = now + ARRIVALS_INTERVAL;
            arrivals.clear();
            while let Some((media, begin)) = receiver.poll_arrivals(arrivals) {
                participant.report_arrivals(now, media, begin, arrivals);
                arrivals.clear();
            }
        }
        receptions.clear();
        receptions.extend(receiver.receptions().map(reception));
        let arrivals_due = receiver.config().arrivals.then_some(*next_arrivals);
        earlier(receiver.requests_due(), arrivals_due)
    }

    /// Reports an event of the key for media sent.
    pub(crate) fn tell_of_key(&self, event: Event) {
        let event = match event {
            Event::KeyExpiring { left } => ControlEvent::KeyExpiring { left },
            Event::KeyExpired => ControlEvent::KeyExpired,
            _ => return,
        };
        self.queue(event);
    }

    /// Acts on an event, before the application gets it.
    fn note(&self, port: &Port, event: ControlEvent) {
        match &event {
            ControlEvent::Collision { new, .. } => {
                self.sending.set_ssrc(*new);
                self.inbox.lock().set_own_ssrc(*new);
            }
            ControlEvent::PacketsLost { sequences, .. } => {
                self.sending.send_again(port.socket(), sequences);
            }
            _ => {}
        }
        self.queue(event);
    }

    fn queue(&self, event: ControlEvent) {
        let mut events = lock(&self.events);
        if events.len() >= EVENTS_MAX {
            events.pop_front();
        }
        events.push_back(event);
    }

    /// The destination of reports: as configured, or where the peer's reports come from.
    fn destination(&self, port: &Port, learnt: Option<SocketAddr>) -> Option<SocketAddr> {
        if self.config.to.is_some() {
            return self.config.to;
        }
        let media = self.media_source(port);
        // Reports of a host without media do not redirect ours from one that sends media.
        let is_a_source = |at: &SocketAddr| self.inbox.lock().has_source_at(at.ip());
        let learnt = learnt.filter(|at| media.is_none() || is_a_source(at));
        let mut address = learnt.or(media)?;
        if let Some(port) = self.config.port {
            address.set_port(port);
        }
        Some(address)
    }

    /// Where a peer that has not reported yet expects reports: one port above its media.
    fn media_source(&self, port: &Port) -> Option<SocketAddr> {
        let media = Receiver::source_address(&self.inbox.lock())?;
        self.control_address(port, media)
    }

    /// Where a peer whose media comes from `address` has its RTCP, unless it says otherwise.
    fn control_address(&self, port: &Port, mut address: SocketAddr) -> Option<SocketAddr> {
        match self.config.port {
            Some(port) => address.set_port(port),
            None if port.is_muxed() => {}
            None => address.set_port(address.port().checked_add(1)?),
        }
        Some(address)
    }

    /// Sends an empty datagram, which opens a path and is otherwise ignored (RFC 6263 section 4.1).
    fn keep_alive(&self, port: &Port, now: Instant) {
        if let Some(to) = self.sending.to() {
            port.send_empty(to);
        }
        self.sending.note_keep_alive(now);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

/// Sends the datagrams of `participant`; `false` if the send buffer is full. The one that it had no
/// room for waits in `unsent`.
fn send_reports(
    participant: &mut Participant,
    port: &Port,
    to: SocketAddr,
    unsent: &mut Vec<u8>,
    (now, sent, received): (Instant, &MediaSent, &[Reception]),
) -> bool {
    if !unsent.is_empty() && !port.send_rtcp(unsent, to) {
        return false;
    }
    unsent.clear();
    while let Some(datagram) = participant.poll_datagram(now, sent, received) {
        if !port.send_rtcp(datagram, to) {
            unsent.extend_from_slice(datagram);
            return false;
        }
    }
    true
}

/// The sender of an RTCP datagram.
fn sender(datagram: &[u8]) -> Option<Ssrc> {
    let octets = datagram.get(4..)?.first_chunk::<4>()?;
    Some(Ssrc(u32::from_be_bytes(*octets)))
}

/// Whether a packet with our own SSRC, which came from `from`, is an echo: sent from our port and
/// an address of this machine.
fn is_echo(echoes: &mut Vec<SocketAddr>, port: &Port, from: SocketAddr) -> bool {
    if echoes.contains(&from) {
        return true;
    }
    let own = [Some(port.local_address()), port.control_address()];
    let is_own_port = own.iter().flatten().any(|own| own.port() == from.port());
    // One address for each of the machine's networks, and each port: looked up once.
    let own = is_own_port && echoes.len() < ECHOES_MAX && rushes_net::is_local(from.ip());
    if own {
        echoes.push(from);
    }
    own
}

fn reception(source: SourceStatistics) -> Reception {
    Reception {
        ssrc: source.ssrc,
        expected: source.expected,
        received: source.received,
        highest: source.highest,
        jitter: source.jitter,
        last_heard: source.last_heard,
    }
}

/// The earlier of two instants, where there are any.
pub(crate) fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Reporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reporter").field("config", &self.config).finish_non_exhaustive()
    }
}

/// Keeps a stream's reporter at its port until the last handle is gone; then says BYE.
#[derive(Debug)]
pub(crate) struct Reporting {
    pub(crate) port: Arc<Port>,
    pub(crate) reporter: Arc<Reporter>,
}

impl Reporting {
    pub(crate) fn new(port: Arc<Port>, reporter: Reporter) -> Self {
        let reporter = Arc::new(reporter);
        port.add_reporter(reporter.clone());
        Self { port, reporter }
    }

    /// Answers requests and reports until `deadline`.
    pub(crate) fn wait_until(&self, deadline: Instant) -> Result<(), Error> {
        if !self.port.has_control() {
            sleep_until(deadline);
            return Ok(());
        }
        self.port.look_until(deadline)
    }
}

impl Drop for Reporting {
    fn drop(&mut self) {
        self.port.remove_reporter(&self.reporter);
        self.reporter.leave(&self.port, Instant::now(), "");
    }
}
