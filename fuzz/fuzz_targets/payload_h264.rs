#![no_main]

use libfuzzer_sys::fuzz_target;
use rushes_proto::payload::h264::H264;

fuzz_target!(|octets: &[u8]| rushes_fuzz::depacketise(&H264::default(), octets));
