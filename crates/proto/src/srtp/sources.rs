//! What is kept of each synchronisation source: how far it is, and which packets came.

use super::index::estimate;
use super::replay::Window;
use crate::ssrc::Ssrc;

/// One source's packet index and replay window.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) ssrc: Ssrc,
    pub(super) window: Window,
    /// The roll-over counter of its first packet.
    first_round: u32,
    /// Packets refused in a row.
    pub(super) failures: u32,
}

/// All sources under one policy, at most so many.
#[derive(Clone, Debug)]
pub(super) struct Sources {
    list: Vec<Source>,
    /// The source of the last packet: the next is most likely of the same.
    recent: usize,
    max: usize,
    window: usize,
}

/// There are as many sources as may be.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Full;

impl Sources {
    pub(super) fn new(max: usize, window: usize) -> Self {
        Self { list: Vec::new(), recent: 0, max, window }
    }

    #[inline]
    pub(super) fn find(&mut self, ssrc: Ssrc) -> Option<&mut Source> {
        if self.list.get(self.recent).is_none_or(|source| source.ssrc != ssrc) {
            self.recent = self.list.iter().position(|source| source.ssrc == ssrc)?;
        }
        self.list.get_mut(self.recent)
    }

    pub(super) fn get(&self, ssrc: Ssrc) -> Option<&Source> {
        self.list.iter().find(|source| source.ssrc == ssrc)
    }

    /// The source, taken up if it is new.
    #[inline]
    pub(super) fn find_or_add(&mut self, ssrc: Ssrc) -> Result<&mut Source, Full> {
        if self.find(ssrc).is_none() {
            if self.is_full() {
                return Err(Full);
            }
            self.recent = self.list.len();
            self.list.push(Source {
                ssrc,
                window: Window::new(self.window),
                first_round: 0,
                failures: 0,
            });
        }
        self.list.get_mut(self.recent).ok_or(Full)
    }

    /// Counts a refused packet of a source that is known.
    pub(super) fn note_failure(&mut self, ssrc: Ssrc) {
        if let Some(source) = self.find(ssrc) {
            source.failures = source.failures.wrapping_add(1);
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.list.len() >= self.max
    }
}

impl Source {
    /// The index of the packet with `sequence`, which may be the source's first.
    #[inline]
    pub(super) fn index(&self, sequence: u16) -> u64 {
        match self.window.highest() {
            Some(highest) => estimate(highest, sequence),
            None => u64::from(self.first_round) << 16 | u64::from(sequence),
        }
    }

    /// Lets the source's first packet be of the round `roc`.
    pub(super) fn start_in_round(&mut self, roc: u32) {
        self.window.start_at(None);
        self.first_round = roc;
    }
}
