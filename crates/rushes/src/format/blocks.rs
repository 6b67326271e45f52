//! Unstructured files: written frame by frame, and read in blocks of one size.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rushes_proto::RtpTimestamp;

use super::file::{FileError, Input, MediaFrame, ReadOptions, read_piece};
use super::{FileKind, FrameReader, FrameWriter};

/// Unstructured files with these extensions.
pub const fn files(extensions: &'static [&'static str]) -> FileKind {
    FileKind { extensions, reader, writer }
}

/// Reads blocks of [`ReadOptions::frame_len`] bytes; the last may be shorter.
///
/// # Errors
/// None.
#[allow(clippy::unnecessary_wraps, reason = "all readers have this signature")]
pub fn reader(
    input: Box<dyn Input>,
    path: &Path,
    options: ReadOptions,
) -> Result<Box<dyn FrameReader>, FileError> {
    let (path, len) = (path.to_owned(), options.frame_len.max(1));
    Ok(Box::new(Blocks { input, path, len, frame: Vec::new() }))
}

/// Writes frames one after the other.
pub fn writer() -> Box<dyn FrameWriter> {
    Box::new(Frames { written: 0 })
}

struct Blocks {
    input: Box<dyn Input>,
    path: PathBuf,
    len: usize,
    frame: Vec<u8>,
}

impl FrameReader for Blocks {
    fn next_frame(&mut self) -> Result<Option<MediaFrame<'_>>, FileError> {
        let any = read_piece(&mut self.input, self.len, &self.path, &mut self.frame)?;
        Ok(any.then_some(MediaFrame { data: &self.frame, duration: None }))
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
