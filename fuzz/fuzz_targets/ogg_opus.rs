#![no_main]

use libfuzzer_sys::fuzz_target;
use rushes::Codec;
use rushes::file::{MediaReader, OpusHead, ReadOptions};

fuzz_target!(|octets: &[u8]| {
    let _ = OpusHead::parse(octets);
    let octets = octets.to_vec();
    let reader = MediaReader::from_octets(octets, "fuzz", Codec::Opus, ReadOptions::default());
    let Ok(mut reader) = reader else { return };
    while let Ok(Some(_)) = reader.next_frame() {}
});
