//! A naive sender that interleaves NAL units (RFC 7798 section 4.6, RFC 9328 section 4.4), and
//! tests of receiving its packets.

use proptest::collection::vec;
use proptest::prelude::*;

use super::PayloadFormat;
use super::builder::Delivery;
use super::h265::H265;
use super::h266::H266;
use super::naive::Codec;
use super::rig::{Listener, annex_b};

/// A NAL unit to send.
#[derive(Clone, Debug)]
struct Unit {
    /// Its decoding order number, without wraps.
    number: i64,
    frame: usize,
    octets: Vec<u8>,
}

/// The packets on which a sender sets the marker bit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Markers {
    /// The packet that is sent last of each access unit.
    LastSent,
    /// The packet with the unit that is decoded last.
    LastDecoded,
    Never,
}

/// A packet: its payload, its frame, its marker bit and the numbers of its units.
#[derive(Clone, Debug)]
struct Packet {
    payload: Vec<u8>,
    frame: usize,
    marker: bool,
    units: Vec<i64>,
}

/// The parameters of interleaving in a session description.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Parameters {
    max_don_diff: u16,
    depack_buf_nalus: u16,
}

impl Parameters {
    /// Returns the parameters of `units`, given in the order of transmission.
    fn of(units: &[Unit]) -> Self {
        let (mut max_don_diff, mut depack_buf_nalus) = (1, 1);
        for (n, unit) in units.iter().enumerate() {
            let before = units[..n].iter().filter(|before| before.number > unit.number);
            let differences = before.map(|before| before.number - unit.number);
            depack_buf_nalus = depack_buf_nalus.max(differences.clone().count() as u16);
            let difference = differences.max().unwrap_or(0);
            max_don_diff = max_don_diff.max(u16::try_from(difference).unwrap());
        }
        Self { max_don_diff, depack_buf_nalus }
    }

    fn format(self, codec: Codec) -> Box<dyn PayloadFormat> {
        let Self { max_don_diff, depack_buf_nalus } = self;
        match codec {
            Codec::Hevc { .. } => {
                Box::new(H265 { max_don_diff, depack_buf_nalus, ..H265::default() })
            }
            _ => Box::new(H266 { max_don_diff, ..H266::default() }),
        }
    }
}

/// Returns a decoding order number as it is sent.
fn don(number: i64) -> [u8; 2] {
    (number.rem_euclid(1 << 16) as u16).to_be_bytes()
}

/// Returns one unit in a packet of its own, or in fragments of at most `limit` octets.
fn payloads_of(codec: Codec, unit: &Unit, limit: usize) -> Vec<Vec<u8>> {
    let (header, body) = unit.octets.split_at(2);
    if unit.octets.len() + 2 <= limit {
        return vec![[header, &don(unit.number)[..], body].concat()];
    }
    let (payload_header, nal_type) = match codec {
        Codec::Hevc { .. } => ([header[0] & 0x81 | 49 << 1, header[1]], header[0] >> 1 & 0x3f),
        _ => ([header[0], header[1] & 7 | 29 << 3], header[1] >> 3),
    };
    let chunks: Vec<&[u8]> = body.chunks(limit - 5).collect();
    let last = chunks.len() - 1;
    let fragments = chunks.iter().enumerate().map(|(n, chunk)| {
        let ends = if n == 0 { 0x80 } else { 0 } | if n == last { 0x40 } else { 0 };
        let number = if n == 0 { don(unit.number).to_vec() } else { Vec::new() };
        [&payload_header[..], &[ends | nal_type], &number, chunk].concat()
    });
    fragments.collect()
}

/// Returns whether `next` may follow `unit` in an aggregation packet.
fn aggregates(codec: Codec, unit: &Unit, next: &Unit) -> bool {
    let step = next.number - unit.number;
    let steps = if matches!(codec, Codec::Hevc { .. }) { 1..=256 } else { 1..=1 };
    unit.frame == next.frame && steps.contains(&step)
}

fn aggregation_packet(codec: Codec, units: &[Unit]) -> Vec<u8> {
    let mut payload = match codec {
        Codec::Hevc { .. } => vec![48 << 1, 1],
        _ => vec![0, 28 << 3 | 1],
    };
    for (n, unit) in units.iter().enumerate() {
        if n == 0 {
            payload.extend(don(unit.number));
        } else if matches!(codec, Codec::Hevc { .. }) {
            payload.push(u8::try_from(unit.number - units[n - 1].number - 1).unwrap());
        }
        payload.extend((unit.octets.len() as u16).to_be_bytes());
        payload.extend(&unit.octets);
    }
    payload
}

/// Returns the packets of `units`, given in the order of transmission. `choices` decide about
/// aggregation.
fn packets(
    codec: Codec,
    units: &[Unit],
    limit: usize,
    markers: Markers,
    choices: &[bool],
) -> Vec<Packet> {
    let mut packets: Vec<Packet> = Vec::new();
    let mut rest = units;
    while let Some(unit) = rest.first() {
        let mut count = 1;
        while let Some(next) = rest.get(count)
            && choices[(packets.len() + count) % choices.len()]
            && aggregates(codec, &rest[count - 1], next)
            && aggregation_packet(codec, &rest[..=count]).len() <= limit
        {
            count += 1;
        }
        let payloads = match count {
            1 => payloads_of(codec, unit, limit),
            _ => vec![aggregation_packet(codec, &rest[..count])],
        };
        let numbers: Vec<i64> = rest[..count].iter().map(|unit| unit.number).collect();
        packets.extend(payloads.into_iter().map(|payload| Packet {
            payload,
            frame: unit.frame,
            marker: false,
            units: numbers.clone(),
        }));
        rest = &rest[count..];
    }
    for frame in 0..=units.iter().map(|unit| unit.frame).max().unwrap_or(0) {
        let highest = units.iter().filter(|unit| unit.frame == frame).map(|unit| unit.number).max();
        let place = packets.iter().rposition(|packet| match markers {
            Markers::LastSent => packet.frame == frame,
            Markers::LastDecoded => packet.units.last().copied() == highest,
            Markers::Never => false,
        });
        if let Some(place) = place {
            packets[place].marker = true;
        }
    }
    packets
}

/// Returns a timestamp of `frame`; frames are presented in another order than they are decoded in.
fn timestamp(frame: usize) -> u32 {
    (frame as u32 ^ 1).wrapping_mul(3000).wrapping_sub(9000)
}

/// Passes the packets that are not lost to `listener`, and reports the lost ones to it. Losses at
/// the end are reported only if nothing else shows them: no packet has a marker bit, or too few
/// units arrived to make any order certain.
fn pass_packets(case: &Case, listener: &mut Listener, lost: impl Fn(usize) -> bool) {
    let (packets, max_don_diff) = (&case.packets, Parameters::of(&case.sent).max_don_diff);
    let mut gap = 0;
    for (n, packet) in packets.iter().enumerate() {
        if lost(n) {
            gap += 1;
            continue;
        }
        if gap > 0 {
            listener.lose(std::mem::take(&mut gap));
        }
        // A fragment whose start is missing is an expected error.
        let _ = listener.take(&packet.payload, timestamp(packet.frame), packet.marker);
    }
    let came = (0..).zip(packets).filter(|(n, _)| !lost(*n));
    let numbers: Vec<i64> = came.flat_map(|(_, packet)| packet.units.iter().copied()).collect();
    let span = numbers.iter().max().zip(numbers.iter().min()).map_or(0, |(max, min)| max - min);
    let is_short = span < max_don_diff.into();
    if gap > 0 && (is_short || !packets.iter().any(|packet| packet.marker)) {
        listener.lose(gap);
    }
    listener.finish();
}

/// A random test case: frames of units, and their packets.
#[derive(Clone, Debug)]
struct Case {
    codec: Codec,
    /// Units in decoding order.
    units: Vec<Unit>,
    /// The units in the order of transmission.
    sent: Vec<Unit>,
    packets: Vec<Packet>,
    frames: usize,
}

impl Case {
    fn frame(&self, frame: usize) -> Vec<u8> {
        let units = self.units.iter().filter(|unit| unit.frame == frame);
        annex_b(&units.map(|unit| unit.octets.clone()).collect::<Vec<_>>())
    }

    fn timed_frames(&self) -> impl Iterator<Item = (u32, Vec<u8>)> {
        (0..self.frames).map(|frame| (timestamp(frame), self.frame(frame)))
    }

    fn listener(&self, delivery: Delivery) -> Listener {
        Listener::new(Parameters::of(&self.sent).format(self.codec).as_ref(), delivery)
    }
}

/// Returns a strategy for random cases. Numbers increase by one of `steps`.
fn case(steps: std::ops::Range<i64>) -> impl Strategy<Value = Case> {
    let codec =
        prop::sample::select(vec![Codec::Hevc { numbered: true }, Codec::Vvc { numbered: true }]);
    let len = prop_oneof![4 => 3..40_usize, 2 => 40..300_usize, 1 => 300..1500_usize];
    let frames = vec(vec((len, steps, 0..1000_u32), 1..7), 2..14);
    let markers =
        prop::sample::select(vec![Markers::LastSent, Markers::LastDecoded, Markers::Never]);
    let first = prop_oneof![0..65_536_i64, Just(65_530_i64)];
    let rest = (0..30_u32, markers, first, 60..400_usize, vec(any::<bool>(), 1..40));
    (codec, frames, rest).prop_map(|(codec, frames, (spread, markers, first, limit, choices))| {
        let mut number = first;
        let mut units = Vec::new();
        let mut keys = Vec::new();
        for (frame, lens) in frames.iter().enumerate() {
            for (len, step, random) in lens {
                number += step;
                let octets = codec.unit(units.len() as u32, len + 6);
                let octets = [&octets[..], &[units.len() as u8 | 1, 0x80 | frame as u8]].concat();
                keys.push(units.len() as u32 + random % (spread + 1));
                units.push(Unit { number, frame, octets });
            }
        }
        let mut order: Vec<usize> = (0..units.len()).collect();
        order.sort_by_key(|place| keys[*place]);
        let sent: Vec<Unit> = order.iter().map(|place| units[*place].clone()).collect();
        let packets = packets(codec, &sent, limit, markers, &choices);
        Case { codec, units, sent, packets, frames: frames.len() }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn interleaved_access_units_are_delivered_in_decoding_order(case in case(1..2)) {
        let mut listener = case.listener(Delivery::AccessUnit);
        pass_packets(&case, &mut listener, |_| false);
        let frames = listener.timed_frames();
        if case.packets.iter().any(|packet| packet.marker) || case.frames > 2 {
            prop_assert_eq!(frames, case.timed_frames().collect::<Vec<_>>());
            prop_assert_eq!(listener.dropped(), 0);
        }
    }

    #[test]
    fn interleaved_units_are_delivered_in_decoding_order(case in case(1..300)) {
        let mut listener = case.listener(Delivery::Unit);
        pass_packets(&case, &mut listener, |_| false);
        let units: Vec<Vec<u8>> = case.units.iter().map(|unit| unit.octets.clone()).collect();
        prop_assert_eq!(listener.units(), units);
    }

    #[test]
    fn after_losses_every_interleaved_access_unit_delivered_was_sent(
        case in prop_oneof![case(1..2), case(1..4)],
        losses in vec(0..100_u8, 400),
        per_cent in 1..60_u8,
    ) {
        let mut listener = case.listener(Delivery::AccessUnit);
        pass_packets(&case, &mut listener, |n| losses[n % losses.len()] < per_cent);
        let mut sent = case.timed_frames();
        for frame in listener.timed_frames() {
            // Frames are delivered in order, and each at most once.
            prop_assert!(sent.any(|sent| sent == frame), "{:?}", frame);
        }
    }

    #[test]
    fn after_losses_exactly_the_interleaved_units_that_arrived_whole_are_delivered(
        case in case(1..4),
        losses in vec(0..100_u8, 400),
        per_cent in 1..60_u8,
    ) {
        let lost = |n: usize| losses[n % losses.len()] < per_cent;
        let mut listener = case.listener(Delivery::Unit);
        pass_packets(&case, &mut listener, lost);
        let arrived = |unit: &&Unit| {
            let holds = |packet: &Packet| packet.units.contains(&unit.number);
            case.packets.iter().enumerate().all(|(n, packet)| !holds(packet) || !lost(n))
        };
        let whole: Vec<Vec<u8>> =
            case.units.iter().filter(arrived).map(|unit| unit.octets.clone()).collect();
        prop_assert_eq!(listener.units(), whole);
    }
}

/// Returns a listener for H.265 with `max_don_diff`.
fn listener(max_don_diff: u16, delivery: Delivery) -> Listener {
    Listener::new(&H265 { max_don_diff, ..H265::default() }, delivery)
}

/// Returns a packet with only the slice `number`, which starts its picture, and that slice.
fn single(number: u16) -> (Vec<u8>, Vec<u8>) {
    let [high, low] = number.to_be_bytes();
    let body = [0x80 | high, low, 0x11];
    ([&[0x02, 1, high, low][..], &body].concat(), [&[0x02, 1][..], &body].concat())
}

/// Passes one packet of frame `number / 2` to `listener`.
fn take(listener: &mut Listener, number: u16) {
    let frame = u32::from(number / 2);
    listener.take(&single(number).0, 3000 * frame, number % 2 == 1).unwrap();
}

/// Returns the frame of unit `2 * frame` and the next one.
fn frame(frame: u16) -> Vec<u8> {
    annex_b(&[single(2 * frame).1, single(2 * frame + 1).1])
}

#[test]
fn parts_of_interleaved_access_units_are_not_delivered_as_whole_ones() {
    let mut listener = listener(2, Delivery::AccessUnit);
    for number in [0, 2, 1, 4, 3, 5] {
        take(&mut listener, number);
    }
    listener.finish();
    assert_eq!(listener.frames(), [frame(0), frame(1), frame(2)]);
}

#[test]
fn no_unit_is_delivered_before_its_order_is_certain() {
    let mut listener = listener(3, Delivery::Unit);
    // After unit 3, unit 0 may still arrive; after unit 4, no unit before 1.
    for (number, certain) in [(3, vec![]), (0, vec![0]), (1, vec![]), (4, vec![1])] {
        take(&mut listener, number);
        let certain: Vec<Vec<u8>> = certain.into_iter().map(|number| single(number).1).collect();
        assert_eq!(listener.units(), certain, "{number}");
    }
}

#[test]
fn the_number_of_units_in_the_buffer_also_makes_an_order_certain() {
    // RFC 7798 section 6, condition B.
    let format = H265 { max_don_diff: 1000, depack_buf_nalus: 2, ..H265::default() };
    let mut listener = Listener::new(&format, Delivery::Unit);
    for (number, units) in [(7, 0), (9, 0), (8, 1), (10, 1), (11, 1)] {
        take(&mut listener, number);
        assert_eq!(listener.units().len(), units, "{number}");
    }
}

#[test]
fn one_lost_packet_drops_only_frames_to_which_it_may_have_belonged() {
    let mut listener = listener(4, Delivery::AccessUnit);
    for group in 0..10_u16 {
        for number in [2, 0, 3, 1].map(|number| 4 * group + number) {
            if number == 17 {
                listener.lose(1);
            } else {
                take(&mut listener, number);
            }
        }
    }
    listener.finish();
    // Unit 17 may have belonged to frame 8 or 9.
    let whole: Vec<Vec<u8>> = (0..20).filter(|n| ![8, 9].contains(n)).map(frame).collect();
    assert_eq!(listener.frames(), whole);
    assert_eq!(listener.dropped(), 2);
}

#[test]
fn a_hole_in_the_numbers_is_no_loss_without_a_missing_packet() {
    let mut listener = listener(2, Delivery::AccessUnit);
    // A gateway removed the access unit with packets 8 and 9.
    for number in [0, 1, 2, 3, 4, 6, 5, 7, 10, 12, 11, 13, 14, 15] {
        take(&mut listener, number);
    }
    listener.finish();
    assert_eq!(listener.frames(), [0, 1, 2, 3, 5, 6, 7].map(frame));
}

#[test]
fn units_of_one_number_prove_nothing_about_a_lost_one() {
    // Both units of a frame have its number, so that a lost unit leaves no gap in the numbers.
    let mut listener = listener(2, Delivery::AccessUnit);
    let part = |number: u8, part: u8| vec![0x02, 1, 0, number, 0x80, part];
    for number in 0..12_u8 {
        for half in 1..3 {
            if (number, half) == (4, 2) {
                listener.lose(1);
            } else {
                listener.take(&part(number, half), u32::from(number), half == 2).unwrap();
            }
        }
    }
    listener.finish();
    let whole = annex_b(&[vec![0x02, 1, 0x80, 1], vec![0x02, 1, 0x80, 2]]);
    let frames = listener.timed_frames();
    assert!(frames.iter().all(|(timestamp, frame)| *timestamp != 4 && *frame == whole));
    assert!(frames.iter().any(|(timestamp, _)| *timestamp == 11), "{frames:?}");
}

#[test]
fn a_source_whose_numbers_start_anew_is_followed() {
    for start in [30_000, 60_000] {
        let mut listener = listener(2, Delivery::AccessUnit);
        for number in (40_000..40_010).chain(start..start + 10) {
            take(&mut listener, number);
        }
        listener.finish();
        let frames = listener.frames();
        let expected: Vec<Vec<u8>> =
            (20_000..20_005).chain(start / 2..start / 2 + 5).map(frame).collect();
        let mut rest = expected.iter();
        assert!(frames.iter().all(|frame| rest.any(|expected| expected == frame)), "{start}");
        assert!(frames.len() >= 7, "{start}: {}", frames.len());
        assert_eq!(frames.last(), expected.last());
    }
}

#[test]
fn a_unit_that_violates_the_parameters_makes_no_partial_frame() {
    let mut listener = listener(1, Delivery::AccessUnit);
    for number in [10, 11, 12, 13, 9, 14, 15, 16, 17] {
        take(&mut listener, number);
    }
    listener.finish();
    // The numbers restart at 9; unit 10 may have been sent before it and lost.
    assert_eq!(listener.frames(), [frame(5), frame(8)]);
    assert_eq!(listener.dropped(), 3);
}

#[test]
fn after_silence_the_order_is_uncertain() {
    let mut listener = listener(2, Delivery::AccessUnit);
    for number in 0..7 {
        take(&mut listener, number);
    }
    listener.finish();
    // The second unit of frame 3 has not arrived.
    assert_eq!(listener.frames(), [frame(0), frame(1), frame(2)]);
    for number in 7..16 {
        take(&mut listener, number);
    }
    listener.finish();
    let frames = listener.frames();
    assert!(!frames.contains(&annex_b(&[single(7).1])));
    assert_eq!(frames.last(), Some(&frame(7)));
    assert!(frames.len() >= 3, "{}", frames.len());
}

#[test]
fn waiting_units_are_limited() {
    // The order of decreasing numbers is never certain.
    let mut listener = listener(32_767, Delivery::AccessUnit);
    let mut held_max = 0;
    for number in (0..32_000_u16).rev() {
        let [high, low] = number.to_be_bytes();
        let payload = [&[0x02, 1, high, low, 0x80][..], &[7; 1200]].concat();
        listener.take(&payload, 9, false).unwrap();
        held_max = held_max.max(listener.held());
    }
    assert!(held_max < 40 << 20, "{held_max}");
    listener.finish();
    assert!(listener.frames().is_empty());
    assert!(listener.dropped() > 0);
}

#[test]
fn units_that_never_end_are_limited() {
    let mut listener = listener(32_767, Delivery::Unit);
    let mut held_max = 0;
    for number in (0..10).flat_map(|_| 0..30_000_u16) {
        let [high, low] = number.to_be_bytes();
        listener.take(&[49 << 1, 1, 0x81, high, low, 0x80], 9, false).unwrap();
        held_max = held_max.max(listener.held());
    }
    assert!(held_max < 4 << 20, "{held_max}");
    listener.finish();
    assert!(listener.units().is_empty());
}
