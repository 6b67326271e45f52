//! A frame cut into tiles: whole block rows of one plane, contiguous in memory.

use std::fmt;
use std::ops::Range;

use crate::layout::{Layout, PlaneLayout};

/// Maximum number of tiles of a frame: each needs a unit with a socket and a thread.
pub const UNITS_MAX: usize = 64;

/// The part of each frame that one unit carries.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Tile {
    /// Index of the plane in [`Layout::planes`].
    pub plane: usize,
    /// Block rows of the plane.
    pub rows: Range<u32>,
    /// Byte range of the rows in the frame.
    pub bytes: Range<usize>,
}

/// The division of a frame into tiles, in memory order. The tiles cover the frame without gaps.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Tiling {
    tiles: Vec<Tile>,
    per_plane: Vec<u8>,
}

/// An invalid division of a frame.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum TilingError {
    /// The count of unit numbers differs from the count of planes.
    Planes {
        /// Planes that the format has.
        want: usize,
        /// Numbers given.
        have: usize,
    },
    /// A plane has no units, or more units than block rows.
    Units {
        /// Index of the plane.
        plane: usize,
        /// Requested units.
        units: u8,
        /// Number of block rows.
        rows: u32,
    },
    /// There are more than [`UNITS_MAX`] units in total.
    TooMany(usize),
}

impl fmt::Display for TilingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Planes { want, have } => {
                write!(f, "units were given for {have} planes, but the format has {want}")
            }
            Self::Units { plane, units, rows } => {
                write!(f, "plane {plane} of {rows} block rows cannot be cut into {units} units")
            }
            Self::TooMany(units) => {
                write!(f, "{units} units are too many: the maximum is {UNITS_MAX}")
            }
        }
    }
}

impl std::error::Error for TilingError {}

impl Tiling {
    /// Cuts a frame into `units` tiles of sizes as equal as whole block rows allow.
    ///
    /// Each plane gets at least one tile and at most one per block row, so there may be more or
    /// fewer tiles than requested, but at most [`UNITS_MAX`].
    pub fn balanced(layout: &Layout, units: usize) -> Self {
        let planes = layout.planes();
        let mut counts = vec![1_u8; planes.len()];
        let wanted = units.clamp(planes.len(), UNITS_MAX);
        for _ in planes.len()..wanted {
            let more = (0..planes.len()).filter(|&at| u32::from(counts[at]) < planes[at].rows);
            // If two planes are equally heavy, the first is chosen, so that luma comes before
            // chroma.
            let heaviest = more.reduce(|a, b| {
                let (of_a, of_b) = (planes[a].bytes(), planes[b].bytes());
                let b_is_heavier = of_b * usize::from(counts[a]) > of_a * usize::from(counts[b]);
                if b_is_heavier { b } else { a }
            });
            let Some(heaviest) = heaviest else { break };
            counts[heaviest] += 1;
        }
        Self::cut(planes, counts)
    }

    /// Cuts each plane into the given number of tiles.
    ///
    /// # Errors
    ///
    /// [`TilingError`] if there is not one number for each plane, if one is 0 or over the plane's
    /// block rows, or if their sum is over [`UNITS_MAX`].
    pub fn with_units(layout: &Layout, per_plane: &[u8]) -> Result<Self, TilingError> {
        let planes = layout.planes();
        if per_plane.len() != planes.len() {
            return Err(TilingError::Planes { want: planes.len(), have: per_plane.len() });
        }
        for (plane, (&units, layout)) in per_plane.iter().zip(planes).enumerate() {
            if units == 0 || u32::from(units) > layout.rows {
                return Err(TilingError::Units { plane, units, rows: layout.rows });
            }
        }
        let total = per_plane.iter().map(|&units| usize::from(units)).sum();
        if total > UNITS_MAX {
            return Err(TilingError::TooMany(total));
        }
        Ok(Self::cut(planes, per_plane.to_vec()))
    }

    fn cut(planes: &[PlaneLayout], per_plane: Vec<u8>) -> Self {
        let mut tiles = Vec::new();
        for (plane, (layout, &units)) in planes.iter().zip(&per_plane).enumerate() {
            let units = u32::from(units);
            let (each, longer) = (layout.rows / units, layout.rows % units);
            let mut first = 0;
            for unit in 0..units {
                let rows = first..first + each + u32::from(unit < longer);
                first = rows.end;
                tiles.push(Tile { plane, bytes: layout.row_range(&rows), rows });
            }
        }
        Self { tiles, per_plane }
    }

    /// Returns the tiles in memory order, unit 0 first.
    pub fn tiles(&self) -> &[Tile] {
        &self.tiles
    }

    /// Returns the number of units in each plane.
    pub fn per_plane(&self) -> &[u8] {
        &self.per_plane
    }
}
