//! Which packets of one source are missing, and when each is to be asked for.

use std::collections::VecDeque;
use std::time::Duration;
use std::time::Instant;

use crate::seq::ExtendedSequence;
use crate::seq::SequenceNumber;

/// How a receiver asks for missing packets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RequestTiming {
    /// How long a packet may merely be late before it is asked for.
    pub delay: Duration,
    /// How often one packet is asked for.
    pub attempts_max: u8,
    /// Packets asked for at a time; of a longer gap, only the newest.
    pub packets_max: usize,
}

impl Default for RequestTiming {
    /// After 5 ms, up to 20 times, up to 1 024 packets.
    fn default() -> Self {
        Self { delay: Duration::from_millis(5), attempts_max: 20, packets_max: 1024 }
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    sequence: ExtendedSequence,
    due: Instant,
    attempts: u8,
}

/// The missing packets of one source, in order.
#[derive(Clone, Debug)]
pub struct Missing {
    timing: RequestTiming,
    entries: VecDeque<Entry>,
    /// No entry is due before this.
    next_due: Option<Instant>,
    requested: u64,
    recovered: u64,
}

impl Missing {
    /// Nothing missing.
    pub fn new(timing: RequestTiming) -> Self {
        Self { timing, entries: VecDeque::new(), next_due: None, requested: 0, recovered: 0 }
    }

    /// Notes at `now` that the `packets` from `first` on did not come before the one after them.
    pub fn note_gap(&mut self, now: Instant, first: ExtendedSequence, packets: u64) {
        let skipped = packets.saturating_sub(self.timing.packets_max as u64);
        let due = now + self.timing.delay;
        for step in skipped..packets {
            if self.entries.len() >= self.timing.packets_max {
                self.entries.pop_front();
            }
            self.entries.push_back(Entry { sequence: first.plus(step), due, attempts: 0 });
        }
        self.next_due = Some(self.next_due.map_or(due, |next| next.min(due)));
    }

    /// Notes that `sequence` came after all.
    #[inline]
    pub fn note_arrival(&mut self, sequence: ExtendedSequence) {
        if self.entries.is_empty() {
            return;
        }
        let found = self.entries.binary_search_by_key(&sequence, |entry| entry.sequence);
        let Ok(n) = found else { return };
        if self.entries.remove(n).is_some_and(|entry| entry.attempts > 0) {
            self.recovered += 1;
        }
        if self.entries.is_empty() {
            self.next_due = None;
        }
    }

    /// Forgets everything before `sequence`, which is no longer waited for.
    #[inline]
    pub fn forget_before(&mut self, sequence: ExtendedSequence) {
        while self.entries.front().is_some_and(|entry| entry.sequence < sequence) {
            self.entries.pop_front();
        }
        if self.entries.is_empty() {
            self.next_due = None;
        }
    }

    /// Whether `sequence` is missing; [`None`] for the 16 bits that travel if it is not.
    pub fn find(&self, sequence: SequenceNumber) -> Option<ExtendedSequence> {
        let mut entries = self.entries.iter();
        entries.find(|entry| entry.sequence.sequence() == sequence).map(|entry| entry.sequence)
    }

    /// When [`take_due`](Self::take_due) will have something; `None` if never.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.next_due
    }

    /// Adds to `out` what is to be asked for at `now`, in order. Each packet is due again after
    /// `retry`, which should be a little more than the round-trip time; then after twice, three
    /// and at most four times as long.
    pub fn take_due(&mut self, now: Instant, retry: Duration, out: &mut Vec<SequenceNumber>) {
        if self.next_due.is_none_or(|due| due > now) {
            return;
        }
        let before = out.len();
        let mut next_due: Option<Instant> = None;
        for entry in &mut self.entries {
            if entry.attempts >= self.timing.attempts_max {
                continue;
            }
            if entry.due <= now {
                entry.attempts += 1;
                entry.due = now + retry * u32::from(entry.attempts.min(4));
                out.push(entry.sequence.sequence());
            }
            if entry.attempts < self.timing.attempts_max {
                next_due = Some(next_due.map_or(entry.due, |next| next.min(entry.due)));
            }
        }
        self.next_due = next_due;
        self.requested += (out.len() - before) as u64;
    }

    /// Packets asked for, repetitions counted; and packets that came after they were asked for.
    pub fn counts(&self) -> (u64, u64) {
        (self.requested, self.recovered)
    }

    /// Octets of memory.
    pub fn held_octets(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "any instant will do")]
mod tests {
    use super::*;

    const RETRY: Duration = Duration::from_millis(30);

    fn due(missing: &mut Missing, now: Instant) -> Vec<u16> {
        let mut out = Vec::new();
        missing.take_due(now, RETRY, &mut out);
        out.iter().map(|sequence| sequence.0).collect()
    }

    #[test]
    fn a_packet_is_asked_for_after_the_delay_and_again_after_each_retry() {
        let start = Instant::now();
        let timing = RequestTiming { attempts_max: 2, ..RequestTiming::default() };
        let mut missing = Missing::new(timing);
        assert_eq!(missing.poll_timeout(), None);
        missing.note_gap(start, ExtendedSequence(0x1_ffff), 2);
        let first = start + timing.delay;
        assert_eq!(missing.poll_timeout(), Some(first));
        assert!(due(&mut missing, start).is_empty());
        assert_eq!(due(&mut missing, first), [0xffff, 0]);
        assert_eq!(missing.poll_timeout(), Some(first + RETRY));
        missing.note_arrival(ExtendedSequence(0x1_ffff));
        assert_eq!(due(&mut missing, first + RETRY), [0]);
        assert_eq!(missing.poll_timeout(), None);
        assert!(due(&mut missing, first + RETRY * 9).is_empty());
        assert_eq!(missing.counts(), (3, 1));
    }

    #[test]
    fn a_late_packet_that_was_never_asked_for_is_not_recovered() {
        let mut missing = Missing::new(RequestTiming::default());
        missing.note_gap(Instant::now(), ExtendedSequence(70_000), 1);
        missing.note_arrival(ExtendedSequence(70_000));
        missing.note_arrival(ExtendedSequence(70_001));
        assert_eq!((missing.counts(), missing.poll_timeout()), ((0, 0), None));
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
    fn what_is_no_longer_waited_for_is_not_asked_for() {
        let start = Instant::now();
        let mut missing = Missing::new(RequestTiming::default());
        missing.note_gap(start, ExtendedSequence(100_000), 4);
        missing.forget_before(ExtendedSequence(100_003));
        assert_eq!(due(&mut missing, start + RETRY), [(100_003 % 65_536) as u16]);
        missing.forget_before(ExtendedSequence(100_004));
        assert_eq!(missing.poll_timeout(), None);
    }
}
