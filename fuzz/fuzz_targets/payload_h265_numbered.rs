#![no_main]

use libfuzzer_sys::fuzz_target;
use rushes_proto::payload::h265::H265;

fuzz_target!(|octets: &[u8]| rushes_fuzz::depacketise(
    &H265 { max_don_diff: 1, ..H265::default() },
    octets
));
