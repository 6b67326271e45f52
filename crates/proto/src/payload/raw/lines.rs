//! The payload header: which parts of which lines a packet carries (RFC 4175 section 4.2).

use super::super::error::PayloadError;

/// Octets of the upper half of the sequence number, at the beginning of a payload.
pub(super) const SEQUENCE_LEN: usize = 2;

/// Octets of a line header.
pub(super) const LINE_HEADER_LEN: usize = 6;

/// The upper bit of the line number and of the offset: the second field; another header follows.
const UPPER: u16 = 0x8000;

/// A part of a line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Segment {
    /// Octets of the part.
    pub len: u16,
    /// Whether the line belongs to the second field of an interlaced frame.
    pub is_second_field: bool,
    /// The number of the line, 15 bits.
    pub line: u16,
    /// The offset in the line of the first pixel, in pixels, 15 bits.
    pub offset: u16,
}

impl Segment {
    fn parse(header: &[u8]) -> Self {
        let number = |at| u16::from_be_bytes([header[at], header[at + 1]]);
        let (line, offset) = (number(2), number(4));
        Self {
            len: number(0),
            is_second_field: line & UPPER != 0,
            line: line & !UPPER,
            offset: offset & !UPPER,
        }
    }

    /// Returns the line header; another one follows if `continues`.
    pub(super) fn header(self, continues: bool) -> [u8; LINE_HEADER_LEN] {
        let flag = |is_set| if is_set { UPPER } else { 0 };
        let [l1, l0] = self.len.to_be_bytes();
        let [n1, n0] = (self.line | flag(self.is_second_field)).to_be_bytes();
        let [o1, o0] = (self.offset | flag(continues)).to_be_bytes();
        [l1, l0, n1, n0, o1, o0]
    }
}

/// The parts of lines in one payload.
#[derive(Clone, Copy, Debug)]
pub struct Lines<'p> {
    /// The upper half of the sequence number.
    pub sequence: u16,
    headers: &'p [u8],
    data: &'p [u8],
}

impl<'p> Lines<'p> {
    /// Reads the headers of a payload, and checks that the parts are as long as the payload.
    ///
    /// # Errors
    /// [`PayloadError::Truncated`] if the payload ends before its last header or its last part,
    /// [`PayloadError::Malformed`] if it is longer than its parts.
    pub fn parse(payload: &'p [u8]) -> Result<Self, PayloadError> {
        let have = payload.len();
        let truncated = |field, need| PayloadError::Truncated { field, need, have };
        let (sequence, rest) = payload
            .split_first_chunk::<SEQUENCE_LEN>()
            .ok_or_else(|| truncated("the extended sequence number", SEQUENCE_LEN))?;
        let (mut headers_len, mut data_len) = (0, 0);
        loop {
            let header = rest.get(headers_len..headers_len + LINE_HEADER_LEN);
            headers_len += LINE_HEADER_LEN;
            let header =
                header.ok_or_else(|| truncated("a line header", SEQUENCE_LEN + headers_len))?;
            data_len += usize::from(Segment::parse(header).len);
            if header[4] & 0x80 == 0 {
                break;
            }
        }
        let (headers, data) = rest.split_at(headers_len);
        if data.len() < data_len {
            let need = SEQUENCE_LEN + headers_len + data_len;
            return Err(truncated("the data of its lines", need));
        }
        if data.len() > data_len {
            let reason = "the payload is longer than the lines in it";
            return Err(PayloadError::Malformed { reason });
        }
        Ok(Self { sequence: u16::from_be_bytes(*sequence), headers, data })
    }

    /// Returns the parts of lines, each with its octets.
    pub fn segments(&self) -> impl Iterator<Item = (Segment, &'p [u8])> + use<'p> {
        let mut data = self.data;
        self.headers.chunks_exact(LINE_HEADER_LEN).map(move |header| {
            let segment = Segment::parse(header);
            // `parse` has checked the lengths.
            let (octets, rest) = data.split_at(usize::from(segment.len).min(data.len()));
            data = rest;
            (segment, octets)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two parts of lines, by the figure in RFC 4175 section 4.
    const TWO: &[u8] = b"\x12\x34\0\x04\x80\x07\x81\x02\0\x02\x80\x09\0\0abcdef";

    #[test]
    fn the_headers_of_two_lines_are_read() {
        let lines = Lines::parse(TWO).unwrap();
        assert_eq!(lines.sequence, 0x1234);
        let first = Segment { len: 4, is_second_field: true, line: 7, offset: 0x102 };
        let second = Segment { len: 2, is_second_field: true, line: 9, offset: 0 };
        let segments: Vec<_> = lines.segments().collect();
        assert_eq!(segments, [(first, &b"abcd"[..]), (second, b"ef")]);
        let headers = [first.header(true), second.header(false)].concat();
        assert_eq!(headers, TWO[2..14]);
    }

    #[test]
    fn a_payload_of_another_length_is_refused() {
        for end in 0..TWO.len() {
            let error = Lines::parse(&TWO[..end]).unwrap_err();
            let PayloadError::Truncated { need, have, .. } = error else { panic!("{error:?}") };
            assert!(need > end && have == end, "{error}");
        }
        let longer = [TWO, &[0]].concat();
        assert!(matches!(Lines::parse(&longer), Err(PayloadError::Malformed { .. })));
        // Headers without an end.
        let endless = [&[0; 6][..], &[0x80, 0]].concat().repeat(100);
        assert!(Lines::parse(&endless).is_err());
    }
}
