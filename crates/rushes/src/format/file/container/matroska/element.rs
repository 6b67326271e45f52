//! Elements of EBML (RFC 8794), one after the other.

use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom};

use super::super::Octets;

/// The header of an element: its identifier, and the length of its data, if that is known.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Header {
    pub(super) id: u32,
    pub(super) len: Option<u64>,
}

/// The elements of a file. The next header after that of a container element is its first child's.
pub(super) struct Elements {
    file: BufReader<Box<dyn Octets>>,
    position: u64,
    len: u64,
}

impl Elements {
    pub(super) fn new(mut file: Box<dyn Octets>) -> io::Result<Self> {
        let len = file.seek(SeekFrom::End(0))?;
        file.rewind()?;
        Ok(Self { file: BufReader::new(file), position: 0, len })
    }

    /// Returns the next header; `None` at the end of the file, or if it is cut off there.
    pub(super) fn next(&mut self) -> io::Result<Option<Header>> {
        match self.header() {
            Ok(header) => Ok(Some(header)),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn header(&mut self) -> io::Result<Header> {
        let (id, _) = self.number(4, false)?;
        let (len, is_unknown) = self.number(8, true)?;
        // Four octets at most.
        Ok(Header { id: id as u32, len: (!is_unknown).then_some(len) })
    }

    /// Returns a number of variable length (RFC 8794 section 4), with or without its marker, and
    /// whether all its bits are set.
    fn number(&mut self, len_max: u32, unmarked: bool) -> io::Result<(u64, bool)> {
        let first = self.octet()?;
        let len = first.leading_zeros() + 1;
        if len > len_max {
            return Err(invalid("an element has no length"));
        }
        let mut value = u64::from(first);
        if unmarked {
            value &= (1 << (8 - len)) - 1;
        }
        for _ in 1..len {
            value = value << 8 | u64::from(self.octet()?);
        }
        Ok((value, value & ((1 << (7 * len)) - 1) == (1 << (7 * len)) - 1))
    }

    fn octet(&mut self) -> io::Result<u8> {
        let mut octet = [0];
        self.file.read_exact(&mut octet)?;
        self.position += 1;
        Ok(octet[0])
    }

    /// Returns the data of an element that is read whole; `None` if it is cut off by the end of the
    /// file.
    ///
    /// # Errors
    /// If it has more than `max` octets.
    pub(super) fn data(&mut self, header: Header, max: u64) -> io::Result<Option<Vec<u8>>> {
        let len = header.len.ok_or_else(|| invalid("an element has no length"))?;
        if len > self.len.saturating_sub(self.position) {
            self.end()?;
            return Ok(None);
        }
        if len > max {
            return Err(invalid("an element is too long"));
        }
        let mut data = vec![0; len as usize];
        self.file.read_exact(&mut data)?;
        self.position += len;
        Ok(Some(data))
    }

    /// Skips the data of an element; `false` if they are cut off by the end of the file.
    pub(super) fn skip(&mut self, header: Header) -> io::Result<bool> {
        let len = header.len.ok_or_else(|| invalid("an element has no length"))?;
        if len > self.len.saturating_sub(self.position) {
            self.end()?;
            return Ok(false);
        }
        self.file.seek_relative(i64::try_from(len).map_err(io::Error::other)?)?;
        self.position += len;
        Ok(true)
    }

    /// Goes to the end of the file: nothing follows an element that is cut off there.
    fn end(&mut self) -> io::Result<()> {
        self.position = self.len;
        self.file.seek(SeekFrom::Start(self.len)).map(drop)
    }

    /// Returns the number of octets in the file.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Returns the number of octets before the next element.
    pub(super) fn position(&self) -> u64 {
        self.position
    }
}

/// Returns the elements in the data of another; what is cut off is left out.
pub(super) fn children(mut data: &[u8]) -> impl Iterator<Item = (u32, &[u8])> {
    std::iter::from_fn(move || {
        let (id, _) = number(&mut data, 4, false)?;
        let (len, _) = number(&mut data, 8, true)?;
        let (body, rest) = data.split_at_checked(usize::try_from(len).ok()?)?;
        data = rest;
        Some((id as u32, body))
    })
}

/// Reads a number like [`Elements::number`], but from memory; returns it and its length in octets.
pub(super) fn number(data: &mut &[u8], len_max: u32, unmarked: bool) -> Option<(u64, u32)> {
    let len = data.first()?.leading_zeros() + 1;
    if len > len_max {
        return None;
    }
    let (octets, rest) = data.split_at_checked(len as usize)?;
    let value = octets.iter().fold(0, |sum, octet| sum << 8 | u64::from(*octet));
    *data = rest;
    let mask = if unmarked { (1 << (7 * len)) - 1 } else { u64::MAX };
    Some((value & mask, len))
}

/// Returns an unsigned integer of up to eight octets (section 7.2).
pub(super) fn unsigned(data: &[u8]) -> Option<u64> {
    (data.len() <= 8).then(|| data.iter().fold(0, |sum, octet| sum << 8 | u64::from(*octet)))
}

fn invalid(reason: &'static str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_length_that_their_first_octet_says() {
        let read = |mut data: &[u8]| number(&mut data, 8, true);
        assert_eq!(read(&[0x82]), Some((2, 1)));
        assert_eq!(read(&[0x40, 0x02]), Some((2, 2)));
        assert_eq!(read(&[0x01, 0, 0, 0, 0, 0, 0, 2]), Some((2, 8)));
        assert_eq!(read(&[0x40]), None);
        assert_eq!(read(&[0x00, 0xff]), None);
        assert_eq!(number(&mut &[0x1a, 0x45, 0xdf, 0xa3][..], 4, false), Some((0x1a45_dfa3, 4)));
    }

    #[test]
    fn elements_are_read_to_the_end_of_the_file() {
        let octets = b"\x1a\x45\xdf\xa3\x82hi\x18\x53\x80\x67\x01\xff\xff\xff\xff\xff\xff\xff\xe7\x81\x05\xa3\x8f\0\0";
        let mut elements = Elements::new(Box::new(io::Cursor::new(octets.to_vec()))).unwrap();
        let header = elements.next().unwrap().unwrap();
        assert_eq!(header, Header { id: 0x1a45_dfa3, len: Some(2) });
        assert!(elements.skip(header).unwrap());
        assert_eq!(elements.next().unwrap(), Some(Header { id: 0x1853_8067, len: None }));
        let header = elements.next().unwrap().unwrap();
        assert_eq!(elements.data(header, 8).unwrap(), Some(vec![5]));
        let header = elements.next().unwrap().unwrap();
        assert_eq!(elements.data(header, 100).unwrap(), None, "it is cut off");
        assert_eq!(elements.next().unwrap(), None, "its data are no elements");
    }
}
