#![no_main]

use libfuzzer_sys::fuzz_target;
use rushes_proto::zrtp::{
    ConfirmPlain, Content, MESSAGE_LEN_MAX, Message, Packet, Reassembler, SasRelayPlain,
};

/// A packet around `body` whose checksum is right, so that what is behind it is reached.
fn packet(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut packet = vec![16 | (kind & 1), 0, 0, 1];
    packet.extend_from_slice(b"ZRTP\0\0\0\x02");
    packet.extend_from_slice(body);
    let crc = packet.iter().fold(u32::MAX, |crc, &octet| {
        (0..8).fold(crc ^ u32::from(octet), |crc, _| crc >> 1 ^ ((crc & 1) * 0x82f6_3b78))
    });
    packet.extend_from_slice(&(!crc).to_le_bytes());
    packet
}

fuzz_target!(|octets: &[u8]| {
    let _ = Packet::parse(octets);
    let _ = ConfirmPlain::parse(octets);
    let _ = SasRelayPlain::parse(octets);
    // What is read survives being written.
    if let Ok(message) = Message::parse(octets) {
        let mut written = Vec::new();
        message.write(&mut written);
        assert_eq!(Message::parse(&written), Ok(message));
    }
    let mut reassembler = Reassembler::new();
    for (kind, body) in rushes_fuzz::packets(octets) {
        match Packet::parse(&packet(kind, body)).map(|packet| packet.content) {
            Ok(Content::Message(message)) => assert_eq!(message, body),
            Ok(Content::Fragment(fragment)) => {
                if let Ok(Some(message)) = reassembler.push(&fragment) {
                    assert!(message.len() <= MESSAGE_LEN_MAX);
                    let _ = Message::parse(message);
                }
            }
            Err(_) => assert!(kind & 1 != 0, "a right packet is read"),
        }
    }
});
