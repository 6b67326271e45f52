//! Requests for missing packets of frames that are being received.

use std::ops::Range;
use std::time::{Duration, Instant};

use super::Assembly;
use crate::control::NACK_RUNS_MAX;
use crate::requests::GRACE;
use crate::slot::{Slot, Stage};
use crate::wire::extend;
use crate::{Gaps, UnitHeader};

impl Assembly {
    /// Returns the header of the packet with the same place that is not packed, for a
    /// [`GapFinder`](crate::GapFinder).
    pub fn unpacked(&self, header: UnitHeader) -> UnitHeader {
        let packed = self.plan.packed_number(header.index).filter(|_| self.options.packing);
        packed.map_or(header, |(index, _)| UnitHeader { index, ..header })
    }

    /// Returns a packet's number in its frame, and whether it was sent again. It is not that of a repair
    /// packet.
    pub(super) fn number(&self, header: UnitHeader) -> (u32, bool) {
        let again = header.index.checked_sub(self.plan.packets());
        match again.filter(|_| self.options.recovery) {
            Some(index) => (index, true),
            None => (header.index, false),
        }
    }

    /// Returns whether this is the header of a packet that is sent in order: its frame has such a packet,
    /// and it is not sent again.
    pub fn is_in_order(&self, header: UnitHeader) -> bool {
        let is_packed =
            |(_, is_retransmitted): (u32, bool)| self.options.packing && !is_retransmitted;
        let packed = self.plan.packed_number(header.index);
        header.index < self.plan.packets() || packed.is_some_and(is_packed)
    }

    /// Handles the arrival of a packet of a frame with missing packets: it may be one of them.
    pub(super) fn handle_requested(
        &mut self,
        now: Instant,
        (slot, index): (usize, u32),
        is_retransmitted: bool,
    ) {
        let requests = &mut self.slots[slot].requests;
        let Some(request) = requests.handle_arrival(index) else { return };
        if is_retransmitted {
            self.statistics.packets_recovered += 1;
            self.patience.handle_answer(now, request);
        } else if !std::mem::replace(&mut requests.is_hasty, true) {
            self.patience.handle_late();
        }
    }

    /// Handles what a packet of a socket showed ([`GapFinder`](crate::GapFinder)): those before it that
    /// have not arrived are requested unless they arrive soon.
    ///
    /// Returns whether [`poll_requests_timeout`](Self::poll_requests_timeout) may be earlier than before.
    pub fn handle_gaps(&mut self, now: Instant, gaps: Gaps) -> bool {
        if !self.options.recovery {
            return false;
        }
        let before = self.poll_requests_timeout();
        if let Some(expected) = gaps.expected
            && let Some(slot) = self.filling(expected.frame)
        {
            let Slot { requests, repairs, .. } = &mut self.slots[slot];
            requests.forget(expected.packets, |packet| {
                if let (Some(repairs), Some(block)) = (&mut *repairs, self.plan.block_of(packet)) {
                    repairs.forget_missing(&block);
                }
            });
        }
        let due = now + self.patience.tolerance();
        for skipped in gaps.skipped.into_iter().flatten() {
            if let Some(slot) = self.filling(skipped.frame) {
                self.slots[slot].note_missing(&self.plan, skipped.packets, due);
            }
        }
        let after = self.poll_requests_timeout();
        after.is_some_and(|after| before.is_none_or(|before| after < before))
    }

    /// Returns the slot of a frame that is being received, by the eight bits of its number.
    fn filling(&self, frame: u8) -> Option<usize> {
        let frame = extend(self.next, frame);
        let is_it = |slot: &Slot| slot.stage == Stage::Filling && slot.frame == frame;
        self.slots.iter().position(is_it)
    }

    /// Returns when to call [`poll_requests`](Self::poll_requests) next; `None` if no packet is known
    /// to be missing.
    pub fn poll_requests_timeout(&self) -> Option<Instant> {
        if !self.options.recovery {
            return None;
        }
        let filling = self.slots.iter().filter(|slot| slot.stage == Stage::Filling);
        let due = filling.flat_map(|slot| [slot.requests.due(), self.sweep_due(slot)]).flatten();
        due.chain(self.asks.as_ref().map(|(_, at, _)| *at)).min()
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) notes that a frame is about to be given up:
    /// shortly before. Until then, no thread needs to wait for missing packets of it that no other packet
    /// shows; most frames are complete by then.
    pub(super) fn late_due(&self, slot: &Slot) -> Option<Instant> {
        let is_awaited = self.options.recovery && slot.claimed() < self.plan.packets();
        (is_awaited && !slot.requests.is_late).then(|| self.sweep_at(slot))
    }

    /// Notes the frames that are about to be given up at `now`, so that what they lack is requested.
    /// [`handle_timeout`](Self::handle_timeout) does so, too; a caller that gives it an earlier time, until which
    /// all sockets were read, calls this first.
    pub fn note_late(&mut self, now: Instant) {
        if self.options.reliable {
            return;
        }
        for at in 0..self.slots.len() {
            let slot = &self.slots[at];
            if slot.stage == Stage::Filling && self.late_due(slot).is_some_and(|due| due <= now) {
                self.slots[at].requests.is_late = true;
            }
        }
    }

    fn sweep_at(&self, slot: &Slot) -> Instant {
        let deadline = self.deadline(slot.first_at, slot.latest_at);
        deadline.checked_sub(GRACE).unwrap_or(deadline)
    }

    /// Returns when all missing packets of a frame that was announced are noted: shortly before the frame
    /// would be given up.
    ///
    /// The last packets of a socket have no others behind them that would show that they are missing,
    /// and a stripe may be missing as a whole. Or its packets are late, so they are requested no sooner;
    /// and not while a frame is being handed over, because the packets of others then wait unread.
    fn sweep_due(&self, slot: &Slot) -> Option<Instant> {
        if self.slots.iter().any(|slot| slot.stage == Stage::Ended) {
            return None;
        }
        let is_sent = slot.frame < self.announced && slot.claimed() < self.plan.packets();
        let is_due = is_sent && slot.requests.is_late && !slot.requests.is_swept;
        is_due.then(|| self.sweep_at(slot))
    }

    /// Writes the packets of one frame that are to be requested at `now` to `packets`; returns the
    /// frame's number, or `None` if there are none. Call it until then.
    ///
    /// A packet is requested up to three times, and only if an answer can arrive before the longest
    /// deadline of its frame. `round_trip` is the shortest time of an answer.
    pub fn poll_requests(
        &mut self,
        now: Instant,
        round_trip: Duration,
        packets: &mut Vec<Range<u32>>,
    ) -> Option<u64> {
        packets.clear();
        if !self.options.recovery {
            return None;
        }
        if let Some((frame, _, asks)) = self.asks.take() {
            packets.extend(asks);
            return Some(frame);
        }
        let next = now + self.patience.answer_time(round_trip);
        for at in 0..self.slots.len() {
            let slot = &self.slots[at];
            if slot.stage != Stage::Filling {
                continue;
            }
            let is_swept = self.sweep_due(slot).is_some_and(|due| due <= now);
            let is_in_time = now + round_trip <= self.longest(slot);
            let all = 0..self.plan.packets();
            let slot = &mut self.slots[at];
            if is_swept {
                slot.requests.is_swept = true;
                slot.note_missing(&self.plan, all, now);
            }
            if !is_in_time {
                slot.requests.give_up(now);
                continue;
            }
            let fresh = slot.requests.poll(now, next, (packets, NACK_RUNS_MAX));
            self.statistics.packets_requested += fresh;
            if !packets.is_empty() {
                return Some(slot.frame);
            }
        }
        None
    }
}
