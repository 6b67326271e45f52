//! Access units of many slices.

use rushes::Codec;
use serde::{Deserialize, Serialize};

use super::make::Random;
use super::{NOMINAL_RATE, Origin, Sequence, Unit, access_unit};

/// Octets of a start code and the headers of the shortest slice.
const SLICE_LEN_MIN: usize = 16;

/// The octet of a slice header that says that the slice is not the first of its picture.
const LATER_SLICE: u8 = 0x40;

/// An access unit of many slices.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Many {
    /// Number of slices.
    pub(crate) slices: usize,
    /// Octets of all of them, start codes included.
    pub(crate) octets: usize,
    /// By how many per cent of their mean they are longer or shorter at most.
    pub(crate) spread: usize,
}

impl Many {
    /// Returns the octets of each slice.
    fn lens(self) -> impl Iterator<Item = usize> {
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let mean = self.octets / self.slices.max(1);
        let range = (mean * self.spread / 100) as u64;
        (0..self.slices).map(move |_| {
            let more = random.next() % (2 * range + 1);
            (mean + more as usize - range as usize).max(SLICE_LEN_MIN)
        })
    }
}

impl Sequence {
    pub(super) fn many(codec: Codec, many: Many) -> Self {
        let mut octets = Vec::with_capacity(many.octets);
        for (n, len) in many.lens().enumerate() {
            let mut slice = access_unit(len);
            if n > 0
                && let Some(flags) = slice.get_mut(6)
            {
                *flags = LATER_SLICE;
            }
            octets.extend(slice);
        }
        let units = vec![Unit { octets: 0..octets.len(), is_intra: true }];
        Self { codec, octets, units, rate: NOMINAL_RATE, origin: Origin::Many(many) }
    }
}
