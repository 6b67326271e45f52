//! Repair packets, and the packets that are computed from them.

use std::time::{Duration, Instant};

use super::{Assembly, Claim, Discard, Landed, RepairOutcome};
use crate::UnitHeader;
use crate::fec::{Decoder, Repair, Repairs, Seen};
use crate::slot::Stage;
use crate::wire::extend;

/// Maximum octets of memory for the repair packets of all frames that are being received.
const OCTETS_MAX: usize = 64 << 20;

impl Assembly {
    /// Returns whether this is the header of a repair packet, for [`take_repair`](Self::take_repair): its
    /// number is beyond those of packets that are sent again.
    pub fn is_repair(&self, header: UnitHeader) -> bool {
        self.options.fec && self.plan.repair_number(header.index).is_some()
    }

    /// Takes a repair packet with these octets after its header: keeps a copy of them as long as its block
    /// lacks packets, and at most 64 MiB of all. Then call [`poll_repair`](Self::poll_repair).
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
        let repairs = self.slots.iter().filter_map(|slot| slot.repairs.as_deref());
        let room = OCTETS_MAX.saturating_sub(repairs.map(Repairs::memory).sum());
        let slot = &mut self.slots[slot];
        let Some(repairs) = &mut slot.repairs else { return self.discard_repair(Discard::Index) };
        let seen = repairs.take(number, &place, octets, room);
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
            let slot = self.slots.get_mut(repair.slot);
            if let Some(repairs) = slot.and_then(|slot| slot.repairs.as_mut()) {
                repair.packets().for_each(|packet| repairs.note_computed(packet));
            }
            return self.land(repair.slot, repair.unit, packets);
        }
        for packet in repair.packets() {
            self.release_place(repair.slot, packet);
        }
        Landed { tile: false, ended: self.is_ready() }
    }

    /// Handles a packet that is discarded because it has a place already, or its frame has ended: if it was
    /// computed, the path did not lose it.
    pub(super) fn handle_overtaken(&mut self, frame: u64, packet: u32) {
        let slots = self.slots.iter_mut().filter(|slot| slot.frame == frame);
        let mut repairs = slots.filter_map(|slot| slot.repairs.as_mut());
        let was_computed = repairs.any(|repairs| repairs.take_computed(packet));
        self.statistics.repaired_late += u64::from(was_computed);
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

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "any instant will do")]
mod tests {
    use super::*;
    use crate::{AssemblyOptions, Plan};

    #[test]
    fn the_memory_for_repair_packets_of_all_frames_is_limited_and_released() {
        let (packets, payload) = (320, 1 << 16);
        let plan = Plan::new(&[(packets * payload, usize::MAX)], payload).unwrap();
        let options = AssemblyOptions { slots: 8, fec: true, ..AssemblyOptions::default() };
        let (mut assembly, octets) = (Assembly::new(plan.clone(), options), vec![0; payload]);
        let now = Instant::now();
        let memory = |assembly: &Assembly| {
            let of = |slot: &crate::slot::Slot| slot.repairs.as_ref().unwrap().memory();
            assembly.slots.iter().map(of).sum::<usize>()
        };
        let take = |assembly: &mut Assembly, frame, number| {
            let header = UnitHeader { frame, index: plan.repair_index(100, number) };
            assembly.take_repair(now, header, &octets)
        };
        // Seven frames of 20 MiB.
        let outcomes: Vec<_> = (0..7)
            .flat_map(|frame| (0..packets as u32).map(move |number| (frame, number)))
            .map(|(frame, number)| take(&mut assembly, frame, number))
            .collect();
        let kept = outcomes.iter().filter(|it| **it == RepairOutcome::Kept).count();
        assert!(memory(&assembly) <= OCTETS_MAX && kept * payload > OCTETS_MAX / 2, "{kept}");
        assembly.finish(7);
        assert_eq!(memory(&assembly), 0);
        while let Some(ending) = assembly.poll_ending() {
            assembly.release(now, ending.slot);
        }
        assert_eq!(take(&mut assembly, 7, 0), RepairOutcome::Kept);
        assert_eq!(memory(&assembly), payload);
    }
}
