//! Comparison of received frames with sent ones, unit by unit.

use std::collections::VecDeque;
use std::fmt;
use std::time::Instant;

use rushes::payload::Framing;
use rushes::payload::nal::find_units;
use rushes::{Codec, proto};

use crate::latency::Latencies;

/// Frames sent and not yet received, unit by unit.
#[derive(Debug)]
pub(crate) struct Comparer {
    codec: Codec,
    expected: VecDeque<Unit>,
    ranges: Vec<std::ops::Range<usize>>,
    /// Units received as they were sent.
    pub(crate) units: u64,
    /// Units that were never received.
    pub(crate) missing: u64,
    pub(crate) octets: u64,
    /// Frames whose last unit was received or counted as lost.
    pub(crate) frames: u64,
    pub(crate) latencies: Latencies,
    difference: Option<Difference>,
}

#[derive(Debug)]
struct Unit {
    octets: Vec<u8>,
    frame_sent: Instant,
    ends_frame: bool,
}

/// The first difference between sent and received units.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Difference {
    /// The unit's number, counted from 0.
    pub(crate) unit: u64,
    pub(crate) nal_type: Option<u8>,
    /// Octets of the unit as sent, and as received in the next field; `None` if there was none.
    pub(crate) sent_len: Option<usize>,
    pub(crate) received_len: Option<usize>,
    /// The offset of the first octet that differs.
    pub(crate) octet: usize,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unit {}", self.unit)?;
        if let Some(nal_type) = self.nal_type {
            write!(f, " (NAL type {nal_type})")?;
        }
        match (self.sent_len, self.received_len) {
            (None, received) => {
                write!(f, " of {} octets was never sent", received.unwrap_or_default())
            }
            (Some(sent), None) => write!(f, " of {sent} octets was never received"),
            (Some(sent), Some(received)) => write!(
                f,
                " of {sent} octets was received as {received} octets, the first difference is at \
                 octet {}",
                self.octet
            ),
        }
    }
}

impl Comparer {
    pub(crate) fn new(codec: Codec) -> Self {
        Self {
            codec,
            expected: VecDeque::new(),
            ranges: Vec::new(),
            units: 0,
            missing: 0,
            octets: 0,
            frames: 0,
            latencies: Latencies::new(),
            difference: None,
        }
    }

    /// Records a frame that is being sent.
    pub(crate) fn expect(&mut self, frame: &[u8], sent: Instant) {
        self.split(frame);
        let last = self.ranges.len();
        for (n, range) in self.ranges.drain(..).enumerate() {
            let (octets, ends_frame) = (frame[range].to_vec(), n + 1 == last);
            self.expected.push_back(Unit { octets, frame_sent: sent, ends_frame });
        }
    }

    /// Compares a received frame; returns whether it equals what was sent, possibly after a loss.
    /// After a mismatch, further frames cannot be matched.
    pub(crate) fn take(&mut self, frame: &[u8], now: Instant) -> bool {
        self.split(frame);
        for n in 0..self.ranges.len() {
            let received = &frame[self.ranges[n].clone()];
            let Some(lost) = self.expected.iter().position(|unit| unit.octets == received) else {
                let sent = self.expected.pop_front();
                self.note(sent.map(|unit| unit.octets).as_deref(), Some(received));
                return false;
            };
            self.give_up(lost);
            let Some(unit) = self.expected.pop_front() else { return false };
            self.units += 1;
            self.octets += received.len() as u64;
            if unit.ends_frame {
                self.frames += 1;
                self.latencies.count(now - unit.frame_sent);
            }
        }
        true
    }

    /// Counts all units not yet received as lost.
    pub(crate) fn finish(&mut self) {
        self.give_up(self.expected.len());
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.expected.is_empty()
    }

    /// Returns the first difference, if there is one.
    pub(crate) fn difference(&self) -> Option<&Difference> {
        self.difference.as_ref()
    }

    /// Counts the oldest `count` units as lost.
    fn give_up(&mut self, count: usize) {
        for _ in 0..count {
            let Some(unit) = self.expected.pop_front() else { return };
            self.note(Some(&unit.octets), None);
            self.missing += 1;
            self.frames += u64::from(unit.ends_frame);
        }
    }

    fn split(&mut self, frame: &[u8]) {
        self.ranges.clear();
        if self.codec.has_nal_units() {
            // A frame without units lacks the units that were sent.
            let _ = find_units(frame, Framing::AnnexB, &mut self.ranges);
        } else {
            self.ranges.push(0..frame.len());
        }
    }

    /// Records the difference between a sent and a received unit, if it is the first.
    fn note(&mut self, sent: Option<&[u8]>, received: Option<&[u8]>) {
        if self.difference.is_some() {
            return;
        }
        let (sent_octets, received_octets) =
            (sent.unwrap_or_default(), received.unwrap_or_default());
        let header =
            self.codec.nal.and_then(|codec| codec.header(sent.or(received).unwrap_or_default()));
        self.difference = Some(Difference {
            unit: self.units + self.missing,
            nal_type: header.map(|header: proto::payload::nal::NalHeader| header.nal_type),
            sent_len: sent.map(<[u8]>::len),
            received_len: received.map(<[u8]>::len),
            octet: sent_octets.iter().zip(received_octets).take_while(|(a, b)| a == b).count(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(sent: &[u8], received: &[u8]) -> Comparer {
        let now = Instant::now();
        let mut comparer = Comparer::new(Codec::H264);
        comparer.expect(sent, now);
        if comparer.take(received, now) {
            comparer.finish();
        }
        comparer
    }

    #[test]
    fn start_codes_do_not_matter_and_octets_do() {
        let sent = b"\0\0\x01\x67abc\0\0\0\x01\x65def";
        assert_eq!(compare(sent, b"\0\0\0\x01\x67abc\0\0\0\x01\x65def").difference(), None);
        let compared = compare(sent, b"\0\0\x01\x67abc\0\0\x01\x65dxf");
        let difference = compared.difference().unwrap();
        assert_eq!((difference.unit, difference.nal_type, difference.octet), (1, Some(5), 2));
    }

    #[test]
    fn a_lost_unit_is_distinguished_from_a_damaged_one() {
        let sent = b"\0\0\x01\x67abc\0\0\x01\x68de\0\0\x01\x65fgh";
        let compared = compare(sent, b"\0\0\x01\x67abc\0\0\x01\x65fgh");
        assert_eq!((compared.units, compared.missing, compared.frames), (2, 1, 1));
        let text = compared.difference().unwrap().to_string();
        assert_eq!(text, "unit 1 (NAL type 8) of 3 octets was never received");
    }

    #[test]
    fn a_lost_tail_is_a_difference() {
        let compared = compare(b"\0\0\x01\x67a\0\0\x01\x65b", b"\0\0\x01\x67a");
        assert_eq!(compared.missing, 1);
        assert!(compared.difference().is_some());
    }

    #[test]
    fn units_in_another_order_are_a_difference() {
        let compared = compare(b"\0\0\x01\x67a\0\0\x01\x65b", b"\0\0\x01\x65b\0\0\x01\x67a");
        assert!(compared.difference().is_some());
    }

    #[test]
    fn more_than_was_sent_is_a_difference() {
        let compared = compare(b"\0\0\x01\x67a", b"\0\0\x01\x67a\0\0\x01\x67a");
        assert!(compared.difference().unwrap().to_string().contains("never sent"));
    }
}
