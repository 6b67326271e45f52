//! The state of each synchronisation source: its packet index and its replay window.

use std::collections::BTreeMap;

use super::index::{estimate, roll_over_counter};
use super::replay::{Replayed, Window};
use crate::ssrc::Ssrc;

/// Maximum number of replaced sources whose highest index is remembered.
const PAST_MAX: usize = 4096;

/// One source's packet index and replay window.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) ssrc: Ssrc,
    pub(super) window: Window,
    /// The roll-over counter of its first packet.
    first_round: u32,
    /// Number of consecutive refused packets.
    pub(super) failures: u32,
    /// The value of the clock when its last packet was received.
    last: u64,
}

/// All sources under one policy, up to a maximum.
#[derive(Clone, Debug)]
pub(super) struct Sources {
    list: Vec<Source>,
    /// The highest index received from each replaced source; packets up to it are replays.
    past: BTreeMap<Ssrc, u64>,
    /// Position of the source of the last packet; the next packet most likely has the same one.
    recent: usize,
    max: usize,
    window: usize,
    /// The clock: the number of packets of all sources so far.
    clock: u64,
    /// The clock at the last change of the key.
    key_changed: u64,
}

/// The maximum number of sources is reached.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Full;

impl Sources {
    pub(super) fn new(max: usize, window: usize) -> Self {
        Self {
            list: Vec::new(),
            past: BTreeMap::new(),
            recent: 0,
            max,
            window,
            clock: 0,
            key_changed: 0,
        }
    }

    #[inline]
    pub(super) fn find(&mut self, ssrc: Ssrc) -> Option<&mut Source> {
        if self.list.get(self.recent).is_none_or(|source| source.ssrc != ssrc) {
            self.recent = self.list.iter().position(|source| source.ssrc == ssrc)?;
        }
        self.list.get_mut(self.recent)
    }

    /// Returns the source of the last packet, if it is `ssrc`.
    #[inline]
    pub(super) fn recent(&mut self, ssrc: Ssrc) -> Option<&mut Source> {
        self.list.get_mut(self.recent).filter(|source| source.ssrc == ssrc)
    }

    /// Records an authentic packet of the source of the last packet.
    #[inline]
    pub(super) fn note_recent(&mut self, index: u64) {
        self.clock += 1;
        if let Some(source) = self.list.get_mut(self.recent) {
            source.last = self.clock;
            source.failures = 0;
            source.window.note(index);
        }
    }

    pub(super) fn get(&self, ssrc: Ssrc) -> Option<&Source> {
        self.list.iter().find(|source| source.ssrc == ssrc)
    }

    /// Returns the source, which is added if it is new.
    #[inline]
    pub(super) fn find_or_add(&mut self, ssrc: Ssrc) -> Result<&mut Source, Full> {
        self.clock += 1;
        if self.find(ssrc).is_none() {
            if self.list.len() >= self.max {
                return Err(Full);
            }
            self.recent = self.list.len();
            let mut window = Window::new(self.window);
            if let Some(highest) = self.past.remove(&ssrc) {
                window.start_after(highest);
            }
            self.list.push(Source { ssrc, window, first_round: 0, failures: 0, last: 0 });
        }
        let source = self.list.get_mut(self.recent).ok_or(Full)?;
        source.last = self.clock;
        Ok(source)
    }

    /// Returns the source, which is added if it is new; if there is no room, it replaces the source
    /// that was silent longest.
    ///
    /// The replaced source must have been silent for as many packets of others as a window holds.
    /// Its highest index is kept, so that its packets cannot be replayed; once too many such
    /// indices are kept, no further source is replaced.
    #[inline]
    pub(super) fn find_or_replace(&mut self, ssrc: Ssrc) -> Result<&mut Source, Full> {
        if self.list.len() >= self.max && self.find(ssrc).is_none() {
            let n = self.longest_silent().filter(|_| self.past.len() < PAST_MAX).ok_or(Full)?;
            let gone = self.list.swap_remove(n);
            self.past.extend(gone.window.highest().map(|highest| (gone.ssrc, highest)));
        }
        self.find_or_add(ssrc)
    }

    fn longest_silent(&self) -> Option<usize> {
        let (n, source) = self.list.iter().enumerate().min_by_key(|(_, source)| source.last)?;
        (self.clock - source.last >= self.window as u64).then_some(n)
    }

    /// Drops the sources that have sent no packet since the last change of the key and, if more
    /// than half of the places are still taken, those that were silent longest: under another key,
    /// their packet indices may be used again.
    pub(super) fn note_key_change(&mut self) {
        self.list.retain(|source| source.last > self.key_changed);
        self.list.sort_by_key(|source| core::cmp::Reverse(source.last));
        self.list.truncate((self.max / 2).max(1));
        self.key_changed = self.clock;
        self.recent = 0;
    }

    /// Checks that the packet of `ssrc` with `index` may be new.
    #[inline]
    pub(super) fn check(&mut self, ssrc: Ssrc, index: u64) -> Result<(), Replayed> {
        if let Some(source) = self.find(ssrc) {
            return source.window.check(index);
        }
        let is_past = self.past_highest(ssrc).is_some_and(|highest| index <= highest);
        if is_past { Err(Replayed) } else { Ok(()) }
    }

    /// Returns the highest index received from `ssrc`, if it was replaced.
    pub(super) fn past_highest(&self, ssrc: Ssrc) -> Option<u64> {
        self.past.get(&ssrc).copied()
    }

    /// Counts a refused packet of a known source.
    pub(super) fn note_failure(&mut self, ssrc: Ssrc) {
        if let Some(source) = self.find(ssrc) {
            source.failures = source.failures.wrapping_add(1);
        }
    }

    /// Returns whether the maximum number of sources is reached.
    pub(super) fn is_at_max(&self) -> bool {
        self.list.len() >= self.max
    }

    /// Returns whether no further source can be added now, even by replacing one.
    pub(super) fn is_full(&self) -> bool {
        let is_stuck = || self.longest_silent().is_none() || self.past.len() >= PAST_MAX;
        self.list.len() >= self.max && is_stuck()
    }
}

impl Source {
    /// Returns the index of the packet with `sequence`, which may be the source's first.
    #[inline]
    pub(super) fn index(&self, sequence: u16) -> u64 {
        match self.window.highest() {
            Some(highest) => estimate(highest, sequence),
            None => u64::from(self.first_round) << 16 | u64::from(sequence),
        }
    }

    /// Sets the round of the source's next packet to `roc`. Returns `false` if a packet of that
    /// round or a later one has occurred or may have occurred, because no index may occur twice.
    pub(super) fn start_in_round(&mut self, roc: u32) -> bool {
        let fits = match self.window.highest() {
            Some(highest) => roll_over_counter(highest) < roc,
            None => self.first_round <= roc,
        };
        if fits {
            self.window.start_at(None);
            self.first_round = roc;
        }
        fits
    }
}
