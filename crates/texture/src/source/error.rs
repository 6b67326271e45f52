//! Why a source gives no frames.

use std::path::{Path, PathBuf};

use crate::file::FileError;
use crate::format::Format;
use crate::source::PatternError;

/// Why a source cannot be opened, or a frame not be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// A file that cannot be used.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        error: FileError,
    },
    /// A pattern that cannot be drawn.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// A file without a header, and nobody said what is in it.
    #[error("{}: octets without a header; say the format and the size", .0.display())]
    Hint(PathBuf),
    /// An extension that no kind of file has.
    #[error("{}: no kind of file by its extension; there are .y4m, .ktx2, .png, .rgb, .rgba, .yuv \
             and .raw", .0.display())]
    Kind(PathBuf),
    /// No image where there should be some.
    #[error("{}: there is no image", .0.display())]
    Empty(PathBuf),
    /// An image missing among numbered ones.
    #[error("{}: there are images before and after it, but not this", .0.display())]
    Gap(PathBuf),
    /// An image of another size or format than the first.
    #[error("{}: {} {}×{}, but the first image is {} {}×{}",
        path.display(), have.0, have.1, have.2, want.0, want.1, want.2)]
    Mismatch {
        /// The image.
        path: PathBuf,
        /// Its format, width and height in pixels.
        have: (Format, u32, u32),
        /// Those of the first.
        want: (Format, u32, u32),
    },
    /// A source that encodes what it gives, and whose encoder gave up.
    #[error("a frame could not be encoded: {0}")]
    Encoder(String),
    /// Not one frame fits into the memory that it may have.
    #[error("a frame of {frame} octets does not fit into {bound}")]
    Bound {
        /// Octets of a frame.
        frame: usize,
        /// Octets of memory.
        bound: usize,
    },
}

impl SourceError {
    /// What is wrong with a file.
    pub(super) fn file(path: &Path, error: impl Into<FileError>) -> Self {
        Self::File { path: path.to_owned(), error: error.into() }
    }
}
