//! The access unit reader on any octets in any pieces.
#![allow(clippy::unwrap_used, reason = "a test may")]

use proptest::prelude::*;
use rushes_proto::payload::Framing;
use rushes_proto::payload::nal::{AccessUnitReader, NalCodec, ReadError};

type Read = (Vec<Vec<u8>>, Option<ReadError>);

fn read(codec: NalCodec, framing: Framing, pieces: &[&[u8]]) -> Read {
    let mut reader = AccessUnitReader::new(codec, framing).limit(10_000);
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

fn codecs() -> impl Strategy<Value = NalCodec> {
    prop::sample::select(vec![NalCodec::H264, NalCodec::H265, NalCodec::H266])
}

fn framings() -> impl Strategy<Value = Framing> {
    prop::sample::select(vec![Framing::AnnexB, Framing::LengthPrefixed])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pieces_make_no_difference(
        codec in codecs(),
        framing in framings(),
        octets in prop::collection::vec(prop_oneof![5 => 0..3_u8, 1 => any::<u8>()], 0..400),
        cuts in prop::collection::vec(0..400_usize, 0..8),
    ) {
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(octets.len())).collect();
        cuts.extend([0, octets.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &octets[cut[0]..cut[1]]).collect();
        prop_assert_eq!(read(codec, framing, &pieces), read(codec, framing, &[&octets]));
    }
}

#[test]
fn an_access_unit_beyond_the_limit_is_an_error_that_says_where() {
    let mut octets = b"\0\0\x01\x65\x88first".to_vec();
    octets.extend_from_slice(b"\0\0\x01\x41\x9a");
    octets.resize(30_000, 7);
    let (access_units, error) = read(NalCodec::H264, Framing::AnnexB, &[&octets]);
    assert_eq!(access_units.len(), 1);
    assert_eq!(error, Some(ReadError::TooLarge { offset: 10, limit: 10_000 }));
}

#[test]
fn octets_that_are_no_bitstream_are_an_error_that_says_where() {
    let (_, error) = read(NalCodec::H264, Framing::AnnexB, &[b"\0\0\0", b"RIFF\0\0\x01\x65"]);
    assert_eq!(error, Some(ReadError::NoStartCode { offset: 3 }));
}

#[test]
fn a_cut_length_prefixed_stream_is_an_error_that_says_where() {
    let (access_units, error) =
        read(NalCodec::H264, Framing::LengthPrefixed, &[b"\0\0\0\x02\x65\x88\0\0\0\x09\x41"]);
    assert!(access_units.is_empty());
    assert_eq!(error, Some(ReadError::Truncated { offset: 6 }));
}
