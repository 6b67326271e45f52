#![no_main]

use libfuzzer_sys::fuzz_target;
use rushes_proto::zrtp::{
    ConfirmPlain, Content, Fragments, MESSAGE_LEN_MAX, Message, Packet, Reassembler,
    SasRelayPlain, write_fragment, write_packet,
};
use rushes_proto::Ssrc;

/// Sends `octets` as a packet whose checksum is right, so that what is behind it is reached.
fn read_body(kind: u8, octets: &[u8], reassembler: &mut Reassembler) {
    let mut packet = Vec::new();
    write_packet(1, Ssrc(2), octets, &mut packet);
    if kind & 1 != 0
        && let Ok(fragments) = Fragments::new(octets, 3, 28 + usize::from(kind))
    {
        for fragment in fragments {
            packet.clear();
            write_fragment(1, Ssrc(2), &fragment, &mut packet);
        }
    }
    if let Ok(Packet { content: Content::Fragment(fragment), .. }) = Packet::parse(&packet)
        && let Ok(Some(message)) = reassembler.push(&fragment)
    {
        assert!(message.len() <= MESSAGE_LEN_MAX);
        let _ = Message::parse(message);
    }
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
        read_body(kind, body, &mut reassembler);
    }
});
