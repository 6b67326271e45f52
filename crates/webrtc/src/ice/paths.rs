//! Which paths the peer answers on: consent (RFC 7675).

use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// The two addresses of a path: where our datagrams leave, and where they go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Path {
    pub(super) local: SocketAddr,
    pub(super) remote: SocketAddr,
}

/// How long consent lasts after a response (RFC 7675 section 5.1).
pub(super) const CONSENT: Duration = Duration::from_secs(30);

/// The most paths whose answers are kept: as many as there may be pairs.
const MAX_PATHS: usize = 100;

/// The last answer on a path.
#[derive(Debug, Clone, Copy)]
struct Answer {
    path: Path,
    at: Instant,
    round_trip: Option<Duration>,
}

/// The last answers, and the paths that lost consent.
#[derive(Debug, Default)]
pub(super) struct Paths {
    answers: Vec<Answer>,
    lost: Vec<Path>,
}

impl Paths {
    /// Notes an answer. `round_trip` is known where it answered a check of ours.
    pub(super) fn answered(&mut self, path: Path, at: Instant, round_trip: Option<Duration>) {
        self.answers.retain(|old| old.path != path && at.duration_since(old.at) <= CONSENT);
        if self.answers.len() >= MAX_PATHS {
            self.answers.remove(0);
        }
        self.answers.push(Answer { path, at, round_trip });
    }

    /// Returns when a path was last answered on.
    pub(super) fn last(&self, path: Path) -> Option<Instant> {
        self.answer(path).map(|answer| answer.at)
    }

    pub(super) fn round_trip(&self, path: Path) -> Option<Duration> {
        self.answer(path)?.round_trip
    }

    /// Returns whether the peer has answered from an address that consent has not ended for.
    pub(super) fn has_answered(&self, remote: SocketAddr, now: Instant) -> bool {
        let is_fresh = |answer: &Answer| now.duration_since(answer.at) < CONSENT;
        self.answers.iter().any(|answer| answer.path.remote == remote && is_fresh(answer))
    }

    /// Returns whether another path than this one was answered on since then.
    pub(super) fn other_since(&self, path: Path, since: Instant) -> bool {
        self.answers.iter().any(|answer| answer.path != path && answer.at >= since)
    }

    /// Ends consent on a path, which is never used again with these credentials (RFC 7675 section 5.1).
    pub(super) fn lose(&mut self, path: Path) {
        self.answers.retain(|answer| answer.path != path);
        if self.lost.len() >= MAX_PATHS {
            self.lost.remove(0);
        }
        self.lost.push(path);
    }

    /// New credentials: paths that lost consent may gain it again.
    pub(super) fn forgive(&mut self) {
        self.lost.clear();
    }

    pub(super) fn is_lost(&self, path: Path) -> bool {
        self.lost.contains(&path)
    }

    fn answer(&self, path: Path) -> Option<&Answer> {
        self.answers.iter().find(|answer| answer.path == path)
    }
}
