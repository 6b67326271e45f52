//! Round trips in all formats, with losses and forgeries, compared with the naive depacketiser.

use proptest::collection::vec;
use proptest::prelude::*;

use super::PayloadFormat;
use super::builder::{Delivery, Framing};
use super::generic::Generic;
use super::h264::H264;
use super::h265::H265;
use super::h266::H266;
use super::naive::{Codec, Naive, Verdict};
use super::rig::{Listener, Sent, annex_b, send};

const CODECS: [Codec; 5] = [
    Codec::Avc,
    Codec::Hevc { numbered: false },
    Codec::Hevc { numbered: true },
    Codec::Vvc { numbered: false },
    Codec::Vvc { numbered: true },
];

impl Codec {
    fn format(self, aggregate: bool) -> Box<dyn PayloadFormat> {
        let input = Framing::AnnexB;
        match self {
            Self::Avc => Box::new(H264 { input, aggregate, single_units: false }),
            Self::Hevc { numbered } => {
                let max_don_diff = numbered.into();
                Box::new(H265 { input, aggregate, max_don_diff, ..H265::default() })
            }
            Self::Vvc { numbered } => {
                let max_don_diff = numbered.into();
                Box::new(H266 { input, aggregate, max_don_diff, ..H266::default() })
            }
        }
    }

    fn is_numbered(self) -> bool {
        matches!(self, Self::Hevc { numbered: true } | Self::Vvc { numbered: true })
    }

    fn header_len(self) -> usize {
        if self == Self::Avc { 1 } else { 2 }
    }

    /// Returns a unit of `len` octets without zeros after its header, made from `seed`. If it is a
    /// slice, it is the first of its picture; it is never an access unit delimiter.
    pub(super) fn unit(self, seed: u32, len: usize) -> Vec<u8> {
        let byte = |n: u32| (seed.wrapping_mul(0x9e37_79b9).wrapping_add(n) >> 13) as u8;
        let header = match self {
            Self::Avc => vec![byte(1) & 0xe0 | (byte(2) % 23 + 1)],
            Self::Hevc { .. } => vec![byte(1) & 0x81 | (byte(2) % 48) << 1, byte(3) | 1],
            Self::Vvc { .. } => vec![byte(1) & 0xbf, (byte(2) % 28) << 3 | 1],
        };
        let body = (header.len()..len.max(header.len()))
            .map(|n| (seed.wrapping_add(n as u32).wrapping_mul(2_654_435_761) >> 24) as u8 | 1);
        let mut unit: Vec<u8> = header.iter().copied().chain(body).collect();
        match self {
            Self::Avc if unit[0] & 31 == 9 => unit[0] ^= 1,
            Self::Hevc { .. } if unit[0] >> 1 == 35 => unit[0] ^= 2,
            Self::Vvc { .. } if unit[1] >> 3 == 20 => unit[1] ^= 8,
            _ => {}
        }
        if let Some(first) = unit.get_mut(header.len()) {
            *first |= 0x80;
        }
        unit
    }
}

/// Returns an access unit delimiter.
fn delimiter(codec: Codec) -> Vec<u8> {
    match codec {
        Codec::Avc => vec![9, 0xf0],
        Codec::Hevc { .. } => vec![35 << 1, 1, 0x50],
        Codec::Vvc { .. } => vec![0, 20 << 3 | 1, 0x28],
    }
}

/// Returns the units or frames received from `sent`, all of whose packets have one timestamp.
fn receive(format: &dyn PayloadFormat, delivery: Delivery, sent: &[Sent]) -> Vec<Vec<u8>> {
    let mut listener = Listener::new(format, delivery);
    for payload in sent {
        assert_eq!(listener.take(&payload.octets, 7, payload.marker), Ok(()));
    }
    listener.finish();
    if delivery == Delivery::Unit { listener.units() } else { listener.frames() }
}

/// Checks the rules for the packets of a frame in all codecs.
fn check_packets(codec: Codec, sent: &[Sent], limit: usize) {
    let (last, others) = sent.split_last().unwrap();
    assert!(last.marker && others.iter().all(|payload| !payload.marker));
    for payload in sent {
        let octets = &payload.octets;
        let is_fragment = match codec {
            Codec::Avc => octets[0] & 31 == 28,
            Codec::Hevc { .. } => octets[0] >> 1 & 63 == 49,
            Codec::Vvc { .. } => octets[1] >> 3 == 29,
        };
        if is_fragment {
            let ends = octets[codec.header_len()] >> 6;
            assert_ne!(ends, 3, "a fragment is both start and end");
            assert!(octets.len() == limit || ends == 1, "a fragment is not full");
        }
    }
}

fn round_trip(codec: Codec, aggregate: bool, units: &[Vec<u8>], limit: usize) {
    let format = codec.format(aggregate);
    let frame = annex_b(units);
    let sent = send(format.packetiser().as_mut(), &frame, limit);
    check_packets(codec, &sent, limit);
    assert!(receive(format.as_ref(), Delivery::Unit, &sent) == units, "{codec:?} by unit");
    assert!(receive(format.as_ref(), Delivery::AccessUnit, &sent) == [frame], "{codec:?} whole");
    let mut naive = Naive::new(codec);
    for payload in &sent {
        assert_eq!(naive.push(&payload.octets, 7), Verdict::Good);
    }
    assert!(naive.units == units, "{codec:?} by the naive depacketiser");
}

#[test]
fn units_of_every_size_around_the_limit_are_restored() {
    for codec in CODECS {
        for limit in [64, 100, 1400, 8900, 65_000] {
            let around = limit - 9..=limit + 3;
            for len in around.chain([0, 3, 2 * limit - 3, 2 * limit + 1, 10 * limit]) {
                let unit = codec.unit(len as u32, len);
                let small = codec.unit(1, 5);
                round_trip(codec, true, std::slice::from_ref(&unit), limit);
                round_trip(codec, true, &[small.clone(), unit.clone(), small.clone()], limit);
                round_trip(codec, false, &[small, unit], limit);
            }
        }
    }
}

#[test]
fn a_unit_just_over_the_limit_gives_two_fragments() {
    for codec in CODECS {
        let format = codec.format(true);
        let frame = annex_b(&[codec.unit(3, 101)]);
        let sent = send(format.packetiser().as_mut(), &frame, 100);
        assert_eq!(sent.len(), 2, "{codec:?}");
        assert_eq!(sent[0].octets.len(), 100);
    }
}

#[test]
fn the_smallest_limit_works_and_one_less_is_refused() {
    for codec in CODECS {
        let need = codec.header_len() + 4;
        let units = [codec.unit(1, 40), codec.unit(2, 3), codec.unit(3, need)];
        round_trip(codec, true, &units, need);
        let refused = codec.format(true).packetiser().start(&annex_b(&units), need - 1);
        assert_eq!(refused, Err(super::FrameError::PacketTooSmall { limit: need - 1, need }));
    }
}

#[test]
fn a_limit_above_the_length_fields_does_not_cut_lengths() {
    for codec in CODECS {
        let units = [codec.unit(1, 70_000), codec.unit(2, 30), codec.unit(3, 30)];
        let format = codec.format(true);
        let sent = send(format.packetiser().as_mut(), &annex_b(&units), 200_000);
        assert!(receive(format.as_ref(), Delivery::Unit, &sent) == units, "{codec:?}");
    }
}

#[test]
fn a_packetiser_continues_after_a_refused_frame() {
    for codec in CODECS {
        let format = codec.format(true);
        let mut packetiser = format.packetiser();
        assert!(packetiser.start(&[0, 0, 1], 100).is_err());
        assert!(!packetiser.next(&[0, 0, 1], &mut super::Fragment::default()));
        let units = [codec.unit(1, 300)];
        let sent = send(packetiser.as_mut(), &annex_b(&units), 100);
        assert!(receive(format.as_ref(), Delivery::Unit, &sent) == units);
    }
}

#[test]
fn the_memory_of_a_dropped_frame_is_for_later_ones_however_large_it_is() {
    // Any pool keeps 32 MiB, and more only for a source with frames as large.
    for len in [1 << 20, 40 << 20] {
        let (format, unit) = (Codec::Avc.format(true), Codec::Avc.unit(1, len));
        let sent = send(format.packetiser().as_mut(), &annex_b(&[unit]), 60_000);
        let mut listener = Listener::new(format.as_ref(), Delivery::AccessUnit);
        let lost = sent.len() - 2;
        for (n, payload) in sent.iter().enumerate() {
            if n == lost {
                listener.lose(1);
            } else {
                // Fragments after the missing one are of no use.
                let _ = listener.take(&payload.octets, 7, payload.marker);
            }
        }
        assert_eq!((listener.frames().len(), listener.dropped()), (0, 1));
        assert!(listener.held() < 64 << 10, "{}", listener.held());
        assert!(listener.kept() >= lost * 59_000, "{} of {len}", listener.kept());
    }
}

#[test]
fn an_empty_payload_is_part_of_no_unit() {
    for codec in CODECS {
        let format = codec.format(true);
        let unit = codec.unit(5, 250);
        let sent = send(format.packetiser().as_mut(), &annex_b(std::slice::from_ref(&unit)), 100);
        let mut listener = Listener::new(format.as_ref(), Delivery::AccessUnit);
        for payload in &sent {
            assert_eq!(listener.take(&[], 7, false), Ok(()));
            assert_eq!(listener.take(&payload.octets, 7, payload.marker), Ok(()));
        }
        listener.finish();
        assert_eq!(listener.frames(), [annex_b(&[unit])]);
    }
}

/// Returns a strategy for frames to send, as the seed and length of each unit.
fn frames() -> impl Strategy<Value = Vec<Vec<(u32, usize)>>> {
    let len = prop_oneof![4 => 0..40_usize, 2 => 40..400_usize, 1 => 400..2500_usize];
    vec(vec((any::<u32>(), len), 1..9), 1..7)
}

fn codec() -> impl Strategy<Value = Codec> {
    prop::sample::select(&CODECS[..])
}

/// Returns the packets of `frames`, each with its timestamp and the units in it.
fn packets(
    format: &dyn PayloadFormat,
    frames: &[Vec<Vec<u8>>],
    limit: usize,
) -> Vec<(Sent, u32, Vec<usize>)> {
    let mut packetiser = format.packetiser();
    let mut packets = Vec::new();
    let mut first_unit = 0;
    for (n, units) in frames.iter().enumerate() {
        let mut end = 0;
        let ends: Vec<usize> = units
            .iter()
            .map(|unit| {
                end += 4 + unit.len();
                end
            })
            .collect();
        for sent in send(packetiser.as_mut(), &annex_b(units), limit) {
            let unit_of = |start: usize| ends.iter().take_while(|end| **end <= start).count();
            let held = sent.ranges.iter().map(|range| first_unit + unit_of(range.start));
            let held = held.collect();
            packets.push((sent, n as u32, held));
        }
        first_unit += units.len();
    }
    packets
}

/// Passes the packets that are not `lost` to `listener`, and reports the lost ones to it.
fn take_with_losses(
    listener: &mut Listener,
    packets: &[(Sent, u32, Vec<usize>)],
    lost: impl Fn(usize) -> bool,
) {
    let mut gap = 0;
    for (n, (payload, timestamp, _)) in packets.iter().enumerate() {
        if lost(n) {
            gap += 1;
            continue;
        }
        if gap > 0 {
            listener.lose(std::mem::take(&mut gap));
        }
        // A fragment whose start is missing is an expected error.
        let _ = listener.take(&payload.octets, *timestamp, payload.marker);
    }
    listener.finish();
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_units_are_restored(
        codec in codec(),
        aggregate: bool,
        frames in frames(),
        limit in 12..1500_usize,
    ) {
        for units in frames {
            let units: Vec<_> =
                units.iter().map(|(seed, len)| codec.unit(*seed, *len)).collect();
            round_trip(codec, aggregate, &units, limit);
        }
    }

    #[test]
    fn after_losses_exactly_the_units_that_arrived_whole_are_delivered(
        codec in codec(),
        frames in frames(),
        limit in 60..800_usize,
        losses in vec(0..100_u8, 400),
        per_cent in 1..60_u8,
    ) {
        let frames = make_units(codec, &frames);
        let format = codec.format(true);
        let packets = packets(format.as_ref(), &frames, limit);
        let lost = |n: usize| losses[n % losses.len()] < per_cent;
        let mut listener = Listener::new(format.as_ref(), Delivery::Unit);
        take_with_losses(&mut listener, &packets, lost);
        let units: Vec<Vec<u8>> = frames.concat();
        let whole = units.iter().enumerate().filter(|(unit, _)| {
            packets.iter().enumerate().all(|(n, (_, _, held))| !held.contains(unit) || !lost(n))
        });
        let whole: Vec<Vec<u8>> = whole.map(|(_, unit)| unit.clone()).collect();
        prop_assert_eq!(listener.units(), whole);
    }

    #[test]
    fn after_losses_every_frame_delivered_was_sent(
        codec in codec(),
        frames in frames(),
        limit in 60..800_usize,
        losses in vec(0..100_u8, 400),
        per_cent in 1..60_u8,
    ) {
        let frames = make_units(codec, &frames);
        let format = codec.format(true);
        let packets = packets(format.as_ref(), &frames, limit);
        let lost = |n: usize| losses[n % losses.len()] < per_cent;
        let mut listener = Listener::new(format.as_ref(), Delivery::AccessUnit);
        take_with_losses(&mut listener, &packets, lost);
        let mut sent = frames.iter().map(|units| annex_b(units));
        for frame in listener.frames() {
            // Frames are delivered in order, and each at most once.
            prop_assert!(sent.any(|sent| sent == frame));
        }
    }

    #[test]
    fn generic_frames_without_losses_are_delivered_and_others_are_not(
        lens in vec(1..3000_usize, 1..8),
        limit in 1..1500_usize,
        lost: [u16; 3],
    ) {
        let format = Generic::default();
        let mut packetiser = format.packetiser();
        let mut listener = Listener::new(&format, Delivery::AccessUnit);
        let frames: Vec<Vec<u8>> =
            lens.iter().map(|len| (0..*len).map(|n| (n * len) as u8).collect()).collect();
        let (mut number, mut gap) = (0_u16, 0);
        let mut whole = Vec::new();
        for (n, frame) in frames.iter().enumerate() {
            let mut complete = true;
            for payload in send(packetiser.as_mut(), frame, limit) {
                number += 1;
                if lost.map(|place| place % 64).contains(&number) {
                    complete = false;
                    gap += 1;
                    continue;
                }
                if gap > 0 {
                    listener.lose(std::mem::take(&mut gap));
                }
                listener.take(&payload.octets, n as u32, payload.marker).unwrap();
            }
            if complete {
                whole.push(frame.clone());
            }
        }
        // A frame after a loss may be dropped to be safe; no delivered frame may be damaged.
        let delivered = listener.frames();
        let mut expected = whole.iter();
        for frame in &delivered {
            prop_assert!(expected.any(|whole| whole == frame));
        }
        if whole.len() == frames.len() {
            prop_assert_eq!(delivered, frames);
        }
    }

    #[test]
    fn forged_payloads_end_as_in_the_naive_depacketiser(
        codec in codec(),
        forgeries in vec(forgery(), 1..40),
    ) {
        let format = codec.format(true);
        let mut listener = Listener::new(format.as_ref(), Delivery::Unit);
        let mut naive = Naive::new(codec);
        for (seed, changes, timestamp, marker) in forgeries {
            let octets = forged(codec, seed, &changes);
            let outcome = listener.take(&octets, timestamp, marker);
            let verdict = naive.push(&octets, timestamp);
            prop_assert_eq!(outcome.is_ok(), verdict == Verdict::Good, "{:02x?}: {:?}", octets, outcome);
            if marker {
                naive.lost();
            }
        }
        listener.finish();
        if codec.is_numbered() {
            // Units whose forged numbers contradict the format's parameters are dropped.
            for unit in listener.units() {
                let place = naive.units.iter().position(|naive| *naive == unit);
                prop_assert!(place.is_some(), "{:02x?}", unit);
                naive.units.swap_remove(place.unwrap_or(0));
            }
        } else {
            prop_assert_eq!(listener.units(), naive.units);
        }
    }
}

/// Returns the units of `frames`, all different; frames with an odd first seed have a delimiter.
fn make_units(codec: Codec, frames: &[Vec<(u32, usize)>]) -> Vec<Vec<Vec<u8>>> {
    let made = frames.iter().enumerate().map(|(n, units)| {
        let seeded = units.iter().enumerate();
        let bodies = seeded.map(|(m, (_, len))| codec.unit((n * 100 + m) as u32, len + 8));
        let delimiter = (units[0].0 % 2 == 1).then(|| delimiter(codec));
        delimiter.into_iter().chain(bodies).collect()
    });
    made.collect()
}

/// A seed for a payload, the changes to it, a timestamp and a marker bit.
type Forgery = (u32, Vec<(u8, u8)>, u32, bool);

fn forgery() -> impl Strategy<Value = Forgery> {
    let changes = prop_oneof![2 => Just(Vec::new()), 3 => vec(any::<(u8, u8)>(), 1..4)];
    let timestamp = prop_oneof![9 => Just(0_u32), 1 => Just(1)];
    (0..24_u32, changes, timestamp, prop::bool::weighted(0.05))
}

/// Returns a payload as a sender makes it, then damaged; it is never empty.
fn forged(codec: Codec, seed: u32, changes: &[(u8, u8)]) -> Vec<u8> {
    let format = codec.format(true);
    let unit = |n: u32, len: usize| codec.unit(n % 2, len);
    let units = match seed / 4 {
        0 | 1 => vec![unit(seed, 130)],
        2 => vec![unit(seed, 3), unit(seed + 1, 6), unit(seed, 9)],
        _ => vec![unit(seed, 20), unit(seed, 200)],
    };
    let sent = send(format.packetiser().as_mut(), &annex_b(&units), 64);
    let mut octets = sent[seed as usize % sent.len()].octets.clone();
    for &(place, value) in changes {
        let len = octets.len();
        match place >> 5 {
            0 => octets.truncate(1 + usize::from(value) % len),
            1 => octets.extend((0..value % 5).map(|n| n ^ value)),
            2 => {
                // A PACI header, or similar octets in other formats.
                let inner = [octets[0] & 0x81 | 50 << 1, octets[len.min(2) - 1]];
                let fields = [octets[0] & 0xfe | value & 1, value & 0x70];
                octets.splice(..len.min(2), [inner, fields].concat());
            }
            3 | 4 => octets[usize::from(value) % len.min(6)] = place.wrapping_mul(37),
            _ => {
                let place = usize::from(place) % len.min(8);
                octets[place] ^= 1 << (value % 8);
            }
        }
    }
    octets
}
