//! What is known of the peer since the last restart.

use std::collections::VecDeque;
use std::net::SocketAddr;

use super::super::checks::Checks;
use super::super::error::AgentError;
use super::super::paths::Path;
use super::super::stun::TransactionId;
use super::MAX_PAIRS;

/// The most addresses of the peer, signalled or seen. `is` never forgets one.
const MAX_REMOTES: usize = 100;

/// The most pairs that the peer's requests may make: `is` limits those of candidates only.
const MAX_REQUESTED: usize = 200;

/// How many of the peer's requests are remembered.
const MAX_REQUESTS: usize = 1024;

/// The peer's addresses, its requests, and our checks that it may still answer.
#[derive(Debug, Default)]
pub(super) struct Peer {
    /// Addresses that `is` knows.
    remotes: Vec<SocketAddr>,
    /// Those of them that the caller added.
    signalled: Vec<SocketAddr>,
    /// Paths of requests.
    requested: Vec<Path>,
    pub(super) has_all_candidates: bool,
    /// Identifiers of the last requests and where these came from.
    requests: VecDeque<(TransactionId, SocketAddr)>,
    /// Requests that `is` keeps until it has the peer's credentials.
    pub(super) early: usize,
    pub(super) checks: Checks,
    /// Paths on which it has answered a check.
    answered: Vec<Path>,
}

impl Peer {
    /// Notes the address of a candidate; returns whether the caller adds it for the first time.
    pub(super) fn signal(&mut self, address: SocketAddr) -> Result<bool, AgentError> {
        if self.signalled.contains(&address) {
            return Ok(false);
        }
        let (what, limit) = ("remote candidates", MAX_REMOTES);
        self.note(address).ok_or(AgentError::TooMany { what, limit })?;
        self.signalled.push(address);
        Ok(true)
    }

    /// Notes an address, or returns `None` if there are too many.
    fn note(&mut self, address: SocketAddr) -> Option<()> {
        if self.remotes.contains(&address) {
            return Some(());
        }
        let has_room = self.remotes.len() < MAX_REMOTES;
        has_room.then(|| self.remotes.push(address))
    }

    /// Notes the path of a request, or returns `None` if there are too many.
    pub(super) fn note_path(&mut self, path: Path) -> Option<()> {
        if self.has_asked(path) {
            return Some(());
        }
        self.note(path.remote).filter(|()| self.requested.len() < MAX_REQUESTED)?;
        self.requested.push(path);
        Some(())
    }

    /// Returns whether the peer has asked or answered on some path.
    pub(super) fn is_heard(&self) -> bool {
        !self.requested.is_empty() || !self.answered.is_empty()
    }

    /// Returns whether the peer has asked on a path.
    pub(super) fn has_asked(&self, path: Path) -> bool {
        self.requested.contains(&path)
    }

    /// Notes a path on which the peer has answered a check. There are no more of them than pairs.
    pub(super) fn note_answer(&mut self, path: Path) {
        if !self.has_answered(path) && self.answered.len() < MAX_PAIRS {
            self.answered.push(path);
        }
    }

    pub(super) fn has_answered(&self, path: Path) -> bool {
        self.answered.contains(&path)
    }

    /// Returns whether a request is known from elsewhere. MESSAGE-INTEGRITY does not cover addresses, so that
    /// anyone on the path could send a copy from a victim's address.
    pub(super) fn is_copy(&self, id: TransactionId, from: SocketAddr) -> bool {
        self.requests.iter().any(|(known, source)| *known == id && *source != from)
    }

    pub(super) fn note_request(&mut self, id: TransactionId, from: SocketAddr) {
        if self.requests.len() >= MAX_REQUESTS {
            self.requests.pop_front();
        }
        self.requests.push_back((id, from));
    }
}
