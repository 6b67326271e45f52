//! The RTCP of one stream on its port: passes media counters to the participant, and takes reports,
//! requests and events from it.
//!
//! It has no thread: the thread that reads the port or pushes a frame calls it when it is due.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use rushes_proto::control::{ControlEvent, MediaSent, Participant, Reception};
use rushes_proto::stream::{Event, Receiver, SentSoFar, SourceStatistics};
use rushes_proto::{Ecn, SequenceNumber, Ssrc};
use tracing::Span;

use super::arrivals::ArrivalTimes;
use super::events::Events;
use super::origins::{Origins, all_reporters};
use crate::error::Error;
use crate::lock::lock;
use crate::pace::sleep_until;
use crate::port::{Inbox, Outbox, Port, Reports, earlier};

/// Pause before the next attempt when the send buffer is full.
const FULL_PAUSE: Duration = Duration::from_millis(1);

/// Maximum wait of a BYE for room in the send buffer.
const LEAVE_TIMEOUT: Duration = Duration::from_millis(20);

/// Time after which a report is sent even without media.
const ANNOUNCE_AFTER: Duration = Duration::from_secs(1);

/// The interval of checks whether a peer is known.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// Maximum number of own addresses remembered.
const ECHOES_MAX: usize = 16;

/// The configuration of a reporter.
#[derive(Clone, Debug)]
pub(crate) struct ReporterConfig {
    /// The destinations of reports; if there are none, the address that the peer's reports come from.
    pub(crate) to: Vec<SocketAddr>,
    /// The port for RTCP of a peer whose address is not known yet.
    pub(crate) port: Option<u16>,
    /// The local address of the stream's port, for messages.
    pub(crate) local: SocketAddr,
    /// The idle time after which an empty datagram is sent to keep the path open.
    pub(crate) keep_alive: Option<Duration>,
}

pub(crate) struct Reporter {
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) events: Events,
    /// Names the stream in messages; entered where there may be one.
    pub(crate) span: Span,
    config: ReporterConfig,
    state: Mutex<State>,
}

struct State {
    /// `None` if the stream has no RTCP.
    participant: Option<Participant>,
    /// The source address of the last report.
    learned: Option<SocketAddr>,
    /// The last report of a source whose media has not arrived yet, and its source address.
    early: Option<(Ssrc, SocketAddr)>,
    /// The addresses from which media sources report.
    origins: Origins,
    /// A report that did not fit the send buffer; it is sent before the next one.
    unsent: Unsent,
    /// Our own addresses, found in our packets that multicast loops back.
    echoes: Vec<SocketAddr>,
    receptions: Vec<Reception>,
    sequences: Vec<SequenceNumber>,
    arrivals: Vec<Option<(Instant, Ecn)>>,
    arrival_times: ArrivalTimes,
    /// Arrivals by transport-wide number.
    wide_arrivals: Vec<Option<Instant>>,
    wide_times: ArrivalTimes,
    next_keep_alive: Option<Instant>,
    opened: Instant,
    /// Whether the first report may be sent.
    announced: bool,
}

impl Reports for Reporter {
    fn handle_datagram(
        &self,
        port: &Port,
        now: Instant,
        from: SocketAddr,
        datagram: &[u8],
        read: &mut dyn FnMut(&[u8]),
    ) -> bool {
        let _entered = self.span.enter();
        let mut state = self.state();
        let State { participant, learned, early, echoes, origins, .. } = &mut *state;
        let Some(participant) = participant else { return false };
        if sender(datagram) == Some(participant.ssrc()) && is_echo(echoes, port, from) {
            return false;
        }
        // An authenticated datagram is accepted from any address.
        let is_own = |ssrc| self.is_of_source(origins, port, (now, from), ssrc);
        if !participant.is_secured() && !all_reporters(datagram, is_own) {
            port.note_foreign();
            return false;
        }
        let is_from_peer = participant.is_secured() || self.is_peer(port, from);
        participant.set_from_peer(is_from_peer);
        participant.note_sent(now, &self.outbox.media());
        if let Err(error) = participant.handle_datagram(now, Some(from), datagram) {
            tracing::debug!(%error, %from, "a datagram is not RTCP");
            // One that it was refused, at most once a second.
            while let Some(event) = participant.poll_event() {
                self.note(port, Some(from), event);
            }
            return false;
        }
        participant.decrypted().into_iter().for_each(read);
        if let Some(ssrc) = sender(datagram) {
            self.inbox.lock().handle_report(now, ssrc, from.ip(), None);
        }
        // Our reports go to the peer whose media we receive; a stranger must not redirect them.
        if learned.is_none() || sender(datagram).is_some_and(|ssrc| self.sends_media(from, ssrc)) {
            (*learned, *early) = (Some(from), None);
        } else {
            *early = sender(datagram).map(|ssrc| (ssrc, from));
        }
        while let Some(event) = participant.poll_event() {
            match &event {
                ControlEvent::Bye { from: source, .. } => {
                    self.inbox.lock().handle_bye(now, *source, from.ip());
                    origins.forget(*source);
                }
                ControlEvent::SenderReport { from: source, info } => {
                    let sent = SentSoFar { packets: info.packets, at: info.rtp, ntp: info.ntp };
                    self.inbox.lock().handle_report(now, *source, from.ip(), Some(sent));
                }
                ControlEvent::Arrivals { instant, packets, .. } => {
                    if let Some(rate) = &self.outbox.rate {
                        rate.handle_report(now, participant.ssrc(), *instant, packets);
                        continue;
                    }
                }
                ControlEvent::WideArrivals { from, number, packets } => {
                    if let Some(rate) = &self.outbox.rate {
                        rate.handle_wide_report(now, (*from, *number), packets);
                        continue;
                    }
                }
                _ => {}
            }
            if is_from_peer || !matches!(event, ControlEvent::ReceiverReport { .. }) {
                self.note(port, Some(from), event);
            } else {
                self.events.push(event);
            }
        }
        drop(state);
        self.inbox.watches().note();
        true
    }

    fn add_ssrcs(&self, ssrcs: &mut Vec<Ssrc>) {
        ssrcs.extend(self.inbox.named());
        ssrcs.push(self.outbox.ssrc());
        let state = self.state();
        ssrcs.extend(state.receptions.iter().map(|source| source.ssrc));
        if let Some(participant) = &state.participant {
            ssrcs.extend(participant.retransmission_ssrc());
            ssrcs.extend(participant.reporters());
        }
    }

    fn add_addresses(&self, addresses: &mut Vec<SocketAddr>) {
        addresses.extend(&self.config.to);
        addresses.extend(self.outbox.destinations().addresses());
    }

    fn inbox(&self) -> &Inbox {
        &self.inbox
    }

    fn serve(&self, port: &Port, now: Instant) -> Option<Instant> {
        let _entered = self.span.enter();
        let mut state = self.state();
        let requests = self.poll_receiver(&mut state, port, now);
        if let Some((_, from)) = state.early.take_if(|(ssrc, from)| self.sends_media(*from, *ssrc))
        {
            state.learned = Some(from);
        }
        let State {
            participant,
            learned,
            receptions,
            next_keep_alive,
            opened,
            announced,
            unsent,
            ..
        } = &mut *state;
        let mut due = earlier(requests, self.serve_requested(port, now));
        let (opened, announced) = (*opened, announced);
        if let Some(participant) = participant {
            let sent = self.outbox.media();
            if !*announced {
                // The first report is sent with the first media, so that it is not empty.
                let silent = sent.packets == 0 && sent.last.is_none() && receptions.is_empty();
                *announced = !silent || now.saturating_duration_since(opened) >= ANNOUNCE_AFTER;
                if *announced {
                    participant.report_at_once(now);
                }
                due = earlier(due, Some(now + RETRY_INTERVAL));
            }
            let found = self.destination(port, *learned);
            let to = if self.config.to.is_empty() { found.as_slice() } else { &self.config.to };
            if !to.is_empty() && *announced {
                if send_reports(participant, port, to, unsent, (now, &sent, receptions)) {
                    due = earlier(due, participant.poll_timeout());
                } else {
                    due = earlier(due, Some(now + FULL_PAUSE));
                }
            } else {
                // Without a configured destination, there is none until a peer has sent a packet.
                due = earlier(due, Some(now + RETRY_INTERVAL));
            }
            while let Some(event) = participant.poll_event() {
                self.note(port, None, event);
            }
        }
        due = earlier(due, self.serve_rate(port, now));
        if let Some(interval) = self.config.keep_alive {
            let idle_since = self.outbox.sent().last;
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

    fn has_events(&self) -> bool {
        self.events.has_events()
    }

    fn dispatch(&self) {
        self.events.dispatch();
    }
}

impl Reporter {
    pub(crate) fn new(
        inbox: Arc<Inbox>,
        outbox: Arc<Outbox>,
        participant: Option<Participant>,
        config: ReporterConfig,
    ) -> Self {
        // Not a child of the span in which the application opens or uses the stream.
        let (local, ssrc) = (config.local, outbox.ssrc());
        let span = tracing::info_span!(parent: None, "stream", %local, %ssrc);
        Self {
            inbox,
            outbox,
            span,
            events: Events::default(),
            config,
            state: Mutex::new(State {
                participant,
                learned: None,
                early: None,
                origins: Origins::default(),
                unsent: Unsent::default(),
                echoes: Vec::new(),
                receptions: Vec::new(),
                sequences: Vec::new(),
                arrivals: Vec::new(),
                arrival_times: ArrivalTimes::new(Instant::now()),
                wide_arrivals: Vec::new(),
                wide_times: ArrivalTimes::new(Instant::now()),
                next_keep_alive: None,
                opened: Instant::now(),
                announced: false,
            }),
        }
    }

    /// Calls `act` with the participant, if there is one.
    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut Participant) -> T) -> Option<T> {
        self.state().participant.as_mut().map(act)
    }

    /// Checks that no circuit breaker has stopped the stream. The application gets the event first.
    pub(crate) fn check_sending(&self) -> Result<(), Error> {
        if !self.outbox.is_stopped() {
            return Ok(());
        }
        self.dispatch();
        let triggered = self.with(|participant| participant.circuit_breaker(Instant::now()));
        match triggered.flatten() {
            Some((breaker, wait)) => Err(Error::CircuitBreaker { breaker, wait }),
            None => Ok(()),
        }
    }

    /// Checks that the stream may send a frame: as [`check_sending`](Self::check_sending), and
    /// that the application has not ended sending.
    pub(crate) fn check_frame(&self) -> Result<(), Error> {
        if self.outbox.has_ended() { Err(Error::SendingStopped) } else { self.check_sending() }
    }

    /// Lets the stream send again after a circuit breaker, if that may be.
    pub(crate) fn resume(&self) -> Result<(), Error> {
        let resumed = self.with(|participant| participant.resume(Instant::now()));
        if resumed.is_some_and(|resumed| resumed.is_err()) {
            return self.check_sending();
        }
        self.outbox.set_stopped(false);
        Ok(())
    }

    /// Returns whether media goes to or comes from the host of `from`, or nothing is known of either.
    fn is_peer(&self, port: &Port, from: SocketAddr) -> bool {
        let destinations = self.outbox.destinations();
        let is_its = |to: SocketAddr| to.ip() == from.ip() || to.ip().is_multicast();
        port.path().is_some()
            || destinations.count() == 0
            || destinations.addresses().any(is_its)
            || destinations.reports().any(is_its)
            || self.inbox.lock().has_source_at(from.ip())
    }

    /// Returns whether a report of `ssrc` is from a source whose media is received from the same host.
    fn sends_media(&self, from: SocketAddr, ssrc: Ssrc) -> bool {
        let media = self.inbox.lock().address_of(ssrc);
        media.is_some_and(|media| media.ip() == from.ip())
    }

    /// Returns whether a datagram from `from` may report for `ssrc`. If media of `ssrc` is
    /// received, only its source may.
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

    /// Sends the first report just before the first packet (RFC 6051 section 2.1.1), if that is
    /// allowed: receivers that place streams by the clocks in it, such as FFmpeg, then place the
    /// first frame right, too.
    pub(crate) fn announce(&self, port: &Port) {
        if let Some(due) = self.serve(port, Instant::now()) {
            port.stream_due_at(&self.inbox, due);
        }
    }

    /// Sends BYE if it may be sent immediately.
    pub(crate) fn leave(&self, port: &Port, now: Instant, reason: &str) {
        // Only participants that have sent may send BYE: the counters must be up to date.
        self.serve(port, now);
        self.with(|participant| {
            if !participant.is_gone() {
                participant.leave(now, reason);
            }
        });
        self.serve(port, now);
        // The lock is not held meanwhile, so that the reading thread is not blocked.
        while !self.state().unsent.datagram.is_empty() && now.elapsed() < LEAVE_TIMEOUT {
            sleep_until(Instant::now() + FULL_PAUSE);
            self.serve(port, Instant::now());
        }
    }

    /// Retransmits requested packets that did not fit the send buffer before; returns when to try
    /// the rest.
    fn serve_requested(&self, port: &Port, now: Instant) -> Option<Instant> {
        self.outbox.retransmit_requested(port.socket());
        self.outbox.has_requested().then(|| now + FULL_PAUSE)
    }

    /// Lowers the rate if reports are missing, and queues the events of rate control; returns when
    /// reports will be missing.
    fn serve_rate(&self, port: &Port, now: Instant) -> Option<Instant> {
        let rate = self.outbox.rate.as_ref()?;
        let due = rate.handle_timeout(now);
        while let Some(event) = rate.poll_event(now) {
            if event == ControlEvent::NotReported {
                tracing::warn!(
                    "the peer sends no reports of arrivals (RFC 8888): the rate falls to its minimum"
                );
            }
            self.note(port, None, event);
        }
        due
    }

    /// Requests missing packets, handles conflicts, and collects reception statistics.
    fn poll_receiver(&self, state: &mut State, port: &Port, now: Instant) -> Option<Instant> {
        let State { participant, receptions, sequences, arrivals, arrival_times, echoes, .. } =
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
        if now >= arrival_times.due() && receiver.config().arrivals {
            let mut packets = 0;
            arrivals.clear();
            while let Some((media, begin)) = receiver.poll_arrivals(arrivals) {
                participant.report_arrivals(now, media, begin, arrivals);
                packets += arrivals.len();
                arrivals.clear();
            }
            arrival_times.note(now, packets);
        }
        receptions.clear();
        receptions.extend(receiver.receptions().map(reception));
        let arrivals_due = receiver.config().arrivals.then_some(arrival_times.due());
        let has_wide = receiver.config().wide_arrivals;
        let due = earlier(receiver.requests_due(), arrivals_due);
        drop(receiver);
        if !has_wide {
            return due;
        }
        earlier(due, Some(report_wide_arrivals(state, port, now)))
    }

    /// Queues an event about the key of sent media.
    pub(crate) fn note_key_event(&self, event: Event) {
        let event = match event {
            Event::KeyExpiring { left } => ControlEvent::KeyExpiring { left },
            Event::KeyExpired => ControlEvent::KeyExpired,
            _ => return,
        };
        self.events.push(event);
    }

    /// Handles an event, caused by a datagram from `from` if there is an address, then queues it for
    /// the application.
    fn note(&self, port: &Port, from: Option<SocketAddr>, event: ControlEvent) {
        match &event {
            ControlEvent::Collision { new, .. } => {
                self.outbox.set_ssrc(*new);
                self.inbox.lock().set_own_ssrc(*new);
            }
            ControlEvent::CircuitBreaker(breaker) => {
                tracing::warn!(%breaker, "the stream stops sending");
                self.outbox.set_stopped(true);
            }
            ControlEvent::ReceiverReport { block, .. } => {
                self.outbox.note_loss(block.fraction_lost);
                self.outbox.note_acknowledged();
            }
            ControlEvent::PacketsLost { sequences, .. } => {
                let destinations = self.outbox.destinations();
                let all = || destinations.all();
                let to = from.map_or_else(all, |from| destinations.of_reports_from(from));
                self.outbox.retransmit_soon(port.socket(), sequences, to);
            }
            _ => {}
        }
        self.events.push(event);
    }

    /// Returns the destination of reports if none is configured: the address that the peer's reports
    /// come from.
    fn destination(&self, port: &Port, learned: Option<SocketAddr>) -> Option<SocketAddr> {
        if let Some(path) = port.path() {
            return path.selected();
        }
        if !self.config.to.is_empty() {
            return None;
        }
        let media = self.media_source(port);
        // The reports of a host that sends no media must not redirect ours from one that does.
        let is_a_source = |at: &SocketAddr| self.inbox.lock().has_source_at(at.ip());
        let learned = learned.filter(|at| media.is_none() || is_a_source(at));
        let mut address = learned.or(media)?;
        if let Some(port) = self.config.port {
            address.set_port(port);
        }
        Some(address)
    }

    /// Returns the address at which a peer that has not reported yet expects reports.
    fn media_source(&self, port: &Port) -> Option<SocketAddr> {
        let media = Receiver::source_address(&self.inbox.lock())?;
        self.control_address(port, media)
    }

    /// Returns the default address for RTCP of a peer whose media comes from `address`: the
    /// configured port, the same port if RTCP is muxed, otherwise one port above.
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
        for to in self.outbox.destinations().addresses() {
            port.send_on_media(&[], to);
        }
        self.outbox.note_keep_alive(now);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

/// Reports arrivals by transport-wide number if that is due; returns when it is due next. Of the streams
/// of a port, any that receives media reports for all.
fn report_wide_arrivals(state: &mut State, port: &Port, now: Instant) -> Instant {
    let State { participant, receptions, wide_arrivals, wide_times, .. } = state;
    if let (Some(participant), Some(reception)) = (participant, receptions.first())
        && now >= wide_times.due()
    {
        wide_arrivals.clear();
        if let Some(begin) = port.wide().take_arrivals(wide_arrivals) {
            let of_port = (reception.ssrc, port.epoch());
            participant.report_wide_arrivals(now, of_port, begin, wide_arrivals);
        }
        wide_times.note(now, wide_arrivals.len());
    } else if now >= wide_times.due() {
        wide_times.note(now, 0);
    }
    wide_times.due()
}

/// A report that did not fit the send buffer, and the number of destinations that have it.
#[derive(Default)]
struct Unsent {
    datagram: Vec<u8>,
    sent: usize,
}

/// Sends a datagram to all destinations from number `sent` on, and counts them there; `false` if the
/// send buffer is full.
fn send_to_all(port: &Port, datagram: &[u8], to: &[SocketAddr], sent: &mut usize) -> bool {
    while let Some(next) = to.get(*sent) {
        if !port.send_rtcp(datagram, *next) {
            return false;
        }
        *sent += 1;
    }
    true
}

/// Sends the datagrams of `participant`; `false` if the send buffer is full. The datagram that did
/// not fit is stored in `unsent`.
fn send_reports(
    participant: &mut Participant,
    port: &Port,
    to: &[SocketAddr],
    unsent: &mut Unsent,
    (now, sent, received): (Instant, &MediaSent, &[Reception]),
) -> bool {
    if !unsent.datagram.is_empty() && !send_to_all(port, &unsent.datagram, to, &mut unsent.sent) {
        return false;
    }
    unsent.datagram.clear();
    while let Some(datagram) = participant.poll_datagram(now, sent, received) {
        unsent.sent = 0;
        if !send_to_all(port, datagram, to, &mut unsent.sent) {
            unsent.datagram.extend_from_slice(datagram);
            return false;
        }
    }
    true
}

/// Returns the sender of an RTCP datagram.
fn sender(datagram: &[u8]) -> Option<Ssrc> {
    let octets = datagram.get(4..)?.first_chunk::<4>()?;
    Some(Ssrc(u32::from_be_bytes(*octets)))
}

/// Returns whether a packet from `from` with our own SSRC is an echo of ours: it comes from our
/// port at an address of this machine.
fn is_echo(echoes: &mut Vec<SocketAddr>, port: &Port, from: SocketAddr) -> bool {
    if echoes.contains(&from) {
        return true;
    }
    let own = [Some(port.local_address()), port.control_address()];
    let is_own_port = own.iter().flatten().any(|own| own.port() == from.port());
    // Each address is looked up once. There is one for each of the machine's networks and each
    // port.
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

impl fmt::Debug for Reporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reporter").field("config", &self.config).finish_non_exhaustive()
    }
}
