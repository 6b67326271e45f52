//! Evidence for Opus (RFC 7587).

use rushes_proto::payload::opus::packet_duration;
use rushes_proto::rtp::Packet;

use super::evidence::{Evidence, follows};

/// Ticks in the shortest Opus frame, 2.5 ms.
const OPUS_TICKS: i32 = 120;

/// At least one in this number of packets must be followed by the next without silence in between.
const PAIRS_PER_MATCH: u64 = 4;

/// Payloads longer than this, of one repeated octet, are not speech.
const SAME_MAX: usize = 3;

/// Compares the steps of the timestamps with the durations of the packets.
pub(super) fn evidence(packets: &[Packet<'_>]) -> Evidence {
    let mut evidence = Evidence::default();
    let mut pairs = 0;
    for packet in packets {
        if packet_duration(packet.payload()).is_err() || is_constant(packet.payload()) {
            evidence.against += 1;
        }
    }
    for pair in packets.windows(2) {
        let [before, packet] = pair else { continue };
        let Ok(ticks) = packet_duration(before.payload()) else { continue };
        if !follows(packet, before) {
            continue;
        }
        pairs += 1;
        match packet.timestamp().distance(before.timestamp().plus(ticks)) {
            0 => evidence.for_it += 1,
            // Silence is omitted in whole frames (RFC 7587 section 3.1.3).
            gap if gap > 0 && gap % OPUS_TICKS == 0 => {}
            _ => evidence.against += 1,
        }
    }
    // Timestamps that rarely match the durations belong to another codec.
    if evidence.for_it * PAIRS_PER_MATCH < pairs { Evidence::default() } else { evidence }
}

/// Returns whether a payload is one repeated octet: silence of another codec, whose first octet is
/// a valid Opus header by chance.
fn is_constant(payload: &[u8]) -> bool {
    payload.len() > SAME_MAX && payload.iter().all(|octet| *octet == payload[0])
}
