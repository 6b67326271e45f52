#![no_main]

use libfuzzer_sys::fuzz_target;
use rushes_proto::payload::h266::H266;

fuzz_target!(|octets: &[u8]| rushes_fuzz::depacketise(&H266::default(), octets));
