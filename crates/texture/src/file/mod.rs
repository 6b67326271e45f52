//! Files of frames: Y4M, raw, PNG and KTX 2.0, read and written.
//!
//! Readers accept untrusted files: regardless of its header, a reader allocates at most the size of
//! the file (for grey Y4M, three times the size; for a PNG, see [`read_png_from`]). A writer of
//! [`create`] produces either a complete file or none under its name, because it writes to a
//! temporary file in the same folder and renames it when finished.
#![allow(clippy::disallowed_types, reason = "this module reads and writes files")]

mod error;
mod ktx2;
mod part;
mod png;
mod raw;
mod samples;
mod tags;
mod y4m;

use std::io::{self, Read};
use std::path::Path;

use crate::layout::Layout;
use crate::rate::Rate;

pub use error::FileError;
pub use ktx2::{Ktx2Error, Ktx2Reader, Ktx2Writer};
pub use part::PartFile;
pub use png::{PngError, PngWriter, read_png, read_png_from};
pub use raw::{RawReader, RawStream, RawWriter};
pub use y4m::{Y4mError, Y4mReader, Y4mStream, Y4mWriter};

pub(crate) use png::{Picture, digits, read_picture};

/// A reader of consecutive frames.
pub trait FrameReader: Send {
    /// Returns the format and size of every frame.
    fn layout(&self) -> &Layout;

    /// Returns the frames per second.
    fn rate(&self) -> Rate;

    /// Returns the number of frames, if the file's length determines it.
    fn length(&self) -> Option<u64>;

    /// Returns the bits of the file's samples, if they are rounded to 8; by default `None`.
    fn rounded_from(&self) -> Option<u32> {
        None
    }

    /// Replaces the contents of `frame` with the next frame. Returns `false` at the end.
    ///
    /// The vector grows only as bytes are read, and keeps its memory for the next frame. Its
    /// contents after the end or an error are unspecified.
    ///
    /// # Errors
    ///
    /// [`FileError`] if the file is damaged or cannot be read.
    fn read_frame(&mut self, frame: &mut Vec<u8>) -> Result<bool, FileError>;

    /// Goes back to the first frame.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`] if the file cannot be rewound.
    fn rewind(&mut self) -> Result<(), FileError>;
}

/// A writer of consecutive frames.
pub trait FrameWriter: Send {
    /// Writes a frame of exactly [`Layout::bytes`] bytes.
    ///
    /// # Errors
    ///
    /// [`FileError::FrameSize`] if it has another size; [`FileError::Io`] if it cannot be written.
    fn write_frame(&mut self, frame: &[u8]) -> Result<(), FileError>;

    /// Completes the file and renames it to its final name; without this call it is removed.
    ///
    /// # Errors
    ///
    /// [`FileError`] if the file cannot be completed. It is then removed, unless a file of its kind
    /// can be read without its end.
    fn finish(self: Box<Self>) -> Result<(), FileError>;
}

/// Creates a file of frames, of the kind given by the extension of `path`.
///
/// The kinds are `.y4m`, `.ktx2` and `.png` (one file per frame; the frame number replaces `%05d`
/// in the path or, if there is more than one frame, is inserted before the extension). Other
/// extensions stand for frames without a header.
///
/// # Errors
///
/// [`FileError`] if the file cannot be created, or cannot hold the format.
pub fn create(path: &Path, layout: Layout, rate: Rate) -> Result<Box<dyn FrameWriter>, FileError> {
    let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
    Ok(match extension.to_str() {
        Some("y4m") => {
            Box::new(Y4mWriter::new(PartFile::create(path)?.kept_on_error(), layout, rate)?)
        }
        Some("ktx2") => Box::new(Ktx2Writer::new(PartFile::create(path)?, layout, rate)?),
        Some("png") => Box::new(PngWriter::new(path, layout)?),
        _ => Box::new(RawWriter::new(PartFile::create(path)?.kept_on_error(), layout)),
    })
}

/// Checks that a frame to be written has the size of its layout.
fn check_size(layout: &Layout, frame: &[u8]) -> Result<(), FileError> {
    let (have, want) = (frame.len(), layout.bytes());
    if have == want { Ok(()) } else { Err(FileError::FrameSize { have, want }) }
}

/// Returns the assumed length of a pipe before frame `frame`: 0 before the first one, whatever its
/// header claims. A pipe that has carried one frame is likely to carry others.
fn length_of_pipe(frame: u64) -> u64 {
    if frame == 0 { 0 } else { u64::MAX }
}

/// Replaces the contents of `frame` with the next `want` bytes; returns the number of bytes read.
///
/// Memory is reserved in advance only if the length of the file, `file`, is at least `want`. Of a
/// pipe, which has no length, it is [`length_of_pipe`].
fn read_exactly(
    reader: &mut impl Read,
    frame: &mut Vec<u8>,
    want: usize,
    file: u64,
) -> io::Result<usize> {
    frame.clear();
    if want as u64 <= file {
        frame.reserve_exact(want);
    }
    reader.take(want as u64).read_to_end(frame)
}
