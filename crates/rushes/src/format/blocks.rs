//! Unstructured files: written frame by frame, and read in blocks of one size.

use std::io::{self, Write};
use std::path::Path;

use rushes_proto::RtpTimestamp;

use super::file::{Bytes, FileError, MediaFrame, ReadOptions};
use super::{FileKind, FrameReader, FrameWriter};

/// Describes unstructured files with these extensions.
pub const fn files(extensions: &'static [&'static str]) -> FileKind {
    FileKind { extensions, reader, writer, is_of: |_| true }
}

/// Reads blocks of [`ReadOptions::frame_len`] bytes; the last may be shorter.
pub fn reader(_: &Path, options: ReadOptions) -> Box<dyn FrameReader> {
    Box::new(Blocks { len: options.frame_len.max(1), bytes: Bytes::default() })
}

/// Writes frames one after the other.
pub fn writer(_: &Path) -> Box<dyn FrameWriter> {
    Box::new(Frames { written: 0 })
}

struct Blocks {
    len: usize,
    bytes: Bytes,
}

impl FrameReader for Blocks {
    fn feed(&mut self, bytes: &[u8]) {
        self.bytes.feed(bytes);
    }

    fn finish(&mut self) {
        self.bytes.finished = true;
    }

    fn next_frame(&mut self, frame: &mut MediaFrame) -> Result<bool, FileError> {
        let have = self.bytes.rest().len();
        if have == 0 || (have < self.len && !self.bytes.finished) {
            return Ok(false);
        }
        self.bytes.take(self.len.min(have), frame);
        Ok(true)
    }

    fn buffered(&self) -> usize {
        self.bytes.rest().len()
    }
}

struct Frames {
    written: u64,
}

impl FrameWriter for Frames {
    fn write(&mut self, frame: &[u8], _: RtpTimestamp, to: &mut dyn Write) -> io::Result<()> {
        to.write_all(frame)?;
        self.written += 1;
        Ok(())
    }

    fn frames_written(&self) -> u64 {
        self.written
    }
}
