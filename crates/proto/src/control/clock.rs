//! The clocks of a source: mapping of timestamps to wall-clock time.

use crate::time::{ClockRate, NtpTime, RtpTimestamp};
use std::time::Duration;

/// One instant on both clocks of a source, from its last sender report (RFC 3550 section 6.4.1). It
/// maps timestamps up to half their range away: at 90 kHz, six hours.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ClockMapping {
    /// The instant on the source's wall clock.
    pub ntp: NtpTime,
    /// The same instant on the clock of its media.
    pub rtp: RtpTimestamp,
    /// The rate of that clock.
    pub clock_rate: ClockRate,
}

impl ClockMapping {
    /// Maximum latency, one hour: a larger offset shows that a clock does not have wall-clock time.
    pub const OFFSET_MAX: Duration = Duration::from_secs(3600);

    /// Returns the wall-clock instant at which the media of `timestamp` was captured.
    ///
    /// ```
    /// use rushes_proto::control::ClockMapping;
    /// use rushes_proto::{ClockRate, NtpTime, RtpTimestamp};
    /// use std::time::Duration;
    ///
    /// let ntp = NtpTime::from_unix(Duration::from_secs(1_700_000_000));
    /// let mapping = ClockMapping { ntp, rtp: RtpTimestamp(4000), clock_rate: ClockRate::VIDEO };
    /// assert_eq!(mapping.to_ntp(RtpTimestamp(4000 + 90_000)), ntp.plus(Duration::from_secs(1)));
    /// ```
    pub fn to_ntp(&self, timestamp: RtpTimestamp) -> NtpTime {
        let ticks = timestamp.distance(self.rtp);
        let time = self.clock_rate.duration(ticks.unsigned_abs());
        if ticks < 0 { self.ntp.minus(time) } else { self.ntp.plus(time) }
    }

    /// Returns the nanoseconds from the capture of the media of `timestamp` to `now` on our own
    /// wall clock, negative if the source's clock is ahead of ours; `None` if that is
    /// [`OFFSET_MAX`](Self::OFFSET_MAX) or more.
    ///
    /// Its accuracy depends on how closely the two clocks agree. A source need not write wall-clock
    /// time in its reports (RFC 3550 section 6.4.1 allows the time since it started); the result is
    /// then `None`.
    ///
    /// ```
    /// use rushes_proto::control::ClockMapping;
    /// use rushes_proto::{ClockRate, NtpTime, RtpTimestamp};
    /// use std::time::Duration;
    ///
    /// let ntp = NtpTime::from_unix(Duration::from_secs(1_700_000_000));
    /// let mapping = ClockMapping { ntp, rtp: RtpTimestamp(4000), clock_rate: ClockRate::VIDEO };
    /// let now = ntp.plus(Duration::from_secs(2));
    /// assert_eq!(mapping.latency(RtpTimestamp(4000), now), Some(2_000_000_000));
    /// let since_start = ClockMapping { ntp: NtpTime(5 << 32), ..mapping };
    /// assert_eq!(since_start.latency(RtpTimestamp(4000), now), None);
    /// ```
    pub fn latency(&self, timestamp: RtpTimestamp, now: NtpTime) -> Option<i64> {
        let nanos = now.nanos_since(self.to_ntp(timestamp));
        (u128::from(nanos.unsigned_abs()) < Self::OFFSET_MAX.as_nanos()).then_some(nanos)
    }

    /// Returns the timestamp of media captured at a wall-clock instant, to the nearest tick.
    pub fn to_rtp(&self, instant: NtpTime) -> RtpTimestamp {
        let nanos = instant.nanos_since(self.ntp);
        let half = u64::from(500_000_000 / self.clock_rate.hertz());
        let ticks = self.clock_rate.ticks(Duration::from_nanos(nanos.unsigned_abs() + half));
        RtpTimestamp(if nanos < 0 {
            self.rtp.0.wrapping_sub(ticks)
        } else {
            self.rtp.0.wrapping_add(ticks)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_survives_conversion_to_the_wall_clock_and_a_wrap() {
        for clock_rate in [ClockRate::VIDEO, ClockRate::OPUS] {
            let ntp = NtpTime::from_unix(Duration::from_nanos(1_600_000_000_987_654_321));
            let mapping = ClockMapping { ntp, rtp: RtpTimestamp(u32::MAX - 1000), clock_rate };
            for ticks in [0_u32, 1, 1001, 3003, 90_000 * 3600, u32::MAX, u32::MAX - 90_000] {
                let timestamp = mapping.rtp.plus(ticks);
                assert_eq!(mapping.to_rtp(mapping.to_ntp(timestamp)), timestamp, "{ticks}");
            }
        }
    }
}
