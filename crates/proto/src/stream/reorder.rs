//! The reorder window of one source: packets that came before their turn.

use std::time::Duration;
use std::time::Instant;

use crate::payload::PacketInfo;
use crate::seq::ExtendedSequence;

/// Packets behind the window whose fate is remembered, to tell a duplicate from a late packet.
const REMEMBERED: u64 = 1024;

/// The bounds of a window.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowLimits {
    pub(super) packets: usize,
    pub(super) octets: usize,
    pub(super) time: Duration,
}

/// A packet that waits: its payload is a copy, because the datagram's memory is used again.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) sequence: ExtendedSequence,
    pub(super) info: PacketInfo,
    pub(super) payload: Vec<u8>,
}

/// Where a packet stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Place {
    /// It is the next one.
    Next,
    /// It is before its turn and not yet held.
    Ahead,
    /// It was delivered, or is held already.
    Duplicate,
    /// It was given up.
    Late,
}

/// The window: what is next, what is held, and what became of the packets before.
#[derive(Debug)]
pub(super) struct ReorderWindow {
    limits: WindowLimits,
    next: ExtendedSequence,
    /// Slot `n` is for sequence numbers that are `n` modulo its length; empty until first used,
    /// because most sources never need it.
    slots: Vec<Option<Held>>,
    held: usize,
    held_octets: usize,
    spare: Vec<Vec<u8>>,
    spare_octets: usize,
    delivered: [u64; (REMEMBERED / 64) as usize],
    /// When the first packet behind the oldest gap came.
    gap_since: Option<Instant>,
}

impl ReorderWindow {
    pub(super) fn new(next: ExtendedSequence, limits: WindowLimits) -> Self {
        Self {
            limits: WindowLimits { packets: limits.packets.next_power_of_two(), ..limits },
            next,
            slots: Vec::new(),
            held: 0,
            held_octets: 0,
            spare: Vec::new(),
            spare_octets: 0,
            delivered: [0; (REMEMBERED / 64) as usize],
            gap_since: None,
        }
    }

    /// Where packet `sequence` stands.
    #[inline]
    pub(super) fn place(&self, sequence: ExtendedSequence) -> Place {
        if sequence == self.next {
            return Place::Next;
        }
        if sequence > self.next {
            let held = self.slot(sequence).is_some_and(|held| held.sequence == sequence);
            return if held { Place::Duplicate } else { Place::Ahead };
        }
        let remembered = self.next.since(sequence) <= REMEMBERED;
        if remembered && self.was_delivered(sequence) { Place::Duplicate } else { Place::Late }
    }

    /// Moves on past the next packet, which is being delivered.
    #[inline]
    pub(super) fn advance(&mut self) {
        self.remember(self.next, true);
        self.next = self.next.plus(1);
    }

    /// Whether packet `sequence` of `len` octets fits without giving up on a gap.
    pub(super) fn fits(&self, sequence: ExtendedSequence, len: usize) -> bool {
        sequence.since(self.next) < self.limits.packets as u64
            && self.held_octets + len <= self.limits.octets
    }

    /// Holds a packet that [`place`](Self::place) found ahead and that [`fits`](Self::fits).
    pub(super) fn hold(&mut self, sequence: ExtendedSequence, info: PacketInfo, payload: &[u8]) {
        if self.slots.is_empty() {
            self.slots.resize_with(self.limits.packets, || None);
        }
        let mut copy = self.spare.pop().unwrap_or_default();
        self.spare_octets -= copy.capacity().min(self.spare_octets);
        copy.extend_from_slice(payload);
        self.held += 1;
        self.held_octets += payload.len();
        self.gap_since.get_or_insert(info.arrival);
        let index = self.index(sequence);
        self.slots[index] = Some(Held { sequence, info, payload: copy });
    }

    /// The next packet, if it is held; give it back to [`reuse`](Self::reuse).
    #[inline]
    pub(super) fn take_next(&mut self) -> Option<Held> {
        if self.held == 0 {
            return None;
        }
        let index = self.index(self.next);
        let held = self.slots.get_mut(index)?.take_if(|held| held.sequence == self.next)?;
        self.held -= 1;
        self.held_octets -= held.payload.len();
        self.advance();
        if self.held == 0 {
            self.gap_since = None;
        } else if self.slot(self.next).is_none() {
            // The next gap is as old as the first packet behind it.
            self.gap_since = self.first_held().map(|(_, arrival)| arrival);
        }
        Some(held)
    }

    /// Keeps a held packet's memory for the next one.
    pub(super) fn reuse(&mut self, mut payload: Vec<u8>) {
        if self.spare_octets + payload.capacity() <= self.limits.octets {
            self.spare_octets += payload.capacity();
            payload.clear();
            self.spare.push(payload);
        }
    }

    /// Gives up on the oldest gap; the first missing packet and how many there are.
    pub(super) fn skip_gap(&mut self) -> Option<(ExtendedSequence, u64)> {
        let (behind, _) = self.first_held()?;
        let first = self.next;
        self.skip_to(behind);
        // Not zero: the packet behind the gap is the next one now, and will be taken.
        Some((first, behind.since(first)))
    }

    /// Gives up on everything before `sequence`, of which nothing is held.
    pub(super) fn skip_to(&mut self, sequence: ExtendedSequence) {
        let gap = sequence.since(self.next);
        for step in 0..gap.min(REMEMBERED) {
            self.remember(ExtendedSequence(sequence.0 - 1 - step), false);
        }
        self.next = sequence;
    }

    /// When the oldest gap is to be given up; `None` without one, or at the end of time.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.gap_since?.checked_add(self.limits.time)
    }

    /// Whether any packet is held.
    pub(super) fn is_empty(&self) -> bool {
        self.held == 0
    }

    /// The next packet to be delivered.
    pub(super) fn next(&self) -> ExtendedSequence {
        self.next
    }

    /// Octets of memory.
    pub(super) fn held_octets(&self) -> usize {
        self.held_octets + self.spare_octets + self.slots.capacity() * size_of::<Option<Held>>()
    }

    fn first_held(&self) -> Option<(ExtendedSequence, Instant)> {
        (0..self.slots.len() as u64)
            .filter_map(|step| self.slot(self.next.plus(step)))
            .map(|held| (held.sequence, held.info.arrival))
            .next()
    }

    #[inline]
    fn index(&self, sequence: ExtendedSequence) -> usize {
        (sequence.0 & (self.limits.packets as u64 - 1)) as usize
    }

    #[inline]
    fn slot(&self, sequence: ExtendedSequence) -> Option<&Held> {
        self.slots.get(self.index(sequence))?.as_ref()
    }

    #[inline]
    fn was_delivered(&self, sequence: ExtendedSequence) -> bool {
        let bit = sequence.0 % REMEMBERED;
        self.delivered[(bit / 64) as usize] >> (bit % 64) & 1 == 1
    }

    #[inline]
    fn remember(&mut self, sequence: ExtendedSequence, delivered: bool) {
        let bit = sequence.0 % REMEMBERED;
        let word = &mut self.delivered[(bit / 64) as usize];
        *word = *word & !(1 << (bit % 64)) | u64::from(delivered) << (bit % 64);
    }
}
