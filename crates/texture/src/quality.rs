//! How much time an encoder spends on a block.

use std::fmt;
use std::str::FromStr;

/// How near to the pictures the blocks of BC1, BC3 and YCoCg-BC3 are, at the cost of time.
///
/// Frames have the same size and are decoded alike.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Quality {
    /// The ends of a block's line are corners of the box around its colours.
    #[default]
    Fast,
    /// The ends are refined by least squares, which takes several times as long (`cargo bench -p rushes-texture`).
    ///
    /// Colours that lie on no diagonal of the box gain most, as text in two colours has them. Blocks of one colour,
    /// or nearly so, have their mean.
    High,
}

impl Quality {
    /// All levels, the fastest first.
    pub const ALL: [Self; 2] = [Self::Fast, Self::High];

    /// Returns the name: `fast` or `high`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::High => "high",
        }
    }
}

impl fmt::Display for Quality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that no quality has.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UnknownQuality;

impl fmt::Display for UnknownQuality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the quality is fast or high")
    }
}

impl std::error::Error for UnknownQuality {}

impl FromStr for Quality {
    type Err = UnknownQuality;

    fn from_str(name: &str) -> Result<Self, UnknownQuality> {
        Self::ALL.into_iter().find(|quality| quality.name() == name).ok_or(UnknownQuality)
    }
}
