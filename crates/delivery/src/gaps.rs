//! Gaps in the order of the packets of one socket.

use std::ops::Range;

use crate::{Plan, UnitHeader};

/// Packets of a frame that were expected on a socket before another one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Skipped {
    /// The frame's number, modulo 256.
    pub frame: u8,
    /// The numbers of the packets in the frame.
    pub packets: Range<u32>,
}

/// Finds the packets that are missing among those of one socket.
///
/// A server sends the packets of a stripe in order on one socket, before another stripe. So the
/// packets between two of a stripe are missing, as are the first ones of a stripe that begins with
/// another packet, and the last ones of the stripe before it. The network may have changed the order
/// of packets: whether those reported are late or lost is decided later ([`Assembly`](crate::Assembly)).
#[derive(Clone, Debug, Default)]
pub struct GapFinder {
    /// The frame of the current stripe, its packets, and the one that is expected next.
    current: Option<(u8, Range<u32>, u32)>,
}

/// Maximum frames that a client has in progress.
const PROGRESS_MAX: u8 = 8;

/// What a packet shows.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Gaps {
    /// Packets that should have come before.
    pub skipped: [Option<Skipped>; 2],
    /// Packets of its stripe that should follow.
    pub expected: Option<Skipped>,
}

impl GapFinder {
    /// Handles a packet that has a place in its frame and was not sent again. Returns `None` if it
    /// is the one that was expected, or a late one.
    pub fn handle_packet(&mut self, plan: &Plan, header: UnitHeader) -> Option<Gaps> {
        if let Some((frame, packets, next)) = &mut self.current
            && (*frame, *next) == (header.frame, header.index)
            && packets.contains(next)
        {
            *next += 1;
            return None;
        }
        self.handle_jump(plan, header)
    }

    fn handle_jump(&mut self, plan: &Plan, header: UnitHeader) -> Option<Gaps> {
        let UnitHeader { frame, index } = header;
        let before = self.current.as_ref();
        let is_late = |(current, packets, next): &(u8, Range<u32>, u32)| {
            // Packets of older ones than a client may have in progress have no place. A socket may have
            // been silent for long, so that any other number is a later one.
            let is_older = (1..=PROGRESS_MAX).contains(&current.wrapping_sub(frame));
            is_older || frame == *current && packets.contains(&index) && index < *next
        };
        if before.is_some_and(is_late) {
            return None;
        }
        let packets = plan.stripe_packets(&plan.stripe_of(index)?);
        let of = |frame, packets: Range<u32>| {
            (!packets.is_empty()).then_some(Skipped { frame, packets })
        };
        let expected = of(frame, index + 1..packets.end);
        let skipped = match before {
            Some((current, same, next)) if *current == frame && *same == packets => {
                [of(frame, *next..index), None]
            }
            Some((current, others, next)) => {
                [of(*current, *next..others.end), of(frame, packets.start..index)]
            }
            None => [None, of(frame, packets.start..index)],
        };
        self.current = Some((frame, packets, index + 1));
        Some(Gaps { skipped, expected })
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "a list of runs may have one")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Two units of two stripes each; a stripe has four packets.
    fn plan() -> Plan {
        Plan::new(&[(80, 40), (80, 40)], 10).unwrap()
    }

    fn skipped(finder: &mut GapFinder, frame: u8, index: u32) -> Vec<(u8, Range<u32>)> {
        let gaps = finder.handle_packet(&plan(), UnitHeader { frame, index }).unwrap_or_default();
        gaps.skipped.into_iter().flatten().map(|it| (it.frame, it.packets)).collect()
    }

    #[test]
    fn what_is_missing_within_and_between_stripes_is_found_with_the_next_packet() {
        let mut finder = GapFinder::default();
        assert_eq!(skipped(&mut finder, 200, 1), [(200, 0..1)], "any frame can be the first");
        assert_eq!(skipped(&mut finder, 200, 3), [(200, 2..3)]);
        assert_eq!(skipped(&mut finder, 200, 4), []);
        // The socket takes over a stripe of another unit; the rest of its own is missing.
        assert_eq!(skipped(&mut finder, 200, 14), [(200, 5..8), (200, 12..14)]);
        assert_eq!(skipped(&mut finder, 201, 0), [(200, 15..16)]);
        assert_eq!(skipped(&mut finder, 201, 1), []);
    }

    #[test]
    fn late_packets_and_packets_of_older_frames_show_nothing() {
        let mut finder = GapFinder::default();
        for (index, none) in [(0, 0), (3, 1), (1, 0), (2, 0)] {
            assert_eq!(skipped(&mut finder, 5, index).len(), none);
        }
        assert_eq!(skipped(&mut finder, 4, 15), []);
        assert_eq!(skipped(&mut finder, 5, 4), [], "the place was kept");
    }

    #[test]
    fn any_frame_after_a_long_silence_is_a_later_one() {
        for frame in [1, 127, 128, 200, 247] {
            let mut finder = GapFinder::default();
            skipped(&mut finder, 0, 15);
            assert_eq!(skipped(&mut finder, frame, 2), [(frame, 0..2)]);
        }
    }

    #[test]
    fn a_packet_that_continues_its_stripe_after_a_late_one_says_what_to_expect() {
        let mut finder = GapFinder::default();
        skipped(&mut finder, 0, 3);
        skipped(&mut finder, 0, 4);
        // A late packet of the stripe before it.
        assert_eq!(skipped(&mut finder, 0, 1), [(0, 5..8), (0, 0..1)]);
        let gaps = finder.handle_packet(&plan(), UnitHeader { frame: 0, index: 5 }).unwrap();
        assert_eq!(gaps.expected, Some(Skipped { frame: 0, packets: 6..8 }));
    }

    proptest! {
        #[test]
        fn in_order_everything_that_was_lost_is_found_and_nothing_else(
            lost in prop::collection::vec(prop::bool::weighted(0.2), 16 * 20),
        ) {
            let (mut finder, mut found) = (GapFinder::default(), Vec::new());
            let all = (0..20_u8).flat_map(|frame| (0..16_u32).map(move |index| (frame, index)));
            let all: Vec<_> = all.collect();
            let mut last = 0;
            for (at, &(frame, index)) in all.iter().enumerate().filter(|(at, _)| !lost[*at]) {
                for (frame, packets) in skipped(&mut finder, frame, index) {
                    found.extend(packets.map(|index| (frame, index)));
                }
                last = at;
            }
            // Stripes that were lost as a whole have no packet to show it.
            let is_seen = |at: &usize| (at / 4 * 4..at / 4 * 4 + 4).any(|it| !lost[it]);
            let missing = (0..last).filter(|at| lost[*at]).filter(is_seen);
            let missing: Vec<_> = missing.map(|at| all[at]).collect();
            prop_assert_eq!(found, missing);
        }

        #[test]
        fn any_packets_give_numbers_of_the_plan(
            packets in prop::collection::vec((any::<u8>(), 0_u32..40), 0..200),
        ) {
            let (plan, mut finder) = (plan(), GapFinder::default());
            for (frame, index) in packets {
                let gaps = finder.handle_packet(&plan, UnitHeader { frame, index });
                let gaps = gaps.unwrap_or_default();
                for it in gaps.skipped.into_iter().chain([gaps.expected]).flatten() {
                    prop_assert!(!it.packets.is_empty() && it.packets.end <= plan.packets());
                    prop_assert!(it.packets.len() <= 4);
                }
            }
        }
    }
}
