//! Parameter sets and slice headers of H.265: Main profile, high tier, level 6.2, 3840 by 2160, one
//! reference picture, no reordering (ITU-T H.265 section 7.3).

use super::bits::BitWriter;

const VPS: u8 = 32;
const SPS: u8 = 33;
const PPS: u8 = 34;
const IDR_W_RADL: u8 = 19;
const TRAIL_R: u8 = 1;

/// Returns the video, sequence and picture parameter set, with their NAL unit headers.
pub(super) fn parameter_sets() -> Vec<Vec<u8>> {
    vec![unit(VPS, &video()), unit(SPS, &sequence()), unit(PPS, &picture())]
}

fn video() -> BitWriter {
    let mut vps = BitWriter::default();
    // Id 0, base layer here, one layer, one sub-layer, nesting, 16 reserved ones.
    vps.bits(0, 4).flags([1, 1]).bits(0, 6).bits(0, 3).flags([1]).bits(0xffff, 16);
    profile_tier_level(&mut vps);
    // Two pictures in the buffer, no reordering, no limit of latency; one layer set.
    vps.flags([1]).ues([1, 0, 0]).bits(0, 6).ue(0);
    // No timing, no extension.
    vps.flags([0, 0]).stop();
    vps
}

fn sequence() -> BitWriter {
    let mut sps = BitWriter::default();
    sps.bits(0, 4).bits(0, 3).flags([1]);
    profile_tier_level(&mut sps);
    // Id 0, 4:2:0, the size, no window; 8 bits of luma and chroma; picture order counts of 8 bits.
    sps.ues([0, 1, 3840, 2160]).flags([0]).ues([0, 0, 4]);
    sps.flags([1]).ues([1, 0, 0]);
    // Blocks of 8 to 64, transforms of 4 to 32, depths 0.
    sps.ues([0, 3, 0, 3, 0, 0]);
    // No scaling lists, asymmetric partitions, sample adaptive offset, PCM.
    sps.flags([0, 0, 0, 0]);
    // One reference picture set: the picture before.
    sps.ues([1, 1, 0, 0]).flags([1]);
    // No long-term pictures, no temporal vectors, no strong smoothing.
    sps.flags([0, 0, 0]);
    // No VUI: its timing would override the frame rate that other programs are started with.
    sps.flags([0, 0]).stop();
    sps
}

fn picture() -> BitWriter {
    let mut pps = BitWriter::default();
    // Ids 0; no dependent slices, output flags, extra bits, sign hiding, cabac_init.
    pps.ues([0, 0]).flags([0, 0]).bits(0, 3).flags([0, 0]);
    // One reference picture; init_qp 26; no constrained intra, transform skip, QP deltas.
    pps.ues([0, 0, 0]).flags([0, 0, 0]);
    // Chroma offsets 0 and not in slices, no weighting, bypass, tiles, wavefronts.
    pps.ues([0, 0]).flags([0, 0, 0, 0, 0, 0]);
    // No filter across slices, filter control, scaling lists, modification of lists.
    pps.flags([0, 0, 0, 0]).ue(0).flags([0, 0]).stop();
    pps
}

fn profile_tier_level(writer: &mut BitWriter) {
    // Main, high tier; compatible with Main and Main 10.
    writer.bits(0, 2).flags([1]).bits(1, 5).bits(0x6000_0000, 32);
    // Progressive frames; 43 bits for other profiles, one reserved.
    writer.flags([1, 0, 0, 1]).bits(0, 32).bits(0, 12).bits(186, 8);
}

/// Returns the headers of NAL unit and slice of picture `n` of an intra period.
pub(super) fn slice_header(n: u32) -> Vec<u8> {
    let is_intra = n == 0;
    let mut slice = BitWriter::default();
    // The first slice segment of its picture.
    slice.flags([1]);
    if is_intra {
        // Earlier pictures are output; pps id, I slice.
        slice.flags([0]).ues([0, 2]);
    } else {
        // Pps id, P slice, picture order count, the set of the sequence, no override of its number;
        // five merge candidates.
        slice.ues([0, 1]).bits(n, 8).flags([1, 0]).ue(0);
    }
    // slice_qp_delta, and the end of the header.
    slice.ue(0).stop();
    unit(if is_intra { IDR_W_RADL } else { TRAIL_R }, &slice)
}

fn unit(nal_type: u8, bits: &BitWriter) -> Vec<u8> {
    [&[nal_type << 1, 1][..], &bits.payload()].concat()
}
