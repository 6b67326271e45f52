//! What a receiver reports of packets, whatever the format of its reports.

use std::time::Duration;

use crate::rtcp::{Arrival, Ecn, PacketReport, WideReport, WideTime};
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

/// The clock of a receiver that sends transport-wide feedback: continues its times where they wrap
/// around, which those of [`ReceiverTime`] do at another place.
#[derive(Clone, Copy, Debug, Default)]
pub struct WideClock {
    /// The latest time read, and the same in steps of 250 µs without wraps.
    latest: Option<(WideTime, i64)>,
}

impl WideClock {
    /// Converts one packet of transport-wide feedback. `ssrc` is the one under which
    /// [`RateController::handle_sent`](super::RateController::handle_sent) was informed of all
    /// packets with their transport-wide numbers, whatever their own source.
    ///
    /// Such feedback has no marks: these packets count as not marked.
    pub fn feedback(&mut self, ssrc: Ssrc, report: WideReport) -> PacketFeedback {
        let arrival =
            report.arrival.map(|time| (Ecn::NotCapable, time.map(|time| self.time(time))));
        PacketFeedback { ssrc, sequence: report.sequence, arrival }
    }

    fn time(&mut self, time: WideTime) -> ReceiverTime {
        let (before, steps) = self.latest.unwrap_or_else(|| (time, i64::from(time.0)));
        let steps = steps.wrapping_add(time.0.wrapping_sub(before.0).cast_signed().into());
        self.latest = Some((time, steps));
        // 250 µs are 16.384 units of 1/65 536 s.
        ReceiverTime((i128::from(steps) * 16_384).div_euclid(1000) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_transport_wide_feedback_go_on_where_they_wrap() {
        let mut clock = WideClock::default();
        let mut at = |steps: u32| {
            let report =
                WideReport { sequence: SequenceNumber(7), arrival: Some(Some(WideTime(steps))) };
            clock.feedback(Ssrc(1), report).arrival.unwrap().1.unwrap().0
        };
        let mut before = at(u32::MAX - 5999);
        for steps in (u32::MAX - 5999..=u32::MAX).chain(0..6000).step_by(1000).skip(1) {
            let time = at(steps);
            assert!((16_383..=16_385).contains(&time.wrapping_sub(before)), "{steps}");
            before = time;
        }
        assert!(before.wrapping_sub(at(0)) < 5 * 16_385, "time may go back");
    }

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
