//! Cuts a stream of octets into access units, in bounded memory.

use rushes_scan::find_start_code;
use thiserror::Error;

use super::access_unit::{AccessUnitDetector, Boundary};
use super::header::NalCodec;
use super::{LENGTH_LEN, START_CODE_LEN};
use crate::payload::builder::Framing;

/// Octets of a NAL unit that determine its role: a header and the beginning of a slice.
const HEAD_LEN: usize = 4;

/// Why a stream of octets is not a sequence of access units.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum ReadError {
    /// The stream begins with octets other than zeros and a start code.
    #[error("no start code at octet {offset}: this is not an Annex B bitstream")]
    NoStartCode {
        /// Offset in the stream of the first such octet.
        offset: u64,
    },
    /// An access unit is larger than the reader allows.
    #[error("the access unit at octet {offset} is larger than {limit} octets")]
    TooLarge {
        /// Its offset in the stream.
        offset: u64,
        /// The maximum octets of an access unit.
        limit: usize,
    },
    /// The stream ends within a NAL unit or its length field.
    #[error("the stream ends within the NAL unit at octet {offset}")]
    Truncated {
        /// Its offset in the stream.
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
/// If it is drained after each piece, it holds one access unit and the undecided units after it,
/// each of at most [`limit`](Self::limit) octets, and the piece.
#[derive(Debug)]
pub struct AccessUnitReader {
    framing: Framing,
    codec: NalCodec,
    detector: AccessUnitDetector,
    limit: usize,
    buffer: Vec<u8>,
    /// Offset of the buffer in the stream.
    base: u64,
    /// Where the current access unit begins in the buffer; octets before it are no longer needed.
    start: usize,
    /// Where the search for the next NAL unit begins.
    search: usize,
    /// Where the first undecided unit begins.
    pending: Option<usize>,
    /// Whether a start code was found; before it, only zeros are allowed.
    synchronised: bool,
    /// Whether a NAL unit was found.
    begun: bool,
    end: End,
    skipped: u64,
    /// The detector of an access unit that ended because no octets arrived for a while; kept until the
    /// next unit arrives, which may belong to it.
    before: Option<AccessUnitDetector>,
    interrupted: bool,
    failed: Option<ReadError>,
}

/// What follows the octets read so far.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum End {
    /// More of the same access unit may follow.
    Open,
    /// Another access unit follows.
    Silence,
    /// Nothing follows.
    Finished,
}

impl AccessUnitReader {
    /// Creates a reader of `codec`'s NAL units in `framing`, with a limit of 64 MiB.
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
            end: End::Open,
            skipped: 0,
            before: None,
            interrupted: false,
            failed: None,
        }
    }

    /// Sets the maximum octets of an access unit, including start codes and zeros between units.
    pub fn limit(mut self, octets: usize) -> Self {
        self.limit = octets;
        self
    }

    /// Returns the codec whose NAL units are read.
    pub fn codec(&self) -> NalCodec {
        self.codec
    }

    /// Appends the next octets of the stream.
    pub fn feed(&mut self, octets: &[u8]) {
        // Octets are removed only if fewer have to be moved, to bound the cost by the input.
        if self.start > self.buffer.len() / 2 {
            self.buffer.drain(..self.start);
            self.base += self.start as u64;
            self.search -= self.start;
            self.pending = self.pending.map(|pending| pending - self.start);
            self.start = 0;
        }
        self.buffer.extend_from_slice(octets);
        if self.end == End::Silence {
            self.end = End::Open;
        }
    }

    /// Marks the end of the stream.
    pub fn finish(&mut self) {
        self.end = End::Finished;
    }

    /// Returns the number of octets read that are not part of a returned access unit.
    pub fn buffered(&self) -> usize {
        self.buffer.len() - self.start
    }

    /// Ends the current access unit with the octets so far, because its source is silent: otherwise
    /// only the next one shows that it is complete. The next unit begins another access unit.
    ///
    /// Call it when [`next_access_unit`](Self::next_access_unit) has returned `None`; that method
    /// then returns the access unit. With start codes the reader cannot see the end of a unit: if
    /// more of the unit follows, these octets are lost up to the next start code, and
    /// [counted](Self::skipped). The call has no effect if the octets so far end within a start
    /// code, a header, a length or the unit after a length.
    pub fn flush(&mut self) {
        let may_end = match self.framing {
            Framing::AnnexB => self.may_end_unit(),
            Framing::LengthPrefixed => self.search == self.buffer.len(),
        };
        if may_end && self.end == End::Open {
            self.end = End::Silence;
        }
    }

    /// Returns how many octets came after a [`flush`](Self::flush) within the unit that it ended.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Returns whether more of an access unit arrived after a [`flush`](Self::flush) that ended it:
    /// octets of a unit, which are lost, or a slice, which is returned as a separate access unit.
    pub fn was_interrupted(&self) -> bool {
        self.interrupted || self.skipped > 0
    }

    /// Returns the next whole access unit, without zeros at its end; `None` if more octets are
    /// needed, or, after [`finish`](Self::finish), if there are no more.
    ///
    /// # Errors
    /// [`ReadError`], with the offset in the stream. Each further call returns the same error.
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

    /// Returns the end of the current access unit, if known.
    fn find_end(&mut self) -> Result<Option<usize>, ReadError> {
        loop {
            let next = self.next_unit();
            let Ok(Some((place, unit))) = next else {
                // The octet before `search` may be the first of a start code.
                self.check_limit(self.search.saturating_sub(1))?;
                next?;
                break;
            };
            let head = &self.buffer[unit..self.buffer.len().min(unit + HEAD_LEN)];
            let boundary = self.detector.push(head);
            if let Some(mut before) = self.before.take() {
                let is_vcl =
                    self.codec.header(head).is_some_and(|it| self.codec.is_vcl(it.nal_type));
                self.interrupted |= is_vcl && before.push(head) == Boundary::Inside;
            }
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
        let end = self.end;
        if end == End::Silence {
            self.end = End::Open;
        }
        if end == End::Open || !self.begun || self.start == self.buffer.len() {
            return Ok(None);
        }
        self.pending = None;
        self.check_limit(self.buffer.len())?;
        if end == End::Silence {
            self.begun = false;
            let next = AccessUnitDetector::new(self.codec);
            self.before = Some(std::mem::replace(&mut self.detector, next));
            self.search = self.buffer.len();
        }
        Ok(Some(self.buffer.len()))
    }

    /// Returns whether a unit with a start code may end with the octets so far, which is not so
    /// within a start code or a header.
    fn may_end_unit(&self) -> bool {
        let header_len = self.codec.header_len();
        let last =
            &self.buffer[self.buffer.len().saturating_sub(START_CODE_LEN + header_len - 1)..];
        find_start_code(last).is_none() && !last.ends_with(&[0])
    }

    /// Checks that the current access unit and, separately, the pending units fit the limit, as far
    /// as they are known up to `end`. The result depends only on the octets, not on the pieces in
    /// which they arrived.
    fn check_limit(&self, end: usize) -> Result<(), ReadError> {
        let decided = self.pending.unwrap_or(end);
        let largest = decided.saturating_sub(self.start).max(end.saturating_sub(decided));
        if self.begun && largest > self.limit {
            let offset = self.base + self.start as u64;
            return Err(ReadError::TooLarge { offset, limit: self.limit });
        }
        Ok(())
    }

    /// Returns the next NAL unit: the place of its start code or length field, and its own.
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
            let head = &self.buffer[unit..];
            if head.len() < HEAD_LEN && self.end == End::Open {
                self.search = code;
                return Ok(None);
            }
            self.search = unit;
            // Empty units are skipped: the end or, possibly after zeros, a start code follows.
            let is_empty = match head {
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
        self.pass_zeros(if self.end == End::Finished { self.buffer.len() } else { self.search })?;
        Ok(None)
    }

    /// Skips zeros before the first unit, up to `end`, except one that may belong to a start code.
    /// Any other octet before the first start code is an error.
    fn pass_zeros(&mut self, end: usize) -> Result<(), ReadError> {
        if self.begun {
            return Ok(());
        }
        let skipped = &self.buffer[self.start..end];
        match skipped.iter().position(|octet| *octet != 0) {
            Some(n) if !self.synchronised => {
                Err(ReadError::NoStartCode { offset: self.base + (self.start + n) as u64 })
            }
            other => {
                let zero = usize::from(skipped.ends_with(&[0]));
                let start = self.start.max(end - zero);
                if other.is_some() {
                    self.skipped += (start - self.start) as u64;
                }
                self.start = start;
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
                let cut = self.end == End::Finished && !rest.is_empty();
                return if cut { Err(ReadError::Truncated { offset }) } else { Ok(None) };
            };
            let len = u32::from_be_bytes(*length) as usize;
            if len > self.limit {
                return Err(ReadError::TooLarge { offset, limit: self.limit });
            }
            if body.len() < len {
                return if self.end == End::Finished {
                    Err(ReadError::Truncated { offset })
                } else {
                    Ok(None)
                };
            }
            self.search = place + LENGTH_LEN + len;
            if len > 0 {
                return Ok(Some((place, place + LENGTH_LEN)));
            }
        }
    }
}
