//! The positions of planes and block rows in a frame.

use std::fmt;
use std::ops::Range;

use crate::colour::Colour;
use crate::format::{Format, Plane};

/// Maximum width and height of a frame in pixels.
pub const SIDE_MAX: u32 = 32_768;

/// The layout of one frame: consecutive planes, each a dense array of block rows, and the colours that
/// its values stand for.
///
/// # Shapes
///
/// A plane of a frame of `width × height` pixels has `ceil(width / horizontal)` by `ceil(height /
/// vertical)` pixels, which its blocks cover. Pixels of a block outside the plane repeat the
/// nearest pixel inside; decoders crop them. There is no padding between blocks, rows or planes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Layout {
    format: Format,
    width: u32,
    height: u32,
    planes: [PlaneLayout; 3],
    colour: Colour,
}

/// The layout of one plane.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct PlaneLayout {
    /// Width of the plane in pixels, without padding.
    pub width: u32,
    /// Height of the plane in pixels, without padding.
    pub height: u32,
    /// Blocks in a row.
    pub blocks: u32,
    /// Rows of blocks.
    pub rows: u32,
    /// Bytes of a block row.
    pub row_bytes: usize,
    /// Offset of the plane in the frame, in bytes.
    pub offset: usize,
}

/// An invalid frame size.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum LayoutError {
    /// The width or height is 0.
    Empty,
    /// The width or height is over [`SIDE_MAX`].
    TooLarge {
        /// Width in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
    },
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("a frame must be at least one pixel wide and high"),
            Self::TooLarge { width, height } => {
                write!(f, "a frame of {width}×{height} pixels is wider or higher than {SIDE_MAX}")
            }
        }
    }
}

impl std::error::Error for LayoutError {}

impl PlaneLayout {
    fn new(plane: &Plane, width: u32, height: u32, offset: usize) -> Self {
        let (width, height) = (width.div_ceil(plane.horizontal), height.div_ceil(plane.vertical));
        let blocks = width.div_ceil(plane.block.width);
        let rows = height.div_ceil(plane.block.height);
        Self { width, height, blocks, rows, row_bytes: blocks as usize * plane.block.bytes, offset }
    }

    /// Returns the size of the plane in bytes.
    pub fn bytes(&self) -> usize {
        self.row_bytes * self.rows as usize
    }

    /// Returns the byte range of some block rows in the frame.
    pub fn row_range(&self, rows: &Range<u32>) -> Range<usize> {
        let at = |row: u32| self.offset + self.row_bytes * row as usize;
        at(rows.start)..at(rows.end)
    }
}

impl Layout {
    /// Creates the layout of a frame of `width × height` pixels, with the default [`Colour`]: BT.709 of
    /// limited range, with chroma in the centre of its pixels.
    ///
    /// # Errors
    ///
    /// [`LayoutError`] if a side is 0 or over [`SIDE_MAX`].
    pub fn new(format: Format, width: u32, height: u32) -> Result<Self, LayoutError> {
        if width == 0 || height == 0 {
            return Err(LayoutError::Empty);
        }
        if width > SIDE_MAX || height > SIDE_MAX {
            return Err(LayoutError::TooLarge { width, height });
        }
        Ok(Self::of_size(format, width, height))
    }

    fn of_size(format: Format, width: u32, height: u32) -> Self {
        let mut planes = [PlaneLayout::default(); 3];
        let mut offset = 0;
        for (to, plane) in planes.iter_mut().zip(format.planes()) {
            *to = PlaneLayout::new(plane, width, height, offset);
            offset += to.bytes();
        }
        Self { format, width, height, planes, colour: Colour::default() }
    }

    /// Sets the colours that values stand for; properties that the format does not have are ignored.
    #[must_use]
    pub fn with_colour(self, colour: Colour) -> Self {
        Self { colour: colour.of_format(self.format), ..self }
    }

    /// Returns the layout of frames that [`Encoder`](crate::Encoder) or [`Decoder`](crate::Decoder)
    /// makes of frames of this layout.
    ///
    /// Between YUV formats colours stay as they are; YUV that is made of other formats has the default
    /// matrix, range and siting.
    #[must_use]
    pub fn in_format(&self, format: Format) -> Self {
        Self::of_size(format, self.width, self.height).with_colour(self.colour)
    }

    /// Returns what values stand for.
    pub fn colour(&self) -> Colour {
        self.colour
    }

    /// Returns the format of the frame.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Returns the width in pixels, without padding.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Returns the height in pixels, without padding.
    pub fn height(&self) -> u32 {
        self.height
    }

    /// Returns the planes, in memory order.
    pub fn planes(&self) -> &[PlaneLayout] {
        &self.planes[..self.format.planes().len()]
    }

    /// Returns the size of the frame in bytes.
    pub fn bytes(&self) -> usize {
        self.planes().iter().map(PlaneLayout::bytes).sum()
    }
}
