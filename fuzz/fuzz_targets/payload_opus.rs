#![no_main]

use libfuzzer_sys::fuzz_target;
use rushes_proto::payload::opus::Opus;

fuzz_target!(|octets: &[u8]| rushes_fuzz::depacketise(&Opus::default(), octets));
