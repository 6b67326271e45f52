//! Our checks that may still be answered.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::paths::Path;
use super::stun::TransactionId;

/// How long a response may take. Consent lasts as long.
const PATIENCE: Duration = Duration::from_secs(30);

/// The most checks that are kept: those of 30 seconds, at one each 50 ms (RFC 8445 section 14.2), and spare.
/// If they are agreed to be closer, later answers to the oldest do not count.
const MAX_CHECKS: usize = 1024;

/// A check that was sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Check {
    pub(super) id: TransactionId,
    pub(super) path: Path,
    pub(super) sent: Instant,
}

/// Checks in the order in which they were sent.
#[derive(Debug, Default)]
pub(super) struct Checks(VecDeque<Check>);

impl Checks {
    pub(super) fn push(&mut self, check: Check) {
        let is_old = |first: &Check| check.sent.duration_since(first.sent) > PATIENCE;
        while self.0.front().is_some_and(is_old) || self.0.len() >= MAX_CHECKS {
            self.0.pop_front();
        }
        self.0.push_back(check);
    }

    /// Returns the check that a response from `from` answers, at an address for which `is_local` holds. The response must come from the address that the
    /// check went to, and to the one that it came from (RFC 8445 section 7.2.5.2.1).
    pub(super) fn find(
        &self,
        id: TransactionId,
        from: SocketAddr,
        is_local: impl Fn(SocketAddr) -> bool,
    ) -> Option<Check> {
        let answers = |check: &&Check| {
            check.id == id && check.path.remote == from && is_local(check.path.local)
        };
        self.0.iter().rev().find(answers).copied()
    }

    pub(super) fn remove(&mut self, id: TransactionId) {
        self.0.retain(|check| check.id != id);
    }
}
