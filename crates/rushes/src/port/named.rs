//! The SSRCs that a datagram of RTCP names.

use rushes_proto::Ssrc;
use rushes_proto::rtcp::{Compound, Packet, PayloadFeedback, TransportFeedback, XrBlock};

/// Maximum number of SSRCs that are read: more than the report blocks in a packet of an Ethernet.
const NAMED_MAX: usize = 96;

/// Adds to `out` the SSRCs that send a compound, and those whose media it is about. Of an encrypted one
/// only the first sender is readable.
pub(super) fn add_named(datagram: &[u8], out: &mut Vec<Ssrc>) {
    let first = datagram.get(4..).and_then(|rest| rest.first_chunk::<4>());
    let first = first.map(|octets| Ssrc(u32::from_be_bytes(*octets)));
    out.extend(first);
    let Ok(compound) = Compound::parse(datagram) else { return };
    for packet in compound.packets().flatten() {
        if out.len() >= NAMED_MAX {
            break;
        }
        add_of(&packet, out);
    }
    out.truncate(NAMED_MAX);
}

fn add_of(packet: &Packet<'_>, out: &mut Vec<Ssrc>) {
    match packet {
        Packet::SenderReport(report) => {
            out.push(report.ssrc());
            out.extend(report.blocks().map(|block| block.ssrc));
        }
        Packet::ReceiverReport(report) => {
            out.push(report.ssrc());
            out.extend(report.blocks().map(|block| block.ssrc));
        }
        Packet::SourceDescription(description) => {
            out.extend(description.chunks().map(|chunk| chunk.ssrc()));
        }
        Packet::Bye(bye) => out.extend(bye.sources()),
        Packet::App(app) => out.push(app.ssrc()),
        Packet::ExtendedReport(report) => {
            out.push(report.ssrc());
            let delays = report.blocks().filter_map(|block| match block {
                XrBlock::Delays(delays) => Some(delays),
                _ => None,
            });
            out.extend(delays.flat_map(|delays| delays.iter()).map(|delay| delay.ssrc));
        }
        Packet::TransportFeedback(feedback) => add_of_transport(feedback, out),
        Packet::PayloadFeedback(feedback) => add_of_payload(feedback, out),
        _ => {}
    }
}

fn add_of_transport(feedback: &TransportFeedback<'_>, out: &mut Vec<Ssrc>) {
    out.extend([feedback.sender(), feedback.media()]);
    let requests = feedback.bit_rate_requests().into_iter().flatten();
    let limits = requests.chain(feedback.bit_rate_notification().into_iter().flatten());
    out.extend(limits.map(|limit| limit.ssrc).take(NAMED_MAX));
    if let Some(congestion) = feedback.congestion() {
        out.extend(congestion.blocks().map(|block| block.ssrc).take(NAMED_MAX));
    }
}

fn add_of_payload(feedback: &PayloadFeedback<'_>, out: &mut Vec<Ssrc>) {
    out.extend([feedback.sender(), feedback.media()]);
    let requests = feedback.full_intra_requests().into_iter().flatten();
    out.extend(requests.map(|request| request.ssrc).take(NAMED_MAX));
    if let Some(estimate) = feedback.estimate() {
        out.extend(estimate.sources());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rushes_proto::rtcp::Writer;

    use super::*;

    fn named(datagram: &[u8]) -> Vec<u32> {
        let mut out = Vec::new();
        add_named(datagram, &mut out);
        let mut out: Vec<_> = out.into_iter().map(|ssrc| ssrc.0).collect();
        out.sort_unstable();
        out.dedup();
        out
    }

    #[test]
    fn senders_and_the_sources_of_media_are_named() {
        let mut writer = Writer::new();
        writer.receiver_report(Ssrc(1), &[]);
        writer.cname(Ssrc(2), "name");
        writer.nack(Ssrc(3), Ssrc(4), [rushes_proto::SequenceNumber(9)]);
        writer.bye(&[Ssrc(5), Ssrc(6)], "");
        assert_eq!(named(writer.bytes()), [1, 2, 3, 4, 5, 6]);
        // An encrypted one shows its first eight octets.
        let mut encrypted = writer.bytes()[..8].to_vec();
        encrypted.extend([0x55; 40]);
        assert_eq!(named(&encrypted), [1]);
        assert!(named(&[0x80, 201]).is_empty());
    }

    proptest! {
        #[test]
        fn any_octets_name_few(octets in prop::collection::vec(any::<u8>(), 0..2000)) {
            let mut out = Vec::new();
            add_named(&octets, &mut out);
            prop_assert!(out.len() <= NAMED_MAX);
        }
    }
}
