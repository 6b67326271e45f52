//! Whether packets look like Opus (RFC 7587).

use rushes::payload::opus::packet_duration;
use rushes::proto::rtp::Packet;

use super::guess::{Score, follows};

/// Ticks in the shortest Opus frame, 2.5 ms.
const OPUS_TICKS: i32 = 120;

/// Of so many packets one at least must be followed by silence of no length.
const PAIRS_A_SIGN: u64 = 4;

/// Payloads of more octets than this that are all the same are no speech.
const SAME_MAX: usize = 3;

/// How well timestamps step by just the time that each packet lasts.
pub(super) fn score_opus(packets: &[Packet<'_>]) -> Score {
    let mut score = Score::default();
    let mut pairs = 0;
    for packet in packets {
        if packet_duration(packet.payload()).is_err() || is_monotonous(packet.payload()) {
            score.bad += 1;
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
            0 => score.good += 1,
            // Silence is left out (RFC 7587 section 3.1.3), by whole frames.
            gap if gap > 0 && gap % OPUS_TICKS == 0 => {}
            _ => score.bad += 1,
        }
    }
    // Timestamps that never agree with the durations are of something else.
    if score.good * PAIRS_A_SIGN < pairs { Score::default() } else { score }
}

/// Samples of silence, which have a valid first octet by chance.
fn is_monotonous(payload: &[u8]) -> bool {
    payload.len() > SAME_MAX && payload.iter().all(|octet| *octet == payload[0])
}
