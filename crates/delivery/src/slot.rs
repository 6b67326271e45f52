//! The reception of one frame: one bit for each packet.

use std::ops::Range;
use std::time::Instant;

use crate::Plan;
use crate::fec::Repairs;
use crate::requests::Requests;
use crate::{Packing, Stripe};

/// The state of a slot's memory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Stage {
    /// Available for a new frame; holds an old one until then.
    Free,
    /// Packets of its frame are being placed in it.
    Filling,
    /// No more packets are claimed; those already claimed may still land.
    Ended,
}

/// How a stripe of a frame comes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StripeState {
    /// `None` if it comes as it is, or nothing of it has come yet.
    pub(super) packing: Option<Packing>,
    /// Packets of it that have a place in the stage, and those whose octets are there.
    pub(super) claimed: u32,
    pub(super) staged: u32,
    /// Whether the frame ended before all of its packets came.
    pub(super) is_abandoned: bool,
    /// Whether the sender reported it as unchanged although its octets did not arrive before.
    pub(super) is_stale: bool,
}

/// The reception of one frame.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) stage: Stage,
    pub(super) frame: u64,
    pub(super) first_at: Instant,
    /// When the latest packet arrived that was not sent again.
    pub(super) latest_at: Instant,
    /// When the latest packet that was sent again arrived.
    pub(super) retransmitted_at: Option<Instant>,
    /// The packets that are missing, and were or will be requested.
    pub(super) requests: Requests,
    /// The repair packets, if the sender may send them.
    pub(super) repairs: Option<Box<Repairs>>,
    /// Packets whose octets are in place.
    landed: u32,
    /// Packets of each unit whose octets are in place.
    landed_of: Vec<u32>,
    claimed: u32,
    bits: Vec<u64>,
    /// All stripes, if they may be packed.
    pub(super) stripes: Vec<StripeState>,
}

impl Slot {
    pub(super) fn new(plan: &Plan, now: Instant, (has_repairs, has_packing): (bool, bool)) -> Self {
        let stripes = if has_packing { plan.stripes() } else { 0 };
        Self {
            stage: Stage::Free,
            frame: 0,
            first_at: now,
            latest_at: now,
            retransmitted_at: None,
            requests: Requests::default(),
            repairs: has_repairs.then(|| Box::new(Repairs::new(plan))),
            landed: 0,
            landed_of: vec![0; plan.units()],
            claimed: 0,
            bits: vec![0; plan.packets().div_ceil(64) as usize],
            stripes: vec![StripeState::default(); stripes],
        }
    }

    pub(super) fn begin(&mut self, frame: u64, now: Instant) {
        self.stage = Stage::Filling;
        self.frame = frame;
        (self.first_at, self.latest_at, self.retransmitted_at) = (now, now, None);
        self.requests.clear();
        if let Some(repairs) = &mut self.repairs {
            repairs.clear();
        }
        (self.landed, self.claimed) = (0, 0);
        self.landed_of.fill(0);
        self.bits.fill(0);
        self.stripes.fill(StripeState::default());
    }

    /// Returns whether a packet of these has a place.
    pub(super) fn has_any(&self, packets: Range<u32>) -> bool {
        self.find(packets, true).is_some()
    }

    /// Counts packets that need not come as arrived. Those of a unit only if `of_unit`: its octets are in
    /// place with them.
    pub(super) fn fill(&mut self, packets: Range<u32>, of_unit: Option<usize>) {
        let mut filled = 0;
        for packet in packets {
            filled += u32::from(self.reserve(packet));
        }
        self.landed += filled;
        if let Some(of) = of_unit.and_then(|unit| self.landed_of.get_mut(unit)) {
            *of += filled;
        }
    }

    /// Takes back the places of a packed stripe's packets, of which `landed` have landed; call
    /// [`release`](Self::release) for those that will not land any more.
    pub(super) fn take_back(&mut self, packets: Range<u32>, stripe: &Stripe, landed: u32) {
        for packet in packets {
            if let Some(word) = self.bits.get_mut(packet as usize / 64) {
                *word &= !(1_u64 << (packet % 64));
            }
        }
        self.landed -= landed.min(self.landed);
        if let Some(of) = self.landed_of.get_mut(stripe.unit) {
            *of -= landed.min(*of);
        }
    }

    /// Counts packets as not claimed, whose places are given up.
    pub(super) fn release(&mut self, packets: u32) {
        self.claimed -= packets.min(self.claimed);
    }

    /// Reserves the place of a packet; returns `false` if it is taken.
    pub(super) fn reserve(&mut self, index: u32) -> bool {
        let Some(word) = self.bits.get_mut(index as usize / 64) else { return false };
        let bit = 1_u64 << (index % 64);
        if *word & bit != 0 {
            return false;
        }
        *word |= bit;
        self.claimed += 1;
        true
    }

    /// Records the arrival of a packet; returns `false` if the packet is a duplicate.
    pub(super) fn claim(&mut self, index: u32, now: Instant, is_retransmitted: bool) -> bool {
        if !self.reserve(index) {
            return false;
        }
        if is_retransmitted {
            self.retransmitted_at = Some(now);
        } else {
            self.latest_at = now;
        }
        true
    }

    /// Undoes a claim; returns whether the packet was claimed.
    pub(super) fn unclaim(&mut self, index: u32) -> bool {
        let Some(word) = self.bits.get_mut(index as usize / 64) else { return false };
        let bit = 1_u64 << (index % 64);
        let had = *word & bit != 0;
        *word &= !bit;
        self.claimed -= u32::from(had);
        had
    }

    /// Records that packets are in place; returns how many packets of the unit are.
    pub(super) fn land(&mut self, unit: usize, packets: u32) -> u32 {
        self.landed += packets;
        let Some(of) = self.landed_of.get_mut(unit) else { return 0 };
        *of += packets;
        *of
    }

    /// Records that packets need no place in their unit: those of an unchanged stripe.
    pub(super) fn land_alone(&mut self, packets: u32) {
        self.landed += packets;
    }

    /// Returns whether every claimed packet is in place.
    pub(super) fn is_settled(&self) -> bool {
        self.landed == self.claimed
    }

    pub(super) fn claimed(&self) -> u32 {
        self.claimed
    }

    pub(super) fn landed(&self) -> u32 {
        self.landed
    }

    pub(super) fn landed_of(&self, unit: usize) -> u32 {
        self.landed_of.get(unit).copied().unwrap_or_default()
    }

    /// Notes those of `packets` that have not arrived as missing; they are requested at `due`. With repair
    /// packets, no more of a block than it lacks beside them.
    pub(super) fn note_missing(&mut self, plan: &Plan, mut packets: Range<u32>, due: Instant) {
        while let Some(run) = self.missing(packets.clone()) {
            packets.start = run.end;
            let Some(repairs) = &mut self.repairs else {
                if self.requests.add(run, due) {
                    continue;
                }
                return;
            };
            for packet in run {
                let Some(block) = plan.block_of(packet) else { continue };
                if self.requests.contains(packet) || repairs.needed(&block) == 0 {
                    continue;
                }
                let has_room = self.requests.add(packet..packet + 1, due);
                if self.requests.contains(packet) {
                    repairs.note_missing(&block);
                }
                if !has_room {
                    return;
                }
            }
        }
    }

    /// Returns the first run of packets in `within` that have not arrived.
    pub(super) fn missing(&self, within: Range<u32>) -> Option<Range<u32>> {
        let start = self.find(within.clone(), false)?;
        let end = self.find(start..within.end, true).unwrap_or(within.end);
        Some(start..end)
    }

    /// Returns the first packet in `within` whose bit equals `set`.
    fn find(&self, within: Range<u32>, set: bool) -> Option<u32> {
        let mut at = within.start;
        while at < within.end {
            let word = self.bits.get(at as usize / 64).copied()?;
            let word = if set { word } else { !word } >> (at % 64);
            if word != 0 {
                return Some(at + word.trailing_zeros()).filter(|&at| at < within.end);
            }
            at = (at / 64 + 1) * 64;
        }
        None
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "any instant will do")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn missing_runs_are_the_packets_not_claimed(
            packets in 1_u32..300,
            claimed in prop::collection::vec(0_u32..300, 0..400),
        ) {
            let plan = Plan::new(&[(packets as usize, packets as usize)], 1).unwrap();
            let mut slot = Slot::new(&plan, Instant::now(), (false, false));
            let mut bits = vec![false; packets as usize];
            for index in claimed.into_iter().filter(|&index| index < packets) {
                prop_assert_eq!(slot.claim(index, Instant::now(), false), !bits[index as usize]);
                bits[index as usize] = true;
            }
            let mut found = vec![true; packets as usize];
            let mut at = 0;
            while let Some(run) = slot.missing(at..packets) {
                prop_assert!(!run.is_empty() && run.start >= at);
                run.clone().for_each(|index| found[index as usize] = false);
                at = run.end;
            }
            prop_assert_eq!(found, bits);
        }
    }
}
