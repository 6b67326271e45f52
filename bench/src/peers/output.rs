//! The output of a receiver: which access units of the sequence it contains, octet for octet.

use std::io::{self, Read};
use std::ops::Range;

use rushes::payload::Framing;
use rushes::payload::nal::{NalCodec, find_start_codes, find_units};

use crate::sequence::Sequence;

/// Maximum number of octets read at once.
const READ_LEN: usize = 1 << 20;

/// Maximum length of a NAL unit; a longer one counts as lost.
const UNIT_LEN_MAX: usize = 32 << 20;

/// Maximum number of NAL units searched for the next one, and thus of losses in a row.
const LOST_MAX: usize = 512;

/// The NAL units with coded pictures of a sequence; programs may drop, repeat or move others.
#[derive(Clone, Debug)]
pub(super) struct Expected<'a> {
    octets: &'a [u8],
    codec: Option<NalCodec>,
    /// Octets of each frame of uncompressed video; 0 of others.
    frame_len: usize,
    /// Each NAL unit, and its access unit's number.
    units: Vec<(Range<usize>, usize)>,
    /// NAL units of each access unit.
    counts: Vec<usize>,
}

impl<'a> Expected<'a> {
    pub(super) fn of(sequence: &'a Sequence) -> anyhow::Result<Self> {
        let Some(codec) = sequence.codec.nal else { return Self::of_raw(sequence) };
        let (mut units, mut counts, mut found) = (Vec::new(), Vec::new(), Vec::new());
        for (number, unit) in sequence.units.iter().enumerate() {
            let octets = &sequence.octets[unit.octets.clone()];
            find_units(octets, Framing::AnnexB, &mut found)?;
            let before = units.len();
            for nal in &found {
                if is_coded_picture(codec, &octets[nal.clone()]) {
                    let start = unit.octets.start;
                    units.push((start + nal.start..start + nal.end, number));
                }
            }
            counts.push(units.len() - before);
        }
        let codec = Some(codec);
        Ok(Self { octets: &sequence.octets, codec, frame_len: 0, units, counts })
    }

    /// Frames of one length, each of which counts as a unit.
    fn of_raw(sequence: &'a Sequence) -> anyhow::Result<Self> {
        let frame_len = sequence.units.first().map_or(0, |unit| unit.octets.len());
        let is_alike = sequence.units.iter().all(|unit| unit.octets.len() == frame_len);
        anyhow::ensure!(is_alike && frame_len > 0, "the sequence has neither NAL units nor frames");
        let units = sequence.units.iter().zip(0..).map(|(unit, n)| (unit.octets.clone(), n));
        let (units, counts) = (units.collect(), vec![1; sequence.units.len()]);
        Ok(Self { octets: &sequence.octets, codec: None, frame_len, units, counts })
    }
}

fn is_coded_picture(codec: NalCodec, nal: &[u8]) -> bool {
    codec.header(nal).is_some_and(|header| codec.is_vcl(header.nal_type))
}

/// The counts so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Found {
    /// Complete access units.
    pub(super) whole: u64,
    pub(super) octets: u64,
    /// Complete access units within each of the requested lengths.
    pub(super) within: [u64; 2],
}

/// Reads a byte stream and finds the access units in it.
#[derive(Debug)]
pub(super) struct Output<'a> {
    expected: &'a Expected<'a>,
    buffer: Vec<u8>,
    filled: usize,
    /// Offset up to which start codes have been searched.
    scanned: usize,
    /// The next expected NAL unit; the count continues when the sequence repeats.
    next: usize,
    /// The access unit of the last NAL unit found, and the number of its NAL units found.
    current: (usize, usize),
    lengths: [u64; 2],
    found: Found,
}

impl<'a> Output<'a> {
    /// Counts the access units in a byte stream, and in its first `lengths` octets.
    pub(super) fn search(
        expected: &'a Expected<'a>,
        mut from: impl Read,
        lengths: [u64; 2],
    ) -> io::Result<Found> {
        if expected.codec.is_none() {
            return search_frames(expected, from, lengths);
        }
        let mut output = Self { lengths, ..Self::new(expected) };
        while output.read(&mut from)? {}
        Ok(output.found)
    }

    fn new(expected: &'a Expected<'a>) -> Self {
        let buffer = vec![0; UNIT_LEN_MAX + READ_LEN];
        let (current, found) = ((usize::MAX, 0), Found::default());
        let lengths = [0; 2];
        Self { expected, buffer, filled: 0, scanned: 0, next: 0, current, lengths, found }
    }

    /// Reads once; `false` at the end.
    fn read(&mut self, from: &mut impl Read) -> io::Result<bool> {
        if self.buffer.len() - self.filled < READ_LEN {
            // No expected NAL unit is that long.
            self.filled = 0;
            self.scanned = 0;
        }
        let end = self.filled + READ_LEN;
        let len = from.read(&mut self.buffer[self.filled..end])?;
        if len == 0 {
            let last = 0..self.filled;
            self.take(last);
            self.filled = 0;
            return Ok(false);
        }
        self.found.octets += len as u64;
        self.filled += len;
        self.scan();
        Ok(true)
    }

    /// Takes the complete NAL units, and moves the rest to the beginning of the buffer.
    fn scan(&mut self) {
        let mut start = 0;
        let from = self.scanned;
        let codes: Vec<usize> = find_start_codes(&self.buffer[from..self.filled])
            .map(|code| from + code)
            .filter(|code| *code > 0)
            .collect();
        for code in codes {
            self.take(start..code);
            start = code;
        }
        self.buffer.copy_within(start..self.filled, 0);
        self.filled -= start;
        // Two octets of a start code may already be here; the start code at the beginning is known.
        self.scanned = self.filled.saturating_sub(2).max(1).min(self.filled);
    }

    /// Takes the NAL unit after a start code, if there is one.
    fn take(&mut self, range: Range<usize>) {
        let behind = self.filled - range.end;
        let Some(nal) = self.buffer.get(range).and_then(|unit| unit.strip_prefix(&[0, 0, 1]))
        else {
            return;
        };
        let zeros = nal.iter().rev().take_while(|octet| **octet == 0).count();
        let nal = &nal[..nal.len() - zeros];
        // The octets read so far end where the buffer does; the next start code may begin with a
        // zero.
        let end = self.found.octets.saturating_sub((behind + zeros) as u64);
        let expected = self.expected;
        if !expected.codec.is_some_and(|codec| is_coded_picture(codec, nal)) {
            return;
        }
        let period = expected.units.len();
        let found = (self.next..self.next + LOST_MAX.min(period)).find(|n| {
            let (range, _) = &expected.units[n % period];
            range.len() == nal.len() && &expected.octets[range.clone()] == nal
        });
        let Some(found) = found else { return };
        self.next = found + 1;
        let number = expected.units[found % period].1;
        let access_unit = found / period * expected.counts.len() + number;
        if self.current.0 != access_unit {
            self.current = (access_unit, 0);
        }
        self.current.1 += 1;
        if self.current.1 == expected.counts[number] {
            self.found.whole += 1;
            for (within, length) in self.found.within.iter_mut().zip(self.lengths) {
                *within += u64::from(end <= length);
            }
        }
    }
}

/// Counts the frames of uncompressed video, which lie at multiples of their length: a receiver leaves
/// out whole frames, or writes damaged ones at their full length.
fn search_frames(
    expected: &Expected<'_>,
    mut from: impl Read,
    lengths: [u64; 2],
) -> io::Result<Found> {
    let mut found = Found::default();
    let mut frame = vec![0; expected.frame_len];
    let (mut filled, mut next) = (0, 0);
    loop {
        let len = from.read(&mut frame[filled..])?;
        if len == 0 {
            return Ok(found);
        }
        filled += len;
        found.octets += len as u64;
        if filled < frame.len() {
            continue;
        }
        filled = 0;
        let period = expected.units.len();
        let place = (next..next + period)
            .find(|n| expected.octets[expected.units[n % period].0.clone()] == frame[..]);
        let Some(place) = place else { continue };
        next = place + 1;
        found.whole += 1;
        for (within, length) in found.within.iter_mut().zip(lengths) {
            *within += u64::from(found.octets <= length);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use rushes::Codec;

    use super::*;
    use crate::sequence::raw::Video;

    /// Returns the counts if at most `step` octets are read at once.
    fn found(sequence: &Sequence, octets: &[u8], step: usize) -> Found {
        struct Steps<'a>(&'a [u8], usize);
        impl Read for Steps<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let len = self.1.min(buffer.len());
                self.0.read(&mut buffer[..len])
            }
        }
        let expected = Expected::of(sequence).unwrap();
        let lengths = [sequence.units[3].octets.end, octets.len()].map(|len| len as u64);
        Output::search(&expected, Steps(octets, step), lengths).unwrap()
    }

    #[test]
    fn what_came_whole_is_found_however_it_comes() {
        for codec in [Codec::H264, Codec::H265] {
            let sequence = Sequence::make(codec, 2_000_000).unwrap();
            let twice = sequence.octets.repeat(2);
            for step in [7, 1000, usize::MAX] {
                let found = found(&sequence, &twice, step);
                assert_eq!(found.whole, 2 * sequence.units.len() as u64, "{codec:?} {step}");
                assert_eq!(found.octets, twice.len() as u64);
                assert_eq!(found.within, [4, found.whole], "{codec:?} {step}");
            }
        }
    }

    #[test]
    fn frames_of_uncompressed_video_are_found_and_lost_or_changed_ones_are_not() {
        let sequence = Sequence::raw(Video::Hd).unwrap();
        let len = sequence.units[0].octets.len();
        let twice = sequence.octets.repeat(2);
        for step in [1000, usize::MAX] {
            let found = found(&sequence, &twice, step);
            assert_eq!((found.whole, found.octets), (8, twice.len() as u64));
            assert_eq!(found.within, [4, 8], "{step}");
        }
        let mut damaged = twice;
        damaged[len + 7] ^= 1;
        damaged.drain(3 * len..4 * len);
        assert_eq!(found(&sequence, &damaged, usize::MAX).whole, 6);
        assert_eq!(found(&sequence, &damaged[..len - 1], usize::MAX).whole, 0);
    }

    #[test]
    fn what_is_missing_cut_or_changed_is_not_whole() {
        let sequence = Sequence::make(Codec::H265, 2_000_000).unwrap();
        let all = sequence.units.len() as u64;
        let (mut octets, unit) = (sequence.octets.clone(), sequence.units[7].octets.clone());
        octets[unit.end - 5] ^= 0x40;
        assert_eq!(found(&sequence, &octets, 999).whole, all - 1);
        octets.drain(unit.start + 100..unit.start + 200);
        assert_eq!(found(&sequence, &octets, 999).whole, all - 1);
        // Also the beginning of the next unit, the rest of which then seems to belong to the one
        // before.
        octets.drain(unit.start..unit.end + 300);
        assert_eq!(found(&sequence, &octets, 999).whole, all - 3);
        assert_eq!(found(&sequence, &[], 999).whole, 0);
    }
}
