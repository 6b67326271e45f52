//! Presentation positions of arbitrary octets.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::HashSet;
use std::path::Path;

use proptest::prelude::*;
use rushes_proto::payload::Framing;
use rushes_proto::payload::nal::{
    AccessUnitReader, NalCodec, PictureClock, PictureLookAhead, find_units,
};

/// Maximum octets that a clock may hold: 32 sequence parameter sets with 255 numbers each, 256
/// picture parameter sets, 64 positions and 65 pictures.
const HELD_MAX: i64 = 128 << 10;

const FILES: [(NalCodec, &str); 3] = [
    (NalCodec::H264, "avc_cif_60f_baseline.264"),
    (NalCodec::H265, "hevc_192x128_90f_tiny_nals.265"),
    (NalCodec::H266, "vvc_192x128_64f_vvenc_tiny_nals.266"),
];

/// Returns the first access units of each file.
fn access_units() -> Vec<(NalCodec, Vec<Vec<u8>>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/media");
    let read = |(codec, name): (NalCodec, &str)| {
        let mut reader = AccessUnitReader::new(codec, Framing::AnnexB);
        reader.feed(&std::fs::read(folder.join(name)).unwrap());
        reader.finish();
        let next = || reader.next_access_unit().unwrap().map(<[u8]>::to_vec);
        (codec, std::iter::from_fn(next).take(40).collect())
    };
    FILES.map(read).to_vec()
}

fn length_prefixed(access_unit: &[u8]) -> Vec<u8> {
    let mut units = Vec::new();
    find_units(access_unit, Framing::AnnexB, &mut units).unwrap();
    let prefixed = |unit: &std::ops::Range<usize>| {
        [&(unit.len() as u32).to_be_bytes(), &access_unit[unit.clone()]].concat()
    };
    units.iter().flat_map(prefixed).collect()
}

/// Pushes access units to both clocks and checks that each has a position of its own.
fn push_all(codec: NalCodec, framing: Framing, access_units: &[Vec<u8>]) {
    let mut clock = PictureClock::new(codec);
    let mut ahead = PictureLookAhead::new(codec, access_units.len() % 9);
    let (mut given, mut given_ahead) = (HashSet::new(), HashSet::new());
    for access_unit in access_units {
        assert!(given.insert(clock.push(access_unit, framing).position));
        ahead.push(access_unit, framing);
        while let Some(time) = ahead.next_time() {
            assert!(given_ahead.insert(time.position));
        }
    }
    ahead.finish();
    while let Some(time) = ahead.next_time() {
        assert!(given_ahead.insert(time.position));
    }
    assert_eq!((given.len(), given_ahead.len()), (access_units.len(), access_units.len()));
}

/// Returns a strategy for changes of octets: the access unit, the octet in it, and the change.
fn changes() -> impl Strategy<Value = Vec<(usize, usize, u8)>> {
    let near = prop_oneof![4 => 0..90_usize, 1 => 0..4000_usize];
    prop::collection::vec((prop_oneof![0..2_usize, 0..40_usize], near, 1..=255_u8), 0..30)
}

#[test]
fn both_framings_have_the_same_positions() {
    for (codec, access_units) in access_units() {
        let [mut annexb, mut prefixed] = [PictureClock::new(codec), PictureClock::new(codec)];
        for access_unit in access_units {
            let time = annexb.push(&access_unit, Framing::AnnexB);
            let other = prefixed.push(&length_prefixed(&access_unit), Framing::LengthPrefixed);
            assert_eq!(time, other);
        }
    }
}

#[test]
fn any_parameter_sets_are_held_in_bounded_memory() {
    // The input is sequence parameter sets of H.264 with all ids, picture order counts of type 1
    // and 255 numbers of one bit each, then arbitrary octets.
    let sps = |id: u32| {
        let code = id + 1;
        let len = 32 - code.leading_zeros();
        let mut bits: Vec<bool> = (0..len - 1).map(|_| false).collect();
        bits.extend((0..len).rev().map(|bit| code >> bit & 1 == 1));
        // ue(0), ue(1), a flag, se(0), se(0), ue(255), ones.
        bits.extend("101001100000000100000000".bytes().map(|digit| digit == b'1'));
        bits.extend([true; 400]);
        let octet = |bits: &[bool]| {
            bits.iter().enumerate().map(|(n, bit)| u8::from(*bit) << (7 - n)).sum::<u8>()
        };
        let payload: Vec<u8> = bits.chunks(8).map(octet).collect();
        [&[0, 0, 1, 0x67, 77, 0, 30], &payload[..]].concat()
    };
    let frames: Vec<Vec<u8>> = (0..32).map(sps).collect();
    for codec in [NalCodec::H264, NalCodec::H265, NalCodec::H266] {
        let counted = allocation_counter::measure(|| {
            let mut clock = PictureClock::new(codec);
            let mut ahead = PictureLookAhead::new(codec, PictureLookAhead::MAX);
            for n in 0..2000_usize {
                let frame = &frames[n % 32];
                let len = frame.len() - n / 32 % 7;
                clock.push(&frame[..len], Framing::AnnexB);
                ahead.push(&frame[..len], Framing::AnnexB);
                ahead.next_time();
            }
        });
        assert!(counted.bytes_max < 2 * HELD_MAX as u64, "{codec:?}: {}", counted.bytes_max);
        assert!(codec != NalCodec::H264 || counted.bytes_max > 32 * 255 * 4);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_streams_have_positions_of_their_own(
        changes in changes(),
        is_prefixed in any::<bool>(),
    ) {
        for (codec, mut access_units) in access_units() {
            let mut framing = Framing::AnnexB;
            if is_prefixed {
                framing = Framing::LengthPrefixed;
                for octets in &mut access_units {
                    *octets = length_prefixed(octets);
                }
            }
            for (place, octet, change) in &changes {
                let access_unit = &mut access_units[*place];
                let len = access_unit.len();
                access_unit[octet % len] ^= change;
            }
            push_all(codec, framing, &access_units);
        }
    }

    #[test]
    fn any_octets_have_positions_of_their_own(
        access_units in prop::collection::vec(
            prop::collection::vec(prop_oneof![5 => 0..4_u8, 4 => any::<u8>()], 0..200),
            0..40,
        ),
        codec in prop::sample::select(vec![NalCodec::H264, NalCodec::H265, NalCodec::H266]),
        framing in prop::sample::select(vec![Framing::AnnexB, Framing::LengthPrefixed]),
    ) {
        push_all(codec, framing, &access_units);
    }
}
