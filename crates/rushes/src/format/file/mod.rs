//! Media files as sequences of frames, to be sent or as received by a stream.
//!
//! | codec | file |
//! |---|---|
//! | H.264, H.265, H.266 | Annex B bitstream, or 4-octet lengths |
//! | Opus | Ogg Opus (RFC 7845) |
//! | KLV | items one after the other (SMPTE ST 336) |
//! | generic | octets, cut into frames of one size |
//! | an application's own | defined by its [`FileKind`] |
//!
//! Reading needs memory for little more than one frame. Data is written to `NAME.part`, which is
//! renamed when the file is finished and removed otherwise; if the disk is full, it is kept.

mod error;
pub(super) mod klv;
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

/// Creates the reader of a file; errors contain the path.
pub type OpenReader =
    fn(Box<dyn Input>, &Path, ReadOptions) -> Result<Box<dyn FrameReader>, FileError>;

/// The files of a format.
pub struct FileKind {
    /// Extensions of their names, in lower case, without the dot.
    pub extensions: &'static [&'static str],
    /// Creates the reader of a file; errors contain the path.
    pub reader: OpenReader,
    /// Creates the writer of a file.
    pub writer: fn() -> Box<dyn FrameWriter>,
}

/// The bytes of a file.
pub trait Input: Read + Seek + Send {}

impl<T: Read + Seek + Send> Input for T {}

/// One frame of a file.
#[derive(Clone, Copy, Debug)]
pub struct MediaFrame<'r> {
    /// Its octets: an access unit, an Opus packet, a KLV item, or a piece of a generic file.
    pub data: &'r [u8],
    /// Its duration in ticks of the codec's clock, if the file contains it (Opus).
    pub duration: Option<u32>,
}

/// Reads frames from a file.
pub trait FrameReader: Send {
    /// The next frame; `None` at the end of the file.
    ///
    /// # Errors
    /// [`FileError`], with the file and the position.
    fn next_frame(&mut self) -> Result<Option<MediaFrame<'_>>, FileError>;
}

/// Writes frames to a file.
pub trait FrameWriter: Send {
    /// Writes a frame, sampled at `timestamp`, to `to`; a part of it may be buffered.
    ///
    /// # Errors
    /// The error of `to`, or [`InvalidData`](io::ErrorKind::InvalidData) if the frame is not of the
    /// file's format.
    fn write(
        &mut self,
        frame: &[u8],
        timestamp: RtpTimestamp,
        to: &mut dyn Write,
    ) -> io::Result<()>;

    /// Writes buffered data and the end of the file.
    ///
    /// # Errors
    /// The error of `to`.
    fn finish(&mut self, _to: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    /// Frames that were written completely.
    fn frames_written(&self) -> u64;

    /// Marks the next frame as that of another sender, with unrelated timestamps.
    fn change_source(&mut self) {}
}

/// Clears `piece` and reads up to `len` bytes of a file into it; `false` at the end of the file.
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
    let is_extension = |own: &&str| own.eq_ignore_ascii_case(extension);
    Codec::all().find(|codec| codec.files.extensions.iter().any(is_extension))
}
