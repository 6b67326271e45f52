//! What a receiver reports of packets, whatever the format of its reports.

use std::time::Duration;

use crate::rtcp::{Arrival, Ecn, PacketReport};
use crate::seq::SequenceNumber;
use crate::ssrc::Ssrc;

/// A time by the receiver's clock, in units of 1/65 536 s: the middle 32 bits of an NTP time. It
/// wraps around, and its beginning is arbitrary.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ReceiverTime(pub u32);

impl ReceiverTime {
    fn before(self, time: Duration) -> Self {
        let units = (time.as_nanos() << 16) / 1_000_000_000;
        Self(self.0.wrapping_sub(units as u32))
    }
}

/// A report on one packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PacketFeedback {
    /// The packet's source, as given to [`RateController::handle_sent`](super::RateController).
    pub ssrc: Ssrc,
    /// The packet's number, as given there.
    pub sequence: SequenceNumber,
    /// The packet's mark and, if known, the time of its arrival; `None` if it has not arrived.
    pub arrival: Option<(Ecn, Option<ReceiverTime>)>,
}

impl PacketFeedback {
    /// Converts one packet report on `ssrc` of a congestion control feedback packet (RFC 8888
    /// section 3.1), with the packet's report timestamp.
    pub fn from_report(ssrc: Ssrc, instant: u32, report: PacketReport) -> Self {
        let arrival = report.arrival.map(|(ecn, arrival)| match arrival {
            Arrival::Before(time) => (ecn, Some(ReceiverTime(instant).before(time))),
            Arrival::LongBefore | Arrival::Unknown => (ecn, None),
        });
        Self { ssrc, sequence: report.sequence, arrival }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arrival_of_a_report_is_counted_back_from_its_instant_across_a_wrap() {
        let half = Arrival::Before(Duration::from_millis(500));
        let report = |arrival| {
            let arrival = Some((Ecn::Congestion, arrival));
            let report = PacketReport { sequence: SequenceNumber(7), arrival };
            PacketFeedback::from_report(Ssrc(1), 2, report).arrival
        };
        let expected = ReceiverTime(2_u32.wrapping_sub(32_768));
        assert_eq!(report(half), Some((Ecn::Congestion, Some(expected))));
        assert_eq!(report(Arrival::LongBefore), Some((Ecn::Congestion, None)));
    }
}
