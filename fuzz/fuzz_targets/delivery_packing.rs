#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| rushes_fuzz::targets::run("delivery_packing", octets));
