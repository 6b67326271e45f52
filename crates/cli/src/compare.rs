//! Comparing what comes with what was sent, unit by unit.

use std::collections::VecDeque;
use std::fmt;
use std::time::{Duration, Instant};

use rushes::payload::Framing;
use rushes::payload::nal::{NalCodec, find_units};
use rushes::{Codec, proto};

/// Frames that were sent and not yet seen again, unit by unit.
#[derive(Debug)]
pub(crate) struct Comparer {
    codec: Codec,
    expected: VecDeque<Unit>,
    ranges: Vec<std::ops::Range<usize>>,
    pub(crate) units: u64,
    pub(crate) octets: u64,
    pub(crate) latencies: Vec<Duration>,
}

#[derive(Debug)]
struct Unit {
    octets: Vec<u8>,
    frame_sent: Instant,
    ends_frame: bool,
}

/// The first place where what came is not what was sent.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Difference {
    /// The unit's number, counted from 0.
    pub(crate) unit: u64,
    pub(crate) nal_type: Option<u8>,
    /// Octets sent, and octets that came.
    pub(crate) sent_len: usize,
    pub(crate) came_len: Option<usize>,
    /// The first octet that differs.
    pub(crate) octet: usize,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unit {}", self.unit)?;
        if let Some(nal_type) = self.nal_type {
            write!(f, " (NAL type {nal_type})")?;
        }
        match self.came_len {
            None => write!(f, " of {} octets never came", self.sent_len),
            Some(came) => {
                write!(f, " of {} octets came as {came} octets, ", self.sent_len)?;
                write!(f, "the first difference is at octet {}", self.octet)
            }
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
            octets: 0,
            latencies: Vec::new(),
        }
    }

    /// Notes a frame that is being sent.
    pub(crate) fn expect(&mut self, frame: &[u8], sent: Instant) {
        self.split(frame);
        let last = self.ranges.len();
        for (n, range) in self.ranges.drain(..).enumerate() {
            let (octets, ends_frame) = (frame[range].to_vec(), n + 1 == last);
            self.expected.push_back(Unit { octets, frame_sent: sent, ends_frame });
        }
    }

    /// Compares a frame that came; whether it ended a frame that was sent, and its octets.
    pub(crate) fn take(&mut self, frame: &[u8], now: Instant) -> Result<(), Difference> {
        self.split(frame);
        for n in 0..self.ranges.len() {
            let came = &frame[self.ranges[n].clone()];
            let Some(unit) = self.expected.pop_front() else {
                return Err(self.difference(&[], Some(came)));
            };
            if unit.octets != came {
                return Err(self.difference(&unit.octets, Some(came)));
            }
            self.units += 1;
            self.octets += came.len() as u64;
            if unit.ends_frame {
                self.latencies.push(now - unit.frame_sent);
            }
        }
        Ok(())
    }

    /// Whether everything came; otherwise the first unit that did not.
    pub(crate) fn finish(&mut self) -> Result<(), Difference> {
        match self.expected.pop_front() {
            Some(unit) => Err(self.difference(&unit.octets, None)),
            None => Ok(()),
        }
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.expected.is_empty()
    }

    /// The latency that `share` of all frames kept to.
    pub(crate) fn latency(&mut self, share: f64) -> Duration {
        self.latencies.sort_unstable();
        #[allow(clippy::cast_sign_loss, reason = "neither is negative")]
        let place = (share * self.latencies.len().saturating_sub(1) as f64).round() as usize;
        self.latencies.get(place).copied().unwrap_or_default()
    }

    fn split(&mut self, frame: &[u8]) {
        self.ranges.clear();
        if self.codec.has_nal_units() {
            // A frame without units differs by having none.
            let _ = find_units(frame, Framing::AnnexB, &mut self.ranges);
        } else {
            self.ranges.push(0..frame.len());
        }
    }

    fn difference(&self, sent: &[u8], came: Option<&[u8]>) -> Difference {
        let other = came.unwrap_or_default();
        let octet = sent.iter().zip(other).take_while(|(a, b)| a == b).count();
        let codec = match self.codec {
            Codec::H264 => Some(NalCodec::H264),
            Codec::H265 => Some(NalCodec::H265),
            Codec::H266 => Some(NalCodec::H266),
            _ => None,
        };
        let header = codec.and_then(|codec| codec.header(sent));
        Difference {
            unit: self.units,
            nal_type: header.map(|header: proto::payload::nal::NalHeader| header.nal_type),
            sent_len: sent.len(),
            came_len: came.map(<[u8]>::len),
            octet,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(sent: &[u8], came: &[u8]) -> Result<(), Difference> {
        let now = Instant::now();
        let mut comparer = Comparer::new(Codec::H264);
        comparer.expect(sent, now);
        comparer.take(came, now)?;
        comparer.finish()
    }

    #[test]
    fn start_codes_do_not_matter_and_octets_do() {
        let sent = b"\0\0\x01\x67abc\0\0\0\x01\x65def";
        assert_eq!(compare(sent, b"\0\0\0\x01\x67abc\0\0\0\x01\x65def"), Ok(()));
        let difference = compare(sent, b"\0\0\x01\x67abc\0\0\x01\x65dxf").unwrap_err();
        assert_eq!((difference.unit, difference.nal_type, difference.octet), (1, Some(5), 2));
        let difference = compare(sent, b"\0\0\x01\x67abc").unwrap_err();
        assert_eq!(difference.came_len, None);
        assert!(difference.to_string().contains("never came"));
    }

    #[test]
    fn more_than_was_sent_is_a_difference() {
        assert!(compare(b"\0\0\x01\x67a", b"\0\0\x01\x67a\0\0\x01\x67a").is_err());
    }
}
