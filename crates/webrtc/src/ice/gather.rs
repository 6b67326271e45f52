//! Server-reflexive candidates: what STUN servers say of our addresses (RFC 8445 section 5.1.1.2).

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::identifiers::Identifiers;
use super::stun::{self, Class, Message, TransactionId};

/// The first wait for a response; each further one is twice as long (RFC 8489 section 6.2.1).
const RTO: Duration = Duration::from_millis(500);

/// How often a request is sent, `Rc`.
const SENDS: u32 = 7;

/// The last wait in multiples of the first, `Rm`: a request fails 39.5 seconds after it was first sent.
const LAST_WAIT: u32 = 16;

/// The time between the starts of two transactions, `Ta` (RFC 8445 section 14.2).
const PACE: Duration = Duration::from_millis(50);

/// How often a server is asked again until a pair is selected, so that a NAT keeps its mapping (RFC 8445
/// section 11 asks for 15 seconds at least between keepalives).
const REFRESH: Duration = Duration::from_secs(15);

/// A server asked from one of our addresses.
#[derive(Debug)]
struct Query {
    local: SocketAddr,
    server: SocketAddr,
    id: TransactionId,
    /// Requests of this transaction sent so far.
    sends: u32,
    /// When to send the next request, or give up. `None` once it is given up.
    next: Option<Instant>,
    /// Whether the server has answered once.
    is_answered: bool,
}

/// A server's answer: the candidate and its base.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mapped {
    pub(super) base: SocketAddr,
    pub(super) server: SocketAddr,
    pub(super) address: SocketAddr,
}

/// What a response is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Verdict {
    /// It answers none of our queries.
    Foreign,
    /// The server answers, but not with an address.
    Refused,
    /// The server saw us.
    Mapped(Mapped),
}

/// All queries of an agent.
#[derive(Debug)]
pub(super) struct Gather {
    identifiers: Identifiers,
    queries: Vec<Query>,
    /// Whether a pair is selected.
    is_settled: bool,
}

impl Gather {
    pub(super) fn new(random: &[u8; 32]) -> Self {
        let identifiers = Identifiers::new(random);
        Self { identifiers, queries: Vec::new(), is_settled: false }
    }

    /// Returns the number of the tie between two agents of the same role (RFC 8445 section 7.3.1.1).
    pub(super) fn tie_breaker(&mut self) -> u64 {
        self.identifiers.make().iter().take(8).fold(0, |bits, octet| bits << 8 | u64::from(*octet))
    }

    /// Returns other identifiers, for a client of a TURN server.
    pub(super) fn split(&mut self) -> Identifiers {
        self.identifiers.split()
    }

    /// Starts a query, after those that have not started.
    pub(super) fn ask(&mut self, local: SocketAddr, server: SocketAddr, now: Instant) {
        let waiting = self.queries.iter().filter(|query| query.sends == 0).count();
        let next = Some(now + PACE * waiting as u32);
        let id = self.identifiers.make();
        self.queries.push(Query { local, server, id, sends: 0, next, is_answered: false });
    }

    /// Asks all servers again, as after a restart.
    pub(super) fn restart(&mut self, now: Instant) {
        self.is_settled = false;
        let asked: Vec<_> =
            self.queries.drain(..).map(|query| (query.local, query.server)).collect();
        for (local, server) in asked {
            self.ask(local, server, now);
        }
    }

    /// Ends repetition: a pair is selected, and its checks keep the mapping. First answers are still awaited; their
    /// candidates may be needed later.
    pub(super) fn settle(&mut self) {
        self.is_settled = true;
        for query in self.queries.iter_mut().filter(|query| query.is_answered) {
            query.next = None;
        }
    }

    /// Returns whether a first answer may still come.
    pub(super) fn is_active(&self) -> bool {
        self.queries.iter().any(|query| query.next.is_some() && !query.is_answered)
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.queries.iter().filter_map(|query| query.next).min()
    }

    /// Sends what is due: from, to, and the datagram.
    pub(super) fn handle_timeout(
        &mut self,
        now: Instant,
        mut send: impl FnMut(SocketAddr, SocketAddr, Vec<u8>),
    ) {
        for n in 0..self.queries.len() {
            let is_refresh =
                self.queries.get(n).is_some_and(|query| query.is_answered && query.sends == 0);
            let fresh = is_refresh.then(|| self.identifiers.make());
            let Some(query) = self.queries.get_mut(n) else { return };
            if query.next.is_none_or(|next| now < next) {
                continue;
            }
            if query.sends == SENDS {
                query.next = None;
                continue;
            }
            query.id = fresh.unwrap_or(query.id);
            query.sends += 1;
            let wait = if query.sends == SENDS { LAST_WAIT } else { 1 << (query.sends - 1) };
            query.next = Some(now + RTO * wait);
            send(query.local, query.server, stun::server_request(&query.id));
        }
    }

    /// Processes a response. `local` may be unspecified if the caller does not know it.
    pub(super) fn handle_response(
        &mut self,
        now: Instant,
        response: &Message<'_>,
        (local, from): (SocketAddr, SocketAddr),
    ) -> Verdict {
        let is_answered = |query: &&mut Query| {
            let is_local = local.ip().is_unspecified() || query.local == local;
            let is_open = query.next.is_some() && query.sends > 0;
            is_open && query.id == response.id() && query.server == from && is_local
        };
        let Some(query) = self.queries.iter_mut().find(is_answered) else {
            return Verdict::Foreign;
        };
        let mapped = response.mapped_address().filter(|_| response.class() == Class::Success);
        // An error is final: these servers ask for nothing that we could add.
        query.next = mapped.filter(|_| !self.is_settled).map(|_| now + REFRESH);
        query.sends = 0;
        query.is_answered |= mapped.is_some();
        let (base, server) = (query.local, query.server);
        mapped.map_or(Verdict::Refused, |address| Verdict::Mapped(Mapped { base, server, address }))
    }
}
