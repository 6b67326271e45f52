//! Frames assembled from packets that are late, duplicated, reordered or lost.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, reason = "any instant will do")]

use std::time::{Duration, Instant};

use proptest::prelude::*;
use rushes_delivery::{Assembly, AssemblyOptions, Claim, Discard, Ending, Gap, Plan, UnitHeader};

const MS: Duration = Duration::from_millis(1);

/// Returns two units of three packets each: 10, 10 and 5 octets.
fn plan() -> Plan {
    Plan::new(&[(25, 25), (25, 25)], 10).unwrap()
}

fn assembly() -> Assembly {
    Assembly::new(plan(), AssemblyOptions::default())
}

fn reliable() -> Assembly {
    Assembly::new(plan(), AssemblyOptions { reliable: true, ..AssemblyOptions::default() })
}

fn claim(assembly: &mut Assembly, now: Instant, frame: u8, index: u32) -> Claim {
    let octets = assembly.plan().locate(index).map_or(0, |span| span.bytes.len());
    assembly.claim(now, UnitHeader { frame, index }, octets)
}

/// Handles a whole packet; returns whether a frame is then ready.
fn take(assembly: &mut Assembly, now: Instant, frame: u8, index: u32) -> bool {
    match claim(assembly, now, frame, index) {
        Claim::Place(place) => assembly.land(place.slot, place.unit, 1).ended,
        other => panic!("packet {index} of frame {frame}: {other:?}"),
    }
}

fn take_all(assembly: &mut Assembly, now: Instant, frame: u8) -> Ending {
    (0..6).for_each(|index| {
        take(assembly, now, frame, index);
    });
    let ending = assembly.poll_ending().unwrap();
    assembly.release(now, ending.slot);
    ending
}

#[test]
fn a_frame_is_whole_with_its_last_packet_and_waits_for_no_timer() {
    let (mut assembly, now) = (assembly(), Instant::now());
    for index in 0..5 {
        assert!(!take(&mut assembly, now, 0, index));
    }
    assert!(take(&mut assembly, now, 0, 5));
    let ending = assembly.poll_ending().unwrap();
    assert!(ending.whole && ending.frame == 0 && ending.previous.is_none());
    assert_eq!(assembly.poll_ending(), None);
}

#[test]
fn a_unit_is_whole_before_its_frame_is() {
    let (mut assembly, now) = (assembly(), Instant::now());
    for index in [5, 3] {
        take(&mut assembly, now, 0, index);
    }
    let Claim::Place(place) = claim(&mut assembly, now, 0, 4) else { panic!() };
    let landed = assembly.land(place.slot, place.unit, 1);
    assert!(landed.tile && !landed.ended);
}

#[test]
fn octets_that_are_not_in_place_yet_keep_a_frame_back() {
    let (mut assembly, now) = (assembly(), Instant::now());
    let Claim::Place(slow) = claim(&mut assembly, now, 0, 0) else { panic!() };
    for index in 1..6 {
        take(&mut assembly, now, 0, index);
    }
    assert_eq!(assembly.poll_ending(), None);
    assert!(assembly.land(slow.slot, slow.unit, 1).ended);
    assert!(assembly.poll_ending().is_some_and(|ending| ending.whole));
}

#[test]
fn a_frame_that_ended_waits_for_octets_on_their_way() {
    let (mut assembly, now) = (assembly(), Instant::now());
    let Claim::Place(slow) = claim(&mut assembly, now, 0, 0) else { panic!() };
    assert!(!assembly.handle_timeout(now + 200 * MS));
    assert_eq!(assembly.poll_ending(), None);
    assert!(assembly.land(slow.slot, slow.unit, 1).ended);
    assert_eq!(assembly.poll_ending().map(|ending| ending.missing), Some(5));
}

#[test]
fn octets_missing_at_the_deadline_are_reported_exactly() {
    let (mut assembly, now) = (assembly(), Instant::now());
    let before = take_all(&mut assembly, now, 0);
    for index in [0, 2, 3] {
        take(&mut assembly, now, 1, index);
    }
    let deadline = assembly.poll_timeout().unwrap();
    assert!(!assembly.handle_timeout(deadline.checked_sub(MS / 1_000).unwrap()));
    assert!(assembly.handle_timeout(deadline));
    let ending = assembly.poll_ending().unwrap();
    assert_eq!((ending.missing, ending.previous), (3, Some(before.slot)));
    let mut gaps = Vec::new();
    assembly.gaps(ending.slot, &mut gaps);
    assert_eq!(gaps, [Gap { unit: 0, bytes: 10..20 }, Gap { unit: 1, bytes: 10..25 }]);
    assert_eq!(assembly.statistics().packets_lost, 3);
}

#[test]
fn the_memory_of_the_previous_frame_is_not_used_while_the_next_may_need_it() {
    let (mut assembly, now) = (assembly(), Instant::now());
    let mut previous = take_all(&mut assembly, now, 0);
    for frame in 1..20 {
        let ending = take_all(&mut assembly, now, frame);
        assert_eq!(ending.previous, Some(previous.slot));
        assert_ne!(ending.slot, previous.slot);
        previous = ending;
    }
}

#[test]
fn late_and_repeated_packets_go_nowhere() {
    let (mut assembly, now) = (assembly(), Instant::now());
    take(&mut assembly, now, 0, 0);
    assert_eq!(claim(&mut assembly, now, 0, 0), Claim::Discard(Discard::Duplicate));
    (1..6).for_each(|index| {
        take(&mut assembly, now, 0, index);
    });
    assert_eq!(claim(&mut assembly, now, 0, 3), Claim::Discard(Discard::Late));
}

#[test]
fn packets_that_the_plan_does_not_have_go_nowhere() {
    let (mut assembly, now) = (assembly(), Instant::now());
    let header = UnitHeader { frame: 0, index: 6 };
    assert_eq!(assembly.claim(now, header, 10), Claim::Discard(Discard::Index));
    let header = UnitHeader { frame: 0, index: 2 };
    for octets in [0, 4, 6, 10, usize::MAX] {
        assert_eq!(assembly.claim(now, header, octets), Claim::Discard(Discard::Length));
    }
    assert_eq!(assembly.statistics().packets_invalid, 6);
}

#[test]
fn a_later_frame_that_is_whole_waits_until_the_earlier_one_is_overdue() {
    let (mut assembly, now) = (assembly(), Instant::now());
    take(&mut assembly, now, 0, 0);
    for index in 0..6 {
        assert!(!take(&mut assembly, now, 1, index));
    }
    assert!(assembly.handle_timeout(assembly.poll_timeout().unwrap()));
    let first = assembly.poll_ending().unwrap();
    assert_eq!((first.frame, first.whole), (0, false));
    assembly.release(now, first.slot);
    let second = assembly.poll_ending().unwrap();
    assert_eq!((second.frame, second.whole), (1, true));
}

#[test]
fn a_slow_frame_is_not_overdue_while_its_packets_arrive() {
    let (mut assembly, mut now) = (assembly(), Instant::now());
    let step = 90 * MS;
    for frame in 0..5 {
        for index in 0..6 {
            assert!(!assembly.handle_timeout(now), "{frame} {index}");
            take(&mut assembly, now, frame, index);
            now += step;
        }
        let ending = assembly.poll_ending().unwrap();
        assert!(ending.whole, "{frame}");
        assembly.release(now, ending.slot);
    }
}

#[test]
fn a_slow_frame_is_overdue_once_its_sender_is_silent() {
    let (mut assembly, now) = (assembly(), Instant::now());
    take(&mut assembly, now, 0, 0);
    let latest = now + 5_000 * MS;
    take(&mut assembly, latest, 0, 1);
    assert_eq!(assembly.poll_timeout(), Some(latest + 100 * MS));
    assert!(assembly.handle_timeout(latest + 100 * MS));
}

#[test]
fn the_time_of_a_hand_over_does_not_count_against_the_next_frame() {
    let (mut assembly, now) = (assembly(), Instant::now());
    for index in 0..6 {
        take(&mut assembly, now, 0, index);
    }
    take(&mut assembly, now, 1, 0);
    // The sink is slow, and the rest of the frame waits in the socket.
    let ending = assembly.poll_ending().unwrap();
    let later = now + 2_000 * MS;
    assembly.release(later, ending.slot);
    assert!(!assembly.handle_timeout(later));
    for index in 1..6 {
        take(&mut assembly, later, 1, index);
    }
    assert!(assembly.poll_ending().unwrap().whole);
}

#[test]
fn a_frame_that_is_whole_before_the_one_before_it_has_begun_waits_for_it() {
    for mut assembly in [assembly(), reliable()] {
        let now = Instant::now();
        for frame in [1, 0] {
            assert_eq!(assembly.poll_ending(), None);
            (0..6).for_each(|index| {
                take(&mut assembly, now, frame, index);
            });
        }
        for frame in 0..2 {
            let ending = assembly.poll_ending().unwrap();
            assert!(ending.whole && ending.frame == frame);
            assembly.release(now, ending.slot);
        }
    }
}

#[test]
fn a_frame_without_memory_waits_until_the_oldest_is_overdue() {
    let (mut assembly, now) = (assembly(), Instant::now());
    for frame in 0..2 {
        take(&mut assembly, now, frame, 0);
    }
    assert_eq!(claim(&mut assembly, now, 2, 0), Claim::Blocked);
    let deadline = assembly.poll_timeout().unwrap();
    assert!(assembly.handle_timeout(deadline));
    for frame in 0..2 {
        let ending = assembly.poll_ending().unwrap();
        assert_eq!(ending.frame, frame);
        assembly.release(now, ending.slot);
    }
    assert!(matches!(claim(&mut assembly, deadline, 2, 0), Claim::Place(_)));
}

#[test]
fn a_frame_ends_with_a_long_deadline_too_if_a_newer_one_needs_its_memory() {
    let (slots, second) = (8, 1_000 * MS);
    let (deadline_min, deadline_max) = (second, second);
    let options =
        AssemblyOptions { slots, deadline_min, deadline_max, ..AssemblyOptions::default() };
    let (mut assembly, start) = (Assembly::new(plan(), options), Instant::now());
    // Frame 0 lacks a packet; the others are whole, one each 10 ms.
    take(&mut assembly, start, 0, 0);
    for frame in 1..7 {
        let now = start + 10 * MS * u32::from(frame);
        (0..6).for_each(|index| _ = take(&mut assembly, now, frame, index));
    }
    assert_eq!(assembly.poll_timeout(), Some(start + second));
    // The missing packets may be behind this one, which is not read until there is memory for it.
    let now = start + 70 * MS;
    assert_eq!(claim(&mut assembly, now, 7, 0), Claim::Blocked);
    assert!(!assembly.handle_timeout(now));
    let deadline = assembly.poll_timeout().unwrap();
    assert_eq!(deadline, start + 100 * MS);
    assert!(assembly.handle_timeout(deadline));
    for frame in 0..7 {
        let ending = assembly.poll_ending().unwrap();
        assert_eq!((ending.frame, ending.whole), (frame, frame > 0));
        assembly.release(deadline, ending.slot);
    }
    assert!(matches!(claim(&mut assembly, deadline, 7, 0), Claim::Place(_)));
}

#[test]
fn frames_without_packets_delay_others_until_their_deadline_only() {
    let (mut assembly, now) = (assembly(), Instant::now());
    take_all(&mut assembly, now, 0);
    assert_eq!(claim(&mut assembly, now, 9, 0), Claim::Blocked);
    let deadline = assembly.poll_timeout().unwrap();
    assert!(deadline > now);
    assert_eq!(claim(&mut assembly, now, 9, 0), Claim::Blocked);
    for index in 0..6 {
        take(&mut assembly, deadline, 9, index);
    }
    assert!(assembly.handle_timeout(assembly.poll_timeout().unwrap()));
    assert!(assembly.poll_ending().is_some_and(|ending| ending.whole && ending.frame == 9));
    assert_eq!(assembly.statistics().frames_lost, 8);
}

#[test]
fn frames_that_arrive_in_reverse_order_have_memory() {
    let (mut assembly, now) = (assembly(), Instant::now());
    take_all(&mut assembly, now, 0);
    assert_eq!(claim(&mut assembly, now, 3, 0), Claim::Blocked);
    for frame in [2, 1] {
        (0..6).for_each(|index| {
            take(&mut assembly, now, frame, index);
        });
    }
    for frame in [1, 2] {
        let ending = assembly.poll_ending().unwrap();
        assert!(ending.whole && ending.frame == frame);
        assembly.release(now, ending.slot);
    }
    assert!(matches!(claim(&mut assembly, now, 3, 0), Claim::Place(_)));
}

#[test]
fn nothing_is_ended_where_nothing_is_lost() {
    let (mut assembly, now) = (reliable(), Instant::now());
    take(&mut assembly, now, 0, 0);
    for index in 0..6 {
        assert!(!take(&mut assembly, now, 1, index));
    }
    assert_eq!(assembly.poll_timeout(), None);
    assert!(!assembly.handle_timeout(now + 1_000 * MS));
    assert_eq!(claim(&mut assembly, now, 2, 0), Claim::Blocked);
    for index in 1..6 {
        take(&mut assembly, now, 0, index);
    }
    for frame in 0..2 {
        let ending = assembly.poll_ending().unwrap();
        assert!(ending.whole && ending.frame == frame);
        assembly.release(now, ending.slot);
    }
    assert!(matches!(claim(&mut assembly, now, 2, 0), Claim::Place(_)));
}

/// Claims this number of packets of a frame far ahead, all of which are discarded.
fn believe(assembly: &mut Assembly, now: Instant, frame: u8, packets: u32) {
    for index in 0..packets {
        assert_eq!(claim(assembly, now, frame, index % 6), Claim::Discard(Discard::Jump));
    }
}

#[test]
fn one_packet_from_the_future_does_not_end_the_present() {
    let plan = Plan::new(&[(400, 400)], 10).unwrap();
    let (mut assembly, now) = (Assembly::new(plan, AssemblyOptions::default()), Instant::now());
    // Any bit of the frame number may be wrong, except the lowest, which names the next frame.
    for (frame, bit) in (0..60_u8).zip((1..7).cycle()) {
        for index in 0..40 {
            take(&mut assembly, now, frame, index);
            if index % 8 == 0 {
                claim_ahead(&mut assembly, now, frame.wrapping_add(1 << bit));
            }
        }
        let ending = assembly.poll_ending().unwrap();
        assert!(ending.whole && ending.frame == u64::from(frame));
        assembly.release(now, ending.slot);
    }
}

#[test]
fn a_large_frame_after_a_lost_one_is_accepted_with_its_third_packet() {
    let plan = Plan::new(&[(400, 400)], 10).unwrap();
    let (mut assembly, now) = (Assembly::new(plan, AssemblyOptions::default()), Instant::now());
    for frame in [2, 3] {
        claim_ahead(&mut assembly, now, frame);
    }
    assert_eq!(claim(&mut assembly, now, 3, 2), Claim::Blocked);
    let deadline = assembly.poll_timeout().unwrap();
    take(&mut assembly, deadline, 3, 2);
}

/// Claims a packet ahead, which is discarded at once or after 2 ms.
fn claim_ahead(assembly: &mut Assembly, now: Instant, frame: u8) {
    let claimed = claim(assembly, now, frame, 0);
    if claimed == Claim::Blocked {
        assert_eq!(claim(assembly, now + MS, frame, 0), Claim::Blocked);
        assert_eq!(claim(assembly, now + 2 * MS, frame, 0), Claim::Discard(Discard::Jump));
    } else {
        assert_eq!(claimed, Claim::Discard(Discard::Jump));
    }
}

#[test]
fn a_frame_that_is_seen_early_waits_to_become_the_next() {
    let plan = Plan::new(&[(400, 400)], 10).unwrap();
    let (mut assembly, now) = (Assembly::new(plan, AssemblyOptions::default()), Instant::now());
    assert_eq!(claim(&mut assembly, now, 2, 0), Claim::Blocked);
    for frame in 0..2 {
        (0..40).for_each(|index| {
            take(&mut assembly, now, frame, index);
        });
        let ending = assembly.poll_ending().unwrap();
        assembly.release(now, ending.slot);
    }
    take(&mut assembly, now, 2, 0);
    assert_eq!(assembly.statistics().packets_invalid, 0);
}

#[test]
fn frames_far_ahead_are_accepted_when_enough_packets_confirm_them() {
    let (mut assembly, now) = (assembly(), Instant::now());
    take_all(&mut assembly, now, 0);
    believe(&mut assembly, now, 100, 7);
    assert_eq!(claim(&mut assembly, now, 100, 0), Claim::Blocked);
    let deadline = assembly.poll_timeout().unwrap();
    take(&mut assembly, deadline, 100, 0);
    assert!(assembly.finish(0));
    assert_eq!(assembly.statistics().frames_lost, 99);
}

#[test]
fn small_frames_far_ahead_confirm_each_other() {
    let plan = Plan::new(&[(10, 10)], 10).unwrap();
    let (mut assembly, now) = (Assembly::new(plan, AssemblyOptions::default()), Instant::now());
    for frame in [50, 51, 53, 54, 55, 59, 60] {
        assert_eq!(claim(&mut assembly, now, frame, 0), Claim::Discard(Discard::Jump));
    }
    assert_eq!(claim(&mut assembly, now, 61, 0), Claim::Blocked);
    let deadline = assembly.poll_timeout().unwrap();
    take(&mut assembly, deadline, 61, 0);
}

#[test]
fn announced_frames_are_known_after_any_outage() {
    let (mut assembly, now) = (assembly(), Instant::now());
    take_all(&mut assembly, now, 0);
    assembly.note_announced(now + 99 * MS, 500);
    assert_eq!(take_all(&mut assembly, now + 99 * MS, 1).frame, 1);
    let now = now + 199 * MS;
    assembly.note_announced(now, 1_000);
    assert_eq!(claim(&mut assembly, now, (1_001 % 256) as u8, 0), Claim::Blocked);
    let deadline = assembly.poll_timeout().unwrap();
    take(&mut assembly, deadline, (1_001 % 256) as u8, 0);
    assert!(assembly.finish(0));
    assert_eq!(assembly.poll_ending().map(|ending| ending.frame), Some(1_001));
}

#[test]
fn frames_that_were_sent_and_never_seen_are_counted_at_the_end() {
    let (mut assembly, now) = (assembly(), Instant::now());
    take_all(&mut assembly, now, 0);
    take(&mut assembly, now, 2, 0);
    assert!(assembly.finish(7));
    assert_eq!(assembly.poll_ending().map(|ending| ending.frame), Some(2));
    let counts = assembly.statistics();
    let all = (counts.frames_whole, counts.frames_damaged, counts.frames_lost);
    assert_eq!((all, assembly.oldest()), ((1, 1, 5), 7));
    assert!(!assembly.finish(7) && !assembly.finish(3));
    assert_eq!(assembly.statistics(), counts, "nothing is counted twice");
}

#[test]
fn packets_that_wait_for_memory_keep_their_frames_numbers() {
    let (mut assembly, start) = (assembly(), Instant::now());
    // Frames 0 and 1 lack packets, so that frame 2 waits while the server continues.
    take(&mut assembly, start, 0, 0);
    take(&mut assembly, start, 1, 0);
    let now = start + 100 * MS;
    for at in [start + 50 * MS, now] {
        assert_eq!(claim(&mut assembly, at, 2, 0), Claim::Blocked);
        assembly.note_announced(at, 1_000);
    }
    assembly.handle_timeout(now);
    while let Some(ending) = assembly.poll_ending() {
        assembly.release(now, ending.slot);
    }
    take(&mut assembly, now, 2, 0);
    assert!(assembly.finish(3));
    assert_eq!(assembly.poll_ending().map(|ending| ending.frame), Some(2));
}

#[test]
fn the_last_frame_that_can_be_numbered_ends_nothing_else() {
    let options = AssemblyOptions { first_frame: u64::MAX, ..AssemblyOptions::default() };
    let (mut assembly, now) = (Assembly::new(plan(), options), Instant::now());
    assert_eq!(take_all(&mut assembly, now, 255).frame, u64::MAX);
}

#[test]
fn frame_numbers_go_round() {
    let (mut assembly, now) = (assembly(), Instant::now());
    for frame in 0..1_000_u64 {
        let ending = take_all(&mut assembly, now, frame as u8);
        assert_eq!(ending.frame, frame);
    }
    assert_eq!(assembly.statistics().frames_whole, 1_000);
    assert_eq!(assembly.statistics().frames_lost, 0);
}

#[test]
fn an_unclaimed_packet_is_missing_again() {
    let (mut assembly, now) = (assembly(), Instant::now());
    take(&mut assembly, now, 0, 0);
    let Claim::Place(open) = claim(&mut assembly, now, 0, 1) else { panic!() };
    assert!(!assembly.finish(0));
    assembly.unclaim(open.slot, 1);
    assert!(assembly.is_ready());
    assert_eq!(assembly.poll_ending().map(|ending| ending.missing), Some(5));
    assert_eq!(assembly.statistics().packets, 1);
}

#[test]
fn a_frame_of_which_all_is_taken_back_is_lost() {
    let (mut assembly, now) = (assembly(), Instant::now());
    let Claim::Place(open) = claim(&mut assembly, now, 0, 1) else { panic!() };
    assembly.unclaim(open.slot, 1);
    assert!(!assembly.finish(0));
    assert_eq!(assembly.poll_ending(), None);
    assert_eq!(assembly.statistics().frames_lost, 1);
    assert!(assembly.is_idle() && assembly.oldest() == 1);
}

proptest! {
    /// Any packets give frames in order, each at most once, with gaps where no packet was placed.
    #[test]
    fn any_packets_in_any_order_give_frames_in_order(
        packets in prop::collection::vec((any::<u8>(), 0_u32..8, 0_usize..12, 0_u64..30), 0..400),
        slots in 0_usize..6,
        reliable: bool,
    ) {
        let options = AssemblyOptions { slots, reliable, ..AssemblyOptions::default() };
        let mut assembly = Assembly::new(plan(), options);
        let mut now = Instant::now();
        let mut last = None;
        let mut memory = vec![[[None::<u64>; 25]; 2]; assembly.slots()];
        let mut gaps = Vec::new();
        for (frame, index, octets, later) in packets {
            now += Duration::from_millis(later);
            // Most frames are near, and most lengths right.
            let frame = if frame < 200 { frame % 6 } else { frame };
            let right = assembly.plan().locate(index).map_or(1, |span| span.bytes.len());
            let octets = if octets == 0 { 7 } else { right };
            let header = UnitHeader { frame, index };
            if let Claim::Place(place) = assembly.claim(now, header, octets) {
                prop_assert_eq!(place.bytes.len(), octets);
                memory[place.slot][place.unit][place.bytes].fill(Some(u64::from(frame)));
                assembly.land(place.slot, place.unit, 1);
            }
            assembly.handle_timeout(now);
            while let Some(ending) = assembly.poll_ending() {
                prop_assert!(last.is_none_or(|last| ending.frame > last));
                prop_assert!(ending.previous != Some(ending.slot));
                last = Some(ending.frame);
                assembly.gaps(ending.slot, &mut gaps);
                prop_assert_eq!(gaps.is_empty(), ending.whole);
                for gap in &gaps {
                    memory[ending.slot][gap.unit][gap.bytes.clone()].fill(Some(ending.frame % 256));
                }
                for unit in &memory[ending.slot] {
                    prop_assert!(unit.iter().all(|&it| it == Some(ending.frame % 256)));
                }
                assembly.release(now, ending.slot);
            }
        }
    }
}
