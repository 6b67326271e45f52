//! Recognition of telephone events (RFC 4733 section 2.3).

use rushes::proto::rtp::Packet;

/// Minimum number of packets for a guess.
const PACKETS_MIN: usize = 3;

/// One packet's report of its event.
#[derive(Clone, Copy)]
struct Report {
    event: u8,
    is_end: bool,
    duration: u16,
}

/// Parses a payload as an event report, whose bit R is zero (section 2.3.3).
fn report(payload: &[u8]) -> Option<Report> {
    let [event, flags, high, low] = *payload else { return None };
    let duration = u16::from_be_bytes([high, low]);
    (flags & 0x40 == 0).then_some(Report { event, is_end: flags & 0x80 != 0, duration })
}

/// Returns whether the packets report events: each payload has four octets, and packets with one
/// timestamp report one event, whose duration grows until its end.
pub(super) fn is_telephone_event(packets: &[Packet<'_>]) -> bool {
    let mut is_growing = false;
    for pair in packets.windows(2) {
        let [before, packet] = pair else { return false };
        let (Some(earlier), Some(later)) = (report(before.payload()), report(packet.payload()))
        else {
            return false;
        };
        if packet.timestamp() != before.timestamp() {
            continue;
        }
        let continues = earlier.event == later.event
            && earlier.duration <= later.duration
            && (!earlier.is_end || later.is_end && earlier.duration == later.duration);
        if !continues {
            return false;
        }
        is_growing |= earlier.duration < later.duration;
    }
    packets.len() >= PACKETS_MIN && is_growing
}
