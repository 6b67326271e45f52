//! The coded sequences that are sent: made here with the statistics of coded 4K video, or a file.

use std::ops::Range;

use rushes::Codec;

/// A byte stream (Annex B) and its access units.
#[derive(Clone, Debug)]
pub(crate) struct Sequence {
    pub(crate) codec: Codec,
    /// The whole byte stream.
    pub(crate) octets: Vec<u8>,
    /// The access units, in order, which together are the byte stream.
    pub(crate) units: Vec<Unit>,
    /// Access units a second at which it has its nominal bit rate.
    pub(crate) rate: f64,
}

/// One access unit.
#[derive(Clone, Debug)]
pub(crate) struct Unit {
    pub(crate) octets: Range<usize>,
    /// Whether decoding may begin with it.
    pub(crate) is_intra: bool,
}

impl Sequence {
    /// The octets of access unit `n`, counted on from the beginning after the last.
    pub(crate) fn unit(&self, n: usize) -> &[u8] {
        &self.octets[self.units[n % self.units.len()].octets.clone()]
    }
}
