//! Time: checks that are due, consent, a path that falls silent, failure.

use std::time::{Duration, Instant};

use super::super::interface::{Event, Transmit};
use super::super::paths::{CONSENT, Path};
use super::super::turn::Client;
use super::Agent;

/// How long an agent without a pair waits before it fails (RFC 8863 section 4).
const PATIENCE: Duration = Duration::from_millis(39_500);

/// How long the selected pair may be silent while another answers: two checks in a row and their repetition.
const SILENCE: Duration = Duration::from_secs(9);

/// How recently the other pair must have answered.
const RECENT: Duration = Duration::from_secs(5);

/// How often a pair is given up for another until a restart. `is` keeps the candidates of each.
const MAX_GIVE_UPS: usize = 100;

/// Calls of `is` in one call of ours: one, and one for each request that it kept.
const MAX_STEPS: usize = 12;

/// The selected pair, or the wait for one.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// The selected pair, and since when it counts as answered if it has not been since.
    selected: Option<(Path, Instant)>,
    /// Whether it was selected before a restart and is used until there is another.
    is_carried: bool,
    /// Since when an agent without a pair waits for one.
    waiting: Option<Instant>,
    has_failed: bool,
    /// When the selected pair was last given up for another, and how often.
    given_up: Option<Instant>,
    give_ups: usize,
}

impl Watch {
    pub(super) fn selected(&self) -> Option<Path> {
        self.selected.map(|(path, _)| path)
    }

    pub(super) fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Returns the state after a restart: the selected pair is used further.
    pub(super) fn restart(&self) -> Self {
        let is_carried = self.selected.is_some();
        Self { selected: self.selected, is_carried, ..Self::default() }
    }

    /// Begins to wait: the peer's credentials are known.
    pub(super) fn wait(&mut self, now: Instant) {
        self.waiting = Some(now);
    }

    /// Begins to wait anew, because there is something new to wait for.
    pub(super) fn wait_on(&mut self, now: Instant) {
        self.waiting = self.waiting.map(|_| now);
    }

    /// Returns whether the pair is another than before.
    pub(super) fn select(&mut self, path: Path, since: Instant) -> bool {
        let is_other = self.is_carried || self.selected() != Some(path);
        self.selected = Some((path, since));
        self.is_carried = false;
        self.waiting = None;
        is_other
    }

    /// Returns when an agent without a pair gives up.
    fn failure(&self) -> Option<Instant> {
        self.waiting.filter(|_| self.selected.is_none()).map(|since| since + PATIENCE)
    }
}

impl Agent {
    /// Does all that is due: sends checks, asks servers, watches the selected pair.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.now = now;
        if self.watch.has_failed {
            return;
        }
        let outbox = &mut self.outbox;
        self.gather.handle_timeout(now, |local, to, datagram| {
            outbox.push_back(Transmit { local, to, datagram });
        });
        self.watch_relay();
        self.watch_selected();
        for _ in 0..MAX_STEPS {
            if self.step().is_none_or(|due| now < due) {
                break;
            }
            self.is_nudged = false;
            self.inner.handle_timeout(now);
            self.collect();
        }
        if self.watch.failure().is_some_and(|at| now >= at) {
            self.watch.has_failed = true;
            self.events.push_back(Event::Failed);
            self.release_relay();
        }
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) is due next. It may be in the past before that is called,
    /// never after.
    pub fn next_timeout(&mut self) -> Option<Instant> {
        if self.watch.has_failed {
            return None;
        }
        let consent = self.watch.selected.map(|(path, since)| self.answered(path, since) + CONSENT);
        let relay = [self.release, self.turn.as_ref().and_then(Client::next_timeout)];
        let due = [self.step(), self.gather.next_timeout(), self.watch.failure(), consent];
        let due = due.into_iter().chain(relay);
        due.flatten().min()
    }

    /// Returns how long the peer has not answered on the selected pair; `None` without one. Pairs are checked each 4
    /// seconds, so that more than 9 mean that two checks and their repetitions were lost.
    pub fn silence(&self, now: Instant) -> Option<Duration> {
        let (path, since) = self.watch.selected?;
        Some(now.saturating_duration_since(self.answered(path, since)))
    }

    /// Returns when `is` is to have time next: it may send a check each time.
    fn step(&mut self) -> Option<Instant> {
        self.inner.remote_credentials()?;
        let due = if self.is_nudged { self.now } else { self.inner.poll_timeout()? };
        let due = due.max(self.paced).max(self.held.unwrap_or(self.paced));
        // `is` counts a check that the budget refuses as sent, and tries each pair a few times only. So while nothing
        // was heard from the peer, checks are due only when they may be sent.
        let is_heard = self.peer.is_heard() || self.watch.selected.is_some();
        Some(due.max(self.unproved.ready().filter(|_| !is_heard).unwrap_or(due)))
    }

    /// A check leaves: the next one waits.
    pub(super) fn pace(&mut self) {
        self.paced = self.now + self.pacing;
    }

    /// Returns when a path was last answered on.
    fn answered(&self, path: Path, since: Instant) -> Instant {
        self.paths.last(path).unwrap_or(since)
    }

    fn watch_selected(&mut self) {
        let Some((path, since)) = self.watch.selected else { return };
        let last = self.answered(path, since);
        if self.now >= last + CONSENT {
            self.lose(path);
        } else if self.now >= last + SILENCE {
            self.give_up(path);
        }
    }

    /// Ends consent: nothing is sent on this path any more.
    pub(super) fn lose(&mut self, path: Path) {
        let is_selected = self.watch.selected() == Some(path);
        if is_selected && self.watch.is_carried {
            // It was selected before a restart: the new credentials have not lost it.
            self.watch.is_carried = false;
        } else {
            self.paths.lose(path);
        }
        if is_selected {
            self.watch.selected = None;
            if self.inner.remote_credentials().is_some() {
                self.watch.wait(self.now);
            }
            self.events.push_back(Event::Disconnected);
        }
    }

    /// Makes room for another pair that answers: `is` would hold on to the selected one for half a minute. Its
    /// remote candidate is added anew, so that the path is checked from the beginning.
    fn give_up(&mut self, path: Path) {
        let recent = self.now.checked_sub(RECENT).unwrap_or(self.now);
        let is_repeated = self.watch.given_up.is_some_and(|at| self.now < at + SILENCE);
        let is_exhausted = self.watch.give_ups >= MAX_GIVE_UPS;
        let has_other = self.paths.other_since(path, recent);
        if self.inner.ice_lite() || is_repeated || is_exhausted || !has_other {
            return;
        }
        self.watch.given_up = Some(self.now);
        self.watch.give_ups += 1;
        let is_of_path = |candidate: &is::Candidate| candidate.addr() == path.remote;
        let candidates: Vec<_> = self.inner.remote_candidates().filter(is_of_path).collect();
        for candidate in candidates {
            self.inner.invalidate_candidate(&candidate);
            self.inner.add_remote_candidate(candidate);
        }
    }
}
