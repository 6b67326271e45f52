//! Arbitrary octets read as an Ogg Opus file.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::PathBuf;

use proptest::prelude::*;
use rushes::Codec;
use rushes::file::{MediaReader, ReadOptions};

/// Reads until the end or the first error, and returns the number of packets.
fn read(octets: Vec<u8>) -> usize {
    let reader = MediaReader::from_octets(octets, "any", Codec::Opus, ReadOptions::default());
    let Ok(mut reader) = reader else { return 0 };
    let mut packets = 0;
    while let Ok(Some(_)) = reader.next_frame() {
        packets += 1;
    }
    packets
}

fn file() -> Vec<u8> {
    let name = "../../vectors/media/opus_speech_mono_mixed_durations.opus";
    std::fs::read(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_octets_end(octets in prop::collection::vec(any::<u8>(), 0..500)) {
        read(octets);
    }

    #[test]
    fn a_file_with_wrong_octets_gives_no_more_packets_than_it_had(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut octets = file();
        for (place, octet) in changes {
            let place = place.index(octets.len());
            octets[place] = octet;
        }
        octets.truncate(cut.index(octets.len()) + 1);
        prop_assert!(read(octets) <= 105);
    }
}
