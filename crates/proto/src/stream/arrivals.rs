//! Arrival times and marks of a source's packets, for congestion control feedback (RFC 8888).

use std::collections::VecDeque;
use std::time::Instant;

use crate::ecn::Ecn;
use crate::seq::ExtendedSequence;

/// Maximum number of packets remembered between two reports; older ones are forgotten.
const PACKETS_MAX: usize = 2048;

/// Packets that remain after a report, because one of them may still arrive: the reports then
/// overlap (RFC 8888 section 3.1).
const KEPT: usize = 64;

/// The arrivals since the last report.
#[derive(Clone, Debug)]
pub(super) struct Arrivals {
    begin: ExtendedSequence,
    times: VecDeque<Option<(Instant, Ecn)>>,
    /// The number of the first packets that need no further report.
    reported: usize,
}

impl Arrivals {
    pub(super) fn new(begin: ExtendedSequence) -> Self {
        Self { begin, times: VecDeque::new(), reported: 0 }
    }

    /// Returns whether a packet is from before those that are remembered.
    pub(super) fn is_before(&self, sequence: ExtendedSequence) -> bool {
        sequence < self.begin
    }

    /// Notes that packet `sequence` arrived, and with which mark. Of two copies, the time is that of
    /// the first, and the packet is marked CE if either is.
    pub(super) fn note(&mut self, sequence: ExtendedSequence, arrival: (Instant, Ecn)) {
        if sequence < self.begin {
            return;
        }
        let ahead = sequence.since(self.begin);
        if ahead >= (PACKETS_MAX * 2) as u64 {
            *self = Self::new(sequence);
        }
        let index = sequence.since(self.begin) as usize;
        if index >= self.times.len() {
            self.times.resize(index + 1, None);
        }
        let (_, ecn) = arrival;
        match &mut self.times[index] {
            Some((_, noted)) if ecn == *noted || ecn != Ecn::Congestion => {}
            Some((_, noted)) => {
                *noted = ecn;
                self.reported = self.reported.min(index);
            }
            missing => {
                *missing = Some(arrival);
                self.reported = self.reported.min(index);
            }
        }
        self.forget_beyond(PACKETS_MAX);
    }

    /// Appends the arrivals since the last call to `out` and returns the sequence number of the
    /// first; `None` if there are none. After a packet that is late, it appends that packet and all
    /// later ones.
    pub(super) fn take(
        &mut self,
        out: &mut Vec<Option<(Instant, Ecn)>>,
    ) -> Option<ExtendedSequence> {
        if self.reported == self.times.len() {
            return None;
        }
        let begin = self.begin.plus(self.reported as u64);
        out.extend(self.times.range(self.reported..));
        self.reported = self.times.len();
        self.forget_beyond(KEPT);
        Some(begin)
    }

    fn forget_beyond(&mut self, count: usize) {
        while self.times.len() > count {
            self.times.pop_front();
            self.begin = self.begin.plus(1);
            self.reported = self.reported.saturating_sub(1);
        }
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "any instant will do")]
mod tests {
    use super::*;

    #[test]
    fn missing_packets_are_listed_between_the_arrivals() {
        let now = (Instant::now(), Ecn::CapableOne);
        let mut arrivals = Arrivals::new(ExtendedSequence(70_000));
        for sequence in [70_002, 70_000, 69_999, 70_002] {
            arrivals.note(ExtendedSequence(sequence), now);
        }
        let mut out = Vec::new();
        assert_eq!(arrivals.take(&mut out), Some(ExtendedSequence(70_000)));
        assert_eq!(out, [Some(now), None, Some(now)]);
        assert_eq!(arrivals.take(&mut out), None);
        arrivals.note(ExtendedSequence(70_003), now);
        assert_eq!(arrivals.take(&mut out), Some(ExtendedSequence(70_003)));
    }

    #[test]
    fn a_jump_and_a_long_silence_of_reports_are_bounded() {
        let now = (Instant::now(), Ecn::CapableOne);
        let mut arrivals = Arrivals::new(ExtendedSequence(70_000));
        for sequence in 70_000..80_000 {
            arrivals.note(ExtendedSequence(sequence), now);
        }
        arrivals.note(ExtendedSequence(1 << 40), now);
        arrivals.note(ExtendedSequence((1 << 40) + 4000), now);
        let mut out = Vec::new();
        let begin = arrivals.take(&mut out).unwrap();
        assert_eq!((begin.0, out.len()), ((1 << 40) + 4001 - 2048, 2048));
    }

    #[test]
    fn a_late_packet_and_a_late_mark_are_reported_again_with_all_after_them() {
        let now = (Instant::now(), Ecn::CapableOne);
        let congested = (now.0, Ecn::Congestion);
        let mut arrivals = Arrivals::new(ExtendedSequence(100));
        let mut report = |noted: &[(u64, (Instant, Ecn))]| {
            for (at, arrival) in noted {
                arrivals.note(ExtendedSequence(*at), *arrival);
            }
            let mut out = Vec::new();
            arrivals.take(&mut out).map(|begin| (begin.0, out))
        };
        let first = report(&[(100, now), (102, now)]);
        assert_eq!(first, Some((100, vec![Some(now), None, Some(now)])));
        assert_eq!(report(&[(102, now)]), None);
        let late = report(&[(101, now), (103, now)]);
        assert_eq!(late, Some((101, vec![Some(now); 3])));
        let marked = report(&[(103, congested), (103, now)]);
        assert_eq!(marked, Some((103, vec![Some(congested)])));
        // Packets far behind are forgotten.
        assert!(report(&[(300, now)]).is_some());
        assert_eq!(report(&[(104, now)]), None);
    }
}
