//! What all streams of a session have in common.

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

/// The stream that agrees on the session's key: one at a time (section 4.4.1).
#[derive(Clone, Copy, Debug)]
pub(super) struct Exclusive {
    pub(super) stream: StreamId,
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
    pub(super) exclusive: Option<Exclusive>,
    /// The stream whose Commit was discarded for that of another.
    pub(super) withdrawn: Option<StreamId>,
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
            exclusive: None,
            withdrawn: None,
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
        if self.events.len() < EVENTS_MAX {
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

    /// Lets another stream agree on the session's key.
    pub(super) fn release(&mut self, stream: StreamId) {
        if self.exclusive.is_some_and(|exclusive| exclusive.stream == stream) {
            self.exclusive = None;
        }
    }

    /// Whether `stream` may agree on the session's key now.
    pub(super) fn is_free_for(&self, stream: StreamId) -> bool {
        self.exclusive.is_none_or(|exclusive| exclusive.stream == stream)
    }

    /// Seconds for which what is agreed on now will be kept here.
    pub(super) fn expiration_interval(&self) -> u32 {
        if self.store.keeps() { self.config.expiration_interval } else { 0 }
    }
}
