//! The agent: our candidates, the peer's, and the pair that is selected.

mod input;
mod local;
mod output;
mod peer;
mod relay;
mod watch;

pub use relay::Relayed;

use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use is::{IceAgent, IceCreds, Protocol};

use super::budget::Budget;
use super::candidate::{Candidate, CandidateKind};
use super::credentials::Credentials;
use super::error::AgentError;
use super::gather::Gather;
use super::interface::{AgentConfig, Event, Statistics, Transmit};
use super::paths::Paths;
use super::turn::Client;
use peer::Peer;
use watch::Watch;

/// The most host candidates: addresses of one machine.
const MAX_HOSTS: usize = 16;

/// The most server-reflexive candidates: a NAT may map each server to another port, and change its mind.
const MAX_REFLEXIVE: usize = 32;

/// The most STUN servers.
const MAX_SERVERS: usize = 8;

/// The most pairs (RFC 8445 section 6.1.2.5).
const MAX_PAIRS: usize = 100;

/// The most octets of USERNAME that `is` can write.
const MAX_USER_NAME: usize = 128;

/// The most datagrams that wait for [`Agent::poll_datagram`].
const MAX_OUTBOX: usize = 256;

/// The time between two checks of which the ends have not agreed on another (RFC 8445 section 14.2).
pub const PACING: Duration = Duration::from_millis(50);

/// The limits of what they may agree on: RFC 8445 forbids less.
pub(super) const MIN_PACING: Duration = Duration::from_millis(5);
const MAX_PACING: Duration = Duration::from_millis(500);

/// The longest time between checks on a pair that works: RFC 7675 section 5.1 forbids less than 4 seconds.
const CHECK_INTERVAL: Duration = Duration::from_secs(4);

/// One end of an ICE session.
///
/// Each datagram that [`demux`](crate::demux) finds to be STUN goes to [`handle_datagram`](Self::handle_datagram);
/// after each call the outputs are to be polled, and [`handle_timeout`](Self::handle_timeout) is to be called at
/// [`next_timeout`](Self::next_timeout).
///
/// **Limits.** 16 host candidates, 8 STUN servers, a TURN server with 100 channels, 100 addresses of the peer, 100
/// pairs of candidates, and 200 pairs that only requests have made known. At most one check is sent each 50 ms, or [as agreed on](Self::set_pacing)
/// (RFC 8445 section 14.2), whatever arrives. Addresses that have answered no check within 30 seconds get at most 8000
/// octets of checks and 400 a second after that, all together and restarts included: a peer may name the addresses of a
/// victim (RFC 8445 section 19.5.1). A request of the peer is answered by one datagram of at most 76 octets. A request
/// without the right password is not answered at all, nor is a copy of one of the last 1024 requests from another
/// address. A lite agent cannot check that an address is the peer's: whoever has recorded older requests on the path can
/// lead its media elsewhere by copies of them.
///
/// **Consent.** A selected pair is checked each 4 seconds (RFC 7675 allows 4 to 6; the interval is not random,
/// as RFC 7675 asks, because that of `is` is not). If the selected pair falls silent for 9 seconds while
/// another answers, the other is selected.
pub struct Agent {
    inner: IceAgent,
    credentials: Credentials,
    tie_breaker: u64,
    /// The time of the last call that had one.
    now: Instant,
    /// The time between two checks, `Ta`.
    pacing: Duration,
    /// No check is sent before this time.
    paced: Instant,
    /// Until then a controlled agent leaves the first check to the peer. A peer that is answered first knows that the
    /// pair works when ours arrives, and some nominate only then, or at the next of their own intervals.
    held: Option<Instant>,
    /// What may go to addresses that have answered nothing.
    unproved: Budget,
    /// Whether a request has arrived since `is` last had time: it looks at a nomination only then.
    is_nudged: bool,
    hosts: Vec<SocketAddr>,
    /// Our candidates that the peer should know.
    locals: Vec<Candidate>,
    servers: Vec<SocketAddr>,
    gather: Gather,
    /// The client of the TURN server, if there is one.
    turn: Option<Client>,
    /// When the TURN server's address is given back, because another path carries the media.
    release: Option<Instant>,
    peer: Peer,
    paths: Paths,
    watch: Watch,
    statistics: Statistics,
    events: VecDeque<Event>,
    outbox: VecDeque<Transmit>,
}

impl Agent {
    /// Makes an agent without candidates.
    pub fn new(config: AgentConfig, now: Instant) -> Self {
        let mut gather = Gather::new(&config.random);
        // A lite agent must be controlled: it wins each conflict of roles.
        let tie_breaker = if config.is_lite { u64::MAX } else { gather.tie_breaker() };
        let inner = make(&config.credentials, config.is_lite, config.is_controlling, tie_breaker);
        let mut agent = Self {
            inner,
            credentials: config.credentials,
            tie_breaker,
            now,
            pacing: PACING,
            paced: now,
            held: None,
            unproved: Budget::new(now),
            is_nudged: false,
            hosts: Vec::new(),
            locals: Vec::new(),
            servers: Vec::new(),
            gather,
            turn: None,
            release: None,
            peer: Peer::default(),
            paths: Paths::default(),
            watch: Watch::default(),
            statistics: Statistics::default(),
            events: VecDeque::new(),
            outbox: VecDeque::new(),
        };
        agent.inner.handle_timeout(now);
        agent.collect();
        agent
    }

    /// Starts over with new credentials: forgets the peer's credentials and candidates, asks the STUN servers
    /// again, and announces all local candidates again (RFC 8445 section 9).
    ///
    /// Media may go on through the selected pair until another one is selected, or until the peer has not
    /// answered for 30 seconds.
    pub fn restart(&mut self, credentials: Credentials, now: Instant) {
        self.now = now;
        let (is_lite, is_controlling) = (self.inner.ice_lite(), self.inner.controlling());
        self.inner = make(&credentials, is_lite, is_controlling, self.tie_breaker);
        self.credentials = credentials;
        self.peer = Peer::default();
        self.watch = self.watch.restart();
        self.paths.forgive();
        self.locals.clear();
        self.outbox.clear();
        self.inner.handle_timeout(now);
        for host in std::mem::take(&mut self.hosts) {
            // Each was accepted before.
            let _ = self.announce_host(host);
        }
        self.gather.restart(now);
        self.restart_relay();
        self.collect();
    }

    /// Checks that the credentials of both ends fit a check's USERNAME.
    ///
    /// # Errors
    /// As [`set_remote_credentials`](Self::set_remote_credentials).
    pub fn check_user_names(own: &Credentials, remote: &Credentials) -> Result<(), AgentError> {
        let length = remote.ufrag().len() + 1 + own.ufrag().len();
        if length > MAX_USER_NAME {
            return Err(AgentError::UserName { length, limit: MAX_USER_NAME });
        }
        Ok(())
    }

    /// Sets the peer's credentials: checks start, and requests are answered. If the peer has restarted, call
    /// [`restart`](Self::restart) first.
    ///
    /// # Errors
    /// [`AgentError::UserName`] if both user name fragments have more than 127 octets together; `is` can write no
    /// longer user name. RFC 8839 section 5.4 allows 32 octets each in descriptions that are sent.
    pub fn set_remote_credentials(
        &mut self,
        remote: &Credentials,
        now: Instant,
    ) -> Result<(), AgentError> {
        Self::check_user_names(&self.credentials, remote)?;
        self.now = now;
        self.inner.set_remote_credentials(creds(remote));
        let is_heard = self.inner.controlling() || self.peer.early > 0;
        self.held = (!is_heard).then(|| now + self.pacing);
        self.watch.wait(now);
        Ok(())
    }

    /// Adds a candidate of the peer. A second one with the same address changes nothing.
    ///
    /// # Errors
    /// If there are 100 addresses of the peer already, if the candidate belongs to other credentials, or after
    /// [`end_of_candidates`](Self::end_of_candidates).
    pub fn add_remote(&mut self, candidate: &Candidate, now: Instant) -> Result<(), AgentError> {
        self.now = now;
        if self.peer.has_all_candidates {
            return Err(AgentError::AfterEnd);
        }
        let known = self.inner.remote_credentials();
        if known.zip(candidate.ufrag()).is_some_and(|(known, ufrag)| known.ufrag != ufrag) {
            return Err(AgentError::OtherCredentials);
        }
        if !self.peer.signal(candidate.address)? {
            return Ok(());
        }
        self.inner.add_remote_candidate(is::Candidate::from_parts(
            candidate.foundation.clone(),
            1,
            Protocol::Udp,
            candidate.priority,
            candidate.address,
            kind(candidate.kind),
            candidate.related,
            None,
            candidate.ufrag.clone(),
        ));
        self.watch.wait_on(now);
        self.collect();
        Ok(())
    }

    /// The peer has no further candidates (RFC 8838 section 13, RFC 8840 section 4.3).
    pub fn end_of_candidates(&mut self) {
        self.peer.has_all_candidates = true;
    }

    /// Sets the time between two checks that both ends have agreed on: the higher of those that they propose, of which
    /// one is 50 ms if it is not said (RFC 8445 section 14.2). Less than 5 ms counts as that, and more than 500 ms as
    /// that: no peer is to stop the search for a path.
    pub fn set_pacing(&mut self, pacing: Duration) {
        self.pacing = pacing.clamp(MIN_PACING, MAX_PACING);
    }

    /// Returns whether we nominate; a conflict may have changed it.
    pub fn is_controlling(&self) -> bool {
        self.inner.controlling()
    }

    /// Sets whether we nominate, once it is known who made the offer (RFC 8445 section 6.1.1).
    /// A lite agent never does.
    pub fn set_controlling(&mut self, is_controlling: bool) {
        self.inner.set_controlling(is_controlling && !self.inner.ice_lite());
    }

    /// Returns whether a pair is selected whose peer consents to media.
    pub fn is_connected(&self) -> bool {
        self.watch.selected().is_some()
    }

    /// Returns whether no pair was found; [`restart`](Self::restart) helps.
    pub fn has_failed(&self) -> bool {
        self.watch.has_failed()
    }

    /// Returns our address and the peer's of the selected pair.
    pub fn selected(&self) -> Option<(SocketAddr, SocketAddr)> {
        self.watch.selected().map(|path| (path.local, path.remote))
    }

    /// Returns whether media may come from this address: the peer has answered our checks from there within 30
    /// seconds, or it is selected. Media in flight while another pair is selected still counts.
    pub fn accepts_media_from(&self, from: SocketAddr) -> bool {
        self.paths.has_answered(from, self.now)
            || self.watch.selected().is_some_and(|path| path.remote == from)
    }

    /// Returns our credentials.
    pub fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// Returns counts, and the round trip on the selected pair.
    pub fn statistics(&self) -> Statistics {
        let round_trip = self.watch.selected().and_then(|path| self.paths.round_trip(path));
        Statistics { round_trip, ..self.statistics }
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Returns the next datagram to be sent.
    pub fn poll_datagram(&mut self) -> Option<Transmit> {
        self.outbox.pop_front()
    }
}

/// Without what `is` contains: passwords.
impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Agent");
        shown.field("credentials", &self.credentials).field("locals", &self.locals);
        shown.field("watch", &self.watch).field("statistics", &self.statistics);
        shown.finish_non_exhaustive()
    }
}

fn make(
    credentials: &Credentials,
    is_lite: bool,
    is_controlling: bool,
    tie_breaker: u64,
) -> IceAgent {
    let mut inner = IceAgent::new(creds(credentials));
    inner.set_ice_lite(is_lite);
    inner.set_controlling(is_controlling && !is_lite);
    inner.set_control_tie_breaker(tie_breaker);
    inner.set_max_candidate_pairs(MAX_PAIRS);
    inner.set_max_stun_rto(CHECK_INTERVAL);
    // The agent paces the checks itself: `is` would let the first one wait, too.
    inner.set_timing_advance(Duration::ZERO);
    inner
}

fn creds(credentials: &Credentials) -> IceCreds {
    IceCreds { ufrag: credentials.ufrag().to_owned(), pass: credentials.password().to_owned() }
}

fn kind(kind: CandidateKind) -> is::CandidateKind {
    match kind {
        CandidateKind::Host => is::CandidateKind::Host,
        CandidateKind::ServerReflexive => is::CandidateKind::ServerReflexive,
        CandidateKind::PeerReflexive => is::CandidateKind::PeerReflexive,
        CandidateKind::Relayed => is::CandidateKind::Relayed,
    }
}
