//! What all streams of a session have in common.

use core::net::IpAddr;
use std::collections::VecDeque;

use zeroize::Zeroizing;

use super::algorithm::Hash;
use super::config::Config;
use super::event::{Event, ExportedKey, SasStatus, Warning};
use super::kdf::{Role, kdf};
use super::negotiate::Choice;
use super::retained::{Retained, SecretStore, Zid};
use super::session::StreamId;

/// Events that wait to be collected, at most.
const EVENTS_MAX: usize = 256;
/// What fills octets with random ones.
pub(super) type RandomSource = Box<dyn FnMut(&mut [u8]) + Send>;
/// Nonces of the session that are remembered, at most.
const NONCES_MAX: usize = 256;

/// How two Commits of both ends are compared (RFC 6189 section 4.2).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Rank {
    /// By hvi.
    Agreement([u8; 32]),
    /// By nonce.
    Preshared([u8; 16]),
    /// By nonce.
    Multistream([u8; 16]),
}

/// What becomes of this end's Commit when the peer's comes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Contention {
    /// It goes on: the peer discards its own.
    Stands,
    /// It is discarded: this end is the responder.
    Yields,
    /// Both cannot be meant.
    Absurd,
}

impl Rank {
    pub(super) fn against(self, theirs: Self) -> Contention {
        let stands = match (self, theirs) {
            (Self::Agreement(own), Self::Agreement(theirs)) => own > theirs,
            (Self::Agreement(_), Self::Preshared(_)) => true,
            (Self::Preshared(_), Self::Agreement(_)) => false,
            (Self::Preshared(own), Self::Preshared(theirs))
            | (Self::Multistream(own), Self::Multistream(theirs)) => own > theirs,
            _ => return Contention::Absurd,
        };
        if stands { Contention::Stands } else { Contention::Yields }
    }
}

/// Which exchange it is, and with whom.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) exchange: u64,
    pub(super) stream: StreamId,
    /// What the candidate calls itself, and its host.
    pub(super) peer: (Zid, IpAddr),
}

impl Place {
    /// Whether `other` is another stream's exchange with the same peer.
    pub(super) fn is_rival(&self, other: &Self) -> bool {
        self.stream != other.stream && self.peer == other.peer
    }
}

/// An exchange that agrees on the session's key. With each peer one stream does so at a time
/// (section 4.4.1).
#[derive(Clone, Copy, Debug)]
pub(super) struct Agreeing {
    pub(super) place: Place,
    /// Its Commit, while that is not answered.
    pub(super) rank: Option<Rank>,
}

/// What a session has once its first stream is secure.
pub(super) struct Secured {
    pub(super) peer: Zid,
    /// `ZRTPSess`.
    pub(super) key: Zeroizing<Vec<u8>>,
    pub(super) hash: Hash,
    pub(super) choice: Choice,
    pub(super) sas: SasStatus,
    pub(super) exported: ExportedKey,
    /// What is kept once the users have compared the strings (section 4.6.1.1).
    pub(super) pending: Option<Retained>,
    role: Role,
}

impl Secured {
    pub(super) fn new(
        peer: Zid,
        role: Role,
        choice: Choice,
        key: Zeroizing<Vec<u8>>,
        sas: SasStatus,
        exported: ExportedKey,
    ) -> Self {
        Self { peer, key, hash: choice.hash, choice, sas, exported, pending: None, role }
    }

    /// Replaces `ZRTPSess`, as both ends do when they go clear (section 4.7.2.1).
    pub(super) fn renew(&mut self, own: &Zid) {
        let (initiator, responder) = match self.role {
            Role::Initiator => (*own, self.peer),
            Role::Responder => (self.peer, *own),
        };
        let context = [initiator, responder].concat();
        let len = self.hash.len();
        self.key = kdf(self.hash, &self.key, "New ZRTP Session", &context, len);
    }
}

/// What all streams of a session have in common.
pub(super) struct Common {
    pub(super) config: Config,
    pub(super) entropy: RandomSource,
    pub(super) store: Box<dyn SecretStore + Send>,
    pub(super) secured: Option<Secured>,
    agreeing: Vec<Agreeing>,
    /// The exchange whose agreement was confirmed first.
    claimed: Option<u64>,
    /// The exchange whose Commit was discarded for that of another stream.
    pub(super) withdrawn: Option<Place>,
    exchanges: u64,
    nonces: VecDeque<[u8; 16]>,
    events: VecDeque<(StreamId, Event)>,
}

impl Common {
    pub(super) fn new(
        config: Config,
        entropy: RandomSource,
        store: Box<dyn SecretStore + Send>,
    ) -> Self {
        Self {
            config,
            entropy,
            store,
            secured: None,
            agreeing: Vec::new(),
            claimed: None,
            withdrawn: None,
            exchanges: 0,
            nonces: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    pub(super) fn random<const N: usize>(&mut self) -> [u8; N] {
        let mut octets = [0; N];
        (self.entropy)(&mut octets);
        octets
    }

    pub(super) fn aux(&self) -> Option<&[u8]> {
        self.config.aux_secret.as_ref().map(|aux| aux.as_slice())
    }

    pub(super) fn tell(&mut self, stream: StreamId, event: Event) {
        // Strangers can bring these about.
        let is_strangers = matches!(
            event,
            Event::Warning(_) | Event::Discovered { .. } | Event::CandidateFailed { .. }
        );
        let most = if is_strangers { EVENTS_MAX / 2 } else { EVENTS_MAX };
        if self.events.len() < most {
            self.events.push_back((stream, event));
        }
    }

    /// Warns of something, not of the same twice in a row.
    pub(super) fn warn(&mut self, stream: StreamId, warning: Warning) {
        let is_told = |(known, event): &(StreamId, Event)| {
            *known == stream && matches!(event, Event::Warning(known) if *known == warning)
        };
        if !self.events.back().is_some_and(is_told) {
            self.tell(stream, Event::Warning(warning));
        }
    }

    pub(super) fn poll_event(&mut self) -> Option<(StreamId, Event)> {
        self.events.pop_front()
    }

    /// Notes the nonce of a Commit; `false` if it was used before in this session.
    pub(super) fn use_nonce(&mut self, nonce: [u8; 16]) -> bool {
        if self.nonces.contains(&nonce) {
            return false;
        }
        if self.nonces.len() >= NONCES_MAX {
            self.nonces.pop_front();
        }
        self.nonces.push_back(nonce);
        true
    }

    pub(super) fn next_number(&mut self) -> u64 {
        self.exchanges += 1;
        self.exchanges
    }

    /// The exchange at `place` agrees on the session's key; `rank` is its Commit, if that is not
    /// answered yet.
    pub(super) fn occupy(&mut self, place: Place, rank: Option<Rank>) {
        self.agreeing.retain(|one| one.place.exchange != place.exchange);
        self.agreeing.push(Agreeing { place, rank });
    }

    /// Notes that the exchange's Commit was answered.
    pub(super) fn note_begun(&mut self, exchange: u64) {
        for one in self.agreeing.iter_mut().filter(|one| one.place.exchange == exchange) {
            one.rank = None;
        }
    }

    /// Lets another stream agree on the session's key, and another peer have the session.
    pub(super) fn release(&mut self, exchange: u64) {
        self.agreeing.retain(|one| one.place.exchange != exchange);
        self.claimed.take_if(|claimed| *claimed == exchange);
    }

    /// Another stream's exchange with the same peer that agrees on the session's key.
    pub(super) fn rival(&self, place: &Place) -> Option<Agreeing> {
        self.agreeing.iter().find(|one| one.place.is_rival(place)).copied()
    }

    /// Makes an exchange that was confirmed the one whose peer has the session; `false` if another
    /// was faster.
    pub(super) fn claim(&mut self, exchange: u64) -> bool {
        self.secured.is_none() && *self.claimed.get_or_insert(exchange) == exchange
    }

    /// Seconds for which what is agreed on now will be kept here.
    pub(super) fn expiration_interval(&self) -> u32 {
        if self.store.keeps() { self.config.expiration_interval } else { 0 }
    }
}
