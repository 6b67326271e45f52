//! The recovery of a block's packets.

use std::fmt;

use reed_solomon_simd::ReedSolomonDecoder;

use crate::Plan;
use crate::plan::Block;

/// Computes lost packets from repair packets.
///
/// It holds memory for the largest block so far, and shares the tables of an
/// [`Encoder`](crate::Encoder).
pub struct Decoder {
    codec: Option<ReedSolomonDecoder>,
    /// A shorter packet, padded with zeros.
    padded: Vec<u8>,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoder").finish_non_exhaustive()
    }
}

/// A block whose lost packets can be computed: their places are reserved.
///
/// Call [`Decoder::repair`] with the octets of its unit, then
/// [`Assembly::land_repair`](crate::Assembly::land_repair).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Repair {
    /// The index of the frame's slot.
    pub slot: usize,
    /// The unit's place in the frame.
    pub unit: usize,
    pub(crate) block: Block,
    /// The places of the lost packets in the block, in ascending order.
    pub(crate) lost: Vec<u32>,
}

impl Repair {
    /// Returns the numbers of the lost packets in the frame.
    pub fn packets(&self) -> impl Iterator<Item = u32> + '_ {
        self.lost.iter().map(|place| self.block.packet(*place))
    }
}

impl Decoder {
    /// Creates a decoder, and the shared tables if there are none yet, which takes a tenth of a second.
    pub fn new() -> Self {
        Self { codec: ReedSolomonDecoder::new(1, 1, 2).ok(), padded: Vec::new() }
    }

    /// Begins a block with `repairs` repair packets in all.
    pub(crate) fn begin(&mut self, block: &Block, repairs: u32) -> Option<()> {
        let codec = self.codec.as_mut()?;
        codec.reset(block.packets as usize, repairs as usize, block.octets).ok()
    }

    /// Adds a repair packet of the block.
    pub(crate) fn add(&mut self, place: u32, octets: &[u8]) -> Option<()> {
        self.codec.as_mut()?.add_recovery_shard(place as usize, octets).ok()
    }

    /// Computes the lost packets of the block that was polled last, and writes them to `octets`, the
    /// unit's, which hold the others. Returns whether they were computed.
    #[must_use]
    pub fn repair(&mut self, plan: &Plan, repair: &Repair, octets: &mut [u8]) -> bool {
        self.try_repair(plan, repair, octets).is_some()
    }

    fn try_repair(&mut self, plan: &Plan, repair: &Repair, octets: &mut [u8]) -> Option<()> {
        let codec = self.codec.as_mut()?;
        let place_of = |place| plan.locate(repair.block.packet(place)).map(|span| span.bytes);
        let mut lost = repair.lost.iter().copied().peekable();
        for place in 0..repair.block.packets {
            if lost.next_if_eq(&place).is_some() {
                continue;
            }
            let packet = octets.get(place_of(place)?)?;
            if packet.len() == repair.block.octets {
                codec.add_original_shard(place as usize, packet).ok()?;
            } else {
                self.padded.clear();
                self.padded.extend_from_slice(packet);
                self.padded.resize(repair.block.octets, 0);
                codec.add_original_shard(place as usize, &self.padded).ok()?;
            }
        }
        let decoded = codec.decode().ok()?;
        for &place in &repair.lost {
            let to = octets.get_mut(place_of(place)?)?;
            to.copy_from_slice(decoded.restored_original(place as usize)?.get(..to.len())?);
        }
        Some(())
    }
}
