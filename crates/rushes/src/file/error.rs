//! What can go wrong with a media file.

use std::io;
use std::path::PathBuf;

use rushes_proto::payload::FrameError;
use rushes_proto::payload::nal::ReadError;
use thiserror::Error;

/// Why a media file cannot be read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileError {
    /// The bitstream is not what its codec asks for.
    #[error("{}: {source}", path.display())]
    Bitstream {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        source: ReadError,
    },
    /// The system cannot open, read or write the file.
    #[error("{}: cannot {action}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The system takes no more of a file; what it has taken is kept.
    #[error(
        "{}: cannot {action}: {source}; {} keeps {octets} octets, {whole} of them in {frames} \
         frames that are whole",
        path.display(),
        part.display()
    )]
    Kept {
        /// The file.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// The file that keeps what came before.
        part: PathBuf,
        /// Octets in it.
        octets: u64,
        /// Octets at its beginning that are whole frames.
        whole: u64,
        /// The number of these frames.
        frames: u64,
        /// The system's error.
        source: io::Error,
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
    /// A packet of the file is not an Opus packet.
    #[error("{}: packet {number}: {source}", path.display())]
    OpusPacket {
        /// The file.
        path: PathBuf,
        /// Its number, counted from 0.
        number: u64,
        /// What is wrong with it.
        source: FrameError,
    },
}
