//! Packed stripes: what a client holds after any loss is what it says that it holds.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, reason = "any instant will do")]

use std::time::{Duration, Instant};

use proptest::prelude::*;
use rushes_delivery::{
    Assembly, AssemblyOptions, Claim, Discard, Ending, Gap, PackedClaim, PackedLanded, Packing,
    Plan, UnitHeader,
};

const MS: Duration = Duration::from_millis(1);

/// Returns two units of two stripes of 50 octets, each in three packets of up to 20.
fn plan() -> Plan {
    Plan::new(&[(100, 50), (100, 50)], 20).unwrap()
}

fn assembly(recovery: bool) -> Assembly {
    let options = AssemblyOptions { packing: true, recovery, ..AssemblyOptions::default() };
    Assembly::new(plan(), options)
}

fn header(frame: u8, index: u32) -> UnitHeader {
    UnitHeader { frame, index: plan().packed_index(index, false) }
}

fn claim(assembly: &mut Assembly, header: UnitHeader, packing: Packing) -> PackedClaim {
    let packing = packing.write();
    let octets = assembly.packed_len(header, packing).unwrap_or_default();
    assembly.claim_packed(Instant::now(), (header, packing), octets)
}

/// Handles a packet of an LZ4 block whose octets can be unpacked if `is_good`.
fn take(assembly: &mut Assembly, frame: u8, index: u32, (octets, is_good): (usize, bool)) -> bool {
    let packing = Packing::lz4(octets).unwrap();
    let PackedClaim::Stage(place) = claim(assembly, header(frame, index), packing) else {
        panic!("packet {index}");
    };
    match assembly.land_packed(&place) {
        PackedLanded::Waiting(landed) => landed.ended,
        PackedLanded::Unpack(unpacking) => {
            assert_eq!(unpacking.staged.len(), octets);
            assembly.land_unpacked(&unpacking, is_good).ended
        }
    }
}

fn keep(assembly: &mut Assembly, frame: u8, index: u32, age: u64) -> bool {
    match claim(assembly, header(frame, index), Packing::unchanged(age).unwrap()) {
        PackedClaim::Unchanged(landed) => landed.ended,
        other => panic!("packet {index}: {other:?}"),
    }
}

fn plain(assembly: &mut Assembly, frame: u8, index: u32) -> bool {
    let octets = plan().locate(index).unwrap().bytes.len();
    match assembly.claim(Instant::now(), UnitHeader { frame, index }, octets) {
        Claim::Place(place) => assembly.land(place.slot, place.unit, 1).ended,
        other => panic!("packet {index}: {other:?}"),
    }
}

fn end(assembly: &mut Assembly) -> (Ending, Vec<Gap>, Vec<Gap>) {
    let ending = assembly.poll_ending().unwrap();
    let (mut gaps, mut kept) = (Vec::new(), Vec::new());
    assembly.gaps(ending.slot, &mut gaps);
    assembly.kept(ending.slot, &mut kept);
    assembly.release(Instant::now(), ending.slot);
    (ending, gaps, kept)
}

#[test]
fn a_frame_of_packed_stripes_is_whole_with_its_last_packet() {
    let mut assembly = assembly(false);
    assert!((0..6).all(|index| !plain(&mut assembly, 0, index)));
    assert!(!take(&mut assembly, 0, 7, (20, true)) && !take(&mut assembly, 0, 6, (20, true)));
    assert!(take(&mut assembly, 0, 9, (10, true)));
    let (ending, gaps, kept) = end(&mut assembly);
    assert!(ending.whole && gaps.is_empty() && kept.is_empty());
    // Everything is unchanged, but for one stripe.
    for index in [0, 3, 6] {
        assert!(!keep(&mut assembly, 1, index, 1));
    }
    assert!(take(&mut assembly, 1, 9, (10, true)));
    let (ending, gaps, kept) = end(&mut assembly);
    assert!(ending.whole && gaps.is_empty());
    let range = |unit, bytes| Gap { unit, bytes };
    assert_eq!(kept, [range(0, 0..50), range(0, 50..100), range(1, 0..50)]);
    let counts = assembly.statistics();
    assert_eq!((counts.stripes_unpacked, counts.stripes_unchanged), (3, 3));
    assert_eq!((counts.packets, counts.packets_lost, counts.stripes_stale), (13, 0, 0));
}

#[test]
fn what_is_told_as_unchanged_before_it_was_sent_is_stale_and_requested() {
    let mut assembly = assembly(true);
    assert!((0..6).all(|index| !plain(&mut assembly, 0, index)));
    keep(&mut assembly, 0, 6, 1);
    assert!(keep(&mut assembly, 0, 9, 9_999));
    let (ending, gaps, kept) = end(&mut assembly);
    assert_eq!((ending.whole, ending.missing, ending.stale), (false, 0, 2));
    assert_eq!((gaps.len(), kept.len()), (2, 0));
    assert_eq!(assembly.statistics().packets_lost, 0);
    let (now, mut packets) = (Instant::now() + MS, Vec::new());
    assert!(assembly.poll_requests_timeout().is_some_and(|due| due <= now));
    assert_eq!(assembly.poll_requests(now, MS, &mut packets), Some(0));
    assert_eq!(packets, [6..7, 9..10]);
    assert_eq!(assembly.poll_requests(now, MS, &mut packets), None);
    // The next frame does not request them again, and the one after heals a stripe.
    (0..4).for_each(|stripe| {
        keep(&mut assembly, 1, stripe * 3, 1);
    });
    assert_eq!(end(&mut assembly).0.stale, 2);
    assert_eq!(assembly.poll_requests(now, MS, &mut packets), None);
    for first in [0, 3, 9] {
        keep(&mut assembly, 2, first, 2);
    }
    assert!(take(&mut assembly, 2, 6, (5, true)));
    let (ending, gaps, kept) = end(&mut assembly);
    assert_eq!((ending.stale, kept.len()), (1, 2));
    assert_eq!(gaps, [Gap { unit: 1, bytes: 50..100 }]);
}

#[test]
fn an_age_reaches_over_frames_that_were_lost() {
    let mut assembly = assembly(false);
    (0..12).for_each(|index| {
        plain(&mut assembly, 0, index);
    });
    end(&mut assembly);
    // Frame 1 is lost. One stripe changed in it, the others did not.
    for (stripe, age) in [2, 2, 1, 2].into_iter().enumerate() {
        keep(&mut assembly, 2, stripe as u32 * 3, age);
    }
    assert!(assembly.finish(3));
    let (ending, gaps, kept) = end(&mut assembly);
    assert_eq!((ending.frame, ending.stale, kept.len()), (2, 1, 3));
    assert_eq!(gaps, [Gap { unit: 1, bytes: 0..50 }]);
}

#[test]
fn a_lost_report_of_an_unchanged_stripe_makes_later_ones_not_stale() {
    let mut assembly = assembly(false);
    (0..12).for_each(|index| {
        plain(&mut assembly, 0, index);
    });
    end(&mut assembly);
    // Nothing comes of two stripes. The first is as it was, the second has changed.
    (0..2).for_each(|stripe| {
        keep(&mut assembly, 1, stripe * 3, 1);
    });
    for (stripe, age) in [2, 2, 2, 1].into_iter().enumerate() {
        keep(&mut assembly, 2, stripe as u32 * 3, age);
    }
    assert!(assembly.finish(3));
    let (ending, gaps, _) = end(&mut assembly);
    assert!(!ending.whole && !gaps.is_empty(), "{gaps:?}");
    let (ending, gaps, kept) = end(&mut assembly);
    assert_eq!((ending.missing, ending.stale, kept.len()), (0, 1, 3));
    assert_eq!(gaps, [Gap { unit: 1, bytes: 50..100 }]);
}

#[test]
fn a_block_that_cannot_be_unpacked_counts_as_missing_and_may_come_again() {
    let mut assembly = assembly(false);
    (0..9).for_each(|index| {
        plain(&mut assembly, 0, index);
    });
    assert!(!take(&mut assembly, 0, 10, (25, true)) && !take(&mut assembly, 0, 9, (25, false)));
    assert_eq!(assembly.statistics().packets_invalid, 2);
    (9..12).for_each(|index| {
        plain(&mut assembly, 0, index);
    });
    assert!(end(&mut assembly).0.whole);
}

#[test]
fn a_block_that_is_not_complete_leaves_its_whole_stripe_missing() {
    let mut assembly = assembly(false);
    (0..9).for_each(|index| {
        plain(&mut assembly, 0, index);
    });
    take(&mut assembly, 0, 9, (25, true));
    let packing = Packing::lz4(40).unwrap();
    // Packets of another block of the same stripe, and those that are not packed, have no place.
    let longer = claim(&mut assembly, header(0, 10), packing);
    assert_eq!(longer, PackedClaim::Nothing(Claim::Discard(Discard::Index)));
    let other = claim(&mut assembly, header(0, 10), Packing::lz4(20).unwrap());
    assert_eq!(other, PackedClaim::Nothing(Claim::Discard(Discard::Duplicate)));
    let stored = assembly.claim(Instant::now(), UnitHeader { frame: 0, index: 10 }, 20);
    assert_eq!(stored, Claim::Discard(Discard::Duplicate));
    // Its second packet is on its way into the stage when the frame ends.
    let slow = claim(&mut assembly, header(0, 10), Packing::lz4(25).unwrap());
    let PackedClaim::Stage(slow) = slow else { panic!() };
    assembly.unclaim_packed(&slow);
    assert!(assembly.finish(1));
    let (ending, gaps, _) = end(&mut assembly);
    assert_eq!((ending.whole, ending.missing), (false, 3));
    assert_eq!(gaps, [Gap { unit: 1, bytes: 50..100 }]);
}

#[test]
fn a_frame_that_ended_waits_for_packed_octets_on_their_way() {
    let mut assembly = assembly(false);
    (0..9).for_each(|index| {
        plain(&mut assembly, 0, index);
    });
    let slow = claim(&mut assembly, header(0, 9), Packing::lz4(25).unwrap());
    let PackedClaim::Stage(slow) = slow else { panic!() };
    assert!(!assembly.finish(1));
    assert_eq!(assembly.poll_ending(), None);
    let PackedLanded::Waiting(landed) = assembly.land_packed(&slow) else { panic!() };
    assert!(landed.ended);
    assert_eq!(end(&mut assembly).0.missing, 3);
}

#[test]
fn packed_stripes_that_were_not_agreed_on_are_discarded() {
    let mut assembly = Assembly::new(plan(), AssemblyOptions::default());
    assert!(!assembly.is_packed(header(0, 0)));
    let none = claim(&mut assembly, header(0, 0), Packing::unchanged(1).unwrap());
    assert_eq!(none, PackedClaim::Nothing(Claim::Discard(Discard::Index)));
}

/// What becomes of one stripe of a frame on the way: which of its packets are lost.
#[derive(Clone, Copy, Debug)]
struct Way {
    changes: bool,
    octets: usize,
    lost: u8,
}

fn ways() -> impl Strategy<Value = [Way; 4]> {
    let way = (any::<bool>(), 0_usize..60, prop_oneof![3 => Just(0_u8), 1 => any::<u8>()]);
    let way = way.prop_map(|(changes, octets, lost)| Way { changes, octets, lost });
    [way.clone(), way.clone(), way.clone(), way]
}

proptest! {
    /// A stripe's octets are represented by the number of the frame in which it changed last.
    #[test]
    fn a_client_never_takes_old_octets_for_fresh_ones(frames in prop::collection::vec(ways(), 1..40)) {
        let (mut assembly, plan) = (assembly(false), plan());
        let (mut truth, mut shown) = ([u64::MAX; 4], [u64::MAX; 4]);
        for (frame, ways) in (0_u64..).zip(&frames) {
            let mut came = [None; 4];
            for (at, way) in ways.iter().enumerate() {
                let first = at as u32 * 3;
                let stripe = plan.stripe_of(first).unwrap();
                let is_lost = |packet: u32| way.lost >> packet & 1 == 1;
                if !way.changes && truth[at] != u64::MAX {
                    if !is_lost(0) {
                        keep(&mut assembly, frame as u8, first, frame - truth[at]);
                    }
                    continue;
                }
                truth[at] = frame;
                let packing = Packing::lz4(way.octets.max(1)).unwrap();
                let packets = plan.packed_packets(&stripe, packing);
                for packet in (0..packets.unwrap_or(3)).filter(|packet| !is_lost(*packet)) {
                    if packets.is_some() {
                        let octets = way.octets.max(1);
                        take(&mut assembly, frame as u8, first + packet, (octets, true));
                    } else {
                        plain(&mut assembly, frame as u8, first + packet);
                    }
                }
                came[at] = (0..packets.unwrap_or(3)).all(|packet| !is_lost(packet)).then_some(frame);
            }
            assembly.finish(frame + 1);
            let Some(ending) = assembly.poll_ending() else { continue };
            let (mut gaps, mut kept) = (Vec::new(), Vec::new());
            assembly.gaps(ending.slot, &mut gaps);
            assembly.kept(ending.slot, &mut kept);
            assembly.release(Instant::now(), ending.slot);
            prop_assert_eq!(ending.whole, gaps.is_empty());
            for (at, shown) in shown.iter_mut().enumerate() {
                let (unit, start) = (at / 2, at % 2 * 50);
                let within = |gap: &&Gap| gap.unit == unit
                    && gap.bytes.start < start + 50 && gap.bytes.end > start;
                let is_gap = gaps.iter().any(|gap| within(&gap));
                *shown = came[at].unwrap_or(*shown);
                prop_assert!(is_gap || *shown == truth[at], "stripe {} of frame {}", at, frame);
                prop_assert!(!(is_gap && kept.iter().any(|gap| within(&gap))));
            }
        }
    }

    #[test]
    fn no_packets_break_it(
        packets in prop::collection::vec((any::<u8>(), 0_u32..1_300, any::<[u8; 3]>(), 0_u8..8), 0..300),
        recovery: bool,
    ) {
        let (mut assembly, plan) = (assembly(recovery), plan());
        let now = Instant::now();
        let (mut held, mut requests) = (Vec::new(), Vec::new());
        for (at, &(frame, index, [kind, high, low], action)) in packets.iter().enumerate() {
            let header = UnitHeader { frame: frame % 4, index: plan.packed_index(index % 30, false) };
            let packing = [kind % 4, high % 2, 0, low % 64];
            let octets = assembly.packed_len(header, packing).unwrap_or(7);
            match action {
                0 => drop(assembly.handle_timeout(now + at as u32 * MS)),
                1 => drop(assembly.poll_requests(now, MS, &mut requests)),
                2 => {
                    let index = index % 13;
                    let octets = plan.locate(index).map_or(0, |span| span.bytes.len());
                    if let Claim::Place(place) =
                        assembly.claim(now, UnitHeader { frame: frame % 4, index }, octets)
                    {
                        assembly.land(place.slot, place.unit, 1);
                    }
                }
                3 => held.drain(..).for_each(|place| assembly.unclaim_packed(&place)),
                _ => match assembly.claim_packed(now, (header, packing), octets) {
                    PackedClaim::Stage(place) => held.push(place),
                    PackedClaim::Unchanged(_) | PackedClaim::Nothing(_) => {}
                },
            }
            if action > 4 && let Some(place) = held.pop()
                && let PackedLanded::Unpack(unpacking) = assembly.land_packed(&place)
            {
                prop_assert!(unpacking.staged.end <= unpacking.stripe.bytes.end);
                assembly.land_unpacked(&unpacking, action != 5);
            }
            while let Some(ending) = assembly.poll_ending() {
                let mut gaps = Vec::new();
                assembly.gaps(ending.slot, &mut gaps);
                prop_assert_eq!(ending.whole, gaps.is_empty());
                assembly.release(now, ending.slot);
            }
        }
        held.drain(..).for_each(|place| assembly.unclaim_packed(&place));
        assembly.finish(200);
        while let Some(ending) = assembly.poll_ending() {
            assembly.release(now, ending.slot);
        }
        prop_assert!(assembly.is_idle());
    }
}
