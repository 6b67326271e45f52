#![no_main]

use libfuzzer_sys::fuzz_target;
use rushes_proto::payload::generic::Generic;

fuzz_target!(|octets: &[u8]| rushes_fuzz::depacketise(&Generic::default(), octets));
