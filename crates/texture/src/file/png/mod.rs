//! PNG images: a file for each frame.

mod reader;
mod writer;

use png::{DecodingError, EncodingError};

pub use reader::{read_png, read_png_from};
pub use writer::PngWriter;

pub(crate) use reader::read_deep_png;
pub(crate) use writer::digits;

/// An error of a PNG file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PngError {
    /// The file is not a PNG file, or is damaged.
    #[error(transparent)]
    Decoding(#[from] DecodingError),
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
