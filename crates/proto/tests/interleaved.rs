//! Senders that interleave NAL units, over a network that loses, duplicates and reorders packets:
//! access units are delivered in decoding order, whole or not at all.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod world;

use std::time::Duration;

use proptest::prelude::*;
use rushes_proto::payload::Delivery;
use rushes_proto::{RtpTimestamp, SequenceNumber};
use world::{Datagram, Kind, Listener, Seeded, Source, arrivals, interleave, path, send};

const KINDS: [Kind; 4] =
    [Kind::H265Numbered, Kind::H265Interleaved, Kind::H266Numbered, Kind::H266Interleaved];

struct Case {
    kind: Kind,
    sources: Vec<Source>,
    datagrams: Vec<Datagram>,
}

fn case(kind: Kind, random: &mut Seeded) -> Case {
    let mut number = 0;
    let mut unit = |random: &mut Seeded| {
        number += 1;
        let len = if random.below(4) == 0 { 200 + random.below(2000) } else { random.below(150) };
        kind.unit(number, len as usize, random)
    };
    let mut source = || {
        let units = (0..=random.below(6)).map(|_| unit(random)).collect();
        Source::new(kind, units)
    };
    let sources: Vec<Source> = (0..60).map(|_| source()).collect();
    let first = (SequenceNumber(65_500), RtpTimestamp(u32::MAX - 40_000));
    let datagrams = send(kind, &sources, 400, first);
    let datagrams =
        if kind.is_interleaved() { interleave(datagrams, kind, random) } else { datagrams };
    Case { kind, sources, datagrams }
}

impl Case {
    fn run(&self, arrivals: &[(Duration, usize)]) -> Vec<Vec<u8>> {
        let mut listener = Listener::new(self.kind, Delivery::AccessUnit);
        for (time, n) in arrivals {
            listener.take(*time, &self.datagrams[*n].octets);
        }
        listener.finish();
        listener.frames.iter().map(|frame| frame.to_vec()).collect()
    }

    fn lens(&self) -> impl Iterator<Item = usize> {
        self.datagrams.iter().map(|datagram| datagram.octets.len())
    }

    fn sent(&self) -> Vec<Vec<u8>> {
        self.sources.iter().map(|source| source.delivered(self.kind)).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn without_loss_all_units_arrive_except_those_waiting_at_the_end(
        kind in prop::sample::select(KINDS.to_vec()), seed in any::<u64>(),
        duplication in 0.0..0.3, reordering in 0.0..0.5,
    ) {
        let mut random = Seeded(seed);
        let case = case(kind, &mut random);
        let path = path(0.0, duplication, reordering);
        let delivered = case.run(&arrivals(case.lens(), &path, &mut random));
        let sent = case.sent();
        // Only units within 64 of the last one may still be waiting.
        prop_assert!(delivered.len() >= sent.len() / 4, "{} of {}", delivered.len(), sent.len());
        prop_assert!(sent.starts_with(&delivered));
    }

    #[test]
    fn losses_make_no_partial_frames(
        kind in prop::sample::select(KINDS.to_vec()), seed in any::<u64>(),
        loss in 0.001..0.2, duplication in 0.0..0.2, reordering in 0.0..0.3,
    ) {
        let mut random = Seeded(seed);
        let case = case(kind, &mut random);
        let path = path(loss, duplication, reordering);
        let mut arrivals = arrivals(case.lens(), &path, &mut random);
        // A loss before the first arrival cannot be detected.
        arrivals.splice(..0, (0..4).map(|n| (Duration::ZERO, n)));
        let mut sent = case.sent().into_iter();
        for frame in case.run(&arrivals) {
            prop_assert!(sent.any(|sent| sent == frame), "a frame that was never sent");
        }
    }
}
