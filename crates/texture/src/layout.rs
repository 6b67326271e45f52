//! Where each plane, block row and octet of a frame lies.

use std::fmt;
use std::ops::Range;

use crate::format::{Format, Plane};

/// Pixels that a frame may have across, and down.
pub const SIDE_MAX: u32 = 32_768;

/// The shape of one frame: planes one behind the other, each a dense array of block rows.
///
/// # Shapes
///
/// A plane of a frame of `width × height` pixels has `ceil(width / horizontal)` by
/// `ceil(height / vertical)` pixels of its own, and as many blocks as cover them. Pixels of a block
/// outside the plane repeat the nearest pixel inside; whoever decodes crops them. There is no
/// padding between blocks, rows or planes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Layout {
    format: Format,
    width: u32,
    height: u32,
    planes: [PlaneLayout; 3],
}

/// Where one plane lies.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct PlaneLayout {
    /// Pixels of the plane across, without padding.
    pub width: u32,
    /// Pixels of the plane down, without padding.
    pub height: u32,
    /// Blocks in a row.
    pub blocks: u32,
    /// Rows of blocks.
    pub rows: u32,
    /// Octets of a block row.
    pub row_bytes: usize,
    /// Where the plane begins in the frame, in octets.
    pub offset: usize,
}

/// Why a frame cannot have a size.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum LayoutError {
    /// No pixels across or down.
    Empty,
    /// More than [`SIDE_MAX`] pixels across or down.
    TooLarge {
        /// Pixels across.
        width: u32,
        /// Pixels down.
        height: u32,
    },
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("a frame needs at least one pixel across and down"),
            Self::TooLarge { width, height } => {
                write!(f, "a frame of {width}×{height} pixels has a side over {SIDE_MAX}")
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

    /// Octets of the plane.
    pub fn bytes(&self) -> usize {
        self.row_bytes * self.rows as usize
    }

    /// Where some block rows lie in the frame, in octets.
    pub fn row_range(&self, rows: &Range<u32>) -> Range<usize> {
        let at = |row: u32| self.offset + self.row_bytes * row as usize;
        at(rows.start)..at(rows.end)
    }
}

impl Layout {
    /// The layout of a frame of `width × height` pixels.
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
        let mut planes = [PlaneLayout::default(); 3];
        let mut offset = 0;
        for (to, plane) in planes.iter_mut().zip(format.planes()) {
            *to = PlaneLayout::new(plane, width, height, offset);
            offset += to.bytes();
        }
        Ok(Self { format, width, height, planes })
    }

    /// What the frame is made of.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Pixels across, without padding.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Pixels down, without padding.
    pub fn height(&self) -> u32 {
        self.height
    }

    /// The planes, in the order in which they lie.
    pub fn planes(&self) -> &[PlaneLayout] {
        &self.planes[..self.format.planes().len()]
    }

    /// Octets of the frame.
    pub fn bytes(&self) -> usize {
        self.planes().iter().map(PlaneLayout::bytes).sum()
    }
}
