//! When the arrivals of packets are reported (RFC 8888): by the rate at which they arrive.

use std::time::{Duration, Instant};

/// Packets that a report covers, if the limits below allow. A sender that controls its rate works
/// well with a report for each 16 packets (draft-ietf-ccwg-rfc8298bis-screamv2, feedback interval).
const PACKETS: u32 = 16;

/// The least interval: with fewer packets in each, reports would take more than they tell.
const INTERVAL_MIN: Duration = Duration::from_millis(10);

/// The greatest interval, from the same draft.
const INTERVAL_MAX: Duration = Duration::from_millis(40);

/// The times of reports on arrivals. RTCP's share of the session's bandwidth limits them further
/// (RFC 3550 section 6.2), and no report is sent if nothing has arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArrivalTimes {
    last: Instant,
    due: Instant,
}

impl ArrivalTimes {
    pub(super) fn new(now: Instant) -> Self {
        Self { last: now, due: now }
    }

    /// Returns when the next report is due.
    pub(super) fn due(&self) -> Instant {
        self.due
    }

    /// Notes a report of `packets` at `now`.
    pub(super) fn note(&mut self, now: Instant, packets: usize) {
        let packets = u32::try_from(packets).unwrap_or(u32::MAX);
        let elapsed = now.saturating_duration_since(self.last);
        let interval = match packets {
            0 => INTERVAL_MAX,
            _ => elapsed.saturating_mul(PACKETS) / packets,
        };
        *self = Self { last: now, due: now + interval.clamp(INTERVAL_MIN, INTERVAL_MAX) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Returns the interval after a report of `packets` that arrived within `elapsed`.
    fn interval(packets: usize, elapsed: Duration) -> Duration {
        let start = Instant::now();
        let mut times = ArrivalTimes::new(start);
        times.note(start + elapsed, packets);
        times.due() - (start + elapsed)
    }

    #[test]
    fn a_report_covers_sixteen_packets_within_limits() {
        assert_eq!(interval(20, 20 * MS), 16 * MS);
        assert_eq!(interval(16, 33 * MS), 33 * MS);
        assert_eq!(interval(500, 10 * MS), INTERVAL_MIN);
        assert_eq!(interval(1, 40 * MS), INTERVAL_MAX);
        assert_eq!(interval(0, 10 * MS), INTERVAL_MAX);
        assert_eq!(interval(usize::MAX, Duration::ZERO), INTERVAL_MIN);
        assert_eq!(interval(1, Duration::from_secs(1 << 30)), INTERVAL_MAX);
    }
}
