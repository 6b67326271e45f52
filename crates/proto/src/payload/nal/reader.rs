//! Cutting a stream of octets into access units, in bounded memory.

use rushes_scan::find_start_code;
use thiserror::Error;

use super::access_unit::{AccessUnitDetector, Boundary};
use super::header::NalCodec;
use super::{LENGTH_LEN, START_CODE_LEN};
use crate::payload::builder::Framing;

/// Octets of a NAL unit that decide its role: a header and the beginning of a slice.
const LOOK_LEN: usize = 4;

/// Why a stream of octets is not a sequence of access units.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum ReadError {
    /// Something else than a start code or zeros.
    #[error("no start code at octet {offset}: this is not an Annex B bitstream")]
    NoStartCode {
        /// Where it stands in the stream.
        offset: u64,
    },
    /// An access unit is larger than the reader allows.
    #[error("the access unit at octet {offset} is larger than {limit} octets")]
    TooLarge {
        /// Where it begins in the stream.
        offset: u64,
        /// The largest access unit allowed, in octets.
        limit: usize,
    },
    /// The stream ends within a NAL unit or its length field.
    #[error("the stream ends within the NAL unit at octet {offset}")]
    Truncated {
        /// Where it begins in the stream.
        offset: u64,
    },
}

/// Cuts a bitstream, given in pieces of any size, into access units.
///
/// ```
/// use rushes_proto::payload::{Framing, nal::{AccessUnitReader, NalCodec}};
/// let mut reader = AccessUnitReader::new(NalCodec::H264, Framing::AnnexB);
/// reader.feed(b"\0\0\x01\x65\x88first\0\0\x01\x41");
/// assert_eq!(reader.next_access_unit(), Ok(None));
/// reader.feed(b"\x9asecond");
/// assert_eq!(reader.next_access_unit(), Ok(Some(&b"\0\0\x01\x65\x88first"[..])));
/// reader.finish();
/// assert_eq!(reader.next_access_unit(), Ok(Some(&b"\0\0\x01\x41\x9asecond"[..])));
/// assert_eq!(reader.next_access_unit(), Ok(None));
/// ```
///
/// # Limits
/// Drained after each piece, it holds one access unit, the units after it that no slice has
/// claimed yet, each at most as large as [`limit`](Self::limit) says, and the piece.
#[derive(Debug)]
pub struct AccessUnitReader {
    framing: Framing,
    codec: NalCodec,
    detector: AccessUnitDetector,
    limit: usize,
    buffer: Vec<u8>,
    /// Where the buffer begins in the stream.
    base: u64,
    /// Where the access unit in hand begins in the buffer; everything before is done with.
    start: usize,
    /// Where the next NAL unit is searched.
    search: usize,
    /// Where the first unit of undecided belonging begins.
    pending: Option<usize>,
    /// A start code has come: from here on, every octet belongs to something.
    synchronised: bool,
    /// A NAL unit has come.
    begun: bool,
    finished: bool,
    failed: Option<ReadError>,
}

impl AccessUnitReader {
    /// A reader of `codec`'s NAL units, set apart by `framing`, with a limit of 64 MiB.
    pub fn new(codec: NalCodec, framing: Framing) -> Self {
        Self {
            framing,
            codec,
            detector: AccessUnitDetector::new(codec),
            limit: 64 << 20,
            buffer: Vec::new(),
            base: 0,
            start: 0,
            search: 0,
            pending: None,
            synchronised: false,
            begun: false,
            finished: false,
            failed: None,
        }
    }

    /// Octets in the largest access unit allowed, start codes and zeros between units included.
    pub fn limit(mut self, octets: usize) -> Self {
        self.limit = octets;
        self
    }

    /// The codec whose NAL units are read.
    pub fn codec(&self) -> NalCodec {
        self.codec
    }

    /// Takes the next octets of the stream.
    pub fn feed(&mut self, octets: &[u8]) {
        // Moving at least as much as stays keeps the cost proportional to what was fed.
        if self.start > self.buffer.len() / 2 {
            self.buffer.drain(..self.start);
            self.base += self.start as u64;
            self.search -= self.start;
            self.pending = self.pending.map(|pending| pending - self.start);
            self.start = 0;
        }
        self.buffer.extend_from_slice(octets);
    }

    /// Says that the stream ends here.
    pub fn finish(&mut self) {
        self.finished = true;
    }

    /// The next whole access unit, without zeros at its end; `None` if more octets are needed,
    /// or, after [`finish`](Self::finish), if there are no more.
    ///
    /// # Errors
    /// [`ReadError`], which says where in the stream. It is said again on each further call.
    pub fn next_access_unit(&mut self) -> Result<Option<&[u8]>, ReadError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let end = self.find_end().inspect_err(|error| self.failed = Some(*error))?;
        let Some(end) = end else { return Ok(None) };
        let unit = self.start..end;
        self.start = end;
        let mut unit = &self.buffer[unit];
        if self.framing == Framing::AnnexB {
            while let [rest @ .., 0] = unit {
                unit = rest;
            }
        }
        Ok(Some(unit))
    }

    /// Where the access unit in hand ends, if that is known.
    fn find_end(&mut self) -> Result<Option<usize>, ReadError> {
        loop {
            let next = self.next_unit();
            let Ok(Some((place, unit))) = next else {
                // The octet before `search` may be the first of a start code.
                self.check_limit(self.search.saturating_sub(1))?;
                next?;
                break;
            };
            let look = &self.buffer[unit..self.buffer.len().min(unit + LOOK_LEN)];
            let boundary = self.detector.push(look);
            if !std::mem::replace(&mut self.begun, true) {
                self.start = place;
                continue;
            }
            self.check_limit(place)?;
            match boundary {
                Boundary::Inside => self.pending = None,
                Boundary::Pending => {
                    self.pending.get_or_insert(place);
                }
                Boundary::Here => {
                    self.pending = None;
                    return Ok(Some(place));
                }
                Boundary::AtPending => return Ok(Some(self.pending.take().unwrap_or(place))),
            }
        }
        if !self.finished || !self.begun || self.start == self.buffer.len() {
            return Ok(None);
        }
        self.pending = None;
        self.check_limit(self.buffer.len())?;
        Ok(Some(self.buffer.len()))
    }

    /// Checks that what is known up to `end` fits the limit: the access unit in hand and, apart,
    /// the pending units. It depends on the octets only, not on how they came in pieces.
    fn check_limit(&self, end: usize) -> Result<(), ReadError> {
        let sure = self.pending.unwrap_or(end);
        let largest = sure.saturating_sub(self.start).max(end.saturating_sub(sure));
        if self.begun && largest > self.limit {
            let offset = self.base + self.start as u64;
            return Err(ReadError::TooLarge { offset, limit: self.limit });
        }
        Ok(())
    }

    /// The next NAL unit: where its start code or length stands, and where it begins.
    fn next_unit(&mut self) -> Result<Option<(usize, usize)>, ReadError> {
        match self.framing {
            Framing::AnnexB => self.next_annexb_unit(),
            Framing::LengthPrefixed => self.next_length_prefixed_unit(),
        }
    }

    fn next_annexb_unit(&mut self) -> Result<Option<(usize, usize)>, ReadError> {
        while let Some(found) = find_start_code(&self.buffer[self.search..]) {
            let code = self.search + found;
            self.pass_zeros(code)?;
            self.synchronised = true;
            let unit = code + START_CODE_LEN;
            let look = &self.buffer[unit..];
            if look.len() < LOOK_LEN && !self.finished {
                self.search = code;
                return Ok(None);
            }
            self.search = unit;
            // Empty units are passed over: the end, another start code, or zeros up to one.
            let is_empty = match look {
                [] | [0] | [0, 0] => true,
                [0, 0, third, ..] => *third < 2,
                _ => false,
            };
            if !is_empty {
                let zero = code > self.start && self.buffer[code - 1] == 0;
                return Ok(Some((code - usize::from(zero), unit)));
            }
        }
        // A start code may have begun in the last two octets.
        let end = self.buffer.len().saturating_sub(START_CODE_LEN - 1);
        self.search = self.search.max(end);
        self.pass_zeros(if self.finished { self.buffer.len() } else { self.search })?;
        Ok(None)
    }

    /// Before the first unit there may be zeros only, which are let go up to `end`, but for one
    /// that may belong to a start code.
    fn pass_zeros(&mut self, end: usize) -> Result<(), ReadError> {
        if self.begun {
            return Ok(());
        }
        let skipped = &self.buffer[self.start..end];
        match skipped.iter().position(|octet| *octet != 0) {
            Some(n) if !self.synchronised => {
                Err(ReadError::NoStartCode { offset: self.base + (self.start + n) as u64 })
            }
            _ => {
                self.start = self.start.max(end.saturating_sub(1));
                Ok(())
            }
        }
    }

    fn next_length_prefixed_unit(&mut self) -> Result<Option<(usize, usize)>, ReadError> {
        loop {
            let place = self.search;
            let offset = self.base + place as u64;
            let rest = self.buffer.get(place..).unwrap_or_default();
            let Some((length, body)) = rest.split_first_chunk::<LENGTH_LEN>() else {
                let cut = self.finished && !rest.is_empty();
                return if cut { Err(ReadError::Truncated { offset }) } else { Ok(None) };
            };
            let len = u32::from_be_bytes(*length) as usize;
            if len > self.limit {
                return Err(ReadError::TooLarge { offset, limit: self.limit });
            }
            if body.len() < len {
                return if self.finished { Err(ReadError::Truncated { offset }) } else { Ok(None) };
            }
            self.search = place + LENGTH_LEN + len;
            if len > 0 {
                return Ok(Some((place, place + LENGTH_LEN)));
            }
        }
    }
}
