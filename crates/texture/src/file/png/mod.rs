//! PNG images: a file for each frame.

mod colour;
mod reader;
mod writer;

use std::io::ErrorKind;

use png::{DecodingError, EncodingError};

pub use reader::{read_png, read_png_from};
pub use writer::PngWriter;

pub(crate) use reader::{Picture, read_picture};
pub(crate) use writer::digits;

/// An error of a PNG file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PngError {
    /// The file is not a PNG file, or is damaged.
    #[error(transparent)]
    Decoding(DecodingError),
    /// A chunk that says what values stand for is invalid.
    #[error(
        "a chunk before the pixels is invalid: one that describes the colours (cICP, mDCV or cLLI) or \
         the background; the matrix in a cICP is 0, and its flag for full range 0 or 1"
    )]
    Colour,
    /// The file cannot be written.
    #[error(transparent)]
    Encoding(#[from] EncodingError),
    /// The file is too short for the size that its header claims.
    #[error("a file of {bytes} bytes cannot contain {width}×{height} pixels")]
    Claim {
        /// Width in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
        /// Bytes of the file.
        bytes: u64,
    },
}

impl From<DecodingError> for PngError {
    fn from(error: DecodingError) -> Self {
        match error {
            // The decoder's own error for a chunk before the pixels that is too short; those of files have a source.
            DecodingError::IoError(error)
                if error.kind() == ErrorKind::InvalidData && error.get_ref().is_none() =>
            {
                Self::Colour
            }
            error => Self::Decoding(error),
        }
    }
}
