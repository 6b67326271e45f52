//! NAL unit headers.

use super::super::layers::Layers;

/// A codec whose bitstreams are NAL units.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum NalCodec {
    /// AVC, ITU-T H.264.
    H264,
    /// HEVC, ITU-T H.265.
    H265,
    /// VVC, ITU-T H.266.
    H266,
}

/// A NAL unit header: ITU-T H.264 section 7.3.1, H.265 section 7.3.1.2, H.266 section 7.3.1.2.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NalHeader {
    /// `forbidden_zero_bit`: set by a network element that found the unit damaged.
    pub forbidden_zero_bit: bool,
    /// `nal_unit_type`.
    pub nal_type: u8,
    /// `nuh_layer_id`; 0 for H.264.
    pub layer_id: u8,
    /// `nuh_temporal_id_plus1`; 0 for H.264.
    pub temporal_id_plus1: u8,
    /// `nal_ref_idc`; 0 for H.265 and H.266.
    pub ref_idc: u8,
}

impl NalCodec {
    /// Returns the octets in a NAL unit header; in H.264, types 14, 20 and 21 have three more.
    pub fn header_len(self) -> usize {
        match self {
            Self::H264 => 1,
            Self::H265 | Self::H266 => 2,
        }
    }

    /// Returns the header of `unit`; `None` if the unit is shorter than a header.
    pub fn header(self, unit: &[u8]) -> Option<NalHeader> {
        Some(match (self, unit) {
            (Self::H264, [first, ..]) => NalHeader {
                forbidden_zero_bit: first >> 7 == 1,
                nal_type: *first & 0x1f,
                layer_id: 0,
                temporal_id_plus1: 0,
                ref_idc: first >> 5 & 3,
            },
            (Self::H265, [first, second, ..]) => NalHeader {
                forbidden_zero_bit: first >> 7 == 1,
                nal_type: first >> 1 & 0x3f,
                layer_id: (first & 1) << 5 | second >> 3,
                temporal_id_plus1: second & 7,
                ref_idc: 0,
            },
            (Self::H266, [first, second, ..]) => NalHeader {
                forbidden_zero_bit: first >> 7 == 1,
                nal_type: second >> 3,
                layer_id: first & 0x3f,
                temporal_id_plus1: second & 7,
                ref_idc: 0,
            },
            _ => return None,
        })
    }

    /// Returns the layers of the NAL unit that consists of `header`, of
    /// [`header_len`](Self::header_len) octets, and `body`; `None` if it is not coded video. In H.264
    /// only units of types 14 and 20 tell layers (annexes F and G), of which type 14 tells those of the
    /// slice that follows it.
    pub fn layers(self, header: &[u8], body: &[u8]) -> Option<Layers> {
        let NalHeader { nal_type, layer_id, temporal_id_plus1, .. } = self.header(header)?;
        if self == Self::H264 {
            let extension = body.first_chunk().filter(|_| matches!(nal_type, 14 | 20))?;
            return Some(extension_layers(*extension));
        }
        let temporal_id = temporal_id_plus1.checked_sub(1).filter(|_| self.is_vcl(nal_type))?;
        let begins_stream = self.is_random_access(nal_type) && !self.is_gradual(nal_type);
        let (is_tsa, is_stsa) = match self {
            Self::H266 => (false, nal_type == 1),
            _ => (matches!(nal_type, 2 | 3), matches!(nal_type, 4 | 5)),
        };
        Some(Layers {
            temporal_id,
            spatial_id: layer_id,
            begins_layer: begins_stream || is_tsa || is_stsa,
            begins_higher: begins_stream || is_tsa,
            needs_earlier: self.is_skipped_leading(nal_type),
        })
    }

    /// Returns whether a NAL unit of this type belongs to a picture that may need others before the last
    /// random access (RASL).
    pub(super) fn is_skipped_leading(self, nal_type: u8) -> bool {
        match self {
            Self::H264 => false,
            Self::H265 => matches!(nal_type, 8 | 9),
            Self::H266 => nal_type == 3,
        }
    }

    /// Returns whether a NAL unit of this type belongs to a picture that refreshes the following ones
    /// gradually.
    fn is_gradual(self, nal_type: u8) -> bool {
        self == Self::H266 && nal_type == 10
    }

    /// Returns whether a NAL unit of this type is coded video (VCL): H.264 table 7-1 (types 20 and
    /// 21 by its annexes G to J), H.265 table 7-1, H.266 table 5.
    pub fn is_vcl(self, nal_type: u8) -> bool {
        match self {
            Self::H264 => matches!(nal_type, 1..=5 | 20 | 21),
            Self::H265 => nal_type < 32,
            Self::H266 => nal_type < 12,
        }
    }

    /// Returns whether a NAL unit of this type belongs to a picture at which decoding can start:
    /// IDR in H.264, IRAP in H.265, IRAP or GDR in H.266 (the tables of [`is_vcl`](Self::is_vcl)).
    pub fn is_random_access(self, nal_type: u8) -> bool {
        match self {
            Self::H264 => nal_type == 5,
            Self::H265 => (16..=23).contains(&nal_type),
            Self::H266 => (7..=11).contains(&nal_type),
        }
    }

    /// Returns whether a NAL unit of this type is a parameter set: sequence and picture parameter
    /// sets with their extension, subset and depth in H.264 (7, 8, 13, 15, 16), VPS, SPS and PPS in
    /// H.265 (32 to 34), VPS, SPS, PPS and both adaptation parameter sets in H.266 (14 to 18).
    pub fn is_parameter_set(self, nal_type: u8) -> bool {
        match self {
            Self::H264 => matches!(nal_type, 7 | 8 | 13 | 15 | 16),
            Self::H265 => (32..=34).contains(&nal_type),
            Self::H266 => (14..=18).contains(&nal_type),
        }
    }

    /// Returns whether a NAL unit of this type is an access unit delimiter, which is the first of
    /// its access unit by definition.
    pub fn is_access_unit_delimiter(self, nal_type: u8) -> bool {
        match self {
            Self::H264 => nal_type == 9,
            Self::H265 => nal_type == 35,
            Self::H266 => nal_type == 20,
        }
    }
}

/// Reads the header extension of SVC or, if its first bit is 0, of MVC (H.264 sections F.7.3.1.1 and
/// G.7.3.1.1).
fn extension_layers([first, second, third]: [u8; 3]) -> Layers {
    let (is_svc, flag) = (first & 0x80 != 0, first & 0x40 != 0);
    // `idr_flag` of SVC, `non_idr_flag` of MVC.
    let is_idr = flag == is_svc;
    let (temporal_id, spatial_id) =
        if is_svc { (third >> 5, second >> 4 & 7) } else { (third >> 3 & 7, 0) };
    Layers::new(temporal_id, spatial_id, is_idr)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(codec: NalCodec, unit: &[u8]) -> (u8, u8, u8, u8) {
        let header = codec.header(unit).unwrap();
        (header.nal_type, header.layer_id, header.temporal_id_plus1, header.ref_idc)
    }

    #[test]
    fn headers_are_read_bit_by_bit() {
        assert_eq!(fields(NalCodec::H264, &[0x67]), (7, 0, 0, 3));
        assert_eq!(fields(NalCodec::H265, &[0x41, 0x0a]), (32, 33, 2, 0));
        assert_eq!(fields(NalCodec::H266, &[0x05, 0x79]), (15, 5, 1, 0));
    }

    #[test]
    fn the_forbidden_bit_is_no_part_of_the_type() {
        for codec in [NalCodec::H264, NalCodec::H265, NalCodec::H266] {
            let [clear, set] =
                [[0x01, 0x09], [0x81, 0x09]].map(|unit| codec.header(&unit).unwrap());
            assert!(set.forbidden_zero_bit && !clear.forbidden_zero_bit);
            assert_eq!(NalHeader { forbidden_zero_bit: false, ..set }, clear);
        }
    }

    /// Returns the temporal and spatial layer of a unit, and what begins at it.
    fn layers(codec: NalCodec, unit: &[u8]) -> Option<(u8, u8, bool, bool)> {
        let (header, body) = unit.split_at_checked(codec.header_len())?;
        let it = codec.layers(header, body)?;
        Some((it.temporal_id, it.spatial_id, it.begins_layer, it.begins_higher))
    }

    #[test]
    fn layers_are_read_bit_by_bit() {
        let h264 = |unit: &[u8]| layers(NalCodec::H264, unit);
        // Prefix units: of an IDR picture, and of a layer of SVC; a slice of SVC; MVC.
        assert_eq!(h264(&[0x6e, 0xc0, 0x80, 0x0f]), Some((0, 0, true, true)));
        assert_eq!(h264(&[0x2e, 0x85, 0x93, 0x4f]), Some((2, 1, false, false)));
        assert_eq!(h264(&[0x74, 0x80, 0x70, 0xe0, 9]), Some((7, 7, false, false)));
        assert_eq!(h264(&[0x74, 0x40, 0xff, 0xd8]), Some((3, 0, false, false)));
        assert_eq!(h264(&[0x74, 0x00, 0xff, 0xc0]), Some((0, 0, true, true)));
        // A slice tells nothing, nor does an extension that is cut off.
        assert_eq!((h264(&[0x65, 0x88, 0x80, 0x0f]), h264(&[0x6e, 0xc0, 0x80])), (None, None));
        let h265 = |nal_type: u8, second: u8| layers(NalCodec::H265, &[nal_type << 1, second]);
        assert_eq!(h265(1, 0x01), Some((0, 0, false, false)));
        assert_eq!(h265(2, 0x0b), Some((2, 1, true, true)), "TSA_N");
        assert_eq!(h265(5, 0x02), Some((1, 0, true, false)), "STSA_R");
        assert_eq!(h265(19, 0x01), Some((0, 0, true, true)), "IDR_W_RADL");
        assert_eq!(
            (h265(35, 0x01), h265(1, 0x00)),
            (None, None),
            "a delimiter; a forbidden number"
        );
        let h266 = |nal_type: u8, layer| layers(NalCodec::H266, &[layer, nal_type << 3 | 2]);
        assert_eq!(h266(0, 3), Some((1, 3, false, false)));
        assert_eq!(h266(1, 0), Some((1, 0, true, false)), "STSA");
        assert_eq!(h266(8, 0), Some((1, 0, true, true)), "IDR_N_LP");
        assert_eq!(h266(10, 0), Some((1, 0, false, false)), "GDR");
    }

    #[test]
    fn types_are_sorted_as_in_the_tables_of_the_standards() {
        let types = |codec: NalCodec, is: fn(NalCodec, u8) -> bool| -> Vec<u8> {
            (0..64).filter(|nal_type| is(codec, *nal_type)).collect()
        };
        let table = |codec| match codec {
            NalCodec::H264 => {
                [vec![1, 2, 3, 4, 5, 20, 21], vec![5], vec![7, 8, 13, 15, 16], vec![9]]
            }
            NalCodec::H265 => [(0..32).collect(), (16..24).collect(), vec![32, 33, 34], vec![35]],
            NalCodec::H266 => {
                [(0..12).collect(), (7..12).collect(), vec![14, 15, 16, 17, 18], vec![20]]
            }
        };
        for codec in [NalCodec::H264, NalCodec::H265, NalCodec::H266] {
            let found = [
                types(codec, NalCodec::is_vcl),
                types(codec, NalCodec::is_random_access),
                types(codec, NalCodec::is_parameter_set),
                types(codec, NalCodec::is_access_unit_delimiter),
            ];
            assert_eq!(found, table(codec), "{codec:?}");
        }
    }

    #[test]
    fn units_shorter_than_a_header_have_none() {
        assert_eq!(NalCodec::H264.header(&[]), None);
        assert_eq!(NalCodec::H265.header(&[0x40]), None);
        assert_eq!(NalCodec::H266.header(&[0x00]), None);
    }
}
