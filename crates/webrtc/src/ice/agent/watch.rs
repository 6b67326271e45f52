//! Time: checks that are due, consent, a path that falls silent, failure.

use std::time::{Duration, Instant};

use super::super::paths::Path;
use super::{Agent, CONSENT, Event, PACE, PATIENCE, Transmit};

/// How long the selected pair may be silent while another answers: two checks in a row and their repetition.
const SILENCE: Duration = Duration::from_secs(9);

/// How recently the other pair must have answered.
const RECENT: Duration = Duration::from_secs(5);

/// How often that is done until a restart.
const MAX_GIVE_UPS: usize = 100;

/// Calls of `is` in one call of ours: one, and one for each request that it kept.
const MAX_STEPS: usize = 12;

impl Agent {
    /// Does all that is due: sends checks, asks servers, watches the selected pair.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.now = now;
        if self.has_failed {
            return;
        }
        let outbox = &mut self.outbox;
        self.gather.handle_timeout(now, |local, to, datagram| {
            outbox.push_back(Transmit { local, to, datagram });
        });
        self.watch_selected();
        for _ in 0..MAX_STEPS {
            // More often than `is` asks for would be faster than RFC 8445 section 14 allows.
            if self.step().is_some_and(|due| now < due) {
                break;
            }
            (self.stepped, self.is_nudged) = (now, false);
            self.inner.handle_timeout(now);
            self.collect();
        }
        if self.failure().is_some_and(|at| now >= at) {
            self.has_failed = true;
            self.events.push_back(Event::Failed);
        }
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) is due. It may be in the past.
    pub fn next_timeout(&mut self) -> Option<Instant> {
        if self.has_failed {
            return None;
        }
        let due = [
            self.step(),
            self.gather.next_timeout(),
            self.failure(),
            self.selected.map(|(path, since)| self.last_answer(path, since) + CONSENT),
        ];
        due.into_iter().flatten().min()
    }

    /// Returns when `is` is to have time next.
    fn step(&mut self) -> Option<Instant> {
        if self.is_nudged { Some(self.stepped + PACE) } else { self.inner.poll_timeout() }
    }

    /// Returns when an agent without a pair gives up.
    fn failure(&self) -> Option<Instant> {
        self.waiting.filter(|_| self.selected.is_none()).map(|since| since + PATIENCE)
    }

    fn last_answer(&self, path: Path, since: Instant) -> Instant {
        self.paths.last(path).unwrap_or(since)
    }

    fn watch_selected(&mut self) {
        let Some((path, since)) = self.selected else { return };
        let last = self.last_answer(path, since);
        if self.now >= last + CONSENT {
            self.lose(path);
        } else if self.now >= last + SILENCE {
            self.give_up(path);
        }
    }

    /// Ends consent: nothing is sent on this path any more.
    pub(super) fn lose(&mut self, path: Path) {
        let is_selected = self.selected.is_some_and(|(selected, _)| selected == path);
        if is_selected && self.is_carried {
            // What was selected before a restart: the new credentials have not lost it.
            self.is_carried = false;
        } else {
            self.paths.lose(path);
            self.waiting = self.waiting.or(Some(self.now).filter(|_| is_selected));
        }
        if is_selected {
            self.selected = None;
            self.events.push_back(Event::Disconnected);
        }
    }

    /// Makes room for another pair that answers: `is` would hold on to the selected one for half a minute. Its
    /// remote candidate is added anew, so that the path is checked from the beginning.
    fn give_up(&mut self, path: Path) {
        let recent = self.now.checked_sub(RECENT).unwrap_or(self.now);
        let is_repeated = self.given_up.is_some_and(|at| self.now < at + SILENCE);
        let has_other = self.paths.other_since(path, recent);
        // `is` keeps what is given up, so that this has an end, too.
        if self.is_lite || is_repeated || !has_other || self.give_ups >= MAX_GIVE_UPS {
            return;
        }
        self.given_up = Some(self.now);
        self.give_ups += 1;
        let is_of_path = |candidate: &is::Candidate| candidate.addr() == path.remote;
        let candidates: Vec<_> = self.inner.remote_candidates().filter(is_of_path).collect();
        for candidate in candidates {
            self.inner.invalidate_candidate(&candidate);
            self.inner.add_remote_candidate(candidate);
        }
    }
}
