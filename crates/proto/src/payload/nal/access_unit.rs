//! Detects the boundaries of access units.

use super::header::NalCodec;

/// The relation of a NAL unit to access unit boundaries.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Boundary {
    /// It belongs to the current access unit, and so do the pending units before it.
    Inside,
    /// A new access unit begins with it.
    Here,
    /// It may begin a new access unit, or belong to an access unit that a pending unit begins. A
    /// later NAL unit decides.
    Pending,
    /// It belongs to a new access unit, which began with the first pending unit before it.
    AtPending,
}

/// Finds where access units begin in a sequence of NAL units.
///
/// The rules are those of ITU-T H.264 section 7.4.1.2.3, H.265 sections 7.4.2.4.4 and F.7.4.2.4.4
/// and H.266 sections 7.4.2.4.3 and 7.4.2.4.4. Units of higher layers belong to the access unit of
/// the base layer.
///
/// # Limits
/// The detector reads no parameter sets. In H.264 it detects the first slice of a picture by
/// `first_mb_in_slice`, `nal_ref_idc` and the IDR type. It therefore splits Baseline and Extended
/// streams with redundant pictures or arbitrary slice order too often, and each field of a pair is
/// a separate access unit. In H.266 a picture of a higher layer continues the access unit even if
/// its picture order count shows that it starts another.
#[derive(Clone, Debug)]
pub struct AccessUnitDetector {
    codec: NalCodec,
    /// The last slice of the access unit, if any.
    slice: Option<Slice>,
    /// Whether the last unit ended its access unit.
    ended: bool,
    /// Whether there are pending units, about which the next slice decides.
    pending: bool,
}

#[derive(Clone, Copy, Debug)]
struct Slice {
    layer_id: u8,
    idr: bool,
    reference: bool,
}

/// The effect of a unit on the boundaries.
enum Role {
    /// Starts an access unit if the current one has a slice.
    Opener,
    /// Starts an access unit if the current one has a slice and the next slice starts one.
    OpenerOfSlice,
    /// A slice or picture header, and whether it starts a picture.
    Slice(Slice, bool),
    /// Belongs to the current access unit.
    Follower,
    /// Belongs to the current access unit, and so do pending units (H.264 slice extensions).
    HigherLayer,
    /// Belongs to the current access unit and ends it.
    Closer,
}

impl AccessUnitDetector {
    /// Creates a detector at the beginning of a bitstream: the first unit is [`Boundary::Inside`]
    /// the first access unit.
    pub fn new(codec: NalCodec) -> Self {
        Self { codec, slice: None, ended: false, pending: false }
    }

    /// Returns the boundary at the next NAL unit, of which the first four octets are enough.
    pub fn push(&mut self, unit: &[u8]) -> Boundary {
        let role = match self.codec {
            NalCodec::H264 => h264_role(unit),
            NalCodec::H265 => h265_role(unit),
            NalCodec::H266 => h266_role(unit),
        };
        let ended = std::mem::replace(&mut self.ended, matches!(role, Role::Closer));
        let starts = match (&role, self.slice) {
            (Role::Closer, _) => false,
            _ if ended => true,
            (_, None) | (Role::Follower | Role::HigherLayer | Role::OpenerOfSlice, _) => false,
            (Role::Opener, Some(_)) => true,
            (Role::Slice(slice, first), Some(before)) => {
                self.is_new_access_unit(*slice, *first, before)
            }
        };
        let waits = match role {
            Role::OpenerOfSlice => self.slice.is_some() && !starts,
            Role::Follower => self.pending,
            _ => false,
        };
        let pending = std::mem::replace(&mut self.pending, waits);
        if let Role::Slice(slice, _) = role {
            self.slice = Some(slice);
        } else if starts {
            self.slice = None;
        }
        match (starts, pending) {
            _ if waits => Boundary::Pending,
            (false, _) => Boundary::Inside,
            (true, false) => Boundary::Here,
            (true, true) => Boundary::AtPending,
        }
    }

    fn is_new_access_unit(&self, slice: Slice, first: bool, before: Slice) -> bool {
        match self.codec {
            NalCodec::H264 => {
                first || slice.idr != before.idr || slice.reference != before.reference
            }
            NalCodec::H265 => first && slice.layer_id == 0,
            NalCodec::H266 => first && slice.layer_id <= before.layer_id,
        }
    }
}

/// Returns whether the bit after the header, the first of a slice's syntax, is set.
fn first_bit(unit: &[u8], header_len: usize) -> bool {
    unit.get(header_len).is_some_and(|octet| octet >> 7 == 1)
}

fn h264_role(unit: &[u8]) -> Role {
    let Some(header) = NalCodec::H264.header(unit) else { return Role::Follower };
    match header.nal_type {
        // first_mb_in_slice, ue(v), is 0 if its first bit is set.
        1 | 2 | 5 => {
            let (idr, reference) = (header.nal_type == 5, header.ref_idc != 0);
            Role::Slice(Slice { layer_id: 0, idr, reference }, first_bit(unit, 1))
        }
        6..=9 | 15..=18 => Role::Opener,
        10 | 11 => Role::Closer,
        // A prefix NAL unit belongs to the slice after it, which may be the picture's second.
        14 => Role::OpenerOfSlice,
        20 | 21 => Role::HigherLayer,
        _ => Role::Follower,
    }
}

fn h265_role(unit: &[u8]) -> Role {
    let Some(header) = NalCodec::H265.header(unit) else { return Role::Follower };
    let layer_id = header.layer_id;
    match header.nal_type {
        0..=31 => {
            let slice = Slice { layer_id, idr: false, reference: false };
            Role::Slice(slice, first_bit(unit, 2))
        }
        35 if layer_id == 0 => Role::Opener,
        // These start an access unit only before a picture of the base layer, because a picture of
        // a higher layer may use parameter sets of the base layer.
        32..=34 | 39 | 41..=44 | 48..=55 if layer_id == 0 => Role::OpenerOfSlice,
        // An end of sequence (36) ends a layer; an end of bitstream ends all layers.
        37 => Role::Closer,
        _ => Role::Follower,
    }
}

fn h266_role(unit: &[u8]) -> Role {
    let Some(header) = NalCodec::H266.header(unit) else { return Role::Follower };
    let slice = Slice { layer_id: header.layer_id, idr: false, reference: false };
    match header.nal_type {
        // If sh_picture_header_in_slice_header_flag is set, the picture has no other slice.
        0..=11 => Role::Slice(slice, first_bit(unit, 2)),
        19 => Role::Slice(slice, true),
        20 => Role::Opener,
        12..=17 | 23 | 26 | 28 | 29 => Role::OpenerOfSlice,
        // An end of sequence (21) ends a layer; an end of bitstream ends all layers.
        22 => Role::Closer,
        _ => Role::Follower,
    }
}

#[cfg(test)]
mod tests {
    use super::Boundary::{AtPending, Here, Inside, Pending};
    use super::*;

    fn boundaries<const N: usize>(codec: NalCodec, units: [&[u8]; N]) -> [Boundary; N] {
        let mut detector = AccessUnitDetector::new(codec);
        units.map(|unit| detector.push(unit))
    }

    const SPS: &[u8] = &[0x67];
    const PPS: &[u8] = &[0x68];
    const SEI: &[u8] = &[0x06];
    const AUD: &[u8] = &[0x09];
    const IDR: &[u8] = &[0x65, 0x88];
    const IDR_MORE: &[u8] = &[0x65, 0x40];
    const P: &[u8] = &[0x41, 0x9a];
    const P_MORE: &[u8] = &[0x41, 0x40];
    const B: &[u8] = &[0x01, 0x9a];
    const PREFIX: &[u8] = &[0x6e];
    const EXTENSION: &[u8] = &[0x74];

    #[test]
    fn h264_pictures_begin_with_their_first_macroblock() {
        assert_eq!(
            boundaries(NalCodec::H264, [SPS, PPS, IDR, IDR_MORE, P, P_MORE, P, B]),
            [Inside, Inside, Inside, Inside, Here, Inside, Here, Here]
        );
    }

    #[test]
    fn h264_units_before_slices_open_the_access_unit() {
        assert_eq!(
            boundaries(NalCodec::H264, [AUD, IDR, AUD, SEI, P, SEI, P]),
            [Inside, Inside, Here, Inside, Inside, Here, Inside]
        );
    }

    #[test]
    fn h264_a_change_of_reference_or_idr_begins_a_picture_without_its_first_slice() {
        let b_more: &[u8] = &[0x01, 0x40];
        assert_eq!(boundaries(NalCodec::H264, [P, b_more]), [Inside, Here]);
        assert_eq!(boundaries(NalCodec::H264, [P, IDR_MORE]), [Inside, Here]);
    }

    #[test]
    fn h264_prefix_units_go_with_the_slice_behind_them() {
        assert_eq!(
            boundaries(
                NalCodec::H264,
                [PREFIX, P, PREFIX, P_MORE, EXTENSION, PREFIX, P, EXTENSION]
            ),
            [Inside, Inside, Pending, Inside, Inside, Pending, AtPending, Inside]
        );
        assert_eq!(
            boundaries(NalCodec::H264, [P, PREFIX, EXTENSION, P]),
            [Inside, Pending, Inside, Here]
        );
    }

    #[test]
    fn h264_units_that_wait_begin_the_access_unit_of_the_unit_that_decides() {
        let filler: &[u8] = &[12];
        assert_eq!(
            boundaries(NalCodec::H264, [P, PREFIX, filler, P]),
            [Inside, Pending, Pending, AtPending]
        );
        assert_eq!(boundaries(NalCodec::H264, [P, PREFIX, SEI]), [Inside, Pending, AtPending]);
        assert_eq!(
            boundaries(NalCodec::H264, [P, PREFIX, &[11], P]),
            [Inside, Pending, Inside, Here]
        );
    }

    #[test]
    fn h264_slice_data_partitions_belong_to_their_picture() {
        let (a, b, c): (&[u8], &[u8], &[u8]) = (&[0x42, 0x80], &[0x43, 0x80], &[0x44, 0x80]);
        assert_eq!(
            boundaries(NalCodec::H264, [a, b, c, a, b]),
            [Inside, Inside, Inside, Here, Inside]
        );
    }

    #[test]
    fn h264_fillers_and_auxiliary_slices_belong_to_the_units_before_them() {
        let (filler, auxiliary): (&[u8], &[u8]) = (&[12], &[0x13, 0x80]);
        assert_eq!(
            boundaries(NalCodec::H264, [P, auxiliary, filler, P])[1..],
            [Inside, Inside, Here]
        );
    }

    #[test]
    fn h264_an_end_of_sequence_belongs_to_the_units_before_it() {
        let (eoseq, eostream): (&[u8], &[u8]) = (&[10], &[11]);
        assert_eq!(
            boundaries(NalCodec::H264, [IDR, eoseq, eostream, PPS, IDR]),
            [Inside, Inside, Inside, Here, Inside]
        );
        assert_eq!(boundaries(NalCodec::H264, [IDR, eoseq, P_MORE]), [Inside, Inside, Here]);
    }

    #[test]
    fn h264_each_field_of_a_pair_is_an_access_unit() {
        // An IDR field with the P field of its frame, two slices each; a pair of P fields after
        // their timing message; a pair of B fields.
        assert_eq!(
            boundaries(
                NalCodec::H264,
                [SPS, PPS, SEI, IDR, IDR_MORE, P, P_MORE, SEI, P, SEI, P, P_MORE, B, B]
            ),
            [
                Inside, Inside, Inside, Inside, Inside, Here, Inside, Here, Inside, Here, Inside,
                Inside, Here, Here
            ]
        );
    }

    #[test]
    fn h264_scalable_layers_stay_with_the_base_layer() {
        let subset_sps: &[u8] = &[0x6f];
        assert_eq!(
            boundaries(
                NalCodec::H264,
                [SPS, subset_sps, PPS, PREFIX, IDR, EXTENSION, EXTENSION, PREFIX, P, EXTENSION]
            ),
            [Inside, Inside, Inside, Inside, Inside, Inside, Inside, Pending, AtPending, Inside]
        );
        // A second view without prefix units (ITU-T H.264 annex H).
        assert_eq!(
            boundaries(NalCodec::H264, [IDR, EXTENSION, P, EXTENSION, P]),
            [Inside, Inside, Here, Inside, Here]
        );
    }

    #[test]
    fn h265_each_field_of_a_sequence_of_fields_is_an_access_unit() {
        // field_seq_flag is 1: pic_struct in the timing message identifies the field.
        let (timing, suffix): (&[u8], &[u8]) = (&[0x4e, 0x01], &[0x50, 0x01]);
        let (field, more): (&[u8], &[u8]) = (&[0x02, 0x01, 0x80], &[0x02, 0x01, 0x00]);
        assert_eq!(
            boundaries(
                NalCodec::H265,
                [timing, field, more, suffix, timing, field, more, suffix, field, field]
            ),
            [Inside, Inside, Inside, Inside, Pending, AtPending, Inside, Inside, Here, Here]
        );
    }

    #[test]
    fn h265_metadata_of_dolby_vision_belongs_to_the_picture_before() {
        let (base, rpu): (&[u8], &[u8]) = (&[0x02, 0x01, 0x80], &[62 << 1, 0x01]);
        let enhancement: &[u8] = &[63 << 1, 0x01];
        assert_eq!(
            boundaries(NalCodec::H265, [base, enhancement, rpu, base, rpu]),
            [Inside, Inside, Inside, Here, Inside]
        );
    }

    #[test]
    fn h265_higher_layers_stay_with_the_base_layer() {
        let (base, more): (&[u8], &[u8]) = (&[0x02, 0x01, 0x80], &[0x02, 0x01, 0x00]);
        let (layer1, sps1): (&[u8], &[u8]) = (&[0x02, 0x09, 0x80], &[0x42, 0x09, 0x80]);
        let (vps, prefix_sei, suffix_sei): (&[u8], &[u8], &[u8]) =
            (&[0x40, 0x01], &[0x4e, 0x01], &[0x50, 0x01]);
        assert_eq!(
            boundaries(NalCodec::H265, [vps, base, more, sps1, layer1, suffix_sei, base]),
            [Inside, Inside, Inside, Inside, Inside, Inside, Here]
        );
        assert_eq!(
            boundaries(NalCodec::H265, [base, suffix_sei, prefix_sei, vps, base]),
            [Inside, Inside, Pending, Pending, AtPending]
        );
    }

    #[test]
    fn h265_parameter_sets_of_the_base_layer_may_belong_to_a_picture_of_a_higher_layer() {
        let (base, layer1): (&[u8], &[u8]) = (&[0x02, 0x01, 0x80], &[0x02, 0x09, 0x80]);
        let pps: &[u8] = &[0x44, 0x01];
        assert_eq!(
            boundaries(NalCodec::H265, [base, pps, layer1, pps, base]),
            [Inside, Pending, Inside, Pending, AtPending]
        );
    }

    #[test]
    fn h265_a_delimiter_begins_an_access_unit_at_the_first_pending_unit() {
        let (base, aud, sei): (&[u8], &[u8], &[u8]) =
            (&[0x02, 0x01, 0x80], &[0x46, 0x01], &[0x4e, 0x01]);
        assert_eq!(boundaries(NalCodec::H265, [aud, sei, base, aud])[2..], [Inside, Here]);
        assert_eq!(boundaries(NalCodec::H265, [base, sei, aud])[1..], [Pending, AtPending]);
    }

    #[test]
    fn h265_an_end_of_sequence_ends_a_layer_and_an_end_of_bitstream_all() {
        let (base, layer1): (&[u8], &[u8]) = (&[0x02, 0x01, 0x80], &[0x02, 0x09, 0x80]);
        let (eos, eob, filler): (&[u8], &[u8], &[u8]) =
            (&[0x48, 0x01], &[0x4a, 0x01], &[0x4c, 0x01]);
        assert_eq!(
            boundaries(NalCodec::H265, [base, eos, layer1, base]),
            [Inside, Inside, Inside, Here]
        );
        assert_eq!(
            boundaries(NalCodec::H265, [base, eos, eob, filler, base]),
            [Inside, Inside, Inside, Here, Inside]
        );
    }

    #[test]
    fn a_slice_without_its_first_octet_continues_the_picture() {
        let (base, cut): (&[u8], &[u8]) = (&[0x02, 0x01, 0x80], &[0x02, 0x01]);
        assert_eq!(boundaries(NalCodec::H265, [base, cut, &[0x02], &[]]), [Inside; 4]);
    }

    #[test]
    fn h266_pictures_begin_with_a_picture_header_or_a_slice_that_has_one() {
        let ph: &[u8] = &[0, 19 << 3 | 1];
        let (slice, alone): (&[u8], &[u8]) = (&[0, 1, 0x00], &[0, 1, 0x80]);
        let suffix_aps: &[u8] = &[0, 18 << 3 | 1];
        assert_eq!(
            boundaries(NalCodec::H266, [ph, slice, slice, suffix_aps, ph, slice, alone, alone]),
            [Inside, Inside, Inside, Inside, Here, Inside, Here, Here]
        );
    }

    #[test]
    fn h266_a_higher_layer_continues_and_the_base_layer_begins() {
        let (base, layer1): (&[u8], &[u8]) = (&[0, 1, 0x80], &[1, 1, 0x80]);
        let sps1: &[u8] = &[1, 15 << 3 | 1];
        assert_eq!(
            boundaries(NalCodec::H266, [base, sps1, layer1, base, layer1]),
            [Inside, Pending, Inside, Here, Inside]
        );
    }

    #[test]
    fn h266_parameter_sets_of_the_base_layer_may_belong_to_a_picture_of_a_higher_layer() {
        let (base, layer1): (&[u8], &[u8]) = (&[0, 1, 0x80], &[1, 1, 0x80]);
        let (ph1, slice1): (&[u8], &[u8]) = (&[1, 19 << 3 | 1], &[1, 1, 0x00]);
        let prefix_aps: &[u8] = &[0, 17 << 3 | 1];
        assert_eq!(
            boundaries(NalCodec::H266, [base, prefix_aps, layer1, prefix_aps, base]),
            [Inside, Pending, Inside, Pending, AtPending]
        );
        assert_eq!(
            boundaries(NalCodec::H266, [base, ph1, prefix_aps, slice1, base]),
            [Inside, Inside, Pending, Inside, Here]
        );
    }

    #[test]
    fn h266_ends_and_suffixes_belong_to_the_units_before_them() {
        let alone: &[u8] = &[0, 1, 0x80];
        let (eos, eob, suffix_sei): (&[u8], &[u8], &[u8]) =
            (&[0, 21 << 3 | 1], &[0, 22 << 3 | 1], &[0, 24 << 3 | 1]);
        let (opi, dci): (&[u8], &[u8]) = (&[0, 12 << 3 | 1], &[0, 13 << 3 | 1]);
        assert_eq!(
            boundaries(NalCodec::H266, [alone, suffix_sei, eos, eob, opi, dci, alone]),
            [Inside, Inside, Inside, Inside, Here, Inside, Inside]
        );
    }
}
