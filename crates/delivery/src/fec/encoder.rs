//! The repair packets of a stripe.

use std::fmt;

use reed_solomon_simd::ReedSolomonEncoder;

use crate::plan::Block;
use crate::{Plan, Stripe};

/// Computes the repair packets of stripes.
///
/// It holds memory for the largest stripe so far, and tables of about 9 MiB that all encoders and
/// decoders of the process share.
pub struct Encoder {
    codec: Option<ReedSolomonEncoder>,
    /// A shorter packet, padded with zeros.
    padded: Vec<u8>,
    /// The repair packets of a stripe without their headers, in the order of their numbers.
    octets: Vec<u8>,
}

impl Default for Encoder {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoder").finish_non_exhaustive()
    }
}

impl Encoder {
    /// Creates an encoder, and the shared tables if there are none yet, which takes a tenth of a second.
    pub fn new() -> Self {
        let codec = ReedSolomonEncoder::new(1, 1, 2).ok();
        Self { codec, padded: Vec::new(), octets: Vec::new() }
    }

    /// Computes the repair packets of a stripe with these octets, `percent` (1 to 100) for 100 packets.
    /// Returns the number in the header of each, and its octets after the header.
    ///
    /// Returns none if the ratio is out of range, the octets are not those of the stripe, or there are no
    /// numbers for them ([`Plan::can_repair`]).
    pub fn encode<'a>(
        &'a mut self,
        plan: &Plan,
        stripe: &Stripe,
        percent: u8,
        octets: &[u8],
    ) -> impl Iterator<Item = (u32, &'a [u8])> + use<'a> {
        self.octets.clear();
        let is_possible = (1..=crate::FEC_PERCENT_MAX).contains(&percent)
            && plan.can_repair()
            && octets.len() == stripe.bytes.len();
        let (first, count) =
            if is_possible { plan.stripe_repairs(stripe, percent) } else { (0, 0) };
        let len = plan.block(stripe, 0).map_or(2, |block| block.octets);
        if is_possible {
            self.octets.resize(count as usize * len, 0);
            for at in 0..plan.stripe_blocks(stripe) {
                let Some(block) = plan.block(stripe, at) else { continue };
                if self.encode_block(&block, (at, percent), (plan.payload(), octets)).is_none() {
                    self.octets.clear();
                    break;
                }
            }
        }
        let first = if is_possible { plan.repair_index(percent, first) } else { 0 };
        (first..).zip(self.octets.chunks_exact(len))
    }

    /// Computes the repair packets of the block at `at` in the stripe.
    fn encode_block(
        &mut self,
        block: &Block,
        (at, percent): (u32, u8),
        (payload, octets): (usize, &[u8]),
    ) -> Option<()> {
        let (packets, repairs) = (block.packets as usize, block.repairs(percent) as usize);
        let codec = self.codec.as_mut()?;
        codec.reset(packets, repairs, block.octets).ok()?;
        for packet in octets.chunks(payload).skip(at as usize).step_by(block.stride as usize) {
            if packet.len() == block.octets {
                codec.add_original_shard(packet).ok()?;
            } else {
                self.padded.clear();
                self.padded.extend_from_slice(packet);
                self.padded.resize(block.octets, 0);
                codec.add_original_shard(&self.padded).ok()?;
            }
        }
        let encoded = codec.encode().ok()?;
        let places = self.octets.chunks_exact_mut(block.octets);
        let places = places.skip(at as usize).step_by(block.stride as usize);
        for (place, octets) in places.zip(encoded.recovery_iter()) {
            place.copy_from_slice(octets);
        }
        Some(())
    }
}
