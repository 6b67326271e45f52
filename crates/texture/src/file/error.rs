//! Errors of files of frames.

use std::io;

use crate::file::{Ktx2Error, PngError, Y4mError};
use crate::format::Format;
use crate::layout::LayoutError;
use crate::rate::RateError;

/// An error in reading frames from a file or writing them to it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The operating system's error.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The header has an invalid frame size.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The header has an invalid rate.
    #[error(transparent)]
    Rate(#[from] RateError),
    /// An invalid or unsupported Y4M file.
    #[error(transparent)]
    Y4m(#[from] Y4mError),
    /// An invalid or unsupported KTX 2.0 file.
    #[error(transparent)]
    Ktx2(#[from] Ktx2Error),
    /// An error of a PNG file.
    #[error(transparent)]
    Png(#[from] PngError),
    /// The file ends within a frame.
    #[error("the file ends within frame {frame}, after {have} of {want} bytes")]
    Truncated {
        /// The frame, counted from 0.
        frame: u64,
        /// Bytes available.
        have: usize,
        /// Bytes of a frame.
        want: usize,
    },
    /// A Y4M file was given where frames without a header are expected.
    #[error("this is a Y4M file, whose header gives the size and the format")]
    Raw,
    /// The length of a file without a header is not a multiple of the frame size.
    #[error("{bytes} bytes are {whole} frames of {want} bytes and a remainder of {remainder}")]
    Remainder {
        /// Bytes of the file.
        bytes: u64,
        /// Whole frames in the file.
        whole: u64,
        /// Bytes of a frame.
        want: usize,
        /// Remaining bytes.
        remainder: u64,
    },
    /// A frame to be written does not have the size of the layout.
    #[error("a frame of {have} bytes cannot be written: each frame has {want}")]
    FrameSize {
        /// Bytes given.
        have: usize,
        /// Bytes of a frame.
        want: usize,
    },
    /// The kind of file cannot hold the format.
    #[error("{kind} files cannot contain {format} frames")]
    Format {
        /// The kind of file.
        kind: &'static str,
        /// The format of the frames.
        format: Format,
    },
    /// No frame was written, and the kind of file needs at least one.
    #[error("no frame was written, but a {0} file needs at least one")]
    NoFrames(&'static str),
}
