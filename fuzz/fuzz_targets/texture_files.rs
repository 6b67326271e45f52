#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| rushes_fuzz::targets::run("texture_files", octets));
