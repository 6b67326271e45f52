//! Reading frames from a file.

use std::fs::File;
use std::io::{BufReader, Cursor};
use std::path::Path;

use rushes_proto::payload::Framing;

use super::{FileError, FrameReader, MediaFrame};
use crate::format::Codec;

/// Options for reading a file.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ReadOptions {
    /// The delimiting of NAL units, in files of H.264, H.265 and H.266.
    pub framing: Framing,
    /// Octets in each frame of a generic file; the last may be shorter.
    pub frame_len: usize,
}

impl Default for ReadOptions {
    /// Start codes; generic frames of 64 KiB.
    fn default() -> Self {
        Self { framing: Framing::AnnexB, frame_len: 64 << 10 }
    }
}

/// The frames of a media file, one by one.
pub struct MediaReader {
    codec: Codec,
    reader: Box<dyn FrameReader>,
}

impl MediaReader {
    /// Opens the file at `path` as a file of `codec`.
    ///
    /// # Errors
    /// [`FileError::Io`], or the error in the headers of an Opus file.
    pub fn open(path: &Path, codec: Codec, options: ReadOptions) -> Result<Self, FileError> {
        let file = File::open(path).map_err(|source| FileError::Io {
            path: path.to_owned(),
            action: "open",
            source,
        })?;
        let reader = (codec.files.reader)(Box::new(BufReader::new(file)), path, options)?;
        Ok(Self { codec, reader })
    }

    /// Reads octets in memory as a file of `codec`; errors contain `name` as its path.
    ///
    /// # Errors
    /// The error in the headers of an Opus file.
    pub fn from_octets(
        octets: Vec<u8>,
        name: &str,
        codec: Codec,
        options: ReadOptions,
    ) -> Result<Self, FileError> {
        let input = Box::new(Cursor::new(octets));
        let reader = (codec.files.reader)(input, Path::new(name), options)?;
        Ok(Self { codec, reader })
    }

    /// The next frame; `None` at the end of the file.
    ///
    /// # Errors
    /// [`FileError`], with the file and the position.
    pub fn next_frame(&mut self) -> Result<Option<MediaFrame<'_>>, FileError> {
        self.reader.next_frame()
    }
}

impl std::fmt::Debug for MediaReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MediaReader").field("codec", &self.codec).finish_non_exhaustive()
    }
}
