#![no_main]

use libfuzzer_sys::fuzz_target;
use rushes_proto::rtp::Packet;

fuzz_target!(|octets: &[u8]| {
    let Ok(packet) = Packet::parse(octets) else { return };
    assert_eq!(packet.header_len() + packet.payload().len() + packet.padding_len(), octets.len());
    for _ in packet.contributing_sources() {}
    if let Some(elements) = packet.extension().and_then(|extension| extension.elements()) {
        for element in elements.flatten() {
            assert!(element.id != 0);
        }
    }
});
