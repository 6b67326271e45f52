//! The packets that wait to be sent again, in a queue for each member that requested some.

use std::collections::{BTreeMap, VecDeque};
use std::ops::{Bound, Range};

use super::MemberId;

/// Maximum runs of packets of each member.
pub(super) const RUNS_MAX: usize = 4_096;

/// Runs of packets, each with the number of its frame.
#[derive(Debug, Default)]
pub(super) struct Queues {
    /// Those that are not empty.
    queues: BTreeMap<MemberId, VecDeque<(u64, Range<u32>)>>,
    /// The member that was served last.
    last: Option<MemberId>,
}

impl Queues {
    pub(super) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    pub(super) fn is_full(&self, member: MemberId) -> bool {
        self.queues.get(&member).is_some_and(|queue| queue.len() >= RUNS_MAX)
    }

    /// Adds a packet.
    pub(super) fn push(&mut self, member: MemberId, number: u64, packet: u32) {
        let queue = self.queues.entry(member).or_default();
        match queue.back_mut() {
            Some((frame, run)) if *frame == number && run.end == packet => run.end += 1,
            _ => queue.push_back((number, packet..packet + 1)),
        }
    }

    /// Removes and returns the next run: members take turns.
    pub(super) fn pop(&mut self) -> Option<(u64, Range<u32>)> {
        let after = self.last.map_or(Bound::Unbounded, Bound::Excluded);
        let next = self.queues.range((after, Bound::Unbounded)).next();
        let member = *next.or_else(|| self.queues.first_key_value())?.0;
        self.last = Some(member);
        let queue = self.queues.get_mut(&member)?;
        let run = queue.pop_front();
        if queue.is_empty() {
            self.queues.remove(&member);
        }
        run
    }

    #[cfg(test)]
    pub(super) fn longest(&self) -> usize {
        self.queues.values().map(VecDeque::len).max().unwrap_or_default()
    }
}
