//! Errors of frame sources.

use std::path::{Path, PathBuf};

use crate::file::FileError;
use crate::format::Format;
use crate::source::PatternError;

/// An error in opening a source or reading a frame.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The file cannot be used.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error.
        #[source]
        error: FileError,
    },
    /// The pattern cannot be drawn.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// The file has no header, and no format and size were given.
    #[error("{}: the file has no header; give the format and the size", .0.display())]
    Hint(PathBuf),
    /// The file extension is unknown.
    #[error("{}: unknown file extension; supported: .y4m, .ktx2, .png, .rgb, .rgba, .yuv and \
             .raw", .0.display())]
    Kind(PathBuf),
    /// There is no image or frame.
    #[error("{}: no image or frame found", .0.display())]
    Empty(PathBuf),
    /// An image among numbered ones is missing.
    #[error("{}: the image is missing between others", .0.display())]
    Gap(PathBuf),
    /// An image differs from the first one in size or format.
    #[error("{}: {} {}×{}, but the first image is {} {}×{}",
        path.display(), have.0, have.1, have.2, want.0, want.1, want.2)]
    Mismatch {
        /// The image.
        path: PathBuf,
        /// The image's format, width and height in pixels.
        have: (Format, u32, u32),
        /// Format, width and height of the first image.
        want: (Format, u32, u32),
    },
    /// An image stands for other colours than the first one.
    #[error("{}: the colours are not those of the first image", .0.display())]
    Colours(PathBuf),
    /// The source is a pipe or a device, which cannot be rewound.
    #[error("{}: a pipe or a device can be read only once", .0.display())]
    Once(PathBuf),
    /// The encoder of a source that encodes its frames failed.
    #[error("a frame could not be encoded: {0}")]
    Encoder(String),
    /// The memory limit is smaller than one frame.
    #[error("a frame of {frame} bytes does not fit into {bound} bytes")]
    Bound {
        /// Bytes of a frame.
        frame: usize,
        /// Memory limit in bytes.
        bound: usize,
    },
}

impl SourceError {
    /// Creates the error of a file.
    pub(super) fn file(path: &Path, error: impl Into<FileError>) -> Self {
        Self::File { path: path.to_owned(), error: error.into() }
    }
}
