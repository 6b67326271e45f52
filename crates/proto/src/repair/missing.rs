//! The missing packets of one source, and the times to request them.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::round_trip::RoundTrip;
use crate::seq::{ExtendedSequence, SequenceNumber};

/// Timing and limits of requests for missing packets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RequestTiming {
    /// How long a late packet may take to arrive before it is requested.
    pub delay: Duration,
    /// Maximum number of requests for one packet.
    pub attempts_max: u8,
    /// Maximum number of packets to request at a time; in a longer gap, the newest.
    pub packets_max: usize,
    /// Maximum time to wait for a missing packet. The receiver waits as long as four requests take
    /// at the measured round-trip time (eight if many requests are lost); until that time is known,
    /// it waits for this maximum. A packet is not requested if its answer could not arrive in time.
    pub latency_max: Duration,
}

impl Default for RequestTiming {
    /// Returns a delay of 5 ms, 20 attempts, 1 024 packets, and a wait of at most half a second.
    fn default() -> Self {
        Self {
            delay: Duration::from_millis(5),
            attempts_max: 20,
            packets_max: 1024,
            latency_max: Duration::from_millis(500),
        }
    }
}

/// Limit for endless durations: one year, which does not overflow an `Instant`.
const FOR_EVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// Maximum number of packets given up whose late answers still correct the round-trip time.
const GIVEN_UP_MAX: usize = 64;

/// Number of requests for which the wait for a packet leaves time, within `latency_max`; larger if
/// many requests are lost.
const REQUESTS_AWAITED: u32 = 4;
const REQUESTS_AWAITED_IF_LOSSY: u32 = 8;

/// Time until the first request is repeated while the round-trip time is unknown; doubled after
/// each further request.
const FIRST_RETRY: Duration = Duration::from_millis(50);

/// Maximum number of requests for a packet that may never have been sent.
const HEAD_ATTEMPTS: u8 = 2;

/// How often the last request that can be answered in time is repeated, in case it is lost, and the
/// minimum time between repetitions. If many first requests remain unanswered, there are more, and
/// with repair packets, too.
const LAST_REPEATS: u8 = 2;
const LAST_REPEATS_WITH_REPAIRS: u8 = 3;
const LAST_REPEATS_IF_LOSSY: u8 = 10;
const LOSSY_BELOW: f32 = 0.8;
const REPEAT_AFTER: Duration = Duration::from_millis(10);

/// The number of requests, and their outcomes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RepairCounts {
    /// Requests made, including repetitions.
    pub requested: u64,
    /// Packets that arrived after they were requested.
    pub recovered: u64,
    /// Packets that were requested and did not arrive in time.
    pub unanswered: u64,
    /// Packets that were not requested, because an answer could not have arrived in time.
    pub not_requested: u64,
}

impl core::ops::AddAssign for RepairCounts {
    fn add_assign(&mut self, other: Self) {
        self.requested += other.requested;
        self.recovered += other.recovered;
        self.unanswered += other.unanswered;
        self.not_requested += other.not_requested;
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    sequence: ExtendedSequence,
    /// When the packet was found missing: on arrival of the first packet after it.
    since: Instant,
    /// When to request the packet (again); `None` if it is not to be requested any more.
    due: Option<Instant>,
    first_requested: Option<Instant>,
    attempts: u8,
    attempts_max: u8,
    last_repeats: u8,
}

/// The missing packets of one source, in order.
#[derive(Clone, Debug)]
pub struct Missing {
    timing: RequestTiming,
    entries: VecDeque<Entry>,
    /// Packets that were requested and given up, each with the time of its first request.
    given_up: VecDeque<(ExtendedSequence, Instant)>,
    /// No entry is due earlier.
    next_due: Option<Instant>,
    round_trip: RoundTrip,
    /// The smoothed share of recovered packets for which one request was enough.
    answered: f32,
    /// Whether repair packets recover most lost packets.
    has_repairs: bool,
    counts: RepairCounts,
}

impl Missing {
    /// Creates an empty list of missing packets.
    pub fn new(timing: RequestTiming) -> Self {
        let timing = RequestTiming {
            delay: timing.delay.min(FOR_EVER),
            latency_max: timing.latency_max.min(FOR_EVER),
            ..timing
        };
        Self {
            timing,
            entries: VecDeque::new(),
            given_up: VecDeque::new(),
            next_due: None,
            round_trip: RoundTrip::default(),
            answered: 1.0,
            has_repairs: false,
            counts: RepairCounts::default(),
        }
    }

    /// Repeats the last request that can be answered in time even if it is the first, and more
    /// often: repair packets recover most lost packets, so that few are requested, but after a wait
    /// that may leave time for one request only.
    #[must_use]
    pub fn with_repairs(mut self) -> Self {
        self.has_repairs = true;
        self
    }

    /// Sets the round-trip time measured by reports: a packet that arrives sooner is not an answer.
    pub fn set_round_trip(&mut self, time: Duration) {
        self.round_trip.set_least(time);
    }

    /// Returns how long to wait for a missing packet, from the arrival of the one after it.
    #[inline]
    pub fn wait(&self) -> Duration {
        let limit = self.timing.latency_max;
        let requests = if self.is_lossy() { REQUESTS_AWAITED_IF_LOSSY } else { REQUESTS_AWAITED };
        self.round_trip.retry().map_or(limit, |retry| {
            limit.min(self.timing.delay.saturating_add(retry.saturating_mul(requests)))
        })
    }

    /// Returns whether many packets that were requested once have still not arrived.
    #[inline]
    fn is_lossy(&self) -> bool {
        self.answered < LOSSY_BELOW
    }

    /// Notes at `now` that the `packets` from `first` on may have been sent before the first packet
    /// that arrived; each is requested at most twice.
    pub fn note_head(&mut self, now: Instant, first: ExtendedSequence, packets: u64) {
        self.note_gap(now, first, packets);
        for entry in &mut self.entries {
            entry.attempts_max = entry.attempts_max.min(HEAD_ATTEMPTS);
        }
    }

    /// Notes at `now` that the `packets` from `first` on are missing, as the next one has arrived.
    pub fn note_gap(&mut self, now: Instant, first: ExtendedSequence, packets: u64) {
        if packets == 0 {
            return;
        }
        let skipped = packets.saturating_sub(self.timing.packets_max as u64);
        let due = now + self.timing.delay;
        for step in skipped..packets {
            if self.entries.len() >= self.timing.packets_max {
                self.forget_first();
            }
            self.entries.push_back(Entry {
                sequence: first.plus(step),
                since: now,
                due: Some(due),
                first_requested: None,
                attempts: 0,
                attempts_max: self.timing.attempts_max,
                last_repeats: 0,
            });
        }
        self.next_due = Some(self.next_due.map_or(due, |next| next.min(due)));
    }

    /// Notes that the missing packet `sequence` arrived at `now`.
    #[inline]
    pub fn note_arrival(&mut self, now: Instant, sequence: ExtendedSequence) {
        if self.entries.is_empty() && self.given_up.is_empty() {
            return;
        }
        let found = self.entries.binary_search_by_key(&sequence, |entry| entry.sequence);
        let Ok(n) = found else {
            return self.note_late_answer(now, sequence);
        };
        if let Some(Entry { attempts, first_requested: Some(asked), .. }) = self.entries.remove(n) {
            self.counts.recovered += 1;
            if self.round_trip.time().is_some() {
                let answered = if attempts == 1 { 1.0 } else { 0.0 };
                self.answered += (answered - self.answered) / 16.0;
            }
            self.round_trip.take(now.saturating_duration_since(asked), attempts);
        }
        if self.entries.is_empty() {
            self.next_due = None;
        }
    }

    /// Notes a packet that arrived after it was given up. If the round-trip time is set too short,
    /// this happens to every packet.
    fn note_late_answer(&mut self, now: Instant, sequence: ExtendedSequence) {
        if let Some(n) = self.given_up.iter().position(|(given_up, _)| *given_up == sequence)
            && let Some((_, asked)) = self.given_up.remove(n)
        {
            self.round_trip.raise(now.saturating_duration_since(asked));
        }
    }

    /// Forgets all packets before `sequence`, for which the receiver no longer waits.
    #[inline]
    pub fn forget_before(&mut self, sequence: ExtendedSequence) {
        while self.entries.front().is_some_and(|entry| entry.sequence < sequence) {
            self.forget_first();
        }
        if self.entries.is_empty() {
            self.next_due = None;
        }
    }

    /// Forgets all packets, because the source has restarted.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.given_up.clear();
        self.next_due = None;
    }

    fn forget_first(&mut self) {
        if let Some(entry) = self.entries.pop_front() {
            if let Some(asked) = entry.first_requested {
                self.counts.unanswered += 1;
                if self.given_up.len() >= GIVEN_UP_MAX {
                    self.given_up.pop_front();
                }
                self.given_up.push_back((entry.sequence, asked));
            } else {
                self.counts.not_requested += 1;
            }
        }
    }

    /// Returns the missing packet with the 16-bit number `sequence`; [`None`] if it is not missing.
    pub fn find(&self, sequence: SequenceNumber) -> Option<ExtendedSequence> {
        let mut entries = self.entries.iter();
        entries.find(|entry| entry.sequence.sequence() == sequence).map(|entry| entry.sequence)
    }

    /// Returns when [`take_due`](Self::take_due) will return packets; `None` if never.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.next_due
    }

    /// Adds to `out` the packets to request at `now`, in order. Each packet is due again when its
    /// answer should have arrived; the last request that can be answered in time is repeated.
    pub fn take_due(&mut self, now: Instant, out: &mut Vec<SequenceNumber>) {
        if self.next_due.is_none_or(|due| due > now) {
            return;
        }
        let wait = self.wait();
        let round_trip = self.round_trip.time().unwrap_or(Duration::ZERO);
        let retry = self.round_trip.retry();
        let repeats_max = match self.has_repairs {
            _ if self.is_lossy() => LAST_REPEATS_IF_LOSSY,
            true => LAST_REPEATS_WITH_REPAIRS,
            false => LAST_REPEATS,
        };
        self.next_due = None;
        for entry in &mut self.entries {
            if entry.due.is_some_and(|due| due <= now) {
                // The last instant at which a request can be answered in time.
                let last = (entry.since + wait).checked_sub(round_trip);
                let hopeless = last.is_none_or(|last| now > last);
                if hopeless || entry.attempts >= entry.attempts_max {
                    entry.due = None;
                    continue;
                }
                entry.attempts += 1;
                entry.first_requested.get_or_insert(now);
                out.push(entry.sequence.sequence());
                self.counts.requested += 1;
                let doublings = u32::from(entry.attempts - 1).min(10);
                let retry = retry.unwrap_or_else(|| FIRST_RETRY * 2_u32.pow(doublings));
                entry.due = Some(now + retry);
                let left = last.map_or(Duration::ZERO, |last| last.saturating_duration_since(now));
                let is_repeated = entry.attempts > 1 || self.has_repairs;
                if left < retry && is_repeated && entry.last_repeats < repeats_max {
                    let repeats_left = u32::from(repeats_max - entry.last_repeats);
                    entry.last_repeats += 1;
                    entry.due = Some(now + (left / repeats_left).max(REPEAT_AFTER));
                }
            }
            if let Some(due) = entry.due {
                self.next_due = Some(self.next_due.map_or(due, |next| next.min(due)));
            }
        }
    }

    /// Returns the number of requests, and their outcomes.
    pub fn counts(&self) -> RepairCounts {
        self.counts
    }

    /// Returns the octets of memory in use.
    pub fn held_octets(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "any instant will do")]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn due(missing: &mut Missing, now: Instant) -> Vec<u16> {
        let mut out = Vec::new();
        missing.take_due(now, &mut out);
        out.iter().map(|sequence| sequence.0).collect()
    }

    /// Returns when a packet that never arrives is requested, in milliseconds after the gap.
    fn asked_at(round_trip: u64, latency_max: u64) -> Vec<u64> {
        asked_by(Missing::new, round_trip, latency_max)
    }

    fn asked_by(new: fn(RequestTiming) -> Missing, round_trip: u64, latency_max: u64) -> Vec<u64> {
        let timing = RequestTiming {
            latency_max: Duration::from_millis(latency_max),
            ..RequestTiming::default()
        };
        let mut missing = new(timing);
        missing.set_round_trip(Duration::from_millis(round_trip));
        let start = Instant::now();
        missing.note_gap(start, ExtendedSequence(70_000), 1);
        let mut times = Vec::new();
        while let Some(at) = missing.poll_timeout() {
            if !due(&mut missing, at).is_empty() {
                times.push((at - start).as_millis() as u64);
            }
        }
        times
    }

    #[test]
    fn a_packet_is_requested_after_the_delay_and_again_when_its_answer_is_overdue() {
        let start = Instant::now();
        let mut missing = Missing::new(RequestTiming { attempts_max: 2, ..Default::default() });
        assert_eq!(missing.poll_timeout(), None);
        missing.note_gap(start, ExtendedSequence(0x1_ffff), 2);
        let first = start + 5 * MS;
        assert_eq!(missing.poll_timeout(), Some(first));
        assert!(due(&mut missing, start).is_empty());
        assert_eq!(due(&mut missing, first), [0xffff, 0]);
        assert_eq!(missing.poll_timeout(), Some(first + FIRST_RETRY));
        missing.note_arrival(first + 30 * MS, ExtendedSequence(0x1_ffff));
        assert_eq!(due(&mut missing, first + FIRST_RETRY), [0]);
        assert!(due(&mut missing, first + 400 * MS).is_empty());
        assert_eq!(missing.poll_timeout(), None);
        let counts = missing.counts();
        assert_eq!((counts.requested, counts.recovered, counts.unanswered), (3, 1, 0));
    }

    #[test]
    fn requests_follow_the_round_trip_time_and_end_where_no_answer_can_come_in_time() {
        assert_eq!(asked_at(20, 10_000), [5, 35, 65, 95, 105]);
        assert_eq!(asked_at(200, 10_000), [5, 215, 425, 635, 645]);
        // At three times the round-trip time, the second request is the last: it is repeated.
        assert_eq!(asked_at(200, 600), [5, 215, 307, 400]);
        assert!(asked_at(220, 200).is_empty());
    }

    #[test]
    fn with_repair_packets_the_last_request_is_repeated_even_if_it_is_the_first() {
        let with_repairs = |timing| Missing::new(timing).with_repairs();
        assert_eq!(asked_at(200, 240), [5]);
        assert_eq!(asked_by(with_repairs, 200, 240), [5, 16, 28, 40]);
        assert_eq!(asked_by(with_repairs, 200, 600), [5, 215, 276, 338, 400]);
        assert!(asked_by(with_repairs, 220, 200).is_empty());
    }

    #[test]
    fn a_packet_that_cannot_arrive_in_time_is_counted_as_not_requested() {
        let start = Instant::now();
        let mut missing =
            Missing::new(RequestTiming { latency_max: 100 * MS, ..Default::default() });
        missing.set_round_trip(120 * MS);
        missing.note_gap(start, ExtendedSequence(70_000), 3);
        assert!(due(&mut missing, start + 5 * MS).is_empty());
        missing.forget_before(ExtendedSequence(70_003));
        let counts = missing.counts();
        assert_eq!((counts.requested, counts.unanswered, counts.not_requested), (0, 0, 3));
    }

    #[test]
    fn the_wait_is_the_limit_until_the_round_trip_time_is_known() {
        let start = Instant::now();
        let mut missing = Missing::new(RequestTiming::default());
        assert_eq!(missing.wait(), 500 * MS);
        missing.note_gap(start, ExtendedSequence(70_000), 1);
        due(&mut missing, start + 5 * MS);
        missing.note_arrival(start + 25 * MS, ExtendedSequence(70_000));
        assert!((100 * MS..300 * MS).contains(&missing.wait()), "{:?}", missing.wait());
    }

    #[test]
    fn answers_that_arrive_too_late_lengthen_the_wait() {
        let mut now = Instant::now();
        let mut missing = Missing::new(RequestTiming::default());
        let mut place = ExtendedSequence(70_000);
        // A packet that was merely late looks like an answer after 2 ms.
        missing.note_gap(now, place, 1);
        due(&mut missing, now + 5 * MS);
        missing.note_arrival(now + 7 * MS, place);
        assert!(missing.wait() < 100 * MS);
        for round in 0..20 {
            now += 1000 * MS;
            place = place.plus(10);
            missing.note_gap(now, place, 1);
            due(&mut missing, now + 5 * MS);
            let answered = now + 205 * MS;
            if missing.wait() < 205 * MS {
                assert!(round < 2, "the wait is never adapted");
                missing.forget_before(place.plus(1));
            }
            missing.note_arrival(answered, place);
        }
        assert!(missing.wait() >= 400 * MS, "{:?}", missing.wait());
    }

    #[test]
    fn endless_times_overflow_nothing() {
        let now = Instant::now();
        let timing = RequestTiming { delay: MS, latency_max: Duration::MAX, ..Default::default() };
        let mut missing = Missing::new(timing);
        missing.note_gap(now, ExtendedSequence(70_000), 1);
        assert_eq!(due(&mut missing, now + MS), [(70_000 % 65_536) as u16]);
        let timing = RequestTiming { delay: Duration::MAX, ..timing };
        Missing::new(timing).note_gap(now, ExtendedSequence(70_000), 1);
    }

    #[test]
    fn a_late_packet_that_was_never_requested_is_not_recovered() {
        let now = Instant::now();
        let mut missing = Missing::new(RequestTiming::default());
        missing.note_gap(now, ExtendedSequence(70_000), 1);
        missing.note_arrival(now, ExtendedSequence(70_000));
        missing.note_arrival(now, ExtendedSequence(70_001));
        assert_eq!((missing.counts(), missing.poll_timeout()), (RepairCounts::default(), None));
    }

    #[test]
    fn a_gap_beyond_the_bound_keeps_its_newest_packets() {
        let start = Instant::now();
        let timing = RequestTiming { packets_max: 3, ..RequestTiming::default() };
        let mut missing = Missing::new(timing);
        missing.note_gap(start, ExtendedSequence(65_536), 1_000_000_000_000);
        missing.note_gap(start, ExtendedSequence(2_000_000_000_000), 1);
        let newest = 65_536 + 999_999_999_999_u64;
        let expected = [(newest - 1) as u16, newest as u16, 2_000_000_000_000_u64 as u16];
        assert_eq!(due(&mut missing, start + timing.delay), expected);
    }

    #[test]
    fn packets_that_are_no_longer_awaited_are_not_requested() {
        let start = Instant::now();
        let mut missing = Missing::new(RequestTiming::default());
        missing.note_gap(start, ExtendedSequence(100_000), 4);
        missing.forget_before(ExtendedSequence(100_003));
        assert_eq!(due(&mut missing, start + 30 * MS), [(100_003 % 65_536) as u16]);
        missing.forget_before(ExtendedSequence(100_004));
        assert_eq!(missing.poll_timeout(), None);
    }
}
