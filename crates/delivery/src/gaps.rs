//! Gaps in the order of the packets of one socket.

use std::ops::Range;

use crate::plan::RepairPlace;
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
///
/// Where stripes end with repair packets, the packets of a stripe that are missing are reported when its
/// last repair packet came, or a packet of another stripe: until then a repair packet may recover them.
#[derive(Clone, Debug)]
pub struct GapFinder {
    current: Option<Current>,
    /// The frame and the first packet of the stripe before.
    before: Option<(u8, u32)>,
    /// The stripes in a row that had no repair packets.
    bare: u8,
}

/// The stripe of which packets come.
#[derive(Clone, Debug)]
struct Current {
    frame: u8,
    packets: Range<u32>,
    /// The packet that is expected next.
    next: u32,
    /// The first packet that was skipped and not reported.
    held: Option<u32>,
    has_repairs: bool,
}

impl Current {
    fn is_of(&self, frame: u8, packets: &Range<u32>) -> bool {
        self.frame == frame && self.packets == *packets
    }

    /// Returns the packets that are missing if the stripe is over.
    fn rest(&self) -> Option<Skipped> {
        skipped(self.frame, self.held.unwrap_or(self.next)..self.packets.end)
    }
}

/// Maximum frames that a client has in progress.
pub(super) const PROGRESS_MAX: u8 = 8;

/// Stripes in a row without repair packets after which none is expected to have any. All repair packets
/// of a stripe may be lost.
const BARE_MAX: u8 = 3;

/// What a packet shows.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Gaps {
    /// Packets that should have come before.
    pub skipped: [Option<Skipped>; 2],
    /// Packets of its stripe that should follow.
    pub expected: Option<Skipped>,
}

fn skipped(frame: u8, packets: Range<u32>) -> Option<Skipped> {
    (!packets.is_empty()).then_some(Skipped { frame, packets })
}

impl Default for GapFinder {
    /// Returns the finder of a socket without repair packets.
    fn default() -> Self {
        Self::new(false)
    }
}

impl GapFinder {
    /// Creates the finder of a socket without packets so far; with `fec` its first stripe may have repair
    /// packets.
    pub fn new(fec: bool) -> Self {
        Self { current: None, before: None, bare: BARE_MAX - u8::from(fec) }
    }

    /// Handles a packet that has a place in its frame and was not sent again. Returns `None` if it
    /// is the one that was expected, or a late one.
    pub fn handle_packet(&mut self, plan: &Plan, header: UnitHeader) -> Option<Gaps> {
        if let Some(current) = &mut self.current
            && (current.frame, current.next) == (header.frame, header.index)
            && current.packets.contains(&current.next)
        {
            current.next += 1;
            return None;
        }
        self.handle_jump(plan, header)
    }

    /// Returns whether a frame is older than that of the current stripe.
    ///
    /// Packets of older ones than a client may have in progress have no place. A socket may have been
    /// silent for long, so that any other number is a later one.
    fn is_older(&self, frame: u8) -> bool {
        let behind = self.current.as_ref().map_or(0, |it| it.frame.wrapping_sub(frame));
        (1..=PROGRESS_MAX).contains(&behind)
    }

    fn handle_jump(&mut self, plan: &Plan, header: UnitHeader) -> Option<Gaps> {
        let UnitHeader { frame, index } = header;
        let is_late =
            |it: &Current| frame == it.frame && it.packets.contains(&index) && index < it.next;
        if self.is_older(frame) || self.current.as_ref().is_some_and(is_late) {
            return None;
        }
        let packets = plan.stripe_packets(&plan.stripe_of(index)?);
        let expected = skipped(frame, index + 1..packets.end);
        if let Some(current) = &mut self.current
            && current.is_of(frame, &packets)
        {
            let gap = current.next..index;
            current.next = index + 1;
            if self.bare < BARE_MAX {
                current.held.get_or_insert(gap.start);
                return None;
            }
            return Some(Gaps { skipped: [skipped(frame, gap), None], expected });
        }
        if self.bare < BARE_MAX && self.before == Some((frame, packets.start)) {
            return None;
        }
        let rest = self.leave();
        let gap = packets.start..index;
        let is_held = self.bare < BARE_MAX && !gap.is_empty();
        let held = is_held.then_some(gap.start);
        let shown = if is_held { None } else { skipped(frame, gap) };
        let next = index + 1;
        self.current = Some(Current { frame, packets, next, held, has_repairs: false });
        Some(Gaps { skipped: [rest, shown], expected })
    }

    /// Handles a repair packet, which follows the packets of its stripe. Returns what it shows, if
    /// anything.
    pub fn handle_repair(&mut self, plan: &Plan, header: UnitHeader) -> Option<Gaps> {
        let (percent, number) = plan.repair_number(header.index)?;
        let RepairPlace { stripe, is_last, .. } = plan.repair(percent, number)?;
        let (frame, packets) = (header.frame, plan.stripe_packets(&stripe));
        if self.is_older(frame) || self.before == Some((frame, packets.start)) {
            return None;
        }
        let mut rest = None;
        if !self.current.as_ref().is_some_and(|it| it.is_of(frame, &packets)) {
            // Its packets were lost, all of them.
            rest = self.leave();
            let (next, held) = (packets.start, None);
            self.current = Some(Current { frame, packets, next, held, has_repairs: true });
        }
        self.bare = 0;
        let current = self.current.as_mut()?;
        current.has_repairs = true;
        if current.next < current.packets.end {
            current.held.get_or_insert(current.next);
            current.next = current.packets.end;
        }
        let over = if is_last { current.rest() } else { None };
        if is_last {
            current.held = None;
        }
        (rest.is_some() || over.is_some()).then_some(Gaps { skipped: [rest, over], expected: None })
    }

    /// Leaves the current stripe; returns the packets of it that are missing.
    fn leave(&mut self) -> Option<Skipped> {
        let current = self.current.take()?;
        self.before = Some((current.frame, current.packets.start));
        self.bare = if current.has_repairs { 0 } else { self.bare.saturating_add(1) };
        current.rest()
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

    /// Handles repair packet `number` of the four (50 %) of each unit.
    fn repaired(finder: &mut GapFinder, frame: u8, number: u32) -> Vec<(u8, Range<u32>)> {
        let header = UnitHeader { frame, index: plan().repair_index(50, number) };
        let gaps = finder.handle_repair(&plan(), header).unwrap_or_default();
        assert_eq!(gaps.expected, None);
        gaps.skipped.into_iter().flatten().map(|it| (it.frame, it.packets)).collect()
    }

    #[test]
    fn packets_are_not_missing_before_the_repair_packets_of_their_stripe_have_come() {
        let mut finder = GapFinder::default();
        assert_eq!(skipped(&mut finder, 0, 0), []);
        assert_eq!(skipped(&mut finder, 0, 2), [(0, 1..2)], "there may be no repair packets");
        assert_eq!(
            (repaired(&mut finder, 0, 0), repaired(&mut finder, 0, 1)),
            (vec![], vec![(0, 3..4)])
        );
        assert_eq!(skipped(&mut finder, 0, 5), []);
        assert_eq!(skipped(&mut finder, 0, 7), []);
        assert_eq!(repaired(&mut finder, 0, 2), []);
        assert_eq!(repaired(&mut finder, 0, 3), [(0, 4..8)]);
        // The last repair packet of this stripe is lost, and that of the next.
        assert_eq!(skipped(&mut finder, 1, 2), []);
        assert_eq!(repaired(&mut finder, 1, 0), []);
        assert_eq!(skipped(&mut finder, 1, 5), [(1, 0..4)]);
        assert_eq!(skipped(&mut finder, 2, 1), [(1, 4..8)]);
        // A stripe of which only repair packets come.
        assert_eq!(repaired(&mut finder, 2, 4), [(2, 0..4)]);
        assert_eq!(repaired(&mut finder, 2, 5), [(2, 8..12)]);
    }

    #[test]
    fn without_repair_packets_for_a_while_gaps_are_shown_at_once_again() {
        let mut finder = GapFinder::default();
        repaired(&mut finder, 0, 0);
        for frame in 1..4 {
            assert_eq!(skipped(&mut finder, frame, 1), [(frame - 1, 0..4)]);
        }
        assert_eq!(skipped(&mut finder, 4, 1), [(3, 0..4), (4, 0..1)]);
        assert_eq!(skipped(&mut finder, 4, 3), [(4, 2..3)]);
    }

    #[test]
    fn only_the_first_stripe_waits_for_repair_packets_if_it_has_none() {
        let mut finder = GapFinder::new(true);
        assert_eq!(skipped(&mut finder, 0, 1), []);
        assert_eq!(skipped(&mut finder, 0, 5), [(0, 0..4), (0, 4..5)]);
        assert_eq!(skipped(&mut finder, 0, 7), [(0, 6..7)]);
    }

    #[test]
    fn late_repair_packets_and_those_of_older_frames_show_nothing() {
        let mut finder = GapFinder::default();
        skipped(&mut finder, 5, 0);
        repaired(&mut finder, 5, 0);
        skipped(&mut finder, 5, 4);
        assert_eq!(repaired(&mut finder, 5, 1), [], "of the stripe before");
        assert_eq!(repaired(&mut finder, 4, 7), []);
        assert_eq!(skipped(&mut finder, 5, 2), [], "of the stripe before");
        assert_eq!(skipped(&mut finder, 5, 5), [], "the place was kept");
        let foreign = UnitHeader { frame: 5, index: plan().repair_index(50, 8) };
        assert_eq!(finder.handle_repair(&plan(), foreign), None);
        assert_eq!(finder.handle_repair(&plan(), UnitHeader { frame: 5, index: 31 }), None);
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
                let header = UnitHeader { frame, index };
                let repair = UnitHeader { frame, index: index * 40 };
                let gaps = match index % 3 {
                    0 => finder.handle_repair(&plan, repair),
                    _ => finder.handle_packet(&plan, header),
                };
                let gaps = gaps.unwrap_or_default();
                for it in gaps.skipped.into_iter().chain([gaps.expected]).flatten() {
                    prop_assert!(!it.packets.is_empty() && it.packets.end <= plan.packets());
                    prop_assert!(it.packets.len() <= 4);
                }
            }
        }
    }
}
