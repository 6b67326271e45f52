//! ICE and DTLS on the port of a peer's media: finds the path, then agrees on the keys.

use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

use rushes_webrtc::demux::{self, Kind};
use rushes_webrtc::dtls::{self, Association};
use rushes_webrtc::ice::{self, Agent, Credentials};
use rushes_webrtc::negotiation::Fragment;

use super::builder::local_addresses;
use crate::error::PeerError;
use crate::lock::lock;
use crate::port::{Hop, Path, Port, SideProtocol, earlier};

/// Maximum number of events that wait to be polled; the oldest are dropped.
const EVENTS_MAX: usize = 64;

/// Maximum number of addresses that are reported to the peer after a restart.
const TOLD_MAX: usize = 100;

/// What happened to a peer's connection.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum PeerEvent {
    /// The keys are agreed on: [`Peer::connect`](super::Peer::connect) returns the streams without waiting.
    Keys,
    /// Media goes to another address from now on: the first one, or a better one.
    Path {
        /// Our address.
        local: SocketAddr,
        /// The peer's address.
        remote: SocketAddr,
    },
    /// The peer has not answered for a while; it may return.
    Disconnected,
    /// There is no address at the TURN server, or no longer: the peer is reached without, if at all.
    RelayFailed(ice::TurnError),
    /// The connection has ended: the peer has closed it, or it has failed.
    Ended(PeerError),
}

/// ICE and DTLS of one peer.
pub(super) struct Transport {
    inner: Mutex<Inner>,
    path: Arc<Path>,
    port: Weak<Port>,
    /// Our own address of the port; unspecified if it is bound to all.
    bound: SocketAddr,
}

struct Inner {
    agent: Agent,
    /// The credentials of the peer, once they are known.
    remote: Option<Credentials>,
    /// Our credentials of a restart that was offered and not answered yet.
    offered: Option<Credentials>,
    /// What fragments of ours have in common with our description.
    described: Fragment,
    /// Our addresses that the peer has learned with the last restart that this end has offered.
    told: Option<Vec<SocketAddr>>,
    /// What the DTLS handshake will need; `None` once it has begun or before the peer is known.
    handshake: Option<dtls::Config>,
    dtls: Option<Association>,
    keys: Option<dtls::Keys>,
    /// Whether the keys were agreed on.
    keys_were_agreed: bool,
    /// Why the connection has ended.
    ended: Option<PeerError>,
    events: VecDeque<PeerEvent>,
    /// Is called with each event.
    wake: Option<Wake>,
}

/// The application's function that wakes the thread for events.
type Wake = Box<dyn Fn() + Send>;

impl SideProtocol for Transport {
    fn owns(&self, datagram: &[u8]) -> bool {
        matches!(demux::kind(datagram), Kind::Stun | Kind::Dtls | Kind::TurnChannel)
    }

    fn handle_datagram(&self, now: Instant, from: SocketAddr, datagram: &[u8]) {
        let mut inner = self.lock();
        if inner.ended.is_some() {
            return;
        }
        let relayed = inner.agent.unwrap(from, datagram);
        let (local, from, datagram) =
            relayed.map_or((self.bound, from, datagram), |it| (it.local, it.from, it.datagram));
        match demux::kind(datagram) {
            Kind::Stun => self.handle_stun(&mut inner, now, (local, from), datagram),
            // Only the peer is answered.
            Kind::Dtls if self.path.admits(from) => {
                self.begin_handshake(&mut inner, now);
                if let Some(dtls) = &mut inner.dtls {
                    dtls.handle_datagram(now, datagram);
                }
            }
            _ => return,
        }
        self.process_output(&mut inner, now);
    }

    fn serve(&self, now: Instant) -> Option<Instant> {
        let mut inner = self.lock();
        if inner.ended.is_some() {
            return None;
        }
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if is_due(inner.agent.next_timeout()) {
            inner.agent.handle_timeout(now);
        }
        if let Some(dtls) = &mut inner.dtls
            && is_due(dtls.next_timeout())
        {
            dtls.handle_timeout(now);
        }
        self.process_output(&mut inner, now);
        inner.next_timeout()
    }
}

impl Transport {
    /// Creates the transport of `port`, and registers it there.
    pub(super) fn new(port: &Arc<Port>, agent: Agent) -> Arc<Self> {
        let path = Arc::new(Path::default());
        let inner = Inner {
            agent,
            remote: None,
            offered: None,
            described: Fragment::default(),
            told: None,
            handshake: None,
            dtls: None,
            keys: None,
            keys_were_agreed: false,
            ended: None,
            events: VecDeque::new(),
            wake: None,
        };
        let (bound, inner) = (port.local_address(), Mutex::new(inner));
        let transport =
            Arc::new(Self { inner, path: path.clone(), port: Arc::downgrade(port), bound });
        port.follow(path);
        port.set_side_protocol(transport.clone());
        transport
    }

    /// Begins to look for the peer: its credentials and candidates are in the agent by then. The
    /// handshake begins with `config` when the first path is found. `described` is what fragments have in common with
    /// our description.
    pub(super) fn begin(
        &self,
        now: Instant,
        remote: Credentials,
        described: Fragment,
        config: dtls::Config,
    ) {
        let mut inner = self.lock();
        inner.remote = Some(remote);
        inner.described = described;
        inner.handshake = Some(config);
        self.process_output(&mut inner, now);
    }

    /// Returns whether the peer has other credentials than these, as far as it is known.
    pub(super) fn is_restarted_by(&self, remote: &Credentials) -> bool {
        self.lock().remote.as_ref().is_some_and(|known| known != remote)
    }

    /// Looks for a path again, with other credentials of both ends.
    pub(super) fn restart(
        &self,
        now: Instant,
        own: &Credentials,
        remote: &Credentials,
    ) -> Result<(), ice::AgentError> {
        let mut inner = self.lock();
        if inner.ended.is_some() {
            return Ok(());
        }
        inner.restart(now, own, remote)?;
        self.process_output(&mut inner, now);
        drop(inner);
        self.wake_reader();
        Ok(())
    }

    /// Notes the credentials of a restart that this end offers, in place of earlier ones; returns the fragment that
    /// offers it, without them.
    pub(super) fn offer_restart(&self, own: Credentials) -> Result<Fragment, PeerError> {
        let mut inner = self.lock();
        if let Some(error) = &inner.ended {
            return Err(error.clone());
        }
        if inner.remote.is_none() {
            return Err(PeerError::Order("a restart of ICE before offer and answer"));
        }
        inner.offered = Some(own);
        Ok(inner.described.clone())
    }

    /// Looks for a path again with the credentials that were offered, and those of the answer.
    pub(super) fn finish_restart(
        &self,
        now: Instant,
        remote: &Credentials,
    ) -> Result<(), PeerError> {
        let mut inner = self.lock();
        if let Some(error) = &inner.ended {
            return Err(error.clone());
        }
        let no_offer = PeerError::Order("an answer without an offer to restart ICE");
        let own = inner.offered.clone().ok_or(no_offer)?;
        inner.restart(now, &own, remote)?;
        self.process_output(&mut inner, now);
        drop(inner);
        self.wake_reader();
        Ok(())
    }

    /// Notes which addresses a restart that this end offers has told the peer.
    pub(super) fn note_told(&self, candidates: &[ice::Candidate]) {
        self.lock().told = Some(addresses(candidates));
    }

    /// Returns our credentials and the candidates that were found since the last restart of this end, each once, with
    /// what fragments have in common. `None` if there are none, and while a restart is not answered.
    pub(super) fn late_candidates(&self) -> Option<(Fragment, Credentials)> {
        let mut inner = self.lock();
        let Inner { agent, told, offered, ended, described, .. } = &mut *inner;
        let told = told.as_mut().filter(|_| offered.is_none() && ended.is_none())?;
        let candidates = agent.local_candidates();
        let late = candidates.iter().filter(|it| !told.contains(&it.address()));
        // A server that reports a new address each time must not fill the list.
        let late: Vec<_> = late.take(TOLD_MAX.saturating_sub(told.len())).collect();
        told.extend(late.iter().map(|it| it.address()));
        let late: Vec<_> = late.into_iter().map(ToString::to_string).collect();
        if late.is_empty() {
            return None;
        }
        let mut fragment = described.clone();
        fragment.media.first_mut()?.candidates = late;
        Some((fragment, agent.credentials().clone()))
    }

    /// Tells the agent of addresses that this machine has got since.
    pub(super) fn add_local_addresses(&self, now: Instant) {
        let has_loopback = self.local_candidates().iter().any(|it| it.address().ip().is_loopback());
        // Without them the known ones remain.
        let addresses = local_addresses(self.bound, has_loopback).unwrap_or_default();
        self.with_agent(now, |agent| {
            for address in addresses {
                // Addresses that cannot be candidates are left out.
                let _ = agent.add_local(address, now);
            }
        });
    }

    /// Returns whether this end only answers checks, as far as its description says so.
    pub(super) fn is_lite(&self) -> bool {
        self.lock().described.is_lite
    }

    /// Returns how long the peer has not answered on the path that is used.
    pub(super) fn silence(&self, now: Instant) -> Option<Duration> {
        self.lock().agent.silence(now)
    }

    /// Lets the thread that reads the port look again when something is due.
    fn wake_reader(&self) {
        if let Some(port) = self.port.upgrade() {
            port.wake();
        }
    }

    /// Calls `act` with the agent, and sends what it has to say.
    pub(super) fn with_agent<T>(&self, now: Instant, act: impl FnOnce(&mut Agent) -> T) -> T {
        let mut inner = self.lock();
        let outcome = act(&mut inner.agent);
        if inner.ended.is_none() {
            self.process_output(&mut inner, now);
        }
        drop(inner);
        self.wake_reader();
        outcome
    }

    /// Adds addresses of the peer; those that cannot be used are left out.
    pub(super) fn add_candidates<'a>(
        &self,
        now: Instant,
        candidates: impl Iterator<Item = &'a str>,
    ) {
        self.with_agent(now, |agent| {
            for candidate in candidates.filter_map(|text| text.parse().ok()) {
                // The limit of candidates leaves further ones out.
                let _ = agent.add_remote(&candidate, now);
            }
        });
    }

    /// Returns our credentials.
    pub(super) fn credentials(&self) -> Credentials {
        self.lock().agent.credentials().clone()
    }

    /// Adds an address of the peer; one that cannot be used is left out.
    pub(super) fn add_candidate(&self, candidate: &str) {
        if let Ok(candidate) = candidate.parse::<ice::Candidate>() {
            let now = Instant::now();
            let added = self.with_agent(now, |agent| agent.add_remote(&candidate, now));
            if let Err(error) = added {
                tracing::debug!(%error, "a candidate of the peer is left out");
            }
        }
    }

    /// Returns the keys, once.
    pub(super) fn take_keys(&self) -> Option<dtls::Keys> {
        self.lock().keys.take()
    }

    /// Returns why the connection has ended.
    pub(super) fn ended(&self) -> Option<PeerError> {
        self.lock().ended.clone()
    }

    /// Returns the addresses at which the peer may find this end.
    pub(super) fn local_candidates(&self) -> Vec<ice::Candidate> {
        self.lock().agent.local_candidates().to_vec()
    }

    pub(super) fn poll_event(&self) -> Option<PeerEvent> {
        self.lock().events.pop_front()
    }

    pub(super) fn wake_with(&self, wake: Wake) {
        let earlier = self.lock().wake.replace(wake);
        // It may call the peer when it is dropped.
        drop(earlier);
    }

    /// Returns whether a pair of addresses carries the media.
    pub(super) fn is_connected(&self) -> bool {
        let inner = self.lock();
        inner.ended.is_none() && inner.agent.is_connected()
    }

    /// Tells the peer that the connection ends.
    pub(super) fn close(&self, now: Instant) {
        let mut inner = self.lock();
        if let Some(dtls) = &mut inner.dtls {
            dtls.close(now);
        }
        self.process_output(&mut inner, now);
        inner.agent.close(now);
        self.process_output(&mut inner, now);
        self.path.clear();
        inner.ended.get_or_insert(PeerError::Closed);
    }

    fn handle_stun(
        &self,
        inner: &mut Inner,
        now: Instant,
        (local, from): (SocketAddr, SocketAddr),
        datagram: &[u8],
    ) {
        if inner.agent.handle_datagram(now, local, from, datagram)
            && inner.agent.accepts_media_from(from)
        {
            self.path.admit(from);
        }
    }

    /// Begins the handshake if the peer is known and a path to it is found.
    fn begin_handshake(&self, inner: &mut Inner, now: Instant) {
        if self.path.selected().is_some()
            && let Some(config) = inner.handshake.take()
        {
            match Association::new(config, now) {
                Ok(dtls) => inner.dtls = Some(dtls),
                Err(error) => self.end(inner, PeerError::Dtls(error)),
            }
        }
    }

    /// Sends pending datagrams, and notes what happened.
    fn process_output(&self, inner: &mut Inner, now: Instant) {
        while let Some(event) = inner.agent.poll_event() {
            match event {
                ice::Event::Selected { local, remote } if inner.ended.is_none() => {
                    let channel = inner.agent.channel(local, remote);
                    self.path.select(match channel {
                        Some(it) => Hop::through(remote, it.server, it.number),
                        None => Hop::direct(remote),
                    });
                    inner.note(PeerEvent::Path { local, remote });
                }
                ice::Event::Disconnected => {
                    self.path.clear();
                    inner.note(PeerEvent::Disconnected);
                }
                ice::Event::ChannelOpened { channel, peer } => {
                    self.path.open_channel((channel.server, channel.number), peer);
                }
                ice::Event::RelayClosed(error) => {
                    self.path.close_relay();
                    if let Some(error) = error {
                        tracing::warn!("there is no relay: {error}");
                        inner.note(PeerEvent::RelayFailed(error));
                    }
                }
                ice::Event::Failed if inner.keys_were_agreed => self.end(inner, PeerError::Lost),
                ice::Event::Failed => self.end(inner, PeerError::NoPath),
                _ => {}
            }
        }
        self.begin_handshake(inner, now);
        let Some(port) = self.port.upgrade() else { return };
        while let Some(ice::Transmit { to, datagram, .. }) = inner.agent.poll_datagram() {
            port.send_directly(&datagram, to);
        }
        self.process_handshake(inner, &port);
        // Before the handshake, too: a thread that only waits for the port must not miss a check.
        if let Some(due) = inner.next_timeout() {
            port.due_at(due);
        }
    }

    /// Sends pending datagrams of the handshake, and notes what happened.
    fn process_handshake(&self, inner: &mut Inner, port: &Port) {
        let Some(dtls) = &mut inner.dtls else { return };
        if let Some(to) = self.path.selected() {
            while let Some(datagram) = dtls.poll_datagram() {
                port.send_on_media(&datagram, to);
            }
        }
        while let Some(event) = inner.dtls.as_mut().and_then(Association::poll_event) {
            match event {
                dtls::Event::Keys(keys) => {
                    (inner.keys, inner.keys_were_agreed) = (Some(keys), true);
                    inner.note(PeerEvent::Keys);
                }
                dtls::Event::Failed(error) => self.end(inner, PeerError::Dtls(error)),
                dtls::Event::Closed => self.end(inner, PeerError::ClosedByPeer),
            }
        }
    }

    /// Ends the connection: nothing is sent any more.
    fn end(&self, inner: &mut Inner, error: PeerError) {
        self.path.clear();
        if inner.ended.is_none() {
            inner.ended = Some(error.clone());
            inner.note(PeerEvent::Ended(error));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        lock(&self.inner)
    }
}

impl Inner {
    /// Starts ICE over with other credentials of both ends. Those that cannot be used change nothing.
    fn restart(
        &mut self,
        now: Instant,
        own: &Credentials,
        remote: &Credentials,
    ) -> Result<(), ice::AgentError> {
        Agent::check_user_names(own, remote)?;
        self.agent.restart(own.clone(), now);
        self.agent.set_remote_credentials(remote, now)?;
        (self.remote, self.offered) = (Some(remote.clone()), None);
        Ok(())
    }

    fn note(&mut self, event: PeerEvent) {
        if self.events.len() >= EVENTS_MAX {
            self.events.pop_front();
        }
        self.events.push_back(event);
        if let Some(wake) = &self.wake {
            wake();
        }
    }

    /// Returns when something is due next.
    fn next_timeout(&mut self) -> Option<Instant> {
        if self.ended.is_some() {
            return None;
        }
        earlier(self.agent.next_timeout(), self.dtls.as_ref().and_then(Association::next_timeout))
    }
}

/// Returns the addresses of candidates.
fn addresses(candidates: &[ice::Candidate]) -> Vec<SocketAddr> {
    candidates.iter().map(ice::Candidate::address).collect()
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport").field("bound", &self.bound).finish_non_exhaustive()
    }
}
