//! The path of our media to a receiver, by its reports: whether it triggers a circuit breaker.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::circuit_breaker::CircuitBreaker;
use crate::rtcp::ReportBlock;

/// Fewest report blocks that show congestion (section 4.3).
const CONGESTED_REPORTS: usize = 3;

/// Consecutive reports without a new packet that show that nothing arrives: k of section 4.2.
const UNMOVED_REPORTS: u32 = 5;

/// How many times as fast as TCP a sender may be (section 4.3).
const TCP_FACTOR: f64 = 10.0;

/// How many times the octets between two reports may be sent without a report. Some players
/// (FFmpeg) report after a number of octets rather than after a time: far apart, at a low rate.
const SILENT_OCTETS: u64 = 3;

/// The parts of the time for which a condition must last, each with one entry: reports that arrive
/// more often are summed up.
const PARTS: u32 = 16;

/// How much had been sent at an instant.
#[derive(Clone, Copy, Debug)]
pub(super) struct SentBy {
    pub(super) at: Instant,
    pub(super) packets: u64,
    pub(super) octets: u64,
}

/// The time between two reports, or several such times.
#[derive(Clone, Copy, Debug, Default)]
struct Interval {
    time: Duration,
    packets: u64,
    octets: u64,
    /// The fraction lost, multiplied by the seconds of its interval.
    lost_seconds: f64,
}

impl Interval {
    fn plus(self, other: Self) -> Self {
        Self {
            time: self.time + other.time,
            packets: self.packets + other.packets,
            octets: self.octets + other.octets,
            lost_seconds: self.lost_seconds + other.lost_seconds,
        }
    }
}

/// The path of our media to one receiver, by its reports.
#[derive(Clone, Debug, Default)]
pub(super) struct ReportedPath {
    /// The number of its reports on our media, at most 2: the second shows that it reports regularly.
    pub(super) reports: u8,
    /// At the last report on our media.
    reported: Option<SentBy>,
    /// At the last report on our media, or the last feedback.
    pub(super) heard: Option<SentBy>,
    /// The most octets sent between two of these.
    octets_max: u64,
    highest: u32,
    round_trip: Option<Duration>,
    intervals: VecDeque<Interval>,
    /// Consecutive reports without a new packet, and the instant before the first of them.
    unmoved: u32,
    unmoved_since: Option<Instant>,
    /// The circuit breaker that the last report triggers, if it is the only receiver's.
    pub(super) triggers: Option<CircuitBreaker>,
}

impl ReportedPath {
    /// Notes a report or feedback that arrived when this much had been sent.
    pub(super) fn note_heard(&mut self, sent: SentBy) {
        if let Some(before) = self.heard.replace(sent) {
            self.octets_max = self.octets_max.max(sent.octets.saturating_sub(before.octets));
        }
    }

    /// Notes a report on our media; `span` is the time for which a condition must last.
    pub(super) fn note_report(
        &mut self,
        sent: SentBy,
        block: &ReportBlock,
        round_trip: Option<Duration>,
        span: Duration,
    ) {
        self.note_heard(sent);
        self.reports = (self.reports + 1).min(2);
        if let Some(new) = round_trip {
            self.round_trip = Some(self.round_trip.map_or(new, |old| (old * 4 + new) / 5));
        }
        let moved = block.highest.wrapping_sub(self.highest).cast_signed() > 0;
        self.highest = block.highest;
        let Some(before) = self.reported.replace(sent) else { return };
        let interval = Interval {
            time: sent.at.saturating_duration_since(before.at),
            packets: sent.packets.saturating_sub(before.packets),
            octets: sent.octets.saturating_sub(before.octets),
            lost_seconds: 0.0,
        };
        // A report shows nothing about a time in which nothing was sent.
        if interval.packets == 0 {
            self.triggers = None;
            return;
        }
        if moved {
            (self.unmoved, self.unmoved_since) = (0, None);
        } else {
            self.unmoved = self.unmoved.saturating_add(1);
            self.unmoved_since.get_or_insert(before.at);
        }
        let lost_seconds = f64::from(block.fraction_lost) / 256.0 * interval.time.as_secs_f64();
        self.add(Interval { lost_seconds, ..interval }, span);
        self.triggers = self.media_timeout(sent.at, span).or_else(|| self.congestion(span));
    }

    /// Adds an interval, and removes those that are older than `span`.
    fn add(&mut self, new: Interval, span: Duration) {
        match self.intervals.back_mut().filter(|last| last.time < span / PARTS) {
            Some(last) => *last = last.plus(new),
            None => self.intervals.push_back(new),
        }
        let mut time: Duration = self.intervals.iter().map(|interval| interval.time).sum();
        while let Some(oldest) = self.intervals.front().map(|interval| interval.time)
            && self.intervals.len() > CONGESTED_REPORTS
            && time.saturating_sub(oldest) >= span
        {
            time -= oldest;
            self.intervals.pop_front();
        }
    }

    /// Section 4.2. The time between packets (Tf) needs no term, because reports after which nothing
    /// was sent are not counted.
    fn media_timeout(&self, now: Instant, span: Duration) -> Option<CircuitBreaker> {
        let time = now.saturating_duration_since(self.unmoved_since?);
        let least = span.max(self.round_trip.unwrap_or_default() * UNMOVED_REPORTS);
        let reports = self.unmoved;
        (reports >= UNMOVED_REPORTS && time >= least)
            .then_some(CircuitBreaker::MediaTimeout { reports, time })
    }

    /// Section 4.3, with the simplified equation.
    #[allow(clippy::cast_sign_loss, reason = "rates are not negative")]
    fn congestion(&self, span: Duration) -> Option<CircuitBreaker> {
        let round_trip = self.round_trip?;
        let sum = self.intervals.iter().copied().fold(Interval::default(), Interval::plus);
        if sum.time < span || self.intervals.len() < CONGESTED_REPORTS {
            return None;
        }
        let seconds = sum.time.as_secs_f64();
        let lost = sum.lost_seconds / seconds;
        let bit_rate = sum.octets as f64 * 8.0 / seconds;
        let packet_len = bit_rate / (sum.packets as f64 / seconds);
        let tcp_bit_rate = tcp_rate(packet_len, round_trip, lost);
        (bit_rate > TCP_FACTOR * tcp_bit_rate).then_some(CircuitBreaker::Congestion {
            lost,
            round_trip,
            bit_rate: bit_rate as u64,
            tcp_bit_rate: tcp_bit_rate as u64,
        })
    }

    /// Returns whether the receiver has been silent for too long since its last report, and since we
    /// began to send (section 4.1).
    pub(super) fn is_silent(&self, now: &SentBy, since: Instant, span: Duration) -> bool {
        self.heard.is_some_and(|heard| {
            let time = now.at.saturating_duration_since(heard.at.max(since));
            let octets = now.octets.saturating_sub(heard.octets);
            time >= span && octets >= SILENT_OCTETS * self.octets_max
        })
    }
}

/// Returns the rate of TCP with packets of this length, in its unit per second; infinite without
/// losses (section 4.3, b = 1).
fn tcp_rate(packet_len: f64, round_trip: Duration, lost: f64) -> f64 {
    packet_len / (round_trip.as_secs_f64() * (2.0 * lost / 3.0).sqrt())
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "any instant will do")]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const SPAN: Duration = Duration::from_secs(15);

    /// Reports every 5 s on packets of 1000 octets, of which 10 are sent in a round-trip time of
    /// 100 ms; returns after how many reports a circuit breaker triggers, and which.
    fn reports(path: &mut ReportedPath, fraction_lost: u8, packets: u64) -> Option<u32> {
        let start = Instant::now();
        (0..20).find(|n| {
            let sent = packets * u64::from(*n) * 50;
            let at = start + 5000 * MS * *n;
            let block = ReportBlock {
                ssrc: crate::Ssrc(1),
                fraction_lost,
                cumulative_lost: 0,
                highest: sent as u32,
                jitter: 0,
                last_sender_report: 0,
                delay: 0,
            };
            let sent = SentBy { at, packets: sent, octets: sent * 1000 };
            path.note_report(sent, &block, Some(100 * MS), SPAN);
            path.triggers.is_some()
        })
    }

    #[test]
    fn the_rate_of_tcp_is_that_of_the_equation() {
        // s / (Tr * sqrt(2 * b * p / 3)) for p = 0.06 is s / (Tr * 0.2).
        assert!((tcp_rate(1000.0, 100 * MS, 0.06) - 50_000.0).abs() < 1.0);
        assert!((tcp_rate(1200.0, 50 * MS, 0.015) - 240_000.0).abs() < 1.0);
        assert!(tcp_rate(1000.0, 100 * MS, 0.0).is_infinite());
        assert!(tcp_rate(1000.0, Duration::ZERO, 0.1).is_infinite());
    }

    #[test]
    fn more_than_ten_times_the_rate_of_tcp_for_three_intervals_triggers() {
        // At 15/256 lost TCP has sqrt(3 / 2 / p) = 5.06 packets in flight.
        assert_eq!(reports(&mut ReportedPath::default(), 15, 50), None);
        assert_eq!(reports(&mut ReportedPath::default(), 15, 52), Some(3));
        assert_eq!(reports(&mut ReportedPath::default(), 0, 1_000_000), None);
        let mut path = ReportedPath::default();
        assert_eq!(reports(&mut path, 255, 100), Some(3));
        let Some(CircuitBreaker::Congestion { lost, round_trip, bit_rate, tcp_bit_rate }) =
            path.triggers
        else {
            panic!("{:?}", path.triggers);
        };
        assert_eq!((lost, round_trip, bit_rate), (255.0 / 256.0, 100 * MS, 8_000_000));
        assert!((97_000..99_000).contains(&tcp_bit_rate), "{tcp_bit_rate}");
    }

    #[test]
    fn reports_at_any_pace_take_no_more_room() {
        let (start, mut path) = (Instant::now(), ReportedPath::default());
        for n in 1..20_000_u32 {
            let sent = SentBy { at: start + MS * n, packets: n.into(), octets: n.into() };
            let block = ReportBlock {
                ssrc: crate::Ssrc(1),
                fraction_lost: 255,
                cumulative_lost: 0,
                highest: n,
                jitter: 0,
                last_sender_report: 0,
                delay: 0,
            };
            path.note_report(sent, &block, Some(MS), SPAN);
            assert!(path.intervals.len() <= PARTS as usize + 2, "{}", path.intervals.len());
        }
        let time: Duration = path.intervals.iter().map(|interval| interval.time).sum();
        assert!(time >= SPAN && time < SPAN * 2, "{time:?}");
    }
}
