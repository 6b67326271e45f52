//! Arrival times and marks of a source's packets, for congestion control feedback (RFC 8888).

use std::collections::VecDeque;
use std::time::Instant;

use crate::ecn::Ecn;
use crate::seq::ExtendedSequence;

/// Maximum number of packets remembered between two reports; older ones are forgotten.
const PACKETS_MAX: usize = 512;

/// The arrivals since the last report.
#[derive(Clone, Debug)]
pub(super) struct Arrivals {
    begin: ExtendedSequence,
    times: VecDeque<Option<(Instant, Ecn)>>,
}

impl Arrivals {
    pub(super) fn new(begin: ExtendedSequence) -> Self {
        Self { begin, times: VecDeque::new() }
    }

    /// Notes that packet `sequence` arrived, and with which mark; of two copies the first counts.
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
        self.times[index].get_or_insert(arrival);
        while self.times.len() > PACKETS_MAX {
            self.times.pop_front();
            self.begin = self.begin.plus(1);
        }
    }

    /// Appends the arrivals since the last call to `out` and returns the sequence number of the
    /// first; `None` if there are none.
    pub(super) fn take(
        &mut self,
        out: &mut Vec<Option<(Instant, Ecn)>>,
    ) -> Option<ExtendedSequence> {
        if self.times.is_empty() {
            return None;
        }
        let begin = self.begin;
        self.begin = begin.plus(self.times.len() as u64);
        out.extend(self.times.drain(..));
        Some(begin)
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
        arrivals.note(ExtendedSequence((1 << 40) + 900), now);
        let mut out = Vec::new();
        let begin = arrivals.take(&mut out).unwrap();
        assert_eq!((begin.0, out.len()), ((1 << 40) + 901 - 512, 512));
    }
}
