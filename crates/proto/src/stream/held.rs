//! Packets that arrived early, each at its place in a ring.

use std::ops::Range;
use std::time::Instant;

use super::candidate::Arrived;
use crate::payload::PacketInfo;
use crate::seq::ExtendedSequence;
use crate::time::RtpTimestamp;

/// An early packet. Its octets are a copy, because the memory of the datagram is reused.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) place: ExtendedSequence,
    pub(super) info: PacketInfo,
    /// The payload, then the elements of the header extension.
    pub(super) octets: Vec<u8>,
    payload_len: usize,
}

impl Held {
    /// Returns the packet as if it arrived now.
    pub(super) fn arrived(&self) -> Arrived<'_> {
        let (payload, elements) = self.octets.split_at(self.payload_len.min(self.octets.len()));
        Arrived { sequence: self.place.sequence(), info: self.info, payload, elements }
    }
}

/// The held packets, and memory for more.
#[derive(Debug)]
pub(super) struct Ring {
    /// Number of slots to allocate, a power of two.
    packets: usize,
    octets_max: usize,
    /// Slot `n` is for places that are `n` modulo the number of slots. Empty until first used,
    /// because most sources never need it.
    slots: Vec<Option<Held>>,
    held: usize,
    held_octets: usize,
    spare: Vec<Vec<u8>>,
    spare_octets: usize,
}

impl Ring {
    pub(super) fn new(packets: usize, octets_max: usize) -> Self {
        Self {
            packets,
            octets_max,
            slots: Vec::new(),
            held: 0,
            held_octets: 0,
            spare: Vec::new(),
            spare_octets: 0,
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.held == 0
    }

    /// Returns whether the limit allows `len` more octets.
    pub(super) fn fits(&self, len: usize) -> bool {
        self.held_octets + len <= self.octets_max
    }

    #[inline]
    pub(super) fn holds(&self, place: ExtendedSequence) -> bool {
        self.slot(place).is_some_and(|held| held.place == place)
    }

    /// Holds a copy of a packet; its slot must be free.
    pub(super) fn hold(&mut self, place: ExtendedSequence, packet: &Arrived<'_>) {
        let Arrived { info, payload, elements, .. } = *packet;
        if self.slots.is_empty() {
            self.slots.resize_with(self.packets, || None);
        }
        let mut copy = self.spare.pop().unwrap_or_default();
        self.spare_octets -= copy.capacity();
        if copy.capacity() > 4 * (payload.len() + elements.len()).max(256) {
            // A small packet must not occupy the memory of a large one.
            copy = Vec::new();
        }
        copy.extend_from_slice(payload);
        copy.extend_from_slice(elements);
        self.held += 1;
        self.held_octets += copy.capacity();
        let index = self.index(place);
        self.slots[index] = Some(Held { place, info, octets: copy, payload_len: payload.len() });
    }

    /// Returns the packet of `place`, if it is held.
    #[inline]
    pub(super) fn take(&mut self, place: ExtendedSequence) -> Option<Held> {
        if self.held == 0 {
            return None;
        }
        let index = self.index(place);
        let held = self.slots.get_mut(index)?.take_if(|held| held.place == place)?;
        self.held -= 1;
        self.held_octets -= held.octets.capacity();
        Some(held)
    }

    /// Keeps a held packet's memory for the next one.
    pub(super) fn reuse(&mut self, mut payload: Vec<u8>) {
        if self.spare_octets + payload.capacity() <= self.octets_max {
            self.spare_octets += payload.capacity();
            payload.clear();
            self.spare.push(payload);
        }
    }

    /// Frees the memory that holds no packet.
    pub(super) fn release(&mut self) {
        (self.spare, self.spare_octets) = (Vec::new(), 0);
        if self.held == 0 {
            self.slots = Vec::new();
        }
    }

    /// Returns the place and arrival of the first packet held from `next` on.
    pub(super) fn first_from(&self, next: ExtendedSequence) -> Option<(ExtendedSequence, Instant)> {
        (0..self.slots.len() as u64)
            .filter_map(|step| self.slot(next.plus(step)))
            .map(|held| (held.place, held.info.arrival))
            .next()
    }

    /// Returns the last packet held in `places` that was sampled no later than `timestamp`.
    pub(super) fn last_until(
        &self,
        places: Range<ExtendedSequence>,
        timestamp: RtpTimestamp,
    ) -> Option<ExtendedSequence> {
        (places.start.0..places.end.0)
            .rev()
            .take(self.slots.len())
            .filter_map(|place| self.slot(ExtendedSequence(place)))
            .find(|held| held.info.timestamp.distance(timestamp) <= 0)
            .map(|held| held.place)
    }

    /// Returns the octets of memory in use.
    #[inline]
    pub(super) fn octets(&self) -> usize {
        self.held_octets + self.spare_octets + self.slots.capacity() * size_of::<Option<Held>>()
    }

    #[inline]
    fn index(&self, place: ExtendedSequence) -> usize {
        (place.0 & (self.packets as u64 - 1)) as usize
    }

    #[inline]
    fn slot(&self, place: ExtendedSequence) -> Option<&Held> {
        self.slots.get(self.index(place))?.as_ref()
    }
}
