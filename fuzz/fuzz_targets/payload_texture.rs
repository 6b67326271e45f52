#![no_main]

use libfuzzer_sys::fuzz_target;
use rushes_proto::payload::texture::Texture;

fuzz_target!(|octets: &[u8]| rushes_fuzz::depacketise(&Texture { payload: 64 }, octets));
