#![no_main]

use libfuzzer_sys::fuzz_target;
use rushes_proto::rtp::{Header, Packet};

fuzz_target!(|octets: &[u8]| {
    let Ok(packet) = Packet::parse(octets) else { return };
    let header = Header::from(&packet);
    let mut written = vec![0; header.written_len()];
    assert_eq!(header.write(&mut written), Ok(packet.header_len()));
    assert_eq!(written, octets[..packet.header_len()]);
});
