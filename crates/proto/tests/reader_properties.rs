//! The access unit reader with arbitrary octets in arbitrary pieces.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use proptest::prelude::*;
use rushes_proto::payload::nal::{
    AccessUnitReader, DependenceReader, NalCodec, ReadError, find_units,
};
use rushes_proto::payload::{FrameError, Framing};

type Read = (Vec<Vec<u8>>, Option<ReadError>);

fn read(codec: NalCodec, framing: Framing, pieces: &[&[u8]]) -> Read {
    read_limited(codec, framing, 10_000, pieces)
}

fn read_limited(codec: NalCodec, framing: Framing, limit: usize, pieces: &[&[u8]]) -> Read {
    let mut reader = AccessUnitReader::new(codec, framing).limit(limit);
    let mut access_units = Vec::new();
    let mut drain = |reader: &mut AccessUnitReader| loop {
        match reader.next_access_unit() {
            Ok(Some(access_unit)) => access_units.push(access_unit.to_vec()),
            Ok(None) => return None,
            Err(error) => return Some(error),
        }
    };
    for piece in pieces {
        reader.feed(piece);
        if let Some(error) = drain(&mut reader) {
            return (access_units, Some(error));
        }
    }
    reader.finish();
    let error = drain(&mut reader);
    (access_units, error)
}

fn units(octets: &[u8]) -> Result<Vec<Vec<u8>>, FrameError> {
    let mut units = Vec::new();
    find_units(octets, Framing::AnnexB, &mut units)?;
    Ok(units.into_iter().map(|unit| octets[unit].to_vec()).collect())
}

/// A strategy for NAL units: empty, or short with any header and no two adjacent zeros.
fn nal_unit() -> impl Strategy<Value = Vec<u8>> {
    let rest = prop::collection::vec(prop_oneof![1..=255_u8, Just(0x80)], 0..6);
    (any::<u8>(), rest).prop_flat_map(|(first, rest)| {
        let unit = [&[first], &rest[..]].concat();
        prop_oneof![1 => Just(Vec::new()), 9 => Just(unit)]
    })
}

fn codecs() -> impl Strategy<Value = NalCodec> {
    prop::sample::select(vec![NalCodec::H264, NalCodec::H265, NalCodec::H266])
}

fn framings() -> impl Strategy<Value = Framing> {
    prop::sample::select(vec![Framing::AnnexB, Framing::LengthPrefixed])
}

/// Moves the octets of the units in `reader` to `found`.
fn drain(reader: &mut AccessUnitReader, framing: Framing, found: &mut Vec<u8>) {
    let mut units = Vec::new();
    while let Some(access_unit) = reader.next_access_unit().unwrap() {
        find_units(access_unit, framing, &mut units).unwrap();
        units.drain(..).for_each(|unit| found.extend_from_slice(&access_unit[unit]));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn only_pictures_have_a_dependence(
        codec in codecs(),
        units in prop::collection::vec(nal_unit(), 0..6),
    ) {
        let mut reader = DependenceReader::new(codec);
        let frame: Vec<u8> = units.iter().flat_map(|unit| [&[0, 0, 1], &unit[..]].concat()).collect();
        let mut ranges = Vec::new();
        let _ = find_units(&frame, Framing::AnnexB, &mut ranges);
        let found = reader.read(&frame, &ranges);
        let header = |range: &std::ops::Range<usize>| codec.header(&frame[range.clone()]);
        let types: Vec<_> = ranges.iter().filter_map(header).map(|header| header.nal_type).collect();
        let has_picture = types.iter().any(|nal_type| codec.is_vcl(*nal_type));
        let has_parameters = types.iter().any(|nal_type| codec.is_parameter_set(*nal_type));
        prop_assert!(has_picture || found == rushes_proto::payload::nal::Dependence::default());
        prop_assert!(!found.is_disposable || !has_parameters);
        prop_assert!(!found.is_random_access || !found.needs_earlier);
    }

    #[test]
    fn pieces_make_no_difference(
        codec in codecs(),
        framing in framings(),
        octets in prop::collection::vec(prop_oneof![5 => 0..3_u8, 1 => any::<u8>()], 0..400),
        cuts in prop::collection::vec(0..400_usize, 0..8),
        limit in prop_oneof![5..60_usize, Just(10_000)],
    ) {
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(octets.len())).collect();
        cuts.extend([0, octets.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &octets[cut[0]..cut[1]]).collect();
        let in_pieces = read_limited(codec, framing, limit, &pieces);
        prop_assert_eq!(&in_pieces, &read_limited(codec, framing, limit, &[&octets]));
        let single: Vec<&[u8]> = octets.chunks(1).collect();
        prop_assert_eq!(&in_pieces, &read_limited(codec, framing, limit, &single));
        prop_assert!(in_pieces.0.iter().all(|access_unit| access_unit.len() <= limit));
    }

    #[test]
    fn silence_between_units_loses_nothing(
        codec in codecs(),
        framing in framings(),
        parts in prop::collection::vec((nal_unit(), any::<bool>()), 0..12),
    ) {
        let mut reader = AccessUnitReader::new(codec, framing);
        let (mut given, mut found) = (Vec::new(), Vec::new());
        let whole = |(unit, _): &&(Vec<u8>, bool)| {
            unit.len() >= codec.header_len() && unit.last() != Some(&0)
        };
        for (unit, silence) in parts.iter().filter(whole) {
            match framing {
                Framing::AnnexB => reader.feed(b"\0\0\x01"),
                Framing::LengthPrefixed => reader.feed(&(unit.len() as u32).to_be_bytes()),
            }
            reader.feed(unit);
            given.extend_from_slice(unit);
            drain(&mut reader, framing, &mut found);
            if *silence {
                reader.flush();
                drain(&mut reader, framing, &mut found);
                prop_assert_eq!(&found, &given);
                prop_assert_eq!(reader.buffered(), 0);
            }
        }
        reader.finish();
        drain(&mut reader, framing, &mut found);
        prop_assert_eq!(found, given);
        prop_assert_eq!(reader.skipped(), 0);
    }

    #[test]
    fn silence_anywhere_loses_only_counted_octets(
        codec in codecs(),
        units in prop::collection::vec(prop::collection::vec(1..=255_u8, 4..20), 1..6),
        silent in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
    ) {
        let octets: Vec<u8> = units.iter().flat_map(|unit| [b"\0\0\x01", &unit[..]].concat()).collect();
        let silent: Vec<_> = silent.iter().map(|place| place.index(octets.len())).collect();
        let mut reader = AccessUnitReader::new(codec, Framing::AnnexB);
        let mut found = Vec::new();
        for (n, octet) in octets.iter().enumerate() {
            reader.feed(&[*octet]);
            drain(&mut reader, Framing::AnnexB, &mut found);
            if silent.contains(&n) {
                reader.flush();
                drain(&mut reader, Framing::AnnexB, &mut found);
            }
        }
        reader.finish();
        drain(&mut reader, Framing::AnnexB, &mut found);
        let given: usize = units.iter().map(Vec::len).sum();
        prop_assert_eq!((given - found.len()) as u64, reader.skipped());
        prop_assert!(reader.skipped() == 0 || !silent.is_empty());
    }

    #[test]
    fn access_units_hold_the_units_of_the_whole_stream_in_order(
        codec in codecs(),
        parts in prop::collection::vec((0..4_usize, nal_unit()), 0..12),
    ) {
        let mut octets = Vec::new();
        for (zeros, unit) in &parts {
            octets.resize(octets.len() + zeros, 0);
            octets.extend_from_slice(b"\0\0\x01");
            octets.extend_from_slice(unit);
        }
        let (access_units, error) = read(codec, Framing::AnnexB, &[&octets]);
        prop_assert_eq!(error, None);
        let of_access_units: Vec<Vec<u8>> =
            access_units.iter().flat_map(|access_unit| units(access_unit).unwrap()).collect();
        prop_assert_eq!(of_access_units, units(&octets).unwrap_or_default());
    }
}

#[test]
fn an_access_unit_beyond_the_limit_is_an_error_with_its_offset() {
    let mut octets = b"\0\0\x01\x65\x88first".to_vec();
    octets.extend_from_slice(b"\0\0\x01\x41\x9a");
    octets.resize(30_000, 7);
    let (access_units, error) = read(NalCodec::H264, Framing::AnnexB, &[&octets]);
    assert_eq!(access_units.len(), 1);
    assert_eq!(error, Some(ReadError::TooLarge { offset: 10, limit: 10_000 }));
}

#[test]
fn octets_that_are_no_bitstream_are_an_error_with_their_offset() {
    let (_, error) = read(NalCodec::H264, Framing::AnnexB, &[b"\0\0\0", b"RIFF\0\0\x01\x65"]);
    assert_eq!(error, Some(ReadError::NoStartCode { offset: 3 }));
}

#[test]
fn a_cut_length_prefixed_stream_is_an_error_with_its_offset() {
    let (access_units, error) =
        read(NalCodec::H264, Framing::LengthPrefixed, &[b"\0\0\0\x02\x65\x88\0\0\0\x09\x41"]);
    assert!(access_units.is_empty());
    assert_eq!(error, Some(ReadError::Truncated { offset: 6 }));
}

#[test]
fn zeros_and_empty_units_before_the_first_unit_do_not_count_against_the_limit() {
    let octets = [&vec![0; 30_000][..], b"\0\0\x01\0\0\0\x01\x65\x88"].concat();
    let pieces: Vec<&[u8]> = octets.chunks(1).collect();
    let expected = (vec![b"\0\0\0\x01\x65\x88".to_vec()], None);
    assert_eq!(read(NalCodec::H264, Framing::AnnexB, &pieces), expected);
    assert_eq!(read(NalCodec::H264, Framing::AnnexB, &[&octets]), expected);
}

#[test]
fn silence_ends_an_access_unit_and_the_next_unit_begins_another() {
    let mut reader = AccessUnitReader::new(NalCodec::H264, Framing::AnnexB);
    // No unit ends within a start code or a header.
    for piece in [&b"\0\0\x01\x65\x88first"[..], b"\0", b"\0\x01"] {
        reader.feed(piece);
        assert_eq!(reader.next_access_unit(), Ok(None));
        if piece.len() < 3 {
            reader.flush();
            assert_eq!(reader.next_access_unit(), Ok(None));
        }
    }
    // The rest of a picture arrives too late.
    reader.feed(b"\x41\x7bsec");
    assert_eq!(reader.next_access_unit(), Ok(Some(&b"\0\0\x01\x65\x88first"[..])));
    assert_eq!(reader.next_access_unit(), Ok(None));
    reader.flush();
    assert_eq!(reader.next_access_unit(), Ok(Some(&b"\0\0\x01\x41\x7bsec"[..])));
    reader.feed(b"ond\0\0\x01\x41\x9athird");
    reader.finish();
    assert_eq!(reader.next_access_unit(), Ok(Some(&b"\0\0\x01\x41\x9athird"[..])));
    assert_eq!((reader.skipped(), reader.buffered()), (3, 0));
}

#[test]
fn a_silence_between_two_slices_of_a_picture_is_noticed() {
    let mut reader = AccessUnitReader::new(NalCodec::H264, Framing::AnnexB);
    let mut silent_after = |octets: &[u8]| {
        reader.feed(octets);
        reader.flush();
        assert_eq!(reader.next_access_unit(), Ok(Some(octets)));
        reader.was_interrupted()
    };
    assert!(!silent_after(b"\0\0\x01\x41\x9awhole"));
    assert!(!silent_after(b"\0\0\x01\x41\x9afirst slice"));
    assert!(silent_after(b"\0\0\x01\x41\x7bnext slice"));
}

#[test]
fn an_error_is_returned_again() {
    let mut reader = AccessUnitReader::new(NalCodec::H264, Framing::AnnexB).limit(8);
    reader.feed(b"\0\0\x01\x65\x88too large");
    let error = Err(ReadError::TooLarge { offset: 0, limit: 8 });
    assert_eq!(reader.next_access_unit(), error);
    reader.feed(b"\0\0\x01\x41\x9a\0\0\x01\x41\x9a");
    assert_eq!(reader.next_access_unit(), error);
}
