//! Our checks that may still be answered.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::agent::MIN_PACING;
use super::paths::Path;
use super::stun::TransactionId;

/// How long a response may take. Consent lasts as long.
const PATIENCE: Duration = Duration::from_secs(30);

/// The most checks that are kept: those of 30 seconds at the closest pace, also if the clock goes back.
const MAX_CHECKS: usize = (PATIENCE.as_millis() / MIN_PACING.as_millis()) as usize;

/// A check that was sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Check {
    pub(super) id: TransactionId,
    pub(super) path: Path,
    pub(super) sent: Instant,
}

/// Checks of the last 30 seconds that were not answered.
#[derive(Debug, Default)]
pub(super) struct Checks {
    open: BTreeMap<TransactionId, Check>,
    /// When each check was sent, answered or not, in this order.
    sent: VecDeque<(Instant, TransactionId)>,
}

impl Checks {
    pub(super) fn push(&mut self, check: Check) {
        let is_old = |at: &Instant| check.sent.duration_since(*at) > PATIENCE;
        while let Some((at, id)) = self.sent.front()
            && (is_old(at) || self.sent.len() >= MAX_CHECKS)
        {
            self.open.remove(id);
            self.sent.pop_front();
        }
        self.open.insert(check.id, check);
        self.sent.push_back((check.sent, check.id));
    }

    /// Returns the check that a response from `from` answers, at an address for which `is_local` holds. The response
    /// must come from the address that the check went to, and to the one that it came from (RFC 8445 section
    /// 7.2.5.2.1).
    pub(super) fn find(
        &self,
        id: TransactionId,
        from: SocketAddr,
        is_local: impl Fn(SocketAddr) -> bool,
    ) -> Option<Check> {
        let check = self.open.get(&id)?;
        let is_answer = check.path.remote == from && is_local(check.path.local);
        is_answer.then_some(*check)
    }

    pub(super) fn remove(&mut self, id: TransactionId) {
        self.open.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_checks_of_30_seconds_may_be_answered_at_each_pace() {
        #[allow(clippy::disallowed_methods, reason = "any epoch will do")]
        let epoch = Instant::now();
        let address = SocketAddr::from(([192, 0, 2, 1], 1));
        let path = Path { local: address, remote: address };
        for pace in [5, 10, 50_u32] {
            let mut checks = Checks::default();
            let of_patience = 30_000 / pace;
            let id = |n: u32| {
                let mut id = TransactionId::default();
                id[..4].copy_from_slice(&n.to_le_bytes());
                id
            };
            for n in 0..3 * of_patience {
                let sent = epoch + Duration::from_millis((n * pace).into());
                checks.push(Check { id: id(n), path, sent });
            }
            let is_open = |n| checks.find(id(n), address, |_| true).is_some();
            assert!((2 * of_patience..3 * of_patience).all(is_open), "{pace}");
            assert!((0..2 * of_patience - 2).all(|n| !is_open(n)), "{pace}");
        }
    }
}
