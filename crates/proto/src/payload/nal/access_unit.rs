//! Where access units begin.

use super::header::NalCodec;

/// What a NAL unit says about the boundary of access units.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Boundary {
    /// It belongs to the access unit of the NAL unit before.
    Inside,
    /// A new access unit begins with it.
    Here,
    /// It begins a new access unit, or does not: a later NAL unit will tell.
    Pending,
    /// A new access unit began with the first of the pending ones before it.
    AtPending,
}

/// Finds where access units begin in a sequence of NAL units.
///
/// By ITU-T H.264 section 7.4.1.2.3 (with `first_mb_in_slice`, `nal_ref_idc` and IDR for the first
/// slice of a picture, which need no parameter sets), H.265 section 7.4.2.4.4 and H.266 sections
/// 7.4.2.4.3 and 7.4.2.4.4. Units of higher layers belong to the access unit of the base layer.
#[derive(Clone, Debug)]
pub struct AccessUnitDetector {
    codec: NalCodec,
    /// The last coded slice of the access unit, if one has come.
    slice: Option<Slice>,
    /// A unit has come that is the last of its access unit.
    ended: bool,
    pending: bool,
}

#[derive(Clone, Copy, Debug)]
struct Slice {
    layer_id: u8,
    idr: bool,
    reference: bool,
}

/// What a unit is to the boundary.
enum Role {
    /// Starts an access unit if a slice has come before.
    Opener,
    /// The same, unless its layer continues the access unit (H.266).
    PictureOpener { layer_id: u8 },
    /// A slice that starts a picture of the base layer, or does not.
    Slice(Slice, bool),
    /// Belongs to what came before.
    Follower,
    /// Belongs to what came before, and ends it.
    Closer,
    /// Belongs to the slice behind it (H.264 prefix NAL unit).
    Prefix,
}

impl AccessUnitDetector {
    /// A detector at the beginning of a bitstream: the first unit is [`Boundary::Inside`] the
    /// first access unit.
    pub fn new(codec: NalCodec) -> Self {
        Self { codec, slice: None, ended: false, pending: false }
    }

    /// Takes the next NAL unit, of which the first four octets are enough.
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
            (Role::Follower | Role::Prefix, _) | (_, None) => false,
            (Role::Opener, Some(_)) => true,
            (Role::PictureOpener { layer_id }, Some(before)) => *layer_id <= before.layer_id,
            (Role::Slice(slice, first), Some(before)) => {
                self.is_new_picture(*slice, *first, before)
            }
        };
        if let (Role::Prefix, false, Some(_)) = (&role, starts, self.slice) {
            self.pending = true;
            return Boundary::Pending;
        }
        let pending = std::mem::take(&mut self.pending);
        if starts {
            self.slice = None;
        }
        let is_slice = matches!(role, Role::Slice(..));
        if let Role::Slice(slice, _) = role {
            self.slice = Some(slice);
        }
        match (starts, pending && is_slice) {
            (false, _) => Boundary::Inside,
            (true, false) => Boundary::Here,
            (true, true) => Boundary::AtPending,
        }
    }

    fn is_new_picture(&self, slice: Slice, first: bool, before: Slice) -> bool {
        match self.codec {
            NalCodec::H264 => {
                first || slice.idr != before.idr || slice.reference != before.reference
            }
            NalCodec::H265 => first && slice.layer_id == 0,
            NalCodec::H266 => first && slice.layer_id <= before.layer_id,
        }
    }
}

/// Whether the bit behind the header, the first of a slice's syntax, is set.
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
        14 => Role::Prefix,
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
        32..=35 | 39 | 41..=44 | 48..=55 if layer_id == 0 => Role::Opener,
        36 | 37 => Role::Closer,
        _ => Role::Follower,
    }
}

fn h266_role(unit: &[u8]) -> Role {
    let Some(header) = NalCodec::H266.header(unit) else { return Role::Follower };
    let layer_id = header.layer_id;
    match header.nal_type {
        // sh_picture_header_in_slice_header_flag: the picture has no other slice.
        0..=11 => {
            let slice = Slice { layer_id, idr: false, reference: false };
            Role::Slice(slice, first_bit(unit, 2))
        }
        12..=14 | 20 => Role::Opener,
        15..=17 | 19 | 23 | 26 | 28 | 29 => Role::PictureOpener { layer_id },
        21 | 22 => Role::Closer,
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
    }

    #[test]
    fn h264_an_end_of_sequence_belongs_to_what_came_before() {
        let (eoseq, eostream): (&[u8], &[u8]) = (&[10], &[11]);
        assert_eq!(
            boundaries(NalCodec::H264, [IDR, eoseq, eostream, PPS, IDR]),
            [Inside, Inside, Inside, Here, Inside]
        );
        assert_eq!(boundaries(NalCodec::H264, [IDR, eoseq, P_MORE]), [Inside, Inside, Here]);
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
            boundaries(NalCodec::H265, [base, suffix_sei, prefix_sei, base, vps]),
            [Inside, Inside, Here, Inside, Here]
        );
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
            [Inside, Inside, Inside, Here, Inside]
        );
    }
}
