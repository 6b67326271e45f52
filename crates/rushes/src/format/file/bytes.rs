//! The bytes of a file that are not part of a frame yet.

use std::io::{self, Read};
use std::mem;

use super::MediaFrame;

/// Bytes in order: added at the end, removed at the beginning.
#[derive(Debug, Default)]
pub struct Bytes {
    buffer: Vec<u8>,
    /// Bytes at the beginning of the buffer that were removed.
    start: usize,
    /// Bytes of the file before the buffer.
    before: u64,
    /// Whether the file has no more bytes.
    pub finished: bool,
}

impl Bytes {
    /// Adds bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        // Removing more bytes than are moved keeps the cost proportional to the input.
        if self.start > self.buffer.len() / 2 {
            self.buffer.drain(..self.start);
            self.before += self.start as u64;
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Adds `len` bytes of `file`, fewer only at its end; returns their number.
    ///
    /// Memory grows with what is read. If a frame then ends at the last byte, [`take`](Self::take) moves it
    /// without a copy.
    pub fn read_from(&mut self, file: &mut dyn Read, len: usize) -> io::Result<usize> {
        self.buffer.drain(..self.start);
        self.before += mem::take(&mut self.start) as u64;
        file.take(len as u64).read_to_end(&mut self.buffer)
    }

    /// Returns the bytes that were added and not removed.
    pub fn rest(&self) -> &[u8] {
        &self.buffer[self.start..]
    }

    /// Returns the offset of these bytes in the file.
    pub fn position(&self) -> u64 {
        self.before + self.start as u64
    }

    /// Removes at most `len` bytes.
    pub fn skip(&mut self, len: usize) {
        self.start += len.min(self.rest().len());
    }

    /// Moves at most `len` bytes to `frame`, as all of its octets.
    pub fn take(&mut self, len: usize, frame: &mut MediaFrame) {
        let len = len.min(self.rest().len());
        frame.data.clear();
        frame.duration = None;
        if self.start == 0 && len == self.buffer.len() {
            mem::swap(&mut frame.data, &mut self.buffer);
            self.before += len as u64;
            return;
        }
        frame.data.extend_from_slice(&self.rest()[..len]);
        self.skip(len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_leave_in_order_and_the_position_counts_them() {
        let mut bytes = Bytes::default();
        let (mut frame, mut taken) = (MediaFrame::default(), Vec::new());
        for n in 0..100_u8 {
            bytes.feed(&[n; 7]);
            bytes.take(5, &mut frame);
            taken.extend_from_slice(&frame.data);
            assert_eq!(bytes.position(), taken.len() as u64);
        }
        assert_eq!(bytes.rest().len(), 200);
        bytes.take(1000, &mut frame);
        taken.extend_from_slice(&frame.data);
        let all: Vec<u8> = (0..100_u8).flat_map(|n| [n; 7]).collect();
        assert_eq!(taken, all);
        assert!(bytes.rest().is_empty() && bytes.buffer.len() < 500);
    }

    #[test]
    fn bytes_read_from_a_file_leave_without_a_copy_and_take_no_more_memory_than_there_are() {
        let mut bytes = Bytes::default();
        let octets = vec![7; 90_000];
        let (mut frame, mut file) = (MediaFrame::default(), &octets[..]);
        bytes.feed(b"abcdefgh");
        bytes.take(3, &mut frame);
        assert_eq!(bytes.read_from(&mut file, 50_000).unwrap(), 50_000);
        assert_eq!((bytes.position(), bytes.rest().len()), (3, 50_005));
        let place = bytes.rest().as_ptr();
        bytes.take(50_005, &mut frame);
        assert_eq!((frame.data.as_ptr(), &frame.data[..6]), (place, &b"defgh\x07"[..]));
        assert_eq!((bytes.position(), bytes.rest().len()), (50_008, 0));
        // The file is shorter than a frame.
        assert_eq!(bytes.read_from(&mut file, usize::MAX).unwrap(), 40_000);
        assert!(bytes.rest() == &octets[50_000..] && bytes.buffer.capacity() < 200_000);
        assert_eq!(bytes.read_from(&mut file, 1).unwrap(), 0);
    }
}
