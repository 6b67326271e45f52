//! Source and repair packets of every format.

use rushes_proto::Ssrc;
use rushes_proto::repair::fec::{BlockSize, Decoder, DecoderLimits, Encoder, FecFormat, red};
use rushes_proto::rtp::Packet;

use crate::packets;

const SOURCE: Ssrc = Ssrc(7);
const FORMATS: [FecFormat; 4] =
    [FecFormat::FlexFec, FecFormat::FlexFecFixed, FecFormat::FlexFec03, FecFormat::Ulp];

/// Gives packets to a decoder as source or repair packets, and also repair packets of its own
/// encoder, of which some are lost.
pub fn decode(octets: &[u8]) {
    let Some((flags, octets)) = octets.split_first() else { return };
    let format = FORMATS[usize::from(flags % 4)];
    let limits = DecoderLimits { packets: 64, repairs: 8, packet_len: 1500 };
    let mut decoder = Decoder::new(format, SOURCE, limits);
    let size = BlockSize::new(format, 8, u16::from(flags >> 4 & 3) + 1).expect("a valid size");
    let mut encoder = Encoder::new(size, SOURCE);
    for (n, (kind, body)) in (0_u16..).zip(packets(octets)) {
        let head =
            [0x80 | kind & 0x3f, n as u8, (n >> 8) as u8, n as u8, 0, 0, 0, kind, 0, 0, 0, 7];
        let packet = [&head[..], body].concat();
        encoder.push(&packet);
        match kind >> 6 {
            0 | 1 => decoder.handle_source(&packet),
            2 => _ = decoder.handle_repair(&[SOURCE], body),
            _ => _ = red::blocks(body).map(Iterator::count),
        }
        if encoder.is_full() {
            encoder.close(|repair| _ = decoder.handle_repair(&[SOURCE], repair));
        }
        while let Some(packet) = decoder.poll_recovered() {
            assert!(packet.len() <= limits.packet_len && Packet::parse(&packet).is_ok());
        }
    }
    let counts = decoder.counts();
    assert!(counts.recovered + counts.unusable <= counts.repairs);
}
