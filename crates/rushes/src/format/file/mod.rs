//! Media files as sequences of frames, to be sent or as received by a stream.
//!
//! | codec | file |
//! |---|---|
//! | H.264, H.265, H.266 | Annex B bitstream, or 4-octet lengths |
//! | Opus | Ogg Opus (RFC 7845) |
//! | generic | octets, cut into frames of one size |
//! | your own | as its [`FileKind`] says |
//!
//! Reading needs memory for one frame and a little more. Writing goes to `NAME.part`, which is
//! renamed when the file is finished and removed if it is not, unless the disk is full: then it is
//! kept.

mod error;
pub(super) mod ogg_opus;
mod reader;
mod sink;
mod writer;

pub use self::error::FileError;
pub use self::ogg_opus::{OpusHead, OpusReader, OpusWriter};
pub use self::reader::{MediaReader, ReadOptions};
pub use self::writer::MediaWriter;

use std::io::{self, Read, Seek, Write};
use std::path::Path;

use rushes_proto::RtpTimestamp;

use super::Codec;

/// Begins to read a file; errors name the path.
pub type OpenReader =
    fn(Box<dyn Input>, &Path, ReadOptions) -> Result<Box<dyn FrameReader>, FileError>;

/// The files of a format.
pub struct FileKind {
    /// Extensions of their names, in lower case, without the dot.
    pub extensions: &'static [&'static str],
    /// Begins to read a file; errors name the path.
    pub reader: OpenReader,
    /// Begins to write a file.
    pub writer: fn() -> Box<dyn FrameWriter>,
}

/// The bytes of a file.
pub trait Input: Read + Seek + Send {}

impl<T: Read + Seek + Send> Input for T {}

/// One frame of a file.
#[derive(Clone, Copy, Debug)]
pub struct MediaFrame<'r> {
    /// Its octets: an access unit, an Opus packet, or a piece of a generic file.
    pub data: &'r [u8],
    /// Its duration in ticks of the codec's clock, if the file contains it (Opus).
    pub duration: Option<u32>,
}

/// Takes frames out of a file.
pub trait FrameReader: Send {
    /// The next frame; `None` at the end of the file.
    ///
    /// # Errors
    /// [`FileError`], with the file and the position.
    fn next_frame(&mut self) -> Result<Option<MediaFrame<'_>>, FileError>;
}

/// Puts frames into a file.
pub trait FrameWriter: Send {
    /// Writes a frame, sampled at `timestamp`, to `to`; it may keep a part of it for later.
    ///
    /// # Errors
    /// That of `to`, or [`InvalidData`](io::ErrorKind::InvalidData) if the frame is not of the
    /// file's format.
    fn write(
        &mut self,
        frame: &[u8],
        timestamp: RtpTimestamp,
        to: &mut dyn Write,
    ) -> io::Result<()>;

    /// Writes what was kept, and the end of the file.
    ///
    /// # Errors
    /// That of `to`.
    fn finish(&mut self, _to: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    /// Frames that were written completely.
    fn frames_written(&self) -> u64;

    /// Marks the next frame as that of another sender, with unrelated timestamps.
    fn change_source(&mut self) {}
}

/// Reads up to `len` bytes of a file into `piece`, emptied first; `false` at its end.
///
/// # Errors
/// [`FileError::Io`], which names `path`.
pub fn read_piece(
    input: &mut dyn Input,
    len: usize,
    path: &Path,
    piece: &mut Vec<u8>,
) -> Result<bool, FileError> {
    piece.clear();
    let read = input.take(len as u64).read_to_end(piece);
    let failed = |source| FileError::Io { path: path.to_owned(), action: "read", source };
    Ok(read.map_err(failed)? > 0)
}

/// The codec of a file according to its name; `None` if the extension is missing or unknown.
///
/// ```
/// use rushes::{Codec, file::codec_of};
/// assert_eq!(codec_of("clip.265".as_ref()), Some(Codec::H265));
/// assert_eq!(codec_of("clip".as_ref()), None);
/// ```
pub fn codec_of(path: &Path) -> Option<Codec> {
    let extension = path.extension()?.to_str()?;
    let is_its = |own: &&str| own.eq_ignore_ascii_case(extension);
    Codec::all().find(|codec| codec.files.extensions.iter().any(is_its))
}
