//! Guesses a stream's codec from its packets, if it is not given.
//!
//! A codec is named only if the packets have properties that another codec or noise would not have.
//! The default payload type of Rushes for a codec is no evidence, because other senders use other
//! numbers.

use rushes::proto::rtp::Packet;
use rushes::{ClockRate, Codec, format};

use super::codec::{Encoding, Known};
use super::telephone::is_telephone_event;
use super::unknown::Appearance;

/// The usual clock rate of telephone events (RFC 4733 section 2.1). Beside audio of another clock
/// rate they use that one.
const TELEPHONE_HERTZ: u32 = 8000;

/// Guesses the encoding from the first packets of a stream that have `payload_type`.
pub(crate) fn guess(payload_type: u8, datagrams: &[&[u8]]) -> Encoding {
    let packets = in_order(payload_type, datagrams);
    if let Some(clock_rate) = ClockRate::new(TELEPHONE_HERTZ)
        && is_telephone_event(&packets)
    {
        return Encoding::other("telephone-event", clock_rate, Known::Guessed);
    }
    let is_default = |codec: &Codec| codec.payload_type.value() == payload_type;
    match format::guess(&packets) {
        Some(codec) => {
            let known = if is_default(&codec) { Known::Default } else { Known::Guessed };
            Encoding::of(codec, known).with_channels(format::channels_of(codec, &packets))
        }
        None if is_default(&Codec::Generic) => Encoding::of(Codec::Generic, Known::Default),
        None => Encoding::unknown(Appearance::new(&packets)),
    }
}

/// Returns the packets of `payload_type` with a payload, in order of sequence numbers, without
/// duplicates.
fn in_order<'d>(payload_type: u8, datagrams: &[&'d [u8]]) -> Vec<Packet<'d>> {
    let packets = datagrams.iter().filter_map(|datagram| Packet::parse(datagram).ok());
    let mut packets: Vec<Packet<'d>> = packets
        .filter(|packet| packet.payload_type() == payload_type && !packet.payload().is_empty())
        .collect();
    if let Some(first) = packets.first().map(Packet::sequence) {
        packets.sort_by_key(|packet| packet.sequence().distance(first));
        packets.dedup_by_key(|packet| packet.sequence());
    }
    packets
}
