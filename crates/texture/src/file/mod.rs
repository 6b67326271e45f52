//! Files of frames: Y4M, raw, PNG and KTX 2.0, read and written.
//!
//! A reader takes hostile files: whatever a header claims, no more memory is asked for than the
//! file has octets (a PNG: than it can unfold to). A writer of [`create`] leaves a whole file or
//! none: it writes beside the file, and renames when finished.
#![allow(clippy::disallowed_types, reason = "files are what this room is for")]

mod error;
mod ktx2;
mod part;
mod png;
mod raw;
mod y4m;

use std::io::{self, Read};
use std::path::Path;

use crate::layout::Layout;
use crate::rate::Rate;

pub use error::FileError;
pub use ktx2::{Ktx2Error, Ktx2Reader, Ktx2Writer};
pub use part::PartFile;
pub use png::{PngError, PngWriter, read_png};
pub use raw::{RawReader, RawWriter};
pub use y4m::{Y4mError, Y4mReader, Y4mStream, Y4mWriter};

pub(crate) use png::digits;

/// What frames are read from, one after the other.
pub trait FrameReader: Send {
    /// The format and size of every frame.
    fn layout(&self) -> &Layout;

    /// Frames per second.
    fn rate(&self) -> Rate;

    /// Frames in all, as far as the file's length tells.
    fn length(&self) -> Option<u64>;

    /// Reads the next frame in place of what `frame` holds; `false` at the end.
    ///
    /// The vector grows only as octets come, and keeps its memory for the next frame. What it
    /// holds after the end or an error is unspecified.
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

/// What frames are written to, one after the other.
pub trait FrameWriter: Send {
    /// Writes a frame of exactly [`Layout::bytes`] octets.
    ///
    /// # Errors
    ///
    /// [`FileError::FrameSize`] if it has another size; [`FileError::Io`] if it cannot be written.
    fn write_frame(&mut self, frame: &[u8]) -> Result<(), FileError>;

    /// Completes the file and gives it its name; without this it is removed.
    ///
    /// # Errors
    ///
    /// [`FileError`] if the file cannot be completed; then it is removed.
    fn finish(self: Box<Self>) -> Result<(), FileError>;
}

/// Creates the file of frames that `path` names by its extension.
///
/// `.y4m`, `.ktx2`, `.png` (a file for each frame; the path may hold `%05d`, or the number goes
/// before the extension if there is more than one) or else octets without a header.
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

/// That a frame to write has its layout's size.
fn check_size(layout: &Layout, frame: &[u8]) -> Result<(), FileError> {
    let (have, want) = (frame.len(), layout.bytes());
    if have == want { Ok(()) } else { Err(FileError::FrameSize { have, want }) }
}

/// Reads `want` octets in place of what `frame` holds, and says how many there were.
///
/// Memory is asked for beforehand only if the `file` has as many octets.
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
