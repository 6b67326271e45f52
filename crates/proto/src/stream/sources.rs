//! The sources of a receiver: which are believed, which are replaced, and the memory they share.

use core::net::SocketAddr;
use std::cmp::Reverse;
use std::time::Instant;

use super::candidate::{Arrived, Candidate, Report};
use super::inbound::Inbound;
use super::receive::Receiver;
use super::stats::Discard;
use crate::ssrc::Ssrc;

/// Maximum number of sources on probation; a further one replaces the one that was silent longest.
const CANDIDATES_MAX: usize = 64;

impl Receiver {
    /// Handles a packet of a source that is not believed yet.
    pub(super) fn take_candidate_packet(
        &mut self,
        packet: Arrived<'_>,
        from: Option<SocketAddr>,
    ) -> Result<(), Discard> {
        let (ssrc, now) = (packet.info.ssrc, packet.info.arrival);
        if self.ended.includes(ssrc, packet.sequence, &packet.info) {
            return Err(Discard::Late);
        }
        if self.sources.len() >= self.config.sources_max && self.silent_source(now).is_none() {
            return Err(Discard::TooManySources);
        }
        let n = match self.candidates.iter().position(|candidate| candidate.ssrc() == ssrc) {
            Some(n) if self.candidates[n].address == from || self.is_authentic() => n,
            Some(n) => {
                // The packets of two senders are not the beginning of one stream.
                let candidate = self.candidates.swap_remove(n);
                self.statistics.discards.add(Discard::Probation, candidate.kept());
                self.add_candidate(ssrc, from, now)
            }
            None => self.add_candidate(ssrc, from, now),
        };
        let is_known = self.config.remote_ssrc.is_some() || self.is_authentic();
        let probation = if is_known { 1 } else { self.config.probation };
        let Self { candidates, statistics, events, .. } = self;
        if !candidates[n].take(packet, probation, &mut Report { statistics, events }) {
            return Ok(());
        }
        if self.sources.len() >= self.config.sources_max
            && let Some(silent) = self.silent_source(now)
        {
            self.end_source(silent);
        }
        let candidate = self.candidates.swap_remove(n);
        let is_its = |(of, at, _): &_| *of == ssrc && from.is_some_and(|from| from.ip() == *at);
        let early = self.early_report.take_if(|report| is_its(report)).map(|(_, _, sent)| sent);
        let Self { statistics, events, config, format, pool, .. } = self;
        let mut report = Report { statistics, events };
        let mut source = Inbound::new(candidate, &**format, config, pool, early, &mut report);
        source.origin.set_address(from);
        if early.is_some() {
            source.handle_report(now, early, &mut report);
        }
        self.sources.push(source);
        self.enforce_limits(self.sources.len() - 1);
        Ok(())
    }

    /// Makes `ssrc` a candidate, if necessary in place of the one that was silent longest.
    fn add_candidate(&mut self, ssrc: Ssrc, from: Option<SocketAddr>, now: Instant) -> usize {
        if self.candidates.len() >= CANDIDATES_MAX {
            let oldest = (0..self.candidates.len()).min_by_key(|n| self.candidates[*n].last_heard);
            if let Some(oldest) = oldest {
                let candidate = self.candidates.swap_remove(oldest);
                self.statistics.discards.add(Discard::Probation, candidate.kept());
            }
        }
        self.candidates.push(Candidate::new(ssrc, from, now));
        self.candidates.len() - 1
    }

    /// Returns the source that was silent longest, if it was silent long enough to be replaced.
    fn silent_source(&self, now: Instant) -> Option<usize> {
        (0..self.sources.len())
            .filter(|n| !self.sources[*n].is_live(now))
            .min_by_key(|n| self.sources[*n].last_heard)
    }

    /// Ends a source; its finished frames are still delivered.
    pub(super) fn end_source(&mut self, n: usize) {
        self.with_source(n, Inbound::end);
        let mut source = self.sources.swap_remove(n);
        self.orphans.extend(std::iter::from_fn(|| source.poll_frame()));
        source.take_packed(&mut self.packed_orphans);
        self.held -= source.counted;
        self.ended.add(&source);
    }

    #[inline]
    pub(super) fn with_source(
        &mut self,
        n: usize,
        act: impl FnOnce(&mut Inbound, &mut Report<'_>),
    ) {
        let Self { sources, statistics, events, .. } = self;
        act(&mut sources[n], &mut Report { statistics, events });
        self.enforce_limits(n);
    }

    /// Limits the events and the memory after an action on source `n`.
    #[inline]
    pub(super) fn enforce_limits(&mut self, n: usize) {
        self.forget_events();
        self.count_memory(n);
    }

    /// Counts the memory that source `n` holds now; frees some if all sources hold too much.
    #[inline]
    fn count_memory(&mut self, n: usize) {
        let Some(source) = self.sources.get_mut(n) else { return };
        let held = source.held_octets();
        if held == source.counted {
            return;
        }
        self.held = self.held - source.counted + held;
        source.counted = held;
        if self.held > self.config.memory_max {
            self.free_memory();
        }
    }

    /// Makes sources give up unfinished frames until the rest fits: of those that hold more than
    /// their share, the one that has delivered least comes first; between equals, the newest.
    #[cold]
    fn free_memory(&mut self) {
        for _ in 0..self.sources.len() {
            if self.held <= self.config.memory_max {
                return;
            }
            let share = self.config.memory_max / self.sources.len();
            let priority = |source: &Inbound| (source.delivered_octets(), Reverse(source.since));
            let holders = (0..self.sources.len()).filter(|n| self.sources[*n].counted > share);
            let Some(n) = holders.min_by_key(|n| priority(&self.sources[*n])) else { return };
            let Self { sources, statistics, events, .. } = self;
            let source = &mut sources[n];
            source.release_memory(&mut Report { statistics, events });
            let held = source.held_octets();
            let freed = source.counted.saturating_sub(held);
            self.held = self.held - source.counted + held;
            source.counted = held;
            self.forget_events();
            if freed == 0 {
                return;
            }
            self.statistics.frames_displaced += 1;
        }
    }
}
