//! The packets of packed stripes, and their numbers.

use std::ops::Range;

use super::{PACKETS_MAX, Plan, Stripe};
use crate::packing::{PACKING_BYTES, Packing};

/// With P packets in a frame, packet n of a packed stripe has the number 102 · P + n, beyond those of
/// repair packets, and 103 · P + n if it is sent again.
const FIRST: u32 = 102;

impl Plan {
    /// Returns whether stripes can be packed: there are numbers for their packets, and octets for a
    /// [`Packing`] in each.
    pub fn can_pack(&self) -> bool {
        let numbers = u64::from(self.packets) * u64::from(FIRST + 2);
        numbers <= PACKETS_MAX && self.payload > 2 * PACKING_BYTES
    }

    /// Returns the number in the header of a packed stripe's packet that has the place `index` in the
    /// frame.
    pub fn packed_index(&self, index: u32, is_retransmitted: bool) -> u32 {
        self.packets * (FIRST + u32::from(is_retransmitted)) + index
    }

    /// Returns the place in the frame of a packed stripe's packet with this number in its header, and
    /// whether it was sent again; `None` for any other packet.
    pub fn packed_number(&self, index: u32) -> Option<(u32, bool)> {
        match (index / self.packets).checked_sub(FIRST)? {
            again @ (0 | 1) if self.can_pack() => Some((index % self.packets, again == 1)),
            _ => None,
        }
    }

    /// Returns the number of packets of a packed stripe, if it can be so long: it needs fewer octets than
    /// the stripe itself.
    pub fn packed_packets(&self, stripe: &Stripe, packing: Packing) -> Option<u32> {
        let octets = packing.octets();
        let packets = octets.div_ceil(self.packed_payload()).max(1);
        (octets + packets * PACKING_BYTES < stripe.bytes.len()).then_some(packets as u32)
    }

    /// Returns the octets of a packed stripe that a packet carries, by the packet's place in the stripe.
    pub(crate) fn packed_range(&self, packing: Packing, place: u32) -> Range<usize> {
        let start = place as usize * self.packed_payload();
        start..(start + self.packed_payload()).min(packing.octets())
    }

    /// Returns the octets of a packed stripe in each of its packets; the last one may have fewer.
    pub fn packed_payload(&self) -> usize {
        self.payload.saturating_sub(PACKING_BYTES).max(1)
    }

    /// Returns the number of stripes of a frame.
    pub fn stripes(&self) -> usize {
        (0..self.units()).map(|unit| self.stripe_count(unit)).sum()
    }

    /// Returns the number of a stripe among those of the frame.
    pub fn stripe_number(&self, stripe: &Stripe) -> usize {
        (0..stripe.unit).map(|unit| self.stripe_count(unit)).sum::<usize>() + stripe.index
    }

    /// Returns the stripes of a frame, in the order of their numbers.
    pub(crate) fn all_stripes(&self) -> impl Iterator<Item = Stripe> + '_ {
        (0..self.units()).flat_map(move |unit| {
            (0..self.stripe_count(unit)).filter_map(move |index| self.stripe(unit, index))
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn packed_packets_have_numbers_beyond_all_others() {
        let plan = Plan::new(&[(1_000, 250), (100, 400)], 100).unwrap();
        assert_eq!(plan.packets(), 13);
        assert_eq!((plan.packed_index(3, false), plan.packed_index(3, true)), (1_329, 1_342));
        assert_eq!(plan.packed_number(1_329), Some((3, false)));
        assert_eq!(plan.packed_number(1_342), Some((3, true)));
        assert_eq!((plan.packed_number(1_325), plan.packed_number(13 * 104)), (None, None));
        assert!(plan.repair_number(1_325).is_some() && plan.repair_number(1_326).is_none());
        let largest = |packets: usize| Plan::new(&[(packets * 16, packets * 16)], 16).unwrap();
        assert!(largest((1 << 24) / 104).can_pack() && !largest((1 << 24) / 104 + 1).can_pack());
        assert!(!Plan::new(&[(100, 100)], 8).unwrap().can_pack());
    }

    proptest! {
        #[test]
        fn the_packets_of_a_packed_stripe_cover_it_and_are_fewer_octets(
            (bytes, stripe_bytes) in (1_usize..5_000, 1_usize..3_000),
            payload in 9_usize..2_000,
            octets in 1_usize..4_000,
        ) {
            let plan = Plan::new(&[(bytes, stripe_bytes)], payload).unwrap();
            let packing = Packing::lz4(octets).unwrap();
            for (number, stripe) in plan.all_stripes().enumerate() {
                prop_assert_eq!(plan.stripe_number(&stripe), number);
                let Some(packets) = plan.packed_packets(&stripe, packing) else { continue };
                prop_assert!(octets < stripe.bytes.len());
                prop_assert!(packets as usize <= plan.stripe_packets(&stripe).len());
                let mut end = 0;
                for place in 0..packets {
                    let range = plan.packed_range(packing, place);
                    prop_assert_eq!(range.start, end);
                    prop_assert!(!range.is_empty() && range.len() + PACKING_BYTES <= payload);
                    end = range.end;
                }
                prop_assert_eq!(end, octets);
            }
            prop_assert_eq!(plan.all_stripes().count(), plan.stripes());
        }
    }
}
