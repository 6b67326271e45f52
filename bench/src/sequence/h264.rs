//! Parameter sets and slice headers of H.264: High profile, level 6, 3840 by 2160, one reference
//! picture, no reordering (ITU-T H.264 section 7.3).

use super::bits::BitWriter;

/// Returns the sequence and picture parameter set, with their NAL unit headers.
pub(super) fn parameter_sets() -> Vec<Vec<u8>> {
    let mut sps = BitWriter::default();
    // Profile 100, no constraints, level 6; then sps id 0, 4:2:0, 8 bits of luma and chroma.
    sps.bits(100, 8).bits(0, 8).bits(60, 8).ues([0, 1, 0, 0]).flags([0, 0]);
    // frame_num of 8 bits, output in decoding order, one reference picture.
    sps.ues([4, 2, 1]).flags([0]);
    // 240 by 135 macroblocks, frames only, direct_8x8_inference, no cropping.
    sps.ues([239, 134]).flags([1, 1, 0]);
    // No VUI: its timing would override the frame rate that other programs are started with.
    sps.flags([0]).stop();
    let mut pps = BitWriter::default();
    // CAVLC, one slice group, one reference picture, no weighted prediction.
    pps.ues([0, 0]).flags([0, 0]).ues([0, 0, 0]).flags([0]).bits(0, 2);
    // Three se(v) of 0; filter control present.
    pps.ues([0, 0, 0]).flags([1, 0, 0]).stop();
    vec![unit(0x67, &sps), unit(0x68, &pps)]
}

/// Returns the headers of NAL unit and slice of picture `n` of an intra period, and the slice data
/// up to the end of its last octet.
pub(super) fn slice_header(n: u32) -> Vec<u8> {
    let is_intra = n == 0;
    let mut slice = BitWriter::default();
    // first_mb_in_slice, slice_type (all slices I, all P), pps id, frame_num.
    slice.ues([0, if is_intra { 7 } else { 5 }, 0]).bits(n, 8);
    if is_intra {
        // idr_pic_id; marking: earlier pictures are output, this is not a long-term reference.
        slice.ue(0).flags([0, 0]);
    } else {
        // No override, no modification of the list, no adaptive marking.
        slice.flags([0, 0, 0]);
    }
    // slice_qp_delta, and the default filter parameters.
    slice.ues([0, 0, 0, 0]);
    unit(if is_intra { 0x65 } else { 0x41 }, slice.bits(0x7f, 7).align())
}

fn unit(header: u8, bits: &BitWriter) -> Vec<u8> {
    [&[header][..], &bits.payload()].concat()
}
