//! NAL unit headers.

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
    /// Octets in a NAL unit header; H.264's types 14, 20 and 21 have three more.
    pub fn header_len(self) -> usize {
        match self {
            Self::H264 => 1,
            Self::H265 | Self::H266 => 2,
        }
    }

    /// The header of `unit`; `None` if the unit is shorter than a header.
    pub fn header(self, unit: &[u8]) -> Option<NalHeader> {
        Some(match (self, unit) {
            (Self::H264, [first, ..]) => NalHeader {
                nal_type: *first & 0x1f,
                layer_id: 0,
                temporal_id_plus1: 0,
                ref_idc: first >> 5 & 3,
            },
            (Self::H265, [first, second, ..]) => NalHeader {
                nal_type: first >> 1 & 0x3f,
                layer_id: (first & 1) << 5 | second >> 3,
                temporal_id_plus1: second & 7,
                ref_idc: 0,
            },
            (Self::H266, [first, second, ..]) => NalHeader {
                nal_type: second >> 3,
                layer_id: first & 0x3f,
                temporal_id_plus1: second & 7,
                ref_idc: 0,
            },
            _ => return None,
        })
    }

    /// Whether a NAL unit of this type is coded video (VCL): table 7-1 of H.264 and H.265, table
    /// 5 of H.266.
    pub fn is_vcl(self, nal_type: u8) -> bool {
        match self {
            Self::H264 => matches!(nal_type, 1..=5 | 20 | 21),
            Self::H265 => nal_type < 32,
            Self::H266 => nal_type < 12,
        }
    }

    /// Whether a NAL unit of this type belongs to a picture from which decoding can start: IDR in
    /// H.264, IRAP in H.265, IRAP or GDR in H.266.
    pub fn is_random_access(self, nal_type: u8) -> bool {
        match self {
            Self::H264 => nal_type == 5,
            Self::H265 => (16..=23).contains(&nal_type),
            Self::H266 => (7..=11).contains(&nal_type),
        }
    }
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
    fn units_shorter_than_a_header_have_none() {
        assert_eq!(NalCodec::H264.header(&[]), None);
        assert_eq!(NalCodec::H265.header(&[0x40]), None);
        assert_eq!(NalCodec::H266.header(&[0x00]), None);
    }
}
