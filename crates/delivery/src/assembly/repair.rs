//! Repair packets, and the packets that are computed from them.

use std::time::{Duration, Instant};

use super::{Assembly, Claim, Discard, Landed, RepairOutcome};
use crate::UnitHeader;
use crate::fec::{Decoder, Repair, Seen};
use crate::slot::Stage;
use crate::wire::extend;

impl Assembly {
    /// Returns whether this is the header of a repair packet, for [`take_repair`](Self::take_repair): its
    /// number is beyond those of packets that are sent again.
    pub fn is_repair(&self, header: UnitHeader) -> bool {
        self.options.fec && self.plan.repair_number(header.index).is_some()
    }

    /// Takes a repair packet with these octets after its header: keeps a copy of them as long as its block
    /// lacks packets. Then call [`poll_repair`](Self::poll_repair).
    ///
    /// Nothing authenticates it, as nothing does any other packet: octets computed from a forged one are
    /// wrong. They replace no octets that arrived. All repair packets of a frame have the ratio of the first;
    /// a forged one with another that comes first keeps the frame from being repaired.
    pub fn take_repair(
        &mut self,
        now: Instant,
        header: UnitHeader,
        octets: &[u8],
    ) -> RepairOutcome {
        let number = self.plan.repair_number(header.index).filter(|_| self.options.fec);
        let place = number.and_then(|(percent, number)| self.plan.repair(percent, number));
        let (Some(number), Some(place)) = (number, place) else {
            return self.discard_repair(Discard::Index);
        };
        if place.block.octets != octets.len() {
            return self.discard_repair(Discard::Length);
        }
        let frame = extend(self.next, header.frame);
        if frame < self.oldest {
            // Its frame ended without it; if that is long ago, it shows nothing about its socket.
            if frame + u64::from(crate::gaps::PROGRESS_MAX) < self.oldest {
                return self.discard_repair(Discard::Late);
            }
            self.statistics.repairs += 1;
            return RepairOutcome::Discarded(Discard::Unneeded);
        }
        let slot = match self.slot_of(now, frame, false) {
            Ok(slot) => slot,
            Err(Claim::Discard(why)) => return RepairOutcome::Discarded(why),
            Err(_) => return RepairOutcome::Blocked,
        };
        let slot = &mut self.slots[slot];
        let Some(repairs) = &mut slot.repairs else { return self.discard_repair(Discard::Index) };
        let seen = repairs.take(number, &place, octets);
        match seen {
            Seen::Again => return self.discard_repair(Discard::Duplicate),
            Seen::Foreign => return self.discard_repair(Discard::Index),
            Seen::Kept | Seen::Unneeded => self.statistics.repairs += 1,
        }
        if seen == Seen::Unneeded {
            return RepairOutcome::Discarded(Discard::Unneeded);
        }
        // The frame waits for others no longer than for packets: there are as many as are missing.
        slot.latest_at = now;
        self.last_arrival = Some(now);
        RepairOutcome::Kept
    }

    fn discard_repair(&mut self, why: Discard) -> RepairOutcome {
        self.discard(why);
        RepairOutcome::Discarded(why)
    }

    /// Returns a block whose lost packets can be computed now, and reserves their places. Pass it to
    /// [`Decoder::repair`], and then to [`land_repair`](Self::land_repair).
    ///
    /// Call it after [`land`](Self::land) until it returns `None`: it needs the octets of all packets of
    /// the unit that have a place.
    pub fn poll_repair(&mut self, decoder: &mut Decoder) -> Option<Repair> {
        if !self.options.fec {
            return None;
        }
        for at in 0..self.slots.len() {
            let slot = &mut self.slots[at];
            let Some(mut repairs) = slot.repairs.take() else { continue };
            let polled = if slot.stage == Stage::Filling {
                let is_missing = |packet: u32| slot.missing(packet..packet + 1).is_some();
                repairs.poll(&self.plan, decoder, |unit| slot.landed_of(unit), is_missing)
            } else {
                None
            };
            slot.repairs = Some(repairs);
            let Some((block, lost)) = polled else { continue };
            for place in &lost {
                let packet = block.packet(*place);
                self.note_arrival(at, packet);
                let slot = &mut self.slots[at];
                slot.reserve(packet);
                slot.requests.handle_arrival(packet);
            }
            if let Some(repairs) = &mut self.slots[at].repairs {
                repairs.note_begun(&block);
            }
            return Some(Repair { slot: at, unit: block.unit, block, lost });
        }
        None
    }

    /// Records that the lost packets of a block are in place, if they were computed.
    pub fn land_repair(&mut self, repair: &Repair, is_computed: bool) -> Landed {
        if is_computed {
            let packets = repair.lost.len() as u32;
            self.statistics.packets_repaired += u64::from(packets);
            return self.land(repair.slot, repair.unit, packets);
        }
        for packet in repair.packets() {
            self.release_place(repair.slot, packet);
        }
        Landed { tile: false, ended: self.is_ready() }
    }

    /// Notes that a packet has a place in the frame of a slot.
    pub(super) fn note_arrival(&mut self, slot: usize, packet: u32) {
        let slot = &mut self.slots[slot];
        let Some(repairs) = &mut slot.repairs else { return };
        let Some(block) = self.plan.block_of(packet) else { return };
        repairs.note_packet(&block);
        if slot.requests.contains(packet) {
            repairs.forget_missing(&block);
        }
    }

    /// Releases the place of a packet; returns whether it had one.
    pub(super) fn release_place(&mut self, slot: usize, packet: u32) -> bool {
        let Some(slot) = self.slots.get_mut(slot) else { return false };
        let had = slot.unclaim(packet);
        if had && let (Some(repairs), Some(block)) = (&mut slot.repairs, self.plan.block_of(packet))
        {
            repairs.forget_packet(&block);
        }
        had
    }

    /// Returns how many requests of a packet, one after the other, can be answered in time for its frame:
    /// 0 to 3. `round_trip` is the shortest time of an answer.
    pub fn answers_in_time(&mut self, round_trip: Duration) -> u8 {
        if !self.options.recovery || round_trip > self.options.deadline_max {
            return 0;
        }
        let answer = self.patience.answer_time(round_trip).as_nanos().max(1);
        let answers = self.options.deadline_max.as_nanos() / answer;
        u8::try_from(answers).unwrap_or(u8::MAX).min(crate::requests::TRIES_MAX)
    }
}
