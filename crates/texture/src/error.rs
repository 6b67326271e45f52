//! Why an encoder or a decoder cannot be made, or refuses what it is given.

use std::fmt;
use std::ops::Range;

use crate::format::Format;
use crate::layout::LayoutError;

/// What is wrong with a pair of formats, a size, or the memory of a call.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum CodecError {
    /// A frame cannot have this size.
    Layout(LayoutError),
    /// There is no way from one format to the other.
    ///
    /// ETC1, ETC2 and ASTC are never made here: an encoder takes them as they are, already encoded,
    /// and a decoder gives them out as [`Format::Rgb24`], [`Format::Rgba8`] or unchanged.
    Unsupported {
        /// What would be read.
        input: Format,
        /// What would be written.
        output: Format,
    },
    /// The picture or frame has not the octets of its layout.
    Input {
        /// Octets of the layout.
        want: usize,
        /// Octets given.
        have: usize,
    },
    /// The memory to write has not the octets of what was asked for.
    Output {
        /// Octets of the rows asked for.
        want: usize,
        /// Octets given.
        have: usize,
    },
    /// The format has no such plane.
    Plane {
        /// The plane's place.
        plane: usize,
        /// Planes there are.
        planes: usize,
    },
    /// Rows beyond the last, or a range that ends before it begins.
    Rows {
        /// Rows asked for.
        rows: Range<u32>,
        /// Rows there are.
        have: u32,
    },
}

impl fmt::Display for CodecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Layout(error) => error.fmt(f),
            Self::Unsupported { input, output } => {
                write!(f, "{input} cannot be turned into {output}")?;
                if is_pass_through_only(*output) {
                    write!(f, ": {output} is passed through, never encoded")?;
                }
                Ok(())
            }
            Self::Input { want, have } => {
                write!(f, "a frame of {have} octets where its layout has {want}")
            }
            Self::Output { want, have } => {
                write!(f, "memory of {have} octets for rows of {want}")
            }
            Self::Plane { plane, planes } => {
                write!(f, "plane {plane} of a format with {planes}")
            }
            Self::Rows { rows, have } => {
                write!(f, "rows {} to {} of a plane with {have}", rows.start, rows.end)
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

/// Fails unless the octets given are those wanted.
pub(crate) fn check_input(want: usize, have: usize) -> Result<(), CodecError> {
    if want == have { Ok(()) } else { Err(CodecError::Input { want, have }) }
}

/// Fails unless the memory given is what the rows need.
pub(crate) fn check_output(want: usize, have: usize) -> Result<(), CodecError> {
    if want == have { Ok(()) } else { Err(CodecError::Output { want, have }) }
}

/// Fails unless the rows are some of those there are.
pub(crate) fn check_rows(rows: &Range<u32>, have: u32) -> Result<(), CodecError> {
    if rows.start <= rows.end && rows.end <= have {
        return Ok(());
    }
    Err(CodecError::Rows { rows: rows.clone(), have })
}
