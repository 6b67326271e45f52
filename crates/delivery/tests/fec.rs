//! Frames with repair packets over a simulated network, in virtual time: the loss that is left against
//! theory, with requests for missing packets beside them, out of order, and from hostile senders.
//!
//! `cargo test -p rushes-delivery --test fec -- --ignored --nocapture` prints the whole table.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, reason = "any instant will do")]

mod fec_world;

use std::time::{Duration, Instant};

use fec_world::{FRAMES, Outcome, PACKETS, Setting, UNIT_PACKETS, UNITS, World};
use rushes_delivery::{
    Assembly, AssemblyOptions, Claim, Decoder, Discard, Encoder, Plan, RepairOutcome, UnitHeader,
};
use rushes_netsim::{Loss, Path, Straying};

const MS: Duration = Duration::from_millis(1);

/// A path that is in one of two states: good, or bad, where it loses everything (Gilbert 1960).
#[derive(Clone, Copy, Debug)]
struct Chain {
    /// The probabilities of going from good to bad and from bad to good, before each packet.
    enter: f64,
    leave: f64,
}

impl Chain {
    fn of(loss: &Loss) -> Self {
        match *loss {
            Loss::None => Self { enter: 0.0, leave: 1.0 },
            Loss::Independent(loss) => Self { enter: loss, leave: 1.0 - loss },
            Loss::GilbertElliott { enter, leave, .. } => Self { enter, leave },
            Loss::Outage(_) => panic!("not a chain"),
        }
    }

    /// Returns the probabilities that so many of a number of packets in a row are lost, in either state
    /// after them, from these probabilities of the states before them.
    fn lost(self, packets: u32, [good, bad]: [f64; 2]) -> Vec<[f64; 2]> {
        let mut counts = vec![[0.0; 2]; packets as usize + 1];
        counts[0] = [good, bad];
        for sent in 0..packets as usize {
            for lost in (0..=sent + 1).rev() {
                let at = |lost: Option<usize>| lost.map_or([0.0; 2], |lost| counts[lost]);
                let (same, fewer) = (at(Some(lost)), at(lost.checked_sub(1)));
                counts[lost] = [
                    same[0] * (1.0 - self.enter) + same[1] * self.leave,
                    fewer[0] * self.enter + fewer[1] * (1.0 - self.leave),
                ];
            }
        }
        counts
    }

    /// Returns the share of packets of a block that stays lost, and the probability that any does: if
    /// more of the block and its repair packets, which follow it, are lost than there are repair packets.
    fn residual(self, packets: u32, repairs: u32) -> (f64, f64) {
        let bad = self.enter / (self.enter + self.leave);
        let (mut share, mut any) = (0.0, 0.0);
        for (lost, states) in self.lost(packets, [1.0 - bad, bad]).into_iter().enumerate().skip(1) {
            let left = (repairs as usize + 1).saturating_sub(lost);
            let of_repairs = self.lost(repairs, states);
            let fails: f64 = of_repairs.iter().skip(left).flatten().sum();
            share += fails * lost as f64 / f64::from(packets);
            any += fails;
        }
        (share, any)
    }
}

/// Checks that the packets and the frames that are left damaged are within four standard deviations of
/// theory; returns the share of packets that stays lost, and that of theory.
fn check(percent: u8, loss: &Loss, delay: Duration, seed: u64) -> (f64, f64) {
    let path = Path { delay, loss: loss.clone(), ..Path::default() };
    let outcome = World::new(&path, seed, Setting { percent, ..Setting::default() }).run();
    let repairs = (UNIT_PACKETS * u32::from(percent)).div_ceil(100);
    let (share, any) = Chain::of(loss).residual(UNIT_PACKETS, repairs);
    let whole = (1.0 - any).powf(UNITS as f64);
    let lost: Vec<_> = outcome.lost.iter().map(|lost| f64::from(*lost)).collect();
    let frames = lost.len() as f64;
    let mean = lost.iter().sum::<f64>() / frames;
    let spread: f64 = lost.iter().map(|lost| (lost - mean).powi(2)).sum();
    let expected = share * f64::from(PACKETS);
    // Packets stay lost by the block.
    let variance = (spread / frames).max(expected * f64::from(repairs + 1));
    let deviation = (variance / frames).sqrt();
    assert!(
        (mean - expected).abs() <= 4.0 * deviation,
        "{percent} %, {loss:?}, {delay:?}: {mean} of {PACKETS} instead of {expected}"
    );
    let damaged = lost.iter().filter(|lost| **lost > 0.0).count() as f64;
    let deviation = (frames * whole * (1.0 - whole)).sqrt().max(1.0);
    assert!(
        (damaged - frames * (1.0 - whole)).abs() <= 4.0 * deviation,
        "{percent} %, {loss:?}, {delay:?}: {damaged} frames instead of {}",
        frames * (1.0 - whole)
    );
    assert_eq!(outcome.counts.packets_requested, 0);
    (mean / f64::from(PACKETS), share)
}

const RATIOS: [u8; 5] = [5, 10, 20, 25, 50];

#[test]
fn what_stays_lost_is_what_theory_says_over_paths_of_any_delay() {
    for (delay, ratios) in [(10, [5, 20]), (300, [10, 50])] {
        for percent in ratios {
            for loss in [0.0, 0.05, 0.2] {
                for loss in [Loss::Independent(loss), Loss::bursts(loss, 3.0, 1_000)] {
                    check(percent, &loss, MS * delay, u64::from(percent));
                }
            }
        }
    }
}

#[test]
fn theory_of_independent_losses_is_the_binomial_distribution() {
    let choose =
        |n: u32, k: u32| (1..=k).fold(1.0, |all, i| all * f64::from(n + 1 - i) / f64::from(i));
    let exactly = |n: u32, k: u32, p: f64| {
        choose(n, k) * p.powi(k.cast_signed()) * (1.0 - p).powi((n - k).cast_signed())
    };
    for (percent, loss) in RATIOS.into_iter().zip([0.01, 0.05, 0.1, 0.2, 0.3]) {
        let repairs = (UNIT_PACKETS * u32::from(percent)).div_ceil(100);
        let all = UNIT_PACKETS + repairs;
        let fails: f64 = (repairs + 1..=all).map(|lost| exactly(all, lost, loss)).sum();
        let share: f64 = (repairs + 1..=all)
            .map(|lost| f64::from(lost) / f64::from(all) * exactly(all, lost, loss))
            .sum();
        let residual = Chain::of(&Loss::Independent(loss)).residual(UNIT_PACKETS, repairs);
        assert!((residual.0 - share).abs() < 1e-9 && (residual.1 - fails).abs() < 1e-9);
    }
}

/// Prints in percent what is left, and in parentheses what theory says.
#[test]
#[ignore = "takes minutes"]
fn the_whole_table_is_that_of_theory() {
    for name in ["independent", "bursts"] {
        for delay in [10, 30, 100, 300] {
            println!("{name}, {delay} ms one way; by ratio: {RATIOS:?} %");
            for share in [0.0, 0.01, 0.05, 0.1, 0.2] {
                let cells = RATIOS.map(|percent| {
                    let bursts = Loss::bursts(share, 3.0, 1_000);
                    let loss = if name == "bursts" { bursts } else { Loss::Independent(share) };
                    let (left, expected) = check(percent, &loss, MS * delay, delay.into());
                    format!("{:.3} ({:.3})", left * 100.0, expected * 100.0)
                });
                println!("{:>4} %: {}", share * 100.0, cells.join("  "));
            }
        }
    }
}

/// Runs a stream with a round trip of 20 ms with requests, repair packets, or both.
fn both_and_each(path: &Path, percent: u8, seed: u64) -> [Outcome; 3] {
    [(true, percent), (true, 0), (false, percent)].map(|(recovery, percent)| {
        World::new(path, seed, Setting { percent, recovery, ..Setting::default() }).run()
    })
}

fn path(loss: Loss) -> Path {
    Path { delay: 10 * MS, loss, ..Path::default() }
}

#[test]
fn nothing_is_requested_that_the_code_recovers_or_on_a_path_that_loses_nothing() {
    for (loss, percent) in [(Loss::None, 20), (Loss::Independent(0.02), 50)] {
        let [both, ..] = both_and_each(&path(loss), percent, 1);
        assert_eq!(both.counts.frames_whole, FRAMES);
        assert_eq!((both.counts.packets_requested, both.sent_again), (0, 0));
    }
}

#[test]
fn with_both_only_what_the_code_cannot_give_is_requested() {
    for (loss, share) in [(Loss::Independent(0.05), 0.1), (Loss::bursts(0.05, 5.0, 30), 0.6)] {
        let [both, requests, repairs] = both_and_each(&path(loss.clone()), 10, 7);
        println!("{loss:?}\n  {:?}\n  {:?}\n  {:?}", both.counts, requests.counts, repairs.counts);
        assert!(both.counts.frames_whole >= FRAMES * 99 / 100, "{both:?}");
        assert!(repairs.counts.frames_whole < FRAMES * 9 / 10, "{repairs:?}");
        // Of a block that lacks 6 packets and has 4 repair packets, 2 are requested.
        let [both, requests] = [both, requests].map(|outcome| outcome.sent_again as f64);
        assert!(both < requests * share, "{both} {requests}");
    }
}

#[test]
fn where_no_answer_can_be_in_time_repair_packets_do_what_they_can() {
    let far = Path { delay: 75 * MS, loss: Loss::Independent(0.05), ..Path::default() };
    let [both, requests, repairs] = both_and_each(&far, 20, 1);
    assert_eq!(both.counts, repairs.counts);
    assert_eq!((both.counts.packets_requested, requests.counts.packets_requested), (0, 0));
    assert!(
        both.counts.frames_whole > FRAMES * 95 / 100 && requests.counts.frames_whole < FRAMES / 10
    );
}

#[test]
fn a_burst_of_a_whole_unit_is_repaired_if_there_are_as_many_repair_packets() {
    let unit = u64::from(UNIT_PACKETS);
    let outage = Loss::Outage(unit * 2 * 100..unit * 2 * 100 + unit);
    let outcome =
        World::new(&path(outage), 1, Setting { percent: 100, ..Setting::default() }).run();
    assert_eq!((outcome.counts.frames_whole, outcome.counts.packets_repaired), (FRAMES, 2 * unit));
}

#[test]
fn bursts_are_spread_over_the_blocks_of_a_long_stripe() {
    // Two blocks of 200 packets and 10 repair packets each.
    for (lost, whole) in [(20, FRAMES), (21, FRAMES - 1)] {
        let path = path(Loss::Outage(4_200..4_200 + lost));
        let setting = Setting { percent: 5, unit_packets: 400, ..Setting::default() };
        let outcome = World::new(&path, 1, setting).run();
        assert_eq!(outcome.counts.frames_whole, whole, "{lost}: {outcome:?}");
    }
}

#[test]
fn late_packets_and_copies_hundreds_of_places_away_change_nothing() {
    let late = Path {
        reordering: Straying::places(0.02, 20..=500),
        duplication: Straying::places(0.05, 0..=500),
        ..path(Loss::Independent(0.02))
    };
    for percent in [20, 50] {
        let [both, requests, _] = both_and_each(&late, percent, 3);
        println!("{percent} %: {:?} {:?}", both.counts, requests.counts);
        assert!(both.counts.frames_whole >= FRAMES * 99 / 100, "{both:?}");
        assert!(both.sent_again <= requests.sent_again, "{both:?} {requests:?}");
    }
}

#[test]
fn packets_that_others_overtook_do_not_stay_counted_as_lost() {
    for loss in [0.0, 0.01] {
        let late =
            Path { reordering: Straying::places(0.02, 10..=40), ..path(Loss::Independent(loss)) };
        for recovery in [false, true] {
            let setting = Setting { percent: 20, recovery, ..Setting::default() };
            let counts = World::new(&late, 4, setting).run().counts;
            let lost = counts.packets_lost + counts.packets_recovered + counts.packets_repaired;
            let lost = (lost - counts.repaired_late) as f64 / (FRAMES * u64::from(PACKETS)) as f64;
            println!("{loss} {recovery}: {lost} {counts:?}");
            assert!(counts.repaired_late > 100, "{counts:?}");
            assert!((lost - loss).abs() < 0.003, "{loss}: {lost} {counts:?}");
        }
    }
}

#[test]
fn a_packet_that_was_computed_and_arrives_is_counted_once() {
    let plan = Plan::new(&[(8, 8), (8, 8)], 2).unwrap();
    let options = AssemblyOptions { fec: true, recovery: true, ..AssemblyOptions::default() };
    let mut assembly = Assembly::new(plan.clone(), options);
    let (now, mut decoder, mut octets) = (Instant::now(), Decoder::new(), [0; 8]);
    let mut encoder = Encoder::new();
    let mut recover = |assembly: &mut Assembly, unit: usize| {
        let packets = plan.unit_packets(unit);
        for index in packets.start..packets.end - 2 {
            assert!(matches!(
                assembly.claim(now, UnitHeader { frame: 0, index }, 2),
                Claim::Place(_)
            ));
        }
        assembly.land(0, unit, 2);
        let stripe = plan.stripe(unit, 0).unwrap();
        for (index, octets) in encoder.encode(&plan, &stripe, 50, &[0; 8]) {
            assembly.take_repair(now, UnitHeader { frame: 0, index }, octets);
        }
        let repair = assembly.poll_repair(&mut decoder).unwrap();
        assert!(decoder.repair(&plan, &repair, &mut octets));
        assembly.land_repair(&repair, true)
    };
    let late = |assembly: &mut Assembly, index, why| {
        let claim = assembly.claim(now, UnitHeader { frame: 0, index }, 2);
        assert_eq!(claim, Claim::Discard(why), "{index}");
        assembly.statistics().repaired_late
    };
    assert!(!recover(&mut assembly, 0).ended);
    assert_eq!(late(&mut assembly, 0, Discard::Duplicate), 0, "one that had arrived");
    assert_eq!(late(&mut assembly, 8 + 2, Discard::Duplicate), 0, "one that was sent again");
    assert_eq!(late(&mut assembly, 2, Discard::Duplicate), 1);
    assert_eq!(late(&mut assembly, 2, Discard::Duplicate), 1, "a copy");
    assert!(recover(&mut assembly, 1).ended);
    assert_eq!(late(&mut assembly, 3, Discard::Late), 2, "the frame has ended");
    assert_eq!(late(&mut assembly, 6, Discard::Late), 3);
    assert_eq!(late(&mut assembly, 6, Discard::Late), 3);
    let ending = assembly.poll_ending().unwrap();
    assembly.release(now, ending.slot);
    assert_eq!(late(&mut assembly, 7, Discard::Late), 4, "the frame was handed over");
    assert_eq!(assembly.statistics().packets_repaired, 4);
}

#[test]
fn packets_and_repair_packets_of_any_length_are_recovered() {
    for (payload, last) in [(1, 1), (2, 1), (7, 3), (64, 63), (65, 1), (130, 129)] {
        let setting = Setting { percent: 30, payload, last, recovery: true, ..Setting::default() };
        let outcome = World::new(&path(Loss::Independent(0.05)), 9, setting).run();
        assert!(outcome.counts.packets_repaired > 1_000, "{payload}: {outcome:?}");
        assert!(outcome.counts.frames_whole >= FRAMES * 99 / 100, "{payload}: {outcome:?}");
    }
}

#[test]
fn a_client_whose_server_sends_no_repair_packets_has_what_it_had() {
    let path = path(Loss::Independent(0.02));
    let with = World::new(&path, 1, Setting { recovery: true, ..Setting::default() }).run();
    let setting = Setting { recovery: true, is_ignorant: true, ..Setting::default() };
    let without = World::new(&path, 1, setting).run();
    assert_eq!((with.counts, with.sent_again), (without.counts, without.sent_again));
    // One that does not know them counts them as invalid.
    let setting = Setting { percent: 20, is_ignorant: true, ..Setting::default() };
    let ignorant = World::new(&path, 1, setting).run();
    assert!(ignorant.counts.packets_invalid > 0);
    assert_eq!((ignorant.counts.packets_repaired, ignorant.counts.repairs), (0, 0));
}

#[test]
fn packets_recorded_and_sent_again_change_nothing() {
    let path = path(Loss::Independent(0.03));
    let setting = Setting { percent: 20, ..Setting::default() };
    let alone = World::new(&path, 5, setting).run();
    let with = World::new(&path, 5, Setting { is_replayed: true, ..setting }).run();
    assert_eq!(with.lost, alone.lost);
    let [counts, alone] = [with.counts, alone.counts];
    assert_eq!(
        (counts.frames_whole, counts.packets, counts.packets_repaired),
        (alone.frames_whole, alone.packets, alone.packets_repaired)
    );
    assert!(counts.packets_duplicate + counts.packets_late > counts.packets, "{counts:?}");
}

#[test]
fn forged_repair_packets_replace_nothing_that_arrived() {
    for forged in [1, 3_000] {
        let setting = Setting { percent: 20, forged, recovery: true, ..Setting::default() };
        let outcome = World::new(&path(Loss::Independent(0.03)), 5, setting).run();
        println!("{forged}: {:?}", outcome.counts);
        let counts = outcome.counts;
        let ended = counts.frames_whole + counts.frames_damaged + counts.frames_lost;
        assert_eq!(ended, FRAMES, "{outcome:?}");
        let all = counts.packets + counts.packets_repaired + counts.packets_lost;
        assert_eq!(all, (FRAMES - counts.frames_lost) * u64::from(PACKETS));
        // Only what is computed with forged packets can be wrong.
        assert!(outcome.wrong <= counts.packets_repaired, "{outcome:?}");
        assert!(counts.packets_invalid > 0, "wrong numbers and lengths are refused: {counts:?}");
    }
}

/// A client of frames of four packets, with two repair packets each (50 %), and the packets of one.
fn four() -> (Assembly, Plan, Vec<(u32, Vec<u8>)>) {
    let plan = Plan::new(&[(8, 8)], 2).unwrap();
    let options = AssemblyOptions { fec: true, ..AssemblyOptions::default() };
    let (octets, stripe) = ([1, 2, 3, 4, 5, 6, 7, 8], plan.stripe(0, 0).unwrap());
    let mut packets: Vec<_> = (0..).zip(octets.chunks(2).map(<[u8]>::to_vec)).collect();
    let mut encoder = Encoder::new();
    let repairs = encoder.encode(&plan, &stripe, 50, &octets);
    packets.extend(repairs.map(|(number, octets)| (number, octets.to_vec())));
    (Assembly::new(plan.clone(), options), plan, packets)
}

#[test]
fn a_block_is_not_computed_before_all_packets_of_its_unit_are_in_place() {
    let (mut assembly, plan, packets) = four();
    let (now, mut decoder, mut memory) = (Instant::now(), Decoder::new(), vec![0; 8]);
    for (index, octets) in &packets[..3] {
        let header = UnitHeader { frame: 0, index: *index };
        let Claim::Place(place) = assembly.claim(now, header, 2) else { panic!() };
        memory[place.bytes].copy_from_slice(octets);
    }
    let header = UnitHeader { frame: 0, index: packets[4].0 };
    assert_eq!(assembly.take_repair(now, header, &packets[4].1), RepairOutcome::Kept);
    assembly.land(0, 0, 2);
    assert_eq!(assembly.poll_repair(&mut decoder), None, "the octets of one are not in place");
    assembly.land(0, 0, 1);
    // One that could not be computed is missing again, and not tried again at once.
    let repair = assembly.poll_repair(&mut decoder).unwrap();
    assembly.land_repair(&repair, false);
    assert_eq!(assembly.poll_repair(&mut decoder), None);
    let header = UnitHeader { frame: 0, index: packets[5].0 };
    assert_eq!(
        assembly.take_repair(now, header, &packets[5].1),
        RepairOutcome::Discarded(Discard::Unneeded)
    );
    assert!(assembly.finish(1));
    assert_eq!(assembly.poll_ending().map(|ending| ending.missing), Some(1));
    // Of the next frame, it is computed although the frame ends meanwhile.
    let (mut assembly, _, _) = four();
    for (index, _) in &packets[..3] {
        assembly.claim(now, UnitHeader { frame: 0, index: *index }, 2);
    }
    assembly.land(0, 0, 3);
    let header = UnitHeader { frame: 0, index: packets[5].0 };
    assembly.take_repair(now, header, &packets[5].1);
    let repair = assembly.poll_repair(&mut decoder).unwrap();
    assert!(!assembly.finish(1), "octets are being written");
    assert!(decoder.repair(&plan, &repair, &mut memory));
    assert_eq!(memory, [1, 2, 3, 4, 5, 6, 7, 8]);
    assert!(assembly.land_repair(&repair, true).ended);
    assert!(assembly.poll_ending().unwrap().whole);
}

#[test]
fn a_repair_packet_of_a_frame_that_ended_long_ago_is_late() {
    let (mut assembly, _, packets) = four();
    let (index, octets) = &packets[4];
    let now = Instant::now();
    assembly.finish(30);
    for (frame, why) in [(29, Discard::Unneeded), (22, Discard::Unneeded), (21, Discard::Late)] {
        let outcome = assembly.take_repair(now, UnitHeader { frame, index: *index }, octets);
        assert_eq!(outcome, RepairOutcome::Discarded(why), "{frame}");
    }
}

#[test]
fn nothing_is_computed_for_a_ratio_or_a_stripe_that_does_not_exist() {
    let (_, plan, _) = four();
    let (mut encoder, stripe) = (Encoder::new(), plan.stripe(0, 0).unwrap());
    for (percent, octets) in [(0, 8), (101, 8), (255, 8), (50, 7)] {
        assert_eq!(encoder.encode(&plan, &stripe, percent, &vec![0; octets]).count(), 0);
    }
    let large = Plan::new(&[(1 << 24, 1 << 10)], 1).unwrap();
    let stripe = large.stripe(0, 1).unwrap();
    assert_eq!(encoder.encode(&large, &stripe, 255, &[0; 1 << 10]).count(), 0);
}
