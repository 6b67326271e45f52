//! Transport-wide sequence numbers of a port's packets: those that it sends, and those that arrive
//! (draft-holmer-rmcat-transport-wide-cc-extensions-01).

use std::sync::Mutex;
use std::time::Instant;

use rushes_proto::rate::{PacketFeedback, WideClock};
use rushes_proto::rtcp::WideReport;
use rushes_proto::rtp::TransportCounter;
use rushes_proto::stream::{Receiver, WideArrivals};
use rushes_proto::{SequenceNumber, Ssrc};

use crate::lock::lock;

/// Number of packets that are known by their numbers: as far as numbers can be told apart.
const SENT_MAX: usize = 1 << 15;

/// The numbers of all streams on one port.
#[derive(Debug, Default)]
pub(crate) struct Wide {
    counter: TransportCounter,
    sent: Mutex<Sent>,
    arrivals: Mutex<WideArrivals>,
}

/// The packets that were sent, by their transport-wide numbers.
#[derive(Debug, Default)]
struct Sent {
    /// Place `n` is for numbers that are `n` modulo the length. Empty until first used.
    packets: Vec<Option<(SequenceNumber, (Ssrc, SequenceNumber))>>,
    clock: WideClock,
    /// The last report: its receiver, its number, and its first packet.
    last: Option<(Ssrc, u8, SequenceNumber)>,
}

impl Wide {
    /// Creates the numbers of a port; the first packet has the number `first`, which is to be random.
    pub(crate) fn new(first: SequenceNumber) -> Self {
        Self { counter: TransportCounter::new(first), ..Self::default() }
    }

    pub(crate) fn counter(&self) -> TransportCounter {
        self.counter.clone()
    }

    /// Notes that the packet with `number` is packet `sequence` of `ssrc`.
    pub(crate) fn note_sent(&self, number: SequenceNumber, packet: (Ssrc, SequenceNumber)) {
        let mut sent = lock(&self.sent);
        if sent.packets.is_empty() {
            sent.packets = vec![None; SENT_MAX];
        }
        sent.packets[usize::from(number.0) % SENT_MAX] = Some((number, packet));
    }

    /// Returns what a report of `from` with this number says of the packets that were sent; `None` if
    /// another stream of the port has handled it.
    pub(crate) fn read(
        &self,
        from: Ssrc,
        number: u8,
        reports: &[WideReport],
    ) -> Option<Vec<PacketFeedback>> {
        let mut sent = lock(&self.sent);
        let Sent { packets, clock, last } = &mut *sent;
        let first = reports.first()?.sequence;
        if last.replace((from, number, first)) == Some((from, number, first)) {
            return None;
        }
        let feedback = |report: &WideReport| {
            let known = packets.get(usize::from(report.sequence.0) % SENT_MAX);
            let (ssrc, sequence) = match known {
                Some(Some((number, packet))) if *number == report.sequence => *packet,
                _ => return None,
            };
            let feedback = clock.feedback(ssrc, *report);
            Some(PacketFeedback { ssrc, sequence, ..feedback })
        };
        Some(reports.iter().filter_map(feedback).collect())
    }

    /// Takes the arrivals that `receiver` has noted.
    pub(crate) fn take_from(&self, receiver: &mut Receiver) {
        let Some((first, at)) = receiver.poll_wide_arrival() else { return };
        let mut arrivals = lock(&self.arrivals);
        arrivals.note(first, at);
        while let Some((number, at)) = receiver.poll_wide_arrival() {
            arrivals.note(number, at);
        }
    }

    /// Appends the arrivals since the last call to `out`; returns the number of the first.
    pub(crate) fn take_arrivals(&self, out: &mut Vec<Option<Instant>>) -> Option<SequenceNumber> {
        lock(&self.arrivals).take(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rushes_proto::rtcp::WideTime;
    use rushes_proto::rtp::TransportSequence;

    #[test]
    fn a_report_names_packets_by_their_own_numbers_and_is_read_once() {
        let wide = Wide::new(SequenceNumber(65_534));
        for n in 0..4_u16 {
            let TransportSequence(number) = wide.counter().count();
            wide.note_sent(number, (Ssrc(u32::from(n % 2)), SequenceNumber(n)));
        }
        let report = |number: u16| WideReport {
            sequence: SequenceNumber(number),
            arrival: Some(Some(WideTime(4))),
        };
        // One was never sent.
        let reports = [report(65_535), report(0), report(7)];
        let read = wide.read(Ssrc(9), 3, &reports).unwrap();
        let named: Vec<_> = read.iter().map(|packet| (packet.ssrc.0, packet.sequence.0)).collect();
        assert_eq!(named, [(1, 1), (0, 2)]);
        assert!(wide.read(Ssrc(9), 3, &reports).is_none());
        assert!(wide.read(Ssrc(9), 4, &reports).is_some());
        assert!(wide.read(Ssrc(9), 4, &[]).is_none());
    }
}
