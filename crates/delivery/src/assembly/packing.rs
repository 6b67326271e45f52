//! Packed stripes: their packets, and which stripes of the frame before are still right.

use std::ops::Range;
use std::time::Instant;

use super::{Assembly, Claim, Discard, Gap, Landed};
use crate::control::NACK_RUNS_MAX;
use crate::packing::{PACKING_BYTES, Packing};
use crate::slot::{Slot, Stage, StripeState};
use crate::{Stripe, UnitHeader};

/// Frames after which a stale stripe is requested once more.
const ASK_INTERVAL: u64 = 8;

/// The place of a packed stripe's octets in the stage: memory as large as the frame, from which a stripe
/// is unpacked when all of its packets have come.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PackedPlace {
    /// The index of the frame's slot.
    pub slot: usize,
    /// The unit's place in the frame.
    pub unit: usize,
    /// The range of octets within the stage of the unit.
    pub bytes: Range<usize>,
    /// The packet's place in the frame.
    index: u32,
}

/// The outcome of [`Assembly::claim_packed`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PackedClaim {
    /// Write the octets behind its [`Packing`] to this place of the stage, then call
    /// [`Assembly::land_packed`].
    Stage(PackedPlace),
    /// Its stripe is unchanged.
    Unchanged(Landed),
    /// It has no place now: [`Claim::Discard`] or [`Claim::Blocked`].
    Nothing(Claim),
}

/// A stripe to be unpacked.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Unpacking {
    /// The index of the frame's slot.
    pub slot: usize,
    /// The stripe, with its place in the unit.
    pub stripe: Stripe,
    /// How it is packed.
    pub packing: Packing,
    /// The range of the packed octets within the stage of the unit.
    pub staged: Range<usize>,
}

/// The outcome of [`Assembly::land_packed`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PackedLanded {
    /// More packets of its stripe follow, or its frame has ended without them.
    Waiting(Landed),
    /// Unpack the stripe, then call [`Assembly::land_unpacked`].
    Unpack(Unpacking),
}

/// What is known of a stripe of the frame handed over last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    /// A frame in which the stripe had these octets; `None` if some of them are missing.
    frame: Option<u64>,
    /// The packets that it came in.
    packets: u32,
    /// The frame with which it was requested.
    asked: Option<u64>,
}

/// What a frame that ends lacks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lack {
    /// Packets that did not arrive; an estimate for stripes of which nothing arrived.
    pub(super) missing: u32,
    /// Stripes reported as unchanged whose octets are not known.
    pub(super) stale: u32,
}

impl Assembly {
    /// Returns what is known of the stripes before the first frame.
    pub(super) fn no_stripes(plan: &crate::Plan, has_packing: bool) -> Vec<Held> {
        let none = |stripe| Held {
            frame: None,
            packets: plan.stripe_packets(&stripe).len() as u32,
            asked: None,
        };
        if has_packing { plan.all_stripes().map(none).collect() } else { Vec::new() }
    }

    /// Returns whether this is the header of a packed stripe's packet, for
    /// [`claim_packed`](Self::claim_packed).
    pub fn is_packed(&self, header: UnitHeader) -> bool {
        self.options.packing && self.plan.packed_number(header.index).is_some()
    }

    /// Returns the octets behind the [`Packing`] of a packet; `None` if the frame has no such packet.
    pub fn packed_len(&self, header: UnitHeader, packing: [u8; PACKING_BYTES]) -> Option<usize> {
        self.packed_packet(header, packing).map(|(_, _, bytes)| bytes.len())
    }

    /// Returns a packet's packing and stripe, and the range of its octets among the packed ones.
    fn packed_packet(
        &self,
        header: UnitHeader,
        packing: [u8; PACKING_BYTES],
    ) -> Option<(Packing, Stripe, Range<usize>)> {
        let (index, _) = self.plan.packed_number(header.index).filter(|_| self.options.packing)?;
        let packing = Packing::parse(packing)?;
        let stripe = self.plan.stripe_of(index)?;
        let place = index - stripe.first_packet;
        let packets = self.plan.packed_packets(&stripe, packing)?;
        (place < packets).then(|| (packing, stripe, self.plan.packed_range(packing, place)))
    }

    /// Reserves the place of a packed stripe's packet with `octets` octets behind its [`Packing`], or
    /// returns why to discard it.
    ///
    /// The first packet of a stripe that arrives decides how the stripe is packed, and whether it is.
    pub fn claim_packed(
        &mut self,
        now: Instant,
        (header, packing): (UnitHeader, [u8; PACKING_BYTES]),
        octets: usize,
    ) -> PackedClaim {
        let nothing = PackedClaim::Nothing;
        let Some((packing, stripe, bytes)) = self.packed_packet(header, packing) else {
            return nothing(self.discard(Discard::Index));
        };
        if bytes.len() != octets {
            return nothing(self.discard(Discard::Length));
        }
        let Some((index, again)) = self.plan.packed_number(header.index) else {
            return nothing(self.discard(Discard::Index));
        };
        let slot = match self.slot_for(now, header.frame, (index, again)) {
            Ok(slot) => slot,
            Err(claim) => return nothing(claim),
        };
        let (packets, number) =
            (self.plan.stripe_packets(&stripe), self.plan.stripe_number(&stripe));
        let it = &mut self.slots[slot];
        let Some(state) = it.stripes.get(number).copied() else {
            return nothing(self.discard(Discard::Index));
        };
        let is_first = state.packing.is_none();
        let fits =
            if is_first { !it.has_any(packets.clone()) } else { state.packing == Some(packing) };
        if !fits || !it.claim(index, now, again) {
            return nothing(self.discard(Discard::Duplicate));
        }
        let needed = self.plan.packed_packets(&stripe, packing).unwrap_or_default();
        let is_unchanged = matches!(packing, Packing::Unchanged { .. });
        if is_first {
            // The others need not come. The octets of an unchanged stripe are copied when the frame ends.
            let of_unit = (!is_unchanged).then_some(stripe.unit);
            it.fill(packets.start + needed..packets.end, of_unit);
            for packet in packets.start + needed..packets.end {
                it.requests.handle_arrival(packet);
            }
        }
        it.stripes[number].packing = Some(packing);
        it.stripes[number].claimed += 1;
        if is_unchanged {
            it.stripes[number].staged = 1;
            it.land_alone(1);
        }
        if !it.requests.is_empty() {
            self.handle_requested(now, (slot, index), again);
        }
        self.statistics.packets += 1;
        self.last_arrival = Some(now);
        if is_unchanged {
            return PackedClaim::Unchanged(self.landed(slot, false));
        }
        let start = stripe.bytes.start;
        let bytes = start + bytes.start..start + bytes.end;
        PackedClaim::Stage(PackedPlace { slot, unit: stripe.unit, bytes, index })
    }

    /// Records that the octets of a packet are in the stage.
    pub fn land_packed(&mut self, place: &PackedPlace) -> PackedLanded {
        let none = PackedLanded::Waiting(Landed { tile: false, ended: false });
        let Some(stripe) = self.plan.stripe_of(place.index) else { return none };
        let number = self.plan.stripe_number(&stripe);
        let Some(it) = self.slots.get_mut(place.slot) else { return none };
        let Some(state) = it.stripes.get_mut(number) else { return none };
        if state.is_abandoned {
            it.release(1);
            return PackedLanded::Waiting(Landed { tile: false, ended: self.is_ready() });
        }
        state.staged += 1;
        let Some(packing) = state.packing else { return none };
        if Some(state.staged) == self.plan.packed_packets(&stripe, packing) {
            // It counts as landed with the unpacked stripe.
            let start = stripe.bytes.start;
            let staged = start..start + packing.octets();
            return PackedLanded::Unpack(Unpacking { slot: place.slot, stripe, packing, staged });
        }
        it.land(place.unit, 1);
        PackedLanded::Waiting(Landed { tile: false, ended: self.is_ready() })
    }

    /// Releases a claimed place of the stage, which will not be filled.
    pub fn unclaim_packed(&mut self, place: &PackedPlace) {
        let Some(stripe) = self.plan.stripe_of(place.index) else { return };
        let number = self.plan.stripe_number(&stripe);
        let Some(it) = self.slots.get_mut(place.slot) else { return };
        let Some(state) = it.stripes.get_mut(number) else { return };
        self.statistics.packets -= 1;
        if state.is_abandoned {
            it.release(1);
        } else {
            state.claimed -= state.claimed.min(1);
            it.unclaim(place.index);
        }
    }

    /// Records that the octets of a stripe are in place, if they could be unpacked; otherwise its packets
    /// count as missing.
    pub fn land_unpacked(&mut self, unpacking: &Unpacking, is_unpacked: bool) -> Landed {
        let Unpacking { slot, stripe, packing, .. } = unpacking;
        if is_unpacked {
            self.statistics.stripes_unpacked += 1;
            return self.land(*slot, stripe.unit, 1);
        }
        let (packets, number) = (self.plan.stripe_packets(stripe), self.plan.stripe_number(stripe));
        let needed = self.plan.packed_packets(stripe, *packing).unwrap_or_default();
        self.statistics.packets_invalid += u64::from(needed);
        self.statistics.packets -= u64::from(needed);
        if let Some(it) = self.slots.get_mut(*slot) {
            let all = packets.len() as u32;
            it.take_back(packets, stripe, all - needed.min(1));
            it.release(all);
            if let Some(state) = it.stripes.get_mut(number) {
                *state = StripeState::default();
            }
        }
        Landed { tile: false, ended: self.is_ready() }
    }

    /// Gives up the packed stripes of a frame that ends whose packets have not all come.
    pub(super) fn abandon_stripes(&mut self, slot: usize) {
        if !self.options.packing {
            return;
        }
        let plan = &self.plan;
        let Some(it) = self.slots.get_mut(slot) else { return };
        for (number, stripe) in plan.all_stripes().enumerate() {
            let Some(state) = it.stripes.get_mut(number) else { return };
            let Some(packing @ Packing::Lz4 { .. }) = state.packing else { continue };
            let needed = plan.packed_packets(&stripe, packing).unwrap_or_default();
            if state.claimed >= needed {
                continue;
            }
            state.is_abandoned = true;
            let packets = plan.stripe_packets(&stripe);
            let landed = packets.len() as u32 - needed + state.staged;
            it.take_back(packets, &stripe, landed);
            it.release(landed);
        }
    }

    /// Returns what a frame that is handed over lacks, and notes which of its stripes are right from now
    /// on. Without packed stripes it lacks the packets that were not claimed.
    pub(super) fn judge_stripes(&mut self, slot: usize) -> Lack {
        if !self.options.packing {
            let missing = self.plan.packets() - self.slots[slot].claimed();
            return Lack { missing, stale: 0 };
        }
        let (mut lack, mut asks) = (Lack::default(), Vec::new());
        let it = &mut self.slots[slot];
        for ((number, stripe), held) in self.plan.all_stripes().enumerate().zip(&mut self.held) {
            let packets = self.plan.stripe_packets(&stripe);
            let state = &mut it.stripes[number];
            let packing = state.packing.filter(|_| !state.is_abandoned);
            if let Some(Packing::Unchanged { age }) = packing {
                held.packets = 1;
                let since = it.frame.saturating_sub(u64::from(age));
                if held.frame.is_some_and(|held| held >= since) {
                    held.frame = Some(it.frame);
                    self.statistics.stripes_unchanged += 1;
                    continue;
                }
                state.is_stale = true;
                lack.stale += 1;
                if held.asked.is_none_or(|asked| asked + ASK_INTERVAL <= it.frame) {
                    held.asked = Some(it.frame);
                    asks.push(packets.start..packets.start + 1);
                }
                continue;
            }
            let mut missing = missing_of(it, packets.clone());
            if missing == packets.len() as u32 {
                // As many as the last time. The octets of the frame before stay, as if the frame were lost.
                missing = held.packets;
            } else {
                held.packets = packing
                    .and_then(|packing| self.plan.packed_packets(&stripe, packing))
                    .unwrap_or_else(|| packets.len() as u32);
                held.frame = (missing == 0).then_some(it.frame);
            }
            held.asked = held.asked.filter(|_| missing > 0);
            lack.missing += missing;
        }
        self.statistics.stripes_stale += u64::from(lack.stale);
        if self.options.recovery && !asks.is_empty() {
            asks.truncate(NACK_RUNS_MAX);
            self.asks = Some((it.frame, it.latest_at, asks));
        }
        lack
    }

    /// Writes the ranges of octets of an ended frame that its stripes reported as unchanged have to `kept`:
    /// they are those of the frame before. Stale ones are among the gaps instead
    /// ([`gaps`](Self::gaps)).
    pub fn kept(&self, slot: usize, kept: &mut Vec<Gap>) {
        kept.clear();
        self.unchanged(slot, false, kept);
    }

    /// Adds the stripes reported as unchanged that are stale, or that are not.
    pub(super) fn unchanged(&self, slot: usize, is_stale: bool, ranges: &mut Vec<Gap>) {
        let Some(it) = self.slots.get(slot).filter(|it| !it.stripes.is_empty()) else { return };
        for (stripe, state) in self.plan.all_stripes().zip(&it.stripes) {
            let is_unchanged = matches!(state.packing, Some(Packing::Unchanged { .. }));
            if is_unchanged && state.is_stale == is_stale {
                ranges.push(Gap { unit: stripe.unit, bytes: stripe.bytes });
            }
        }
    }

    /// Returns whether a stripe is packed, whose packets that come as they are have no place.
    pub(super) fn is_packed_stripe(&self, slot: usize, packet: u32) -> bool {
        let it = &self.slots[slot];
        if it.stripes.is_empty() {
            return false;
        }
        let stripe = self.plan.stripe_of(packet).map(|stripe| self.plan.stripe_number(&stripe));
        let state = stripe.and_then(|number| it.stripes.get(number));
        state.is_some_and(|state| state.packing.is_some())
    }

    /// Returns whether a frame has ended, or a unit is complete, after packets have landed.
    fn landed(&mut self, slot: usize, tile: bool) -> Landed {
        let it = &self.slots[slot];
        if it.stage == Stage::Filling && it.landed() == self.plan.packets() {
            self.advance();
        }
        Landed { tile, ended: self.is_ready() }
    }
}

/// Returns how many of `packets` have not arrived.
fn missing_of(slot: &Slot, mut packets: Range<u32>) -> u32 {
    let mut missing = 0;
    while let Some(run) = slot.missing(packets.clone()) {
        missing += run.len() as u32;
        packets.start = run.end;
    }
    missing
}
