//! Transport-wide feedback: when each packet of a connection arrived, whatever its stream
//! (draft-holmer-rmcat-transport-wide-cc-extensions-01 section 3).

use std::time::Duration;

use super::error::{RtcpError, need};
use super::half_word;
use crate::seq::SequenceNumber;

/// Octets before the first packet chunk.
const HEAD_LEN: usize = 8;

/// Maximum number of packets in one report; more are refused. The format could claim 65 535 in 24
/// octets.
const PACKETS_MAX: u16 = 16_384;

/// Steps of arrival times in one step of the reference time: 64 ms in 250 µs.
const STEPS_PER_REFERENCE: i64 = 256;

/// The bits of the reference time.
const REFERENCE_BITS: u32 = 24;

/// Packets in a chunk: a run of one status, a vector of one bit each, and one of two bits each.
const RUN_MAX: usize = 0x1fff;
const BITS: usize = 14;
const PAIRS: usize = 7;

/// The status of a packet (section 3.1.1).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
enum Status {
    NotReceived,
    /// Received; the difference of its time to the previous one's has one octet.
    Small,
    /// Received; the difference has two octets and may be negative.
    Large,
    /// Received, without a time.
    Untimed,
}

impl Status {
    fn from_bits(bits: u16) -> Self {
        match bits & 3 {
            0 => Self::NotReceived,
            1 => Self::Small,
            2 => Self::Large,
            _ => Self::Untimed,
        }
    }

    /// Returns the octets of the difference.
    fn delta_len(self) -> usize {
        match self {
            Self::NotReceived | Self::Untimed => 0,
            Self::Small => 1,
            Self::Large => 2,
        }
    }
}

/// When a packet arrived, by the receiver's clock from an arbitrary beginning, in steps of 250 µs.
/// It wraps around with the reference time, after 2³² steps or 12.4 days.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WideTime(pub u32);

/// The arrival of one packet, by its transport-wide number.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WideReport {
    /// The packet's transport-wide number.
    pub sequence: SequenceNumber,
    /// When it arrived, if the report says so; `None` if it has not arrived.
    pub arrival: Option<Option<WideTime>>,
}

/// One report on consecutive packets of a connection.
#[derive(Clone, Copy, Debug)]
pub struct TransportWide<'p> {
    begin: SequenceNumber,
    count: u16,
    reference: u32,
    number: u8,
    chunks: &'p [u8],
    deltas: &'p [u8],
}

impl<'p> TransportWide<'p> {
    /// The feedback message type.
    pub const FORMAT: u8 = 15;

    /// Parses the control information of a feedback message.
    ///
    /// # Errors
    /// [`RtcpError`] if it is truncated, or reports on more than 16 384 packets.
    pub(super) fn parse(control: &'p [u8]) -> Result<Self, RtcpError> {
        need("the head of transport-wide feedback", HEAD_LEN, control.len())?;
        let (head, rest) = control.split_at(HEAD_LEN);
        let count = half_word(head, 2);
        if count > PACKETS_MAX {
            return Err(RtcpError::Count { field: "the packet status count", count });
        }
        let (mut left, mut at, mut deltas_len) = (usize::from(count), 0, 0);
        while left > 0 {
            need("a packet status chunk", at + 2, rest.len())?;
            let chunk = half_word(rest, at);
            let len = chunk_len(chunk).min(left);
            deltas_len += chunk_deltas(chunk, len);
            left -= len;
            at += 2;
        }
        let (chunks, deltas) = rest.split_at(at);
        need("the receive deltas", deltas_len, deltas.len())?;
        Ok(Self {
            begin: SequenceNumber(half_word(head, 0)),
            count,
            reference: u32::from_be_bytes([0, head[4], head[5], head[6]]),
            number: head[7],
            chunks,
            deltas: &deltas[..deltas_len],
        })
    }

    /// Returns the number of the report, modulo 2⁸, by which lost reports are noticed.
    pub fn number(&self) -> u8 {
        self.number
    }

    /// Returns the number of packets.
    pub fn count(&self) -> usize {
        self.count.into()
    }

    /// Returns the packets in order, at most 16 384.
    pub fn packets(&self) -> impl Iterator<Item = WideReport> + use<'p> {
        let Self { begin, count, chunks, mut deltas, .. } = *self;
        let chunks = chunks.as_chunks::<2>().0.iter().map(|chunk| u16::from_be_bytes(*chunk));
        let statuses = chunks
            .flat_map(|chunk| (0..chunk_len(chunk)).map(move |place| chunk_status(chunk, place)));
        let mut time = i64::from(self.reference) * STEPS_PER_REFERENCE;
        statuses.take(count.into()).zip(0..).map(move |(status, n)| {
            let (delta, rest) = deltas.split_at(status.delta_len().min(deltas.len()));
            deltas = rest;
            time += match delta {
                [small] => i64::from(*small),
                [high, low] => i64::from(i16::from_be_bytes([*high, *low])),
                _ => 0,
            };
            let arrival = match status {
                Status::NotReceived => None,
                Status::Untimed => Some(None),
                Status::Small | Status::Large => Some(Some(WideTime(time.cast_unsigned() as u32))),
            };
            WideReport { sequence: begin.plus(n), arrival }
        })
    }
}

/// Returns the number of packets in a chunk (sections 3.1.3 and 3.1.4).
fn chunk_len(chunk: u16) -> usize {
    match chunk >> 14 {
        0 | 1 => usize::from(chunk & 0x1fff),
        2 => BITS,
        _ => PAIRS,
    }
}

/// Returns the status of one of the packets in a chunk.
fn chunk_status(chunk: u16, place: usize) -> Status {
    match chunk >> 14 {
        0 | 1 => Status::from_bits(chunk >> 13),
        2 => Status::from_bits(chunk >> (BITS - 1 - place) & 1),
        _ => Status::from_bits(chunk >> (2 * (PAIRS - 1 - place))),
    }
}

/// Returns the octets of the differences of the first `len` packets of a chunk.
fn chunk_deltas(chunk: u16, len: usize) -> usize {
    if chunk >> 15 == 0 {
        return len * chunk_status(chunk, 0).delta_len();
    }
    (0..len).map(|place| chunk_status(chunk, place).delta_len()).sum()
}

/// Appends the control information of a report on `arrivals`, which are counted from any beginning.
/// Returns the number of packets in it: the report ends before a packet that arrived more than 8 s
/// after or before the one before it, and at 16 384 packets. It is at least 1.
pub(super) fn write_report(
    out: &mut Vec<u8>,
    begin: SequenceNumber,
    number: u8,
    arrivals: &[Option<Duration>],
) -> usize {
    let steps = |time: Duration| (time.as_nanos() / 250_000) as i64;
    let first = arrivals.iter().flatten().next().map_or(0, |first| steps(*first));
    let reference = first.div_euclid(STEPS_PER_REFERENCE);
    let mut time = reference * STEPS_PER_REFERENCE;
    let (mut statuses, mut deltas) = (Vec::new(), Vec::new());
    for arrival in arrivals.iter().take(PACKETS_MAX.into()) {
        let Some(arrival) = arrival else {
            statuses.push(Status::NotReceived);
            continue;
        };
        let delta = steps(*arrival) - time;
        if let Ok(small) = u8::try_from(delta) {
            statuses.push(Status::Small);
            deltas.push(small);
        } else if let Ok(large) = i16::try_from(delta) {
            statuses.push(Status::Large);
            deltas.extend(large.to_be_bytes());
        } else {
            break;
        }
        time += delta;
    }
    out.extend(begin.0.to_be_bytes());
    out.extend((statuses.len() as u16).to_be_bytes());
    let reference = (reference.cast_unsigned() as u32) << (u32::BITS - REFERENCE_BITS);
    out.extend((reference | u32::from(number)).to_be_bytes());
    let mut rest = &statuses[..];
    while !rest.is_empty() {
        let (chunk, len) = next_chunk(rest);
        out.extend(chunk.to_be_bytes());
        rest = &rest[len..];
    }
    out.extend(deltas);
    statuses.len()
}

/// Returns a chunk of the first of `statuses`, and their number.
fn next_chunk(statuses: &[Status]) -> (u16, usize) {
    let run = statuses.iter().take_while(|status| **status == statuses[0]).count().min(RUN_MAX);
    let bits = &statuses[..statuses.len().min(BITS)];
    let pairs = &statuses[..statuses.len().min(PAIRS)];
    let fits_bits = !bits.contains(&Status::Large);
    if run >= BITS || run == statuses.len() || run >= PAIRS && !fits_bits {
        return ((statuses[0] as u16) << 13 | run as u16, run);
    }
    let vector = |statuses: &[Status], width: usize| {
        let shifts = (0..14 / width).map(|place| 14 - width * (place + 1));
        statuses.iter().zip(shifts).fold(0, |sum, (status, shift)| sum | (*status as u16) << shift)
    };
    if fits_bits {
        (0x8000 | vector(bits, 1), bits.len())
    } else {
        (0xc000 | vector(pairs, 2), pairs.len())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn report(begin: u16, count: u16, chunks: &[u16], deltas: &[u8]) -> Vec<u8> {
        let head = [begin.to_be_bytes(), count.to_be_bytes(), [0, 0], [1, 9]].concat();
        let chunks: Vec<u8> = chunks.iter().flat_map(|chunk| chunk.to_be_bytes()).collect();
        [&head[..], &chunks, deltas].concat()
    }

    /// Sections 3.1.3 and 3.1.4: the runs and vectors of the examples.
    #[test]
    fn chunks_are_those_of_the_examples() {
        let statuses = |chunk: u16| -> Vec<u8> {
            (0..chunk_len(chunk)).map(|place| chunk_status(chunk, place) as u8).collect()
        };
        assert_eq!(statuses(0b0000_0000_1101_1101), [0; 221]);
        assert_eq!(statuses(0b0110_0000_0001_1000), [3; 24]);
        let bits = [0, 1, 1, 1, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0];
        assert_eq!(statuses(0b1001_1111_0001_1100), bits);
        assert_eq!(statuses(0b1100_1101_0101_0000), [0, 3, 1, 1, 1, 0, 0]);
    }

    #[test]
    fn times_are_counted_from_the_reference_and_from_each_other() {
        // Two small differences, one of -1, and a packet without a time, across a wrap.
        let control = report(65_534, 5, &[0b11_01_00_01_10_11_00_00], &[4, 2, 0xff, 0xff, 0]);
        let feedback = TransportWide::parse(&control).unwrap();
        assert_eq!(feedback.number(), 9);
        let at = |steps: u32| Some(Some(WideTime(256 + steps)));
        let expected = [at(4), None, at(6), at(5), Some(None)];
        let reports: Vec<_> = feedback.packets().collect();
        assert_eq!(reports.iter().map(|report| report.arrival).collect::<Vec<_>>(), expected);
        assert_eq!(reports[2].sequence, SequenceNumber(0));
    }

    #[test]
    fn what_the_counts_promise_must_be_there() {
        for (count, chunks, deltas) in [
            (1, &[][..], &[][..]),
            (15, &[0x8000], &[]),
            (2, &[0x2002], &[1]),
            (1, &[0xe000], &[1]),
        ] {
            let control = report(0, count, chunks, deltas);
            let result = TransportWide::parse(&control);
            assert!(matches!(result, Err(RtcpError::Truncated { .. })), "{result:?}");
        }
        // Runs of no packets end with the octets, and symbols beyond the count are not read.
        assert!(TransportWide::parse(&report(0, 1, &[0, 0, 0x4001], &[0, 0])).is_ok());
        assert!(TransportWide::parse(&report(0, 1, &[0xbfff], &[7])).is_ok());
    }

    #[test]
    fn a_report_on_too_many_packets_is_refused() {
        let runs = [0x1fff, 0x1fff, 0x1fff];
        assert!(TransportWide::parse(&report(0, PACKETS_MAX, &runs, &[])).is_ok());
        let error = TransportWide::parse(&report(0, PACKETS_MAX + 1, &runs, &[])).unwrap_err();
        assert!(matches!(error, RtcpError::Count { count: 16_385, .. }), "{error}");
    }

    #[test]
    fn a_report_ends_before_a_gap_that_it_cannot_express() {
        let ms = |ms| Some(Duration::from_millis(ms));
        let mut control = Vec::new();
        let arrivals = [ms(100), None, ms(8200), ms(17_000), ms(17_001)];
        assert_eq!(write_report(&mut control, SequenceNumber(5), 1, &arrivals), 3);
        assert_eq!(TransportWide::parse(&control).unwrap().packets().count(), 3);
    }

    proptest! {
        #[test]
        fn a_report_is_read_as_it_was_written(
            begin in any::<u16>(),
            number in any::<u8>(),
            start in 0..u64::from(u32::MAX) * 250,
            steps in prop::collection::vec(prop::option::weighted(0.8, prop_oneof![
                4 => 0..60_000_i64,
                1 => -8_000_000..8_000_000_i64,
            ]), 0..200),
            repeats in 1..40_usize,
        ) {
            // Repetition makes runs.
            let steps: Vec<_> =
                steps.into_iter().flat_map(|step| vec![step; repeats]).take(4000).collect();
            let mut time = start.cast_signed() + 40_000_000_000;
            let arrivals: Vec<_> = steps.iter().map(|step| {
                time += (*step)?;
                Some(Duration::from_micros(time.cast_unsigned()))
            }).collect();
            let mut control = Vec::new();
            let count = write_report(&mut control, SequenceNumber(begin), number, &arrivals);
            prop_assert_eq!(count, arrivals.len());
            let feedback = TransportWide::parse(&control).unwrap();
            prop_assert_eq!(feedback.number(), number);
            let back: Vec<_> = feedback.packets().collect();
            let expected = arrivals.iter().zip(0..).map(|(arrival, n)| WideReport {
                sequence: SequenceNumber(begin).plus(n),
                arrival: arrival.map(|at| Some(WideTime((at.as_micros() / 250) as u32))),
            });
            prop_assert_eq!(back, expected.collect::<Vec<_>>());
        }

        #[test]
        fn arbitrary_octets_are_read_to_the_end_or_refused(
            control in prop::collection::vec(any::<u8>(), 0..100),
        ) {
            if let Ok(feedback) = TransportWide::parse(&control) {
                prop_assert!(feedback.packets().count() <= usize::from(PACKETS_MAX));
            }
        }
    }
}
