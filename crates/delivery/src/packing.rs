//! The four octets at the beginning of each packet of a packed stripe.

/// Octets of a [`Packing`].
pub const PACKING_BYTES: usize = 4;

/// The largest number that it carries.
const NUMBER_MAX: u32 = 0x00ff_ffff;

/// How the octets of a stripe are sent, if not as they are.
///
/// | octets | field |
/// |---|---|
/// | 1 | 1: unchanged; 2: LZ4 |
/// | 3 | the age in frames, or the octets of the packed stripe; most significant octet first |
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Packing {
    /// The stripe has the octets that it has had since an earlier frame.
    Unchanged {
        /// The number of frames since then: 1 to 2^24 − 1.
        age: u32,
    },
    /// The stripe is one LZ4 block, which contains no lengths of its own.
    Lz4 {
        /// The octets of the block: 1 to 2^24 − 1.
        octets: u32,
    },
}

impl Packing {
    /// Returns the mark of a stripe that has not changed for `age` frames; `None` beyond its bounds.
    pub fn unchanged(age: u64) -> Option<Self> {
        let age = u32::try_from(age).ok()?;
        (1..=NUMBER_MAX).contains(&age).then_some(Self::Unchanged { age })
    }

    /// Returns the mark of an LZ4 block of `octets` octets; `None` beyond its bounds.
    pub fn lz4(octets: usize) -> Option<Self> {
        let octets = u32::try_from(octets).ok()?;
        (1..=NUMBER_MAX).contains(&octets).then_some(Self::Lz4 { octets })
    }

    /// Reads it; `None` for an unknown packing, or a number of 0.
    pub fn parse(octets: [u8; PACKING_BYTES]) -> Option<Self> {
        let [packing, a, b, c] = octets;
        let number = u32::from_be_bytes([0, a, b, c]);
        match (packing, number) {
            (_, 0) => None,
            (1, age) => Some(Self::Unchanged { age }),
            (2, octets) => Some(Self::Lz4 { octets }),
            _ => None,
        }
    }

    /// Returns its octets.
    pub fn write(self) -> [u8; PACKING_BYTES] {
        let (packing, number) = match self {
            Self::Unchanged { age } => (1, age),
            Self::Lz4 { octets } => (2, octets),
        };
        let [_, a, b, c] = number.to_be_bytes();
        [packing, a, b, c]
    }

    /// Returns the octets after it in all packets of the stripe together.
    pub(crate) fn octets(self) -> usize {
        match self {
            Self::Unchanged { .. } => 0,
            Self::Lz4 { octets } => octets as usize,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_packing_is_four_octets() {
        assert_eq!(Packing::unchanged(0x01_0203).unwrap().write(), [1, 1, 2, 3]);
        assert_eq!(Packing::parse([2, 0, 1, 0]), Some(Packing::Lz4 { octets: 256 }));
        for unknown in [[0, 0, 0, 1], [3, 0, 0, 1], [1, 0, 0, 0], [2, 0, 0, 0]] {
            assert_eq!(Packing::parse(unknown), None);
        }
        assert_eq!((Packing::unchanged(0), Packing::lz4(0)), (None, None));
        assert_eq!((Packing::unchanged(1 << 24), Packing::lz4(1 << 24)), (None, None));
    }

    proptest! {
        #[test]
        fn what_is_read_is_written_again(octets: [u8; PACKING_BYTES]) {
            if let Some(packing) = Packing::parse(octets) {
                prop_assert_eq!(packing.write(), octets);
            }
        }
    }
}
