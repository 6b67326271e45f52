#![no_main]

use libfuzzer_sys::fuzz_target;
use rushes_proto::payload::Framing;
use rushes_proto::payload::nal::find_units;

fuzz_target!(|octets: &[u8]| {
    let mut units = Vec::new();
    for framing in [Framing::AnnexB, Framing::LengthPrefixed] {
        if find_units(octets, framing, &mut units).is_ok() {
            assert!(units.iter().all(|unit| !octets[unit.clone()].is_empty()));
            assert!(units.windows(2).all(|pair| pair[0].end < pair[1].start));
        }
    }
});
