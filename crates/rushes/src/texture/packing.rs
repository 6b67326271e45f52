//! Packed stripes: one LZ4 block each, cut into packets that each tell how the stripe is packed.

use std::sync::Arc;

use lz4_flex::block::{compress_into, decompress_into, get_maximum_output_size};
use rushes_delivery::{PACKING_BYTES, Packing, Plan, Stripe};

/// A stripe is packed if that saves at least one octet of so many: interfaces and text save far more. To save a
/// fifth of a noisy picture LZ4 takes fifteen times as long as everything else.
const GAIN: usize = 2;

/// LZ4 is tried on so many pieces of a stripe first, of so many octets: most photographs are given up there.
const PIECES: usize = 4;
const PIECE: usize = 512;

/// Returns the octets of a packed stripe's packets behind their headers: a [`Packing`] and a part of
/// the block in each. `None` if the stripe is not much smaller then.
pub(super) fn pack(plan: &Plan, stripe: &Stripe, octets: &[u8]) -> Option<Arc<[u8]>> {
    if !may_shrink(octets) {
        return None;
    }
    let mut block = vec![0; get_maximum_output_size(octets.len())];
    let len = compress_into(octets, &mut block).ok()?;
    let packing = Packing::lz4(len)?;
    let packets = plan.packed_packets(stripe, packing)? as usize;
    let all = len + packets * PACKING_BYTES;
    if all > octets.len() - octets.len() / GAIN {
        return None;
    }
    let mut packed = Vec::with_capacity(all);
    for part in block.get(..len)?.chunks(plan.packed_payload()) {
        packed.extend_from_slice(&packing.write());
        packed.extend_from_slice(part);
    }
    Some(packed.into())
}

/// Returns whether LZ4 halves a piece of these octets, or they are few. The first piece is at the beginning, the last
/// one at the end: rows of a picture have other pixels in each.
fn may_shrink(octets: &[u8]) -> bool {
    if octets.len() < 2 * PIECES * PIECE {
        return true;
    }
    let mut block = vec![0; get_maximum_output_size(PIECE)];
    let shrinks =
        |octets| compress_into(octets, &mut block).is_ok_and(|len| len <= PIECE - PIECE / GAIN);
    let step = (octets.len() - PIECE) / (PIECES - 1);
    (0..PIECES).filter_map(|n| octets.get(n * step..n * step + PIECE)).any(shrinks)
}

/// Unpacks a stripe to its place, straight from the packed octets; returns false if these are not those
/// of a stripe of this length. Part of the place may have been written then.
pub(super) fn unpack(packing: Packing, packed: &[u8], stripe: &mut [u8]) -> bool {
    match packing {
        Packing::Lz4 { .. } => decompress_into(packed, stripe).is_ok_and(|len| len == stripe.len()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn plan(octets: usize, payload: usize) -> (Plan, Stripe) {
        let plan = Plan::new(&[(octets, octets)], payload).unwrap();
        let stripe = plan.stripe(0, 0).unwrap();
        (plan, stripe)
    }

    proptest! {
        #[test]
        fn what_is_packed_is_smaller_and_unpacks_to_the_same(
            pieces in prop::collection::vec((any::<u8>(), 1_usize..200), 1..100),
            payload in 9_usize..300,
        ) {
            let octets: Vec<u8> = pieces.iter().flat_map(|&(octet, len)| vec![octet; len]).collect();
            let (plan, stripe) = plan(octets.len(), payload);
            if let Some(packed) = pack(&plan, &stripe, &octets) {
                prop_assert!(packed.len() <= octets.len() - octets.len() / GAIN);
                let packing = Packing::parse(packed[..PACKING_BYTES].try_into().unwrap()).unwrap();
                let packets = packed.chunks(payload).map(|packet| {
                    assert_eq!(packet[..PACKING_BYTES], packing.write());
                    &packet[PACKING_BYTES..]
                });
                let block: Vec<u8> = packets.flatten().copied().collect();
                prop_assert_eq!(packing, Packing::lz4(block.len()).unwrap());
                let mut unpacked = vec![0xaa; octets.len()];
                prop_assert!(unpack(packing, &block, &mut unpacked));
                prop_assert_eq!(&unpacked, &octets);
                // A place of another length is not filled.
                prop_assert!(!unpack(packing, &block, &mut vec![0; octets.len() + 1]));
                prop_assert!(!unpack(packing, &block, &mut unpacked[1..]));
            }
        }

        #[test]
        fn no_block_breaks_it(block in prop::collection::vec(any::<u8>(), 0..400), len in 0_usize..600) {
            let _ = unpack(Packing::lz4(1).unwrap(), &block, &mut vec![0; len]);
        }
    }

    fn noise(len: usize) -> Vec<u8> {
        let mut state = 1_u64;
        let noise = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as u8
        });
        noise.take(len).collect()
    }

    #[test]
    fn noise_is_not_packed_and_one_colour_is() {
        for (len, packed_len) in [(7_000, 60), (90_000, 1_500)] {
            let (plan, stripe) = plan(len, 1_000);
            assert!(pack(&plan, &stripe, &noise(len)).is_none());
            let packed = pack(&plan, &stripe, &vec![7; len]).unwrap();
            assert!(packed.len() < packed_len, "{}", packed.len());
        }
    }

    #[test]
    fn a_stripe_whose_rows_begin_with_noise_is_packed() {
        // 16 rows of 1 920 pixels.
        let mut octets = vec![7; 16 * 7_680];
        for row in octets.chunks_mut(7_680) {
            row[..2_500].copy_from_slice(&noise(2_500));
        }
        let (plan, stripe) = plan(octets.len(), 1_408);
        assert!(pack(&plan, &stripe, &octets).is_some_and(|packed| packed.len() < 50_000));
    }

    #[test]
    fn a_stripe_is_packed_if_that_saves_half() {
        let (plan, stripe) = plan(90_000, 1_000);
        for part in 0..PIECES {
            let mut octets = vec![7; 90_000];
            let mut noisy = |len| {
                let start = part * 22_500;
                octets[start..start + len].copy_from_slice(&noise(len));
                pack(&plan, &stripe, &octets).map(|packed| packed.len())
            };
            assert!(noisy(22_500).is_some_and(|len| (22_000..25_000).contains(&len)), "{part}");
            if part < 2 {
                assert!(noisy(46_000).is_none(), "{part}");
            }
        }
    }
}
