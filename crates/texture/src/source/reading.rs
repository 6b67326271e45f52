//! Frames of one file, read on demand.

use std::path::{Path, PathBuf};

use crate::file::FrameReader;
use crate::layout::Layout;
use crate::rate::Rate;
use crate::source::frame::Pool;
use crate::source::{Frame, Source, SourceError};

/// A file of frames as a source.
#[derive(Debug)]
pub struct FileSource<R> {
    path: PathBuf,
    reader: R,
    pool: Pool,
}

impl<R: FrameReader> FileSource<R> {
    /// Creates a source of the frames of `reader`; errors contain `path`.
    pub fn new(path: &Path, reader: R) -> Self {
        Self { path: path.to_owned(), reader, pool: Pool::default() }
    }
}

impl<R: FrameReader> Source for FileSource<R> {
    fn layout(&self) -> &Layout {
        self.reader.layout()
    }

    fn rate(&self) -> Rate {
        self.reader.rate()
    }

    fn length(&self) -> Option<u64> {
        self.reader.length()
    }

    fn rounded_from(&self) -> Option<u32> {
        self.reader.rounded_from()
    }

    fn next_frame(&mut self) -> Result<Option<Frame>, SourceError> {
        let read = self.pool.fill(|frame| self.reader.read_frame(frame));
        read.map_err(|error| SourceError::file(&self.path, error))
    }

    fn rewind(&mut self) -> Result<(), SourceError> {
        self.reader.rewind().map_err(|error| SourceError::file(&self.path, error))
    }
}
