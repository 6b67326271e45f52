#![no_main]

use libfuzzer_sys::fuzz_target;
use rushes_proto::zrtp::{
    ConfirmPlain, Content, MESSAGE_LEN_MAX, Message, Packet, Reassembler, SasRelayPlain,
};

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
        match Packet::parse(&rushes_fuzz::zrtp_packet(kind, 2, body)).map(|packet| packet.content) {
            Ok(Content::Message(message)) => assert_eq!(message, body),
            Ok(Content::Fragment(fragment)) => {
                if let Some(message) = reassembler.push(&fragment) {
                    assert!(message.len() <= MESSAGE_LEN_MAX);
                    let _ = Message::parse(message);
                }
            }
            Err(_) => assert!(kind & 1 != 0, "a right packet is read"),
        }
    }
});
