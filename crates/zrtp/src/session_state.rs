//! The state that all streams of a session share.

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

/// Maximum number of queued events.
const EVENTS_MAX: usize = 256;
/// Fills a slice with random octets.
pub(super) type RandomSource = Box<dyn FnMut(&mut [u8]) + Send>;
/// Maximum number of nonces that a session remembers.
const NONCES_MAX: usize = 256;

/// The rank of a Commit in a contention with one of the peer (RFC 6189 section 4.2).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Rank {
    /// Ranked by hvi.
    Agreement([u8; 32]),
    /// Ranked by nonce.
    Preshared([u8; 16]),
    /// Ranked by nonce.
    Multistream([u8; 16]),
}

/// The outcome of a contention between this end's Commit and the peer's.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Contention {
    /// This end's Commit stands, and the peer discards its own.
    Wins,
    /// This end's Commit is discarded, and this end is the responder.
    Loses,
    /// The two Commits are of incompatible kinds.
    Incompatible,
}

impl Rank {
    pub(super) fn against(self, theirs: Self) -> Contention {
        let wins = match (self, theirs) {
            (Self::Agreement(own), Self::Agreement(theirs)) => own > theirs,
            (Self::Agreement(_), Self::Preshared(_)) => true,
            (Self::Preshared(_), Self::Agreement(_)) => false,
            (Self::Preshared(own), Self::Preshared(theirs))
            | (Self::Multistream(own), Self::Multistream(theirs)) => own > theirs,
            _ => return Contention::Incompatible,
        };
        if wins { Contention::Wins } else { Contention::Loses }
    }
}

/// The number of an exchange, its stream and its peer.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExchangeId {
    pub(super) exchange: u64,
    pub(super) stream: StreamId,
    /// The candidate's ZID and IP address.
    pub(super) peer: (Zid, IpAddr),
}

impl ExchangeId {
    /// Returns whether `other` is the exchange of another stream with the same peer.
    pub(super) fn is_rival(&self, other: &Self) -> bool {
        self.stream != other.stream && self.peer == other.peer
    }
}

/// An exchange that agrees on the session's key. With each peer, one at a time does so (section
/// 4.4.1).
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingAgreement {
    pub(super) exchange_id: ExchangeId,
    /// The rank of its Commit, until the Commit is answered.
    pub(super) rank: Option<Rank>,
}

/// The state of a session once its first stream is secure.
pub(super) struct Secured {
    pub(super) peer: Zid,
    /// `ZRTPSess`.
    pub(super) key: Zeroizing<Vec<u8>>,
    pub(super) hash: Hash,
    pub(super) choice: Choice,
    pub(super) sas: SasStatus,
    pub(super) exported: ExportedKey,
    /// The secrets to save once the users have compared the strings (section 4.6.1.1).
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

/// The state that all streams of a session share.
pub(super) struct Common {
    pub(super) config: Config,
    pub(super) entropy: RandomSource,
    pub(super) store: Box<dyn SecretStore + Send>,
    pub(super) secured: Option<Secured>,
    pending_agreements: Vec<PendingAgreement>,
    /// The exchange whose agreement was the first to be confirmed.
    claimed: Option<u64>,
    /// The exchange whose Commit was discarded in favour of that of another stream.
    pub(super) withdrawn: Option<ExchangeId>,
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
            pending_agreements: Vec::new(),
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

    pub(super) fn push_event(&mut self, stream: StreamId, event: Event) {
        // Strangers can cause these events.
        let is_untrusted = matches!(
            event,
            Event::Warning(_) | Event::Discovered { .. } | Event::CandidateFailed { .. }
        );
        let most = if is_untrusted { EVENTS_MAX / 2 } else { EVENTS_MAX };
        if self.events.len() < most {
            self.events.push_back((stream, event));
        }
    }

    /// Emits a warning, unless the last event is the same warning.
    pub(super) fn warn(&mut self, stream: StreamId, warning: Warning) {
        let is_repeated = |(known, event): &(StreamId, Event)| {
            *known == stream && matches!(event, Event::Warning(known) if *known == warning)
        };
        if !self.events.back().is_some_and(is_repeated) {
            self.push_event(stream, Event::Warning(warning));
        }
    }

    pub(super) fn poll_event(&mut self) -> Option<(StreamId, Event)> {
        self.events.pop_front()
    }

    /// Records the nonce of a Commit; returns `false` if it was already used in this session.
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

    /// Records that the exchange at `exchange_id` agrees on the session's key. `rank` is that of
    /// its Commit, if the Commit is not answered yet.
    pub(super) fn note_agreeing(&mut self, exchange_id: ExchangeId, rank: Option<Rank>) {
        self.pending_agreements.retain(|one| one.exchange_id.exchange != exchange_id.exchange);
        self.pending_agreements.push(PendingAgreement { exchange_id, rank });
    }

    /// Records that the exchange's Commit was answered.
    pub(super) fn note_begun(&mut self, exchange: u64) {
        for one in
            self.pending_agreements.iter_mut().filter(|one| one.exchange_id.exchange == exchange)
        {
            one.rank = None;
        }
    }

    /// Allows another stream or another peer to agree on the session's key.
    pub(super) fn release(&mut self, exchange: u64) {
        self.pending_agreements.retain(|one| one.exchange_id.exchange != exchange);
        self.claimed.take_if(|claimed| *claimed == exchange);
    }

    /// Returns the exchange of another stream with the same peer that agrees on the session's key.
    pub(super) fn rival(&self, exchange_id: &ExchangeId) -> Option<PendingAgreement> {
        self.pending_agreements.iter().find(|one| one.exchange_id.is_rival(exchange_id)).copied()
    }

    /// Assigns the session to the peer of a confirmed exchange; `false` if another was first.
    pub(super) fn claim(&mut self, exchange: u64) -> bool {
        self.secured.is_none() && *self.claimed.get_or_insert(exchange) == exchange
    }

    /// Returns the seconds for which this end keeps the secrets of a new agreement.
    pub(super) fn expiration_interval(&self) -> u32 {
        if self.store.keeps() { self.config.expiration_interval } else { 0 }
    }
}
