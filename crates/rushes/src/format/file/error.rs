//! Errors of media files.

use std::io;
use std::path::PathBuf;

use rushes_proto::payload::FrameError;
use rushes_proto::payload::nal::ReadError;
use thiserror::Error;

use super::Sampling;

/// The error of reading or writing a media file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileError {
    /// The bitstream is invalid for its codec.
    #[error("{}: {source}", path.display())]
    Bitstream {
        /// The file.
        path: PathBuf,
        /// The error and its position.
        source: ReadError,
    },
    /// A container is damaged, or has a form that cannot be read.
    #[error("{}: cannot read the container: {source}", path.display())]
    Container {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A file that must be new exists already.
    #[error("{}: exists already", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The operating system cannot open, read or write the file.
    #[error("{}: cannot {action}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The attempted action.
        action: &'static str,
        /// The operating system's error.
        source: io::Error,
    },
    /// The operating system accepts no more data; the data accepted so far is kept.
    #[error(
        "{}: cannot {action}: {source}; {} keeps {octets} octets, {whole} of them in {frames} \
         complete frames",
        path.display(),
        part.display()
    )]
    Kept {
        /// The file.
        path: PathBuf,
        /// The attempted action.
        action: &'static str,
        /// The file that keeps the data so far.
        part: PathBuf,
        /// The size of that file in octets.
        octets: u64,
        /// Octets of complete frames at its beginning.
        whole: u64,
        /// The number of these frames.
        frames: u64,
        /// The operating system's error.
        source: io::Error,
    },
    /// A frame of the file is malformed, cut off or too large.
    #[error("{}: the frame at byte {position} {reason}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The offset of the frame, in bytes.
        position: u64,
        /// The error, as a predicate: `is cut off by the end of the file`.
        reason: &'static str,
    },
    /// A container has no track of the wanted codec.
    #[error("{}: contains no {codec}, but {codings}", path.display())]
    NoTrack {
        /// The file.
        path: PathBuf,
        /// The wanted codec.
        codec: &'static str,
        /// The codings of its tracks, as the container names them.
        codings: String,
    },
    /// The Ogg pages are damaged.
    #[error("{}: not an Ogg file: {source}", path.display())]
    Ogg {
        /// The file.
        path: PathBuf,
        /// The Ogg reader's error.
        source: ogg::OggReadError,
    },
    /// The Ogg stream is not Opus, or breaks a rule of RFC 7845.
    #[error("{}: not an Ogg Opus file: {reason}", path.display())]
    OggOpus {
        /// The file.
        path: PathBuf,
        /// The rule that it breaks.
        reason: &'static str,
    },
    /// The samples of the file have another rate or number of channels than they must.
    #[error("{}: has {found}, and the stream {expected}", path.display())]
    Sampling {
        /// The file.
        path: PathBuf,
        /// How they are sampled.
        found: Sampling,
        /// How they must be.
        expected: Sampling,
    },
    /// A packet of the file is not an Opus packet.
    #[error("{}: packet {number}: {source}", path.display())]
    OpusPacket {
        /// The file.
        path: PathBuf,
        /// Its number, counted from 0.
        number: u64,
        /// The error in the packet.
        source: FrameError,
    },
}
