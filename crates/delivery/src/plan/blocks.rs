//! The blocks of packets that are protected together, and the numbers of their repair packets.

use std::collections::BTreeMap;

use super::{HEADER_BYTES, PACKETS_MAX, Plan, Stripe, Unit};

/// Maximum packets of a block, and their octets. A larger one recovers more, and takes more memory to
/// compute.
const BLOCK_MAX: u32 = 256;
const BLOCK_OCTETS_MAX: usize = 1 << 20;

/// Maximum repair packets for 100 packets.
pub const FEC_PERCENT_MAX: u8 = 100;

/// Packets of one stripe that are protected together.
///
/// A stripe of up to 256 packets and 1 MiB is one block. A longer one has several, and its packets belong to
/// them in turn, so that the packets lost in a row are spread over all.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Block {
    /// Its number among the blocks of a frame.
    pub(crate) number: u32,
    /// The unit's place in the frame.
    pub(crate) unit: usize,
    /// The number of its first packet in the frame.
    pub(crate) first: u32,
    /// The distance between its packets: the number of the stripe's blocks.
    pub(crate) stride: u32,
    /// Its number of packets.
    pub(crate) packets: u32,
    /// Octets of each of its repair packets after the header.
    pub(crate) octets: usize,
}

impl Block {
    /// Returns the number of a packet in the frame, by its place in the block.
    pub(crate) fn packet(&self, place: u32) -> u32 {
        self.first + place * self.stride
    }

    /// Returns the number of repair packets.
    pub(crate) fn repairs(&self, percent: u8) -> u32 {
        repairs(self.packets, percent)
    }
}

/// A repair packet's place.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct RepairPlace {
    pub(crate) stripe: Stripe,
    pub(crate) block: Block,
    /// Its place among the repair packets of the block.
    pub(crate) place: u32,
    /// Whether it is the last one that is sent for its stripe.
    pub(crate) is_last: bool,
}

/// Returns the number of repair packets of a block. There is at least one.
pub(crate) fn repairs(packets: u32, percent: u8) -> u32 {
    (packets * u32::from(percent)).div_ceil(100)
}

/// Returns the number of blocks of a stripe, whose packets have `payload` octets.
fn stripe_blocks(packets: u32, payload: usize) -> u32 {
    packets.div_ceil((BLOCK_OCTETS_MAX / payload).clamp(1, BLOCK_MAX as usize) as u32)
}

/// Returns the number of repair packets of a stripe.
fn stripe_repairs(packets: u32, payload: usize, percent: u8) -> u32 {
    let blocks = stripe_blocks(packets, payload);
    if blocks == 0 {
        return 0;
    }
    let (of_each, longer) = (packets / blocks, packets % blocks);
    longer * repairs(of_each + 1, percent) + (blocks - longer) * repairs(of_each, percent)
}

impl Unit {
    /// Returns the number of whole stripes, and the packets of the rest.
    fn stripes(&self, payload: usize) -> (u32, u32) {
        let rest = (self.bytes % self.stripe_bytes).div_ceil(payload) as u32;
        ((self.bytes / self.stripe_bytes) as u32, rest)
    }

    /// Returns the number of blocks.
    pub(super) fn blocks(&self, payload: usize) -> u32 {
        let (stripes, rest) = self.stripes(payload);
        stripes * stripe_blocks(self.stripe_packets, payload) + stripe_blocks(rest, payload)
    }

    /// Returns the number of repair packets.
    fn repairs(&self, payload: usize, percent: u8) -> u32 {
        let (stripes, rest) = self.stripes(payload);
        stripes * stripe_repairs(self.stripe_packets, payload, percent)
            + stripe_repairs(rest, payload, percent)
    }
}

impl Plan {
    /// Returns whether the frame's packets can have repair packets: there are numbers for them.
    ///
    /// With P packets in a frame ([`packets`](Self::packets)), repair packet n has the number
    /// P · (1 + percent) + n, by which it also says how many there are.
    pub fn can_repair(&self) -> bool {
        u64::from(self.packets) * (2 + u64::from(FEC_PERCENT_MAX)) <= PACKETS_MAX
    }

    /// Returns the octets of all repair packets of a frame, their headers included, with `percent` of
    /// them for 100 packets.
    pub fn repair_octets(&self, percent: u8) -> usize {
        let of = |octets: usize| HEADER_BYTES + self.repair_len(octets);
        let of_unit = |unit: &Unit| {
            let (stripes, _) = unit.stripes(self.payload);
            let whole = stripes as usize
                * stripe_repairs(unit.stripe_packets, self.payload, percent) as usize;
            let rest = unit.repairs(self.payload, percent) as usize - whole;
            whole * of(unit.stripe_bytes) + rest * of(unit.bytes % unit.stripe_bytes)
        };
        self.units.iter().map(of_unit).sum()
    }

    /// Returns the number of repair packets of a frame, with `percent` of them for 100 packets.
    pub fn repairs(&self, percent: u8) -> u32 {
        self.units.iter().map(|unit| unit.repairs(self.payload, percent)).sum()
    }

    /// Returns the number of blocks of a frame.
    pub(crate) fn blocks(&self) -> u32 {
        self.units.last().map_or(0, |unit| unit.first_block + unit.blocks(self.payload))
    }

    /// Returns how many blocks of a frame have each number of packets.
    pub(crate) fn block_sizes(&self) -> BTreeMap<u32, u32> {
        let mut sizes = BTreeMap::new();
        for unit in &self.units {
            let (stripes, rest) = unit.stripes(self.payload);
            for (packets, stripes) in [(unit.stripe_packets, stripes), (rest, 1)] {
                let blocks = stripe_blocks(packets, self.payload);
                let longer = packets.checked_rem(blocks).unwrap_or_default();
                let of_each = packets.checked_div(blocks).unwrap_or_default();
                *sizes.entry(of_each).or_default() += (blocks - longer) * stripes;
                *sizes.entry(of_each + 1).or_default() += longer * stripes;
            }
        }
        sizes.retain(|_, blocks| *blocks > 0);
        sizes
    }

    /// Returns the octets of repair packets after their header, for a stripe of `octets` octets: an even
    /// number.
    fn repair_len(&self, octets: usize) -> usize {
        self.payload.min(octets).next_multiple_of(2)
    }

    /// Returns the number of blocks of a stripe.
    pub(crate) fn stripe_blocks(&self, stripe: &Stripe) -> u32 {
        stripe_blocks(self.stripe_packets(stripe).len() as u32, self.payload)
    }

    /// Returns a block of a stripe.
    pub(crate) fn block(&self, stripe: &Stripe, index: u32) -> Option<Block> {
        let unit = self.units.get(stripe.unit)?;
        let (packets, stride) =
            (self.stripe_packets(stripe).len() as u32, self.stripe_blocks(stripe));
        let before = stripe.index as u32 * stripe_blocks(unit.stripe_packets, self.payload);
        (index < stride).then(|| Block {
            number: unit.first_block + before + index,
            unit: stripe.unit,
            first: stripe.first_packet + index,
            stride,
            packets: packets / stride + u32::from(index < packets % stride),
            octets: self.repair_len(stripe.bytes.len()),
        })
    }

    /// Returns the block that contains a packet, if the frame has a packet with this number.
    pub(crate) fn block_of(&self, packet: u32) -> Option<Block> {
        let stripe = self.stripe_of(packet)?;
        self.block(&stripe, (packet - stripe.first_packet) % self.stripe_blocks(&stripe))
    }

    /// Returns the number of the first repair packet of a stripe in the frame, and how many there are.
    pub(crate) fn stripe_repairs(&self, stripe: &Stripe, percent: u8) -> (u32, u32) {
        let before = self.units.iter().take(stripe.unit);
        let before: u32 = before.map(|unit| unit.repairs(self.payload, percent)).sum();
        let whole = self.units.get(stripe.unit).map_or(0, |unit| unit.stripe_packets);
        let count = stripe_repairs(self.stripe_packets(stripe).len() as u32, self.payload, percent);
        (before + stripe.index as u32 * stripe_repairs(whole, self.payload, percent), count)
    }

    /// Returns the place of a repair packet, if the frame has one with this number.
    pub(crate) fn repair(&self, percent: u8, number: u32) -> Option<RepairPlace> {
        let mut within = number;
        for (at, unit) in self.units.iter().enumerate() {
            let all = unit.repairs(self.payload, percent);
            if within >= all {
                within -= all;
                continue;
            }
            let of_each = stripe_repairs(unit.stripe_packets, self.payload, percent);
            let index = within.checked_div(of_each)?.min(unit.stripes(self.payload).0);
            let stripe = self.stripe(at, index as usize)?;
            let (within, blocks) = (within - index * of_each, self.stripe_blocks(&stripe));
            let block = self.block(&stripe, within % blocks)?;
            let is_last = within + 1 == self.stripe_repairs(&stripe, percent).1;
            return Some(RepairPlace { stripe, block, place: within / blocks, is_last });
        }
        None
    }

    /// Returns the ratio and the number of a repair packet in its frame, by the number in its header.
    pub(crate) fn repair_number(&self, index: u32) -> Option<(u8, u32)> {
        let percent = (index / self.packets).checked_sub(1)?;
        let percent = u8::try_from(percent).ok()?;
        (1..=FEC_PERCENT_MAX).contains(&percent).then_some((percent, index % self.packets))
    }

    /// Returns the number in the header of a repair packet.
    pub(crate) fn repair_index(&self, percent: u8, number: u32) -> u32 {
        self.packets * (1 + u32::from(percent)) + number
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn block_max(plan: &Plan) -> u32 {
        plan.block_sizes().into_keys().max().unwrap()
    }

    #[test]
    fn a_short_stripe_is_one_block_and_a_long_one_has_blocks_of_every_nth_packet() {
        let plan = Plan::new(&[(90, 60), (601, 601)], 1).unwrap();
        let block = plan.block_of(59).unwrap();
        assert_eq!((block.number, block.first, block.stride, block.packets), (0, 0, 1, 60));
        let block = plan.block_of(60).unwrap();
        assert_eq!((block.number, block.first, block.packets, block.octets), (1, 60, 30, 2));
        let blocks: Vec<_> = (90..93).map(|packet| plan.block_of(packet).unwrap()).collect();
        let of = |block: &Block| (block.number, block.first, block.stride, block.packets);
        let blocks: Vec<_> = blocks.iter().map(of).collect();
        assert_eq!(blocks, [(2, 90, 3, 201), (3, 91, 3, 200), (4, 92, 3, 200)]);
        assert_eq!(plan.block_of(93).unwrap().number, 2);
        assert_eq!((plan.block_of(691), plan.blocks(), block_max(&plan)), (None, 5, 201));
    }

    #[test]
    fn a_block_has_at_most_a_mebibyte() {
        let most = |payload: usize| {
            block_max(&Plan::new(&[(512 * payload, usize::MAX)], payload).unwrap())
        };
        assert_eq!([1, 4_096, 4_097, 65_503, 1 << 20].map(most), [256, 256, 171, 16, 1]);
    }

    #[test]
    fn the_numbers_of_repair_packets_are_beyond_those_of_packets_sent_again() {
        let plan = Plan::new(&[(100, 100)], 1).unwrap();
        assert_eq!((plan.repair_index(1, 0), plan.repair_index(100, 99)), (200, 10_199));
        assert_eq!(plan.repair_number(199), None);
        assert_eq!(plan.repair_number(200), Some((1, 0)));
        assert_eq!(plan.repair_number(10_199), Some((100, 99)));
        assert_eq!(plan.repair_number(10_200), None);
        let largest = |packets| Plan::new(&[(packets, packets)], 1).unwrap().can_repair();
        assert!(largest((1 << 24) / 102) && !largest((1 << 24) / 102 + 1));
    }

    proptest! {
        #[test]
        fn every_repair_packet_has_one_place_and_every_packet_is_in_one_block(
            units in prop::collection::vec((1_usize..3_000, 1_usize..2_000), 1..5),
            payload in 1_usize..40,
            percent in 1_u8..=100,
        ) {
            let plan = Plan::new(&units, payload).unwrap();
            let mut of_blocks = vec![0; plan.blocks() as usize];
            for packet in 0..plan.packets() {
                let block = plan.block_of(packet).unwrap();
                let place = (packet - block.first) / block.stride;
                prop_assert_eq!((block.packet(place), place), (packet, of_blocks[block.number as usize]));
                prop_assert!(place < block.packets);
                prop_assert!(block.octets >= plan.locate(packet).unwrap().bytes.len());
                of_blocks[block.number as usize] += 1;
            }
            let mut sizes = BTreeMap::new();
            for packets in &of_blocks {
                *sizes.entry(*packets).or_insert(0) += 1;
            }
            prop_assert_eq!(plan.block_sizes(), sizes);
            let (mut number, mut octets) = (0, 0);
            for (unit, _) in units.iter().enumerate() {
                for stripe in (0..plan.stripe_count(unit)).map(|at| plan.stripe(unit, at).unwrap()) {
                    let (first, count) = plan.stripe_repairs(&stripe, percent);
                    prop_assert_eq!(first, number);
                    let mut places = vec![0; plan.stripe_blocks(&stripe) as usize];
                    for within in 0..count {
                        let repair = plan.repair(percent, number).unwrap();
                        let at = (repair.block.number - plan.block(&stripe, 0).unwrap().number) as usize;
                        prop_assert_eq!((&repair.stripe, repair.place), (&stripe, places[at]));
                        prop_assert_eq!(repair.is_last, within + 1 == count);
                        prop_assert_eq!(plan.block(&stripe, at as u32), Some(repair.block));
                        places[at] += 1;
                        octets += HEADER_BYTES + repair.block.octets;
                        let index = plan.repair_index(percent, number);
                        prop_assert_eq!(plan.repair_number(index), Some((percent, number)));
                        number += 1;
                    }
                    for (at, &places) in places.iter().enumerate() {
                        let block = plan.block(&stripe, at as u32).unwrap();
                        prop_assert_eq!(block.packets, of_blocks[block.number as usize]);
                        prop_assert_eq!(block.repairs(percent), places);
                        prop_assert!(places > 0 && places <= block.packets);
                    }
                }
            }
            prop_assert!(number <= plan.packets() && plan.repair(percent, number).is_none());
            prop_assert_eq!((plan.repair_octets(percent), plan.repairs(percent)), (octets, number));
        }
    }
}
