#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use rushes_proto::payload::h265::H265;

fuzz_target!(|octets: &[u8]| rushes_fuzz::receive(Arc::new(H265::default()), octets));
