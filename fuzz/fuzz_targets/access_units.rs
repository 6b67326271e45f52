#![no_main]

use libfuzzer_sys::fuzz_target;
use rushes_proto::payload::Framing;
use rushes_proto::payload::nal::{AccessUnitReader, NalCodec};

fuzz_target!(|octets: &[u8]| {
    let Some((flags, octets)) = octets.split_first() else { return };
    let codec = [NalCodec::H264, NalCodec::H265, NalCodec::H266][usize::from(flags % 3)];
    let framing = if flags & 0x80 == 0 { Framing::AnnexB } else { Framing::LengthPrefixed };
    let mut reader = AccessUnitReader::new(codec, framing).limit(4096);
    for piece in octets.chunks(usize::from(flags >> 3 & 15) + 1) {
        reader.feed(piece);
        while let Ok(Some(access_unit)) = reader.next_access_unit() {
            assert!(access_unit.len() <= octets.len());
        }
    }
    reader.finish();
    while let Ok(Some(_)) = reader.next_access_unit() {}
});
