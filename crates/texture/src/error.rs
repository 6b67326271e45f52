//! Errors of encoders and decoders.

use std::fmt;
use std::ops::Range;

use crate::format::Format;
use crate::layout::LayoutError;

/// An unsupported pair of formats, an invalid size, or an invalid argument of a call.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum CodecError {
    /// A frame cannot have this size.
    Layout(LayoutError),
    /// One format cannot be converted to the other.
    ///
    /// There is no encoder for ETC1, ETC2 and ASTC: an encoder copies such frames unchanged, and a
    /// decoder decodes them to [`Format::Rgb24`] or [`Format::Rgba8`], or copies them unchanged.
    Unsupported {
        /// The input format.
        input: Format,
        /// The output format.
        output: Format,
    },
    /// The length of the picture or frame does not match its layout.
    Input {
        /// Bytes of the layout.
        want: usize,
        /// Bytes given.
        have: usize,
    },
    /// The length of the output buffer does not match the requested rows.
    Output {
        /// Bytes of the requested rows.
        want: usize,
        /// Bytes given.
        have: usize,
    },
    /// The format has no such plane.
    Plane {
        /// Index of the plane.
        plane: usize,
        /// Number of planes.
        planes: usize,
    },
    /// The rows are beyond the last one, or the range ends before it begins.
    Rows {
        /// Requested rows.
        rows: Range<u32>,
        /// Number of rows.
        have: u32,
    },
}

impl fmt::Display for CodecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Layout(error) => error.fmt(f),
            Self::Unsupported { input, output } => {
                write!(f, "{input} cannot be converted to {output}")?;
                if is_pass_through_only(*output) {
                    write!(f, ": {output} is passed through, never encoded")?;
                }
                Ok(())
            }
            Self::Input { want, have } => {
                write!(f, "a frame of {have} bytes does not match its layout of {want} bytes")
            }
            Self::Output { want, have } => {
                write!(f, "an output buffer of {have} bytes does not match rows of {want} bytes")
            }
            Self::Plane { plane, planes } => {
                write!(f, "there is no plane {plane}: the format has {planes}")
            }
            Self::Rows { rows, have } => {
                write!(f, "invalid rows {} to {}: the plane has {have}", rows.start, rows.end)
            }
        }
    }
}

impl std::error::Error for CodecError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Layout(error) => Some(error),
            _ => None,
        }
    }
}

impl From<LayoutError> for CodecError {
    fn from(error: LayoutError) -> Self {
        Self::Layout(error)
    }
}

fn is_pass_through_only(format: Format) -> bool {
    !matches!(
        format,
        Format::Rgb24
            | Format::Rgba8
            | Format::Rgb565
            | Format::Yuv420
            | Format::Yuv422
            | Format::YCoCg420
            | Format::Bc1
            | Format::Bc3
            | Format::YCoCgBc3
    )
}

/// Fails unless the input has the expected length.
pub(crate) fn check_input(want: usize, have: usize) -> Result<(), CodecError> {
    if want == have { Ok(()) } else { Err(CodecError::Input { want, have }) }
}

/// Fails unless the output buffer has the length of the rows.
pub(crate) fn check_output(want: usize, have: usize) -> Result<(), CodecError> {
    if want == have { Ok(()) } else { Err(CodecError::Output { want, have }) }
}

/// Fails unless the rows exist.
pub(crate) fn check_rows(rows: &Range<u32>, have: u32) -> Result<(), CodecError> {
    if rows.start <= rows.end && rows.end <= have {
        return Ok(());
    }
    Err(CodecError::Rows { rows: rows.clone(), have })
}
