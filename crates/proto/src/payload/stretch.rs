//! Stretches of neighbouring units whose packets have one length, so that the system takes them as
//! one message (`UDP_SEGMENT`).
//!
//! Fragments of full size leave a short last one at the end of each unit, and a short datagram ends
//! a message. In a stretch, all packets have the same length, a little below the limit, and those
//! that are shorter are padded (RFC 3550 section 5.1). The last packet of a stretch may be shorter.

use super::PaddingLimit;

/// Maximum number of units, or groups of aggregated ones, that are looked at for one stretch.
pub(super) const LOOK_AHEAD: usize = 32;

/// How many of the first items give segment lengths to try.
const FIRST_ITEMS: usize = 3;

/// Octets that one packet can be padded by: the count has one octet.
const PADDING_MAX: u32 = u8::MAX as u32;

/// Maximum octets of an item; for longer units a stretch brings nothing, and sums could overflow.
pub(super) const OCTETS_MAX: usize = 1 << 30;

/// What is sent in packets of its own: a unit, or several that share a packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Item {
    /// One packet of this many octets of payload.
    Whole(u32),
    /// A unit in fragments: octets beside the headers of the fragments, at least one more than a
    /// fragment holds.
    Split(u32),
}

/// Packets of the next items.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Stretch {
    /// Maximum octets of a payload.
    pub(super) segment: u32,
    /// Number of items, at least 1.
    pub(super) items: usize,
    /// Number of its first items whose last packets are padded to that length.
    pub(super) padded: usize,
}

/// What stretches must comply with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Planner {
    /// Maximum octets of a payload.
    pub(super) limit: u32,
    /// Octets of the headers in the payload of a fragment.
    pub(super) head_len: u32,
    pub(super) padding: PaddingLimit,
}

/// A stretch, and the octets that it adds to what is sent.
#[derive(Clone, Copy)]
struct Reach {
    stretch: Stretch,
    added: u64,
}

impl Planner {
    /// Returns the longest stretch from the first of `items` on. `is_followed` if there are more
    /// after them; `before` is the segment length of the last stretch.
    pub(super) fn best(&self, items: &[Item], is_followed: bool, before: u32) -> Stretch {
        let alone = Stretch { segment: self.limit, items: 1, padded: 0 };
        let mut best = Reach { stretch: alone, added: 0 };
        if items.len() < 2 {
            return alone;
        }
        for segment in self.candidates(items, before) {
            let Some(reach) = self.reach(segment, items, is_followed) else { continue };
            let (len, best_len) = (reach.stretch.items, best.stretch.items);
            if len > best_len || (len == best_len && len > 1 && reach.added < best.added) {
                best = reach;
            }
            if best.stretch.items == items.len() {
                break;
            }
        }
        best.stretch
    }

    /// Returns the segment lengths that are worth trying: that of the last stretch, the shortest for
    /// equal units, the limit, and those that fill the packets of one of the first items.
    fn candidates(&self, items: &[Item], before: u32) -> impl Iterator<Item = u32> {
        let of_first = items.iter().take(FIRST_ITEMS).flat_map(|item| match *item {
            Item::Whole(len) => [Some(len), None],
            Item::Split(octets) => {
                let least = self.packets(octets, self.limit);
                [least, least + 1].map(|packets| Some(self.filled(octets, packets)))
            }
        });
        let range = self.head_len + 3..=self.limit;
        [before, self.of_equal(items), self.limit]
            .into_iter()
            .chain(of_first.flatten())
            .filter(move |segment| range.contains(segment))
    }

    /// Returns the shortest segment length that needs no more packets than the limit does, for as many
    /// items as the padding suffices.
    fn of_equal(&self, items: &[Item]) -> u32 {
        let (mut segment, mut best) = (0, self.limit);
        let (mut packets, mut octets) = (0, 0);
        for item in items {
            let (own, len, count) = match *item {
                Item::Whole(len) => (len, len, 1),
                Item::Split(octets) => {
                    let count = self.packets(octets, self.limit);
                    (self.filled(octets, count), octets + count * self.head_len, count)
                }
            };
            segment = own.max(segment);
            packets += u64::from(count);
            octets += u64::from(len);
            let added = (packets * u64::from(segment)).saturating_sub(octets);
            if self.allows(added, octets) {
                best = segment;
            }
        }
        best
    }

    /// Returns the longest stretch with this segment length; `None` if it is no longer than one item.
    fn reach(&self, segment: u32, items: &[Item], is_followed: bool) -> Option<Reach> {
        let mut best = None;
        let (mut added, mut octets) = (0, 0);
        for (n, item) in items.iter().enumerate() {
            let Some((packets, padding)) = self.cut(*item, segment) else { break };
            let (least, len) = match *item {
                Item::Whole(len) => (1, len),
                Item::Split(octets) => {
                    let least = self.packets(octets, self.limit);
                    (least, octets + least * self.head_len)
                }
            };
            let header_len = self.head_len as usize + self.padding.more_header_len;
            added += (packets.saturating_sub(least) as usize * header_len) as u64;
            octets += u64::from(len) + (least as usize * self.padding.header_len) as u64;
            if n > 0 && self.allows(added, octets) {
                let stretch = Stretch { segment, items: n + 1, padded: n };
                best = Some(Reach { stretch, added });
            }
            added += u64::from(padding);
            if padding > PADDING_MAX || !self.allows(added / 4, octets) {
                return best;
            }
        }
        // The next stretch may go on with the same length.
        if let Some(Reach { stretch, added: least }) = &mut best
            && stretch.items == items.len()
            && is_followed
            && self.allows(added, octets)
        {
            stretch.padded = items.len();
            *least = added;
        }
        best
    }

    /// Returns the packets of an item at this segment length, and the octets by which the last is
    /// shorter; `None` if an item that fits the limit would not fit.
    fn cut(&self, item: Item, segment: u32) -> Option<(u32, u32)> {
        match item {
            Item::Whole(len) => Some((1, segment.checked_sub(len)?)),
            Item::Split(octets) => {
                let packets = self.packets(octets, segment);
                Some((packets, packets * (segment - self.head_len) - octets))
            }
        }
    }

    /// Returns how many fragments of up to `segment` octets hold `octets`.
    fn packets(&self, octets: u32, segment: u32) -> u32 {
        octets.div_ceil(segment - self.head_len)
    }

    /// Returns the shortest segment length with which `packets` fragments hold `octets`.
    fn filled(&self, octets: u32, packets: u32) -> u32 {
        octets.div_ceil(packets) + self.head_len
    }

    /// Returns whether `added` octets may be added to `octets`.
    fn allows(&self, added: u64, octets: u64) -> bool {
        added * 1000 <= octets * u64::from(self.padding.per_mille)
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const HEAD_LEN: u32 = 3;

    fn planner(limit: u32, per_mille: u16) -> Planner {
        let padding = PaddingLimit { per_mille, header_len: 12, more_header_len: 12 };
        Planner { limit, head_len: HEAD_LEN, padding }
    }

    /// Returns the item of a unit of `len` octets with a header of 2.
    fn item(len: u32, limit: u32) -> Item {
        if len <= limit { Item::Whole(len) } else { Item::Split(len - 2) }
    }

    /// Returns the octets of the datagrams of `items`, the first `padded` of which are padded.
    fn sent(items: &[Item], segment: u32, padded: usize) -> u32 {
        let of_item = |(n, item): (usize, &Item)| {
            let (packets, len) = match *item {
                Item::Whole(len) => (1, len),
                Item::Split(octets) => {
                    let packets = octets.div_ceil(segment - HEAD_LEN);
                    (packets, octets + packets * HEAD_LEN)
                }
            };
            12 * packets + if n < padded { packets * segment } else { len }
        };
        items.iter().enumerate().map(of_item).sum()
    }

    #[test]
    fn equal_units_make_one_stretch() {
        for len in [900, 1667, 3335, 6670] {
            let items = vec![item(len, 1448); 20];
            let stretch = planner(1448, 20).best(&items, false, 0);
            assert_eq!((stretch.items, stretch.padded), (20, 19), "{len}");
            let stretch = planner(1448, 20).best(&items, true, 0);
            assert_eq!((stretch.items, stretch.padded), (20, 20), "{len}");
        }
    }

    #[test]
    fn nearly_equal_units_make_one_stretch_and_others_pairs() {
        let near: Vec<Item> = (0..20).map(|n| item(6600 + n * 7 % 60, 1448)).collect();
        assert_eq!(planner(1448, 20).best(&near, false, 0).items, 20);
        let other = [6600, 3000, 9900].map(|len| item(len, 1448));
        assert!(planner(1448, 20).best(&other, false, 0).items >= 2);
    }

    #[test]
    fn without_padding_or_neighbours_packets_are_full() {
        let full = Stretch { segment: 1448, items: 1, padded: 0 };
        assert_eq!(planner(1448, 20).best(&[item(100_000, 1448)], false, 0), full);
        let beside_small = [item(40, 1448), item(100_000, 1448)];
        assert_eq!(planner(1448, 20).best(&beside_small, false, 0), full);
    }

    proptest! {
        #[test]
        fn a_stretch_adds_no_more_than_it_may(
            lens in vec(prop_oneof![1..60_u32, 1..4000_u32, 1600..1700_u32, 1..300_000_u32], 1..40),
            limit in 10..3000_u32, per_mille in 0..200_u16, is_followed in any::<bool>(),
            before in 0..3000_u32,
        ) {
            let items: Vec<Item> = lens.iter().map(|len| item(*len, limit)).collect();
            let stretch = planner(limit, per_mille).best(&items, is_followed, before);
            prop_assert!((1..=items.len()).contains(&stretch.items));
            prop_assert!(stretch.segment <= limit);
            let padded_max = if is_followed { stretch.items } else { stretch.items - 1 };
            prop_assert!(stretch.padded <= padded_max);
            let taken = &items[..stretch.items];
            let added = sent(taken, stretch.segment, stretch.padded) - sent(taken, limit, 0);
            let least = u64::from(sent(taken, limit, 0));
            prop_assert!(u64::from(added) * 1000 <= least * u64::from(per_mille), "{added} of {least}");
            for item in &taken[..stretch.padded] {
                let (_, padding) = planner(limit, per_mille).cut(*item, stretch.segment).unwrap();
                prop_assert!(padding <= 255);
            }
        }
    }
}
