//! Whatever the network does, no damaged unit is delivered, and every unit whose packets arrived in
//! time is delivered once and in order.
//!
//! Octets are not corrupted here, because RTP cannot detect that; the checksum of UDP or SRTP does.
//! Corrupted packets are tested in `mutation.rs`.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod world;

use std::collections::HashSet;
use std::time::Duration;

use proptest::prelude::*;
use rushes_netsim::Path;
use rushes_proto::payload::Delivery;
use rushes_proto::{RtpTimestamp, SequenceNumber};
use world::{Datagram, Kind, Listener, Seeded, Source, arrivals, path, send};

/// Returns `frames` frames: large ones, small ones, and ones near the size of a packet.
fn sources(kind: Kind, frames: usize, random: &mut Seeded) -> Vec<Source> {
    let mut number = 0;
    let mut unit = |random: &mut Seeded| {
        number += 1;
        let len = match random.below(10) {
            0 => 10_000 + random.below(20_000),
            1..4 => 500 + random.below(3000),
            _ => random.below(200),
        };
        let len = if kind.has_one_packet_frames() { len.min(30) } else { len };
        kind.unit(number, len as usize, random)
    };
    (0..frames)
        .map(|_| {
            let units = if kind.has_nal_units() { 1 + random.below(12) } else { 1 };
            let delimiter = kind.delimiter().filter(|_| random.chance(0.2));
            Source::new(
                kind,
                delimiter.into_iter().chain((0..units).map(|_| unit(random))).collect(),
            )
        })
        .collect()
}

#[derive(Debug)]
struct Case {
    kind: Kind,
    sources: Vec<Source>,
    datagrams: Vec<Datagram>,
    /// The time and number of each arriving datagram.
    arrivals: Vec<(Duration, usize)>,
}

fn case(kind: Kind, seed: u64, mtu: usize, path: &Path) -> Case {
    let mut random = Seeded(seed);
    let sources = sources(kind, 30, &mut random);
    // The numbers are close to both wraps, so that these occur in the middle.
    let first = (
        SequenceNumber(65_535_u16.wrapping_sub(random.below(200) as u16)),
        RtpTimestamp(u32::MAX - random.below(50_000) as u32),
    );
    let datagrams = send(kind, &sources, mtu - 28, first);
    let lens = datagrams.iter().map(|datagram| datagram.octets.len());
    let arrivals = arrivals(lens, path, &mut random);
    Case { kind, sources, datagrams, arrivals }
}

impl Case {
    /// Delivers the datagrams to a listener.
    fn run(&self, delivery: Delivery) -> Listener {
        let mut listener = Listener::new(self.kind, delivery);
        for (time, n) in &self.arrivals {
            listener.take(*time, &self.datagrams[*n].octets);
            let held = listener.receiver.statistics().held_octets;
            assert!(held <= 16 << 20, "{held} octets held");
        }
        listener.finish();
        listener
    }

    /// Returns the numbers of arriving datagrams, in order of arrival.
    fn arrived(&self) -> impl Iterator<Item = usize> {
        self.arrivals.iter().map(|(_, n)| *n)
    }

    fn missing(&self) -> HashSet<usize> {
        let arrived: HashSet<usize> = self.arrived().collect();
        (0..self.datagrams.len()).filter(|n| !arrived.contains(n)).collect()
    }

    /// Returns whether the oldest packet is among the first two to arrive, which make a source
    /// believed. If not, it is late, a case that the properties below exclude.
    fn is_believed(&self) -> bool {
        let mut seen = HashSet::new();
        let first_two: Vec<_> = self.arrived().filter(|n| seen.insert(*n)).take(2).collect();
        first_two.len() == 2 && first_two.contains(&self.arrived().min().unwrap())
    }
}

/// Checks that every unit whose packets all arrived is delivered, in order, and no other.
fn check_units(case: &Case) {
    if !case.is_believed() {
        return;
    }
    let missing = case.missing();
    let mut expected = Vec::new();
    for (frame, source) in case.sources.iter().enumerate() {
        for (number, unit) in source.units.iter().enumerate() {
            let touched = missing.iter().any(|n| {
                let datagram = &case.datagrams[*n];
                datagram.frame == frame && datagram.units.contains(&number)
            });
            if !touched {
                expected.push(Source::new(case.kind, vec![unit.clone()]).delivered(case.kind));
            }
        }
    }
    let listener = case.run(Delivery::Unit);
    let delivered: Vec<Vec<u8>> = listener.frames.iter().map(|frame| frame.to_vec()).collect();
    let differs = delivered.iter().zip(&expected).position(|(a, b)| a != b);
    assert_eq!(differs, None, "first difference");
    assert_eq!(delivered.len(), expected.len());
}

/// Checks that delivered frames are whole and in order, and that no frame is missing if all its
/// packets and the one before them arrived.
fn check_frames(case: &Case) {
    if !case.is_believed() {
        return;
    }
    let missing = case.missing();
    let listener = case.run(Delivery::AccessUnit);
    let mut delivered = listener.frames.iter().map(|frame| frame.to_vec()).peekable();
    let first_arrived = case.arrived().min().unwrap();
    let joined = case.datagrams[first_arrived].frame;
    if first_arrived > 0 && case.datagrams[first_arrived - 1].frame == joined {
        // Packets lost before the first arrival cannot be distinguished from a late start, so the
        // rest of this frame may be mistaken for a frame.
        let whole = case.sources[joined].delivered(case.kind);
        delivered.next_if(|first| whole.ends_with(first));
    }
    for (number, source) in case.sources.iter().enumerate() {
        let packets: Vec<usize> =
            (0..case.datagrams.len()).filter(|n| case.datagrams[*n].frame == number).collect();
        let first = packets[0];
        let whole = packets.iter().all(|n| !missing.contains(n));
        let sure = first == 0 || !missing.contains(&(first - 1));
        if delivered.peek() == Some(&source.delivered(case.kind)) {
            assert!(whole, "frame {number} is not whole");
            delivered.next();
        } else {
            assert!(!(whole && sure), "frame {number} arrived whole but is missing");
        }
    }
    assert_eq!(delivered.next(), None, "a frame that was never sent");
}

/// Units with decoding order numbers have other rules: see `interleaved.rs`.
fn kinds() -> impl Strategy<Value = Kind> {
    let kinds = Kind::ALL.into_iter().filter(|kind| !kind.is_numbered());
    prop::sample::select(kinds.collect::<Vec<_>>())
}

fn paths() -> impl Strategy<Value = Path> {
    (0.0..0.2, 0.0..0.2, 0.0..0.3).prop_map(|(loss, duplication, reordering)| {
        path(if loss < 0.1 { loss / 10.0 } else { loss }, duplication, reordering)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn units_are_delivered_whole_once_and_in_order(
        kind in kinds(), seed in any::<u64>(), mtu in 100..9000_usize, path in paths(),
    ) {
        // These frames are one unit, but it is unknown to which frame a lost packet belonged.
        prop_assume!(!matches!(kind, Kind::Av1 | Kind::Generic));
        check_units(&case(kind, seed, mtu, &path));
    }

    #[test]
    fn frames_are_delivered_whole_once_and_in_order(
        kind in kinds(), seed in any::<u64>(), mtu in 100..9000_usize, path in paths(),
    ) {
        prop_assume!(!kind.has_one_packet_frames());
        check_frames(&case(kind, seed, mtu, &path));
    }

    #[test]
    fn without_loss_everything_arrives(
        kind in kinds(), seed in any::<u64>(), mtu in 100..9000_usize,
        duplication in 0.0..0.3, reordering in 0.0..0.5,
    ) {
        let case = case(kind, seed, mtu, &path(0.0, duplication, reordering));
        let listener = case.run(Delivery::AccessUnit);
        let delivered: Vec<Vec<u8>> = listener.frames.iter().map(|frame| frame.to_vec()).collect();
        let expected: Vec<Vec<u8>> =
            case.sources.iter().map(|source| source.delivered(kind)).collect();
        prop_assert_eq!(delivered.len(), expected.len());
        prop_assert!(delivered == expected);
        let statistics = listener.receiver.statistics();
        prop_assert_eq!(statistics.packets, case.datagrams.len() as u64);
        prop_assert_eq!(statistics.packets_lost, 0);
    }

    #[test]
    fn every_packet_is_delivered_or_counted_lost(
        kind in kinds(), seed in any::<u64>(), mtu in 100..3000_usize, path in paths(),
    ) {
        let case = case(kind, seed, mtu, &path);
        prop_assume!(case.is_believed());
        let statistics = case.run(Delivery::AccessUnit).receiver.statistics();
        let first = case.arrived().min().unwrap();
        let last = case.arrived().max().unwrap();
        let span = (last - first + 1) as u64;
        prop_assert_eq!(statistics.packets + statistics.packets_lost, span);
        let lost = case.missing().into_iter().filter(|n| (first..last).contains(n)).count();
        prop_assert_eq!(statistics.packets_lost, lost as u64);
    }
}
