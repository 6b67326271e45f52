//! Arrivals by transport-wide sequence number, for feedback on all packets of a connection
//! (draft-holmer-rmcat-transport-wide-cc-extensions-01 section 3).

use std::time::Instant;

use super::arrivals::Arrivals;
use crate::ecn::Ecn;
use crate::rtp::TransportSequence;
use crate::seq::{ExtendedSequence, SequenceNumber};

/// Number of consecutive packets from before the known ones after which the sender is believed to have
/// begun its numbers anew.
const RESTART: u32 = 64;

/// The arrivals of a connection's packets since the last report, by their transport-wide numbers.
///
/// One of these serves all streams of the connection. It remembers at most 2 048 packets.
///
/// ```
/// # #![allow(clippy::disallowed_methods)]
/// use rushes_proto::SequenceNumber;
/// use rushes_proto::rtp::TransportSequence;
/// use rushes_proto::stream::WideArrivals;
///
/// let (mut arrivals, now) = (WideArrivals::default(), std::time::Instant::now());
/// for number in [65_535, 1] {
///     arrivals.note(TransportSequence(SequenceNumber(number)), now);
/// }
/// let mut times = Vec::new();
/// assert_eq!(arrivals.take(&mut times), Some(SequenceNumber(65_535)));
/// assert_eq!(times, [Some(now), None, Some(now)]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct WideArrivals {
    /// With the highest number; `None` before the first packet.
    known: Option<(Arrivals, ExtendedSequence)>,
    /// Consecutive packets from before the known ones.
    old: u32,
    /// Memory for the arrivals that are taken.
    scratch: Vec<Option<(Instant, Ecn)>>,
}

impl WideArrivals {
    /// Notes that the packet with this number arrived at `at`. Of two copies, the first counts.
    pub fn note(&mut self, number: TransportSequence, at: Instant) {
        let TransportSequence(number) = number;
        let begin = || {
            let first = ExtendedSequence::first(number);
            (Arrivals::new(first), first)
        };
        let (arrivals, highest) = self.known.get_or_insert_with(begin);
        let mut sequence = highest.nearest(number);
        if arrivals.is_before(sequence) {
            self.old += 1;
            if self.old < RESTART {
                return;
            }
            (*arrivals, *highest) = begin();
            sequence = *highest;
        }
        self.old = 0;
        *highest = (*highest).max(sequence);
        // Marks are not reported.
        arrivals.note(sequence, (at, Ecn::NotCapable));
    }

    /// Appends the arrivals since the last call to `out`, `None` for missing packets, and returns the
    /// number of the first; `None` if there are none. After a packet that is late, it appends that
    /// packet and all later ones.
    pub fn take(&mut self, out: &mut Vec<Option<Instant>>) -> Option<SequenceNumber> {
        let (arrivals, _) = self.known.as_mut()?;
        self.scratch.clear();
        let begin = arrivals.take(&mut self.scratch)?;
        out.extend(self.scratch.iter().map(|arrival| arrival.map(|(at, _)| at)));
        Some(begin.sequence())
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "any instant will do")]
mod tests {
    use super::*;

    fn note(arrivals: &mut WideArrivals, number: u16) {
        arrivals.note(TransportSequence(SequenceNumber(number)), Instant::now());
    }

    fn take(arrivals: &mut WideArrivals) -> Option<(u16, Vec<bool>)> {
        let mut out = Vec::new();
        let begin = arrivals.take(&mut out)?;
        Some((begin.0, out.iter().map(Option::is_some).collect()))
    }

    #[test]
    fn a_sender_that_begins_anew_behind_its_last_numbers_is_followed() {
        let mut arrivals = WideArrivals::default();
        (20_000..20_100).for_each(|number| note(&mut arrivals, number));
        assert_eq!(take(&mut arrivals), Some((20_000, vec![true; 100])));
        (100..163).for_each(|number| note(&mut arrivals, number));
        assert_eq!(take(&mut arrivals), None);
        (163..170).for_each(|number| note(&mut arrivals, number));
        assert_eq!(take(&mut arrivals), Some((163, vec![true; 7])));
    }

    #[test]
    fn single_forged_numbers_do_not_move_the_arrivals_back() {
        let mut arrivals = WideArrivals::default();
        for number in 20_000..30_000 {
            note(&mut arrivals, number);
            note(&mut arrivals, 10_000);
        }
        let (begin, seen) = take(&mut arrivals).unwrap();
        assert_eq!((begin, seen), (30_000 - 2048, vec![true; 2048]));
    }

    #[test]
    fn any_numbers_are_bounded() {
        let mut arrivals = WideArrivals::default();
        let mut random = 1_u32;
        for _ in 0..100_000 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            note(&mut arrivals, (random >> 16) as u16);
        }
        let mut out = Vec::new();
        arrivals.take(&mut out);
        assert!(out.len() <= 2048);
    }
}
