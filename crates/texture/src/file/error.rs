//! What can be wrong with a file of frames.

use std::io;

use crate::file::Ktx2Error;
use crate::file::PngError;
use crate::file::Y4mError;
use crate::format::Format;
use crate::layout::LayoutError;
use crate::rate::RateError;

/// Why frames cannot be read from a file or written to it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The system refuses.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The header's size is no frame's.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The header's rate is none.
    #[error(transparent)]
    Rate(#[from] RateError),
    /// A Y4M header that cannot be used.
    #[error(transparent)]
    Y4m(#[from] Y4mError),
    /// A KTX 2.0 header that cannot be used.
    #[error(transparent)]
    Ktx2(#[from] Ktx2Error),
    /// A PNG file that cannot be used.
    #[error(transparent)]
    Png(#[from] PngError),
    /// The file ends within a frame.
    #[error("the file ends within frame {frame}: {have} of its {want} octets are there")]
    Truncated {
        /// The frame, counted from 0.
        frame: u64,
        /// Octets there are.
        have: usize,
        /// Octets of a frame.
        want: usize,
    },
    /// Octets without a header that are no whole number of frames.
    #[error("{bytes} octets are {whole} frames of {want} octets and a remainder of {remainder}")]
    Remainder {
        /// Octets of the file.
        bytes: u64,
        /// Whole frames in it.
        whole: u64,
        /// Octets of a frame.
        want: usize,
        /// Octets over.
        remainder: u64,
    },
    /// A frame to write of another size than the layout's.
    #[error("a frame of {have} octets cannot be written where each has {want}")]
    FrameSize {
        /// Octets given.
        have: usize,
        /// Octets of a frame.
        want: usize,
    },
    /// The kind of file has no place for the format.
    #[error("{kind} files hold no {format} frames")]
    Format {
        /// The kind of file.
        kind: &'static str,
        /// The format of the frames.
        format: Format,
    },
    /// The kind of file cannot be without frames.
    #[error("no frame was written, and a {0} file needs one")]
    NoFrames(&'static str),
}
