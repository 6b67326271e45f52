//! Parameter sets and slice headers of H.266: Main 10 profile, high tier, level 6.2, 3840 by 2160,
//! one reference picture, no reordering, only the necessary coding tools (ITU-T H.266 section 7.3).

use super::bits::BitWriter;

const SPS: u8 = 15;
const PPS: u8 = 16;
const IDR_W_RADL: u8 = 7;
const TRAIL: u8 = 0;

/// Returns the sequence and picture parameter set, with their NAL unit headers.
pub(super) fn parameter_sets() -> Vec<Vec<u8>> {
    vec![unit(SPS, &sequence()), unit(PPS, &picture())]
}

fn sequence() -> BitWriter {
    let mut sps = BitWriter::default();
    // Id 0, no video parameter set, one sub-layer, 4:2:0, blocks of 64; profile and level are here.
    sps.bits(0, 4).bits(0, 4).bits(0, 3).bits(1, 2).bits(1, 2).flags([1]);
    // Main 10, high tier, level 6.2, frames only, one layer, no constraints, no sub-profiles.
    sps.bits(1, 7).flags([1]).bits(102, 8).flags([1, 0, 0]).align().bits(0, 8);
    // No gradual refresh, no resampling; the size; no window, no subpictures.
    sps.flags([0, 0]).ues([3840, 2160]).flags([0, 0]);
    // 8 bits, no wavefronts or entry points, picture order counts of 8 bits, nothing extra.
    sps.ue(0).flags([0, 0]).bits(4, 4).flags([0]).bits(0, 2).bits(0, 2);
    // Two pictures in the buffer, no reordering, no limit of latency.
    sps.ues([1, 0, 0]);
    partitions_and_transforms(&mut sps);
    references(&mut sps);
    tools(&mut sps);
    // No timing, no fields, no VUI, no extension.
    sps.flags([0, 0, 0, 0]).stop();
    sps
}

fn partitions_and_transforms(sps: &mut BitWriter) {
    // Blocks of 8 at least, quadtrees only, in intra slices and in others.
    sps.ue(1).flags([0]).ues([0, 0]).flags([0]).ues([0, 0]);
    // No transforms of 64, transform skip, selection of transforms, secondary ones, joint chroma.
    sps.flags([0, 0, 0, 0, 0]);
    // One table of chroma QPs: the same for all, one point, without steps.
    sps.flags([1]).ues([0, 0, 0, 0]);
    // No sample adaptive offset, adaptive loop filter, luma mapping, weighting.
    sps.flags([0, 0, 0, 0, 0]);
}

fn references(sps: &mut BitWriter) {
    // No long-term pictures, none in IDR pictures, both lists alike; one list of one entry: the
    // picture before.
    sps.flags([0, 0, 1]).ues([1, 1, 0]).flags([0]);
    // No wraparound.
    sps.flags([0]);
}

fn tools(sps: &mut BitWriter) {
    // Temporal vectors, adaptive resolution, BDOF, SMVD, DMVR, MMVD: none; six merge candidates.
    sps.flags([0, 0, 0, 0, 0, 0]).ue(0);
    // SBT, affine, BCW, CIIP, GPM: none; merge level 4.
    sps.flags([0, 0, 0, 0, 0]).ue(0);
    // ISP, MRL, MIP, CCLM: none; chroma lies left of luma; palette, IBC, LADF: none.
    sps.flags([0, 0, 0, 0]).flags([1, 0]).flags([0, 0, 0]);
    // No scaling lists, dependent quantisation, sign hiding, virtual boundaries.
    sps.flags([0, 0, 0, 0]);
}

fn picture() -> BitWriter {
    let mut pps = BitWriter::default();
    // Ids 0, one type of NAL units, the size, no windows, no output flags.
    pps.bits(0, 6).bits(0, 4).flags([0]).ues([3840, 2160]).flags([0, 0, 0]);
    // No partitions, no subpicture ids, no cabac_init; one reference picture in either list.
    pps.flags([1, 0, 0]).ues([0, 0]);
    // No second list's index, weighting, wraparound; init_qp 26.
    pps.flags([0, 0, 0, 0]).ue(0);
    // No QP deltas, chroma offsets, filter control, extensions.
    pps.flags([0, 0, 0, 0, 0, 0]).stop();
    pps
}

/// Returns the headers of NAL unit, picture and slice of picture `n` of an intra period.
pub(super) fn slice_header(n: u32) -> Vec<u8> {
    let is_intra = n == 0;
    let mut slice = BitWriter::default();
    // The picture header is included; whether it is an IRAP picture; it is used for reference.
    slice.flags([1, is_intra.into(), 0]);
    if is_intra {
        // No gradual refresh, no inter slices; pps id, picture order count.
        slice.flags([0, 0]).ue(0).bits(0, 8);
        // Earlier pictures are output.
        slice.flags([0]);
    } else {
        // Inter slices only; pps id, picture order count, no differences in the second list.
        slice.flags([1, 0]).ue(0).bits(n, 8).flags([0]);
        // A P slice; the list of the sequence.
        slice.ue(1).flags([1]);
    }
    // sh_qp_delta, and the end of the header.
    slice.ue(0).stop();
    unit(if is_intra { IDR_W_RADL } else { TRAIL }, &slice)
}

fn unit(nal_type: u8, bits: &BitWriter) -> Vec<u8> {
    [&[0, nal_type << 3 | 1][..], &bits.payload()].concat()
}
