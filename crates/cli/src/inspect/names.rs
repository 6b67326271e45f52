//! Names of numbers in the standards: NAL unit types, packet types, payload types.

use rushes::proto::payload::nal::NalCodec;

/// Returns the name of a NAL unit type: ITU-T H.264 table 7-1, H.265 table 7-1, H.266 table 5.
pub(crate) fn nal_unit_type(codec: NalCodec, nal_type: u8) -> &'static str {
    match codec {
        NalCodec::H264 => h264(nal_type),
        NalCodec::H265 => h265(nal_type),
        NalCodec::H266 => h266(nal_type),
    }
}

fn h264(nal_type: u8) -> &'static str {
    match nal_type {
        1 => "slice",
        2 => "slice data partition A",
        3 => "slice data partition B",
        4 => "slice data partition C",
        5 => "IDR slice",
        6 => "SEI",
        7 => "SPS",
        8 => "PPS",
        9 => "access unit delimiter",
        10 => "end of sequence",
        11 => "end of stream",
        12 => "filler data",
        13 => "SPS extension",
        14 => "prefix NAL unit",
        15 => "subset SPS",
        16 => "depth parameter set",
        19 => "auxiliary slice",
        20 => "slice extension",
        21 => "depth slice extension",
        0 | 24..=31 => "unspecified",
        _ => "reserved",
    }
}

fn h265(nal_type: u8) -> &'static str {
    const VCL: [&str; 22] = [
        "TRAIL_N",
        "TRAIL_R",
        "TSA_N",
        "TSA_R",
        "STSA_N",
        "STSA_R",
        "RADL_N",
        "RADL_R",
        "RASL_N",
        "RASL_R",
        "reserved",
        "reserved",
        "reserved",
        "reserved",
        "reserved",
        "reserved",
        "BLA_W_LP",
        "BLA_W_RADL",
        "BLA_N_LP",
        "IDR_W_RADL",
        "IDR_N_LP",
        "CRA",
    ];
    match nal_type {
        0..=21 => VCL[usize::from(nal_type)],
        32 => "VPS",
        33 => "SPS",
        34 => "PPS",
        35 => "access unit delimiter",
        36 => "end of sequence",
        37 => "end of bitstream",
        38 => "filler data",
        39 => "SEI (prefix)",
        40 => "SEI (suffix)",
        48..=63 => "unspecified",
        _ => "reserved",
    }
}

fn h266(nal_type: u8) -> &'static str {
    match nal_type {
        0 => "TRAIL",
        1 => "STSA",
        2 => "RADL",
        3 => "RASL",
        7 => "IDR_W_RADL",
        8 => "IDR_N_LP",
        9 => "CRA",
        10 => "GDR",
        12 => "operating point information",
        13 => "decoding capability information",
        14 => "VPS",
        15 => "SPS",
        16 => "PPS",
        17 => "APS (prefix)",
        18 => "APS (suffix)",
        19 => "picture header",
        20 => "access unit delimiter",
        21 => "end of sequence",
        22 => "end of bitstream",
        23 => "SEI (prefix)",
        24 => "SEI (suffix)",
        25 => "filler data",
        28..=31 => "unspecified",
        _ => "reserved",
    }
}

/// Returns the packet type of a payload, by its first octets: RFC 6184 section 5.4, RFC 7798
/// section 4.4, RFC 9328 section 4.3.
pub(crate) fn packet_type(codec: NalCodec, payload: &[u8]) -> &'static str {
    let Some(header) = codec.header(payload) else { return "too short" };
    match (codec, header.nal_type) {
        (NalCodec::H264, 24) => "STAP-A",
        (NalCodec::H264, 25) => "STAP-B",
        (NalCodec::H264, 26) => "MTAP16",
        (NalCodec::H264, 27) => "MTAP24",
        (NalCodec::H264, 28) => "FU-A",
        (NalCodec::H264, 29) => "FU-B",
        (NalCodec::H265, 48) | (NalCodec::H266, 28) => "AP",
        (NalCodec::H265, 49) | (NalCodec::H266, 29) => "FU",
        (NalCodec::H265, 50) => "PACI",
        (NalCodec::H264, 1..=23) | (NalCodec::H265, 0..=47) | (NalCodec::H266, 0..=27) => "single",
        _ => "unknown",
    }
}

/// Returns the coding of an Opus packet, by its TOC octet (RFC 6716 section 3.1, table 2).
pub(crate) fn opus_mode(toc: u8) -> &'static str {
    match toc >> 3 {
        0..=3 => "SILK, narrowband",
        4..=7 => "SILK, medium band",
        8..=11 => "SILK, wideband",
        12..=13 => "hybrid, super-wideband",
        14..=15 => "hybrid, fullband",
        16..=19 => "CELT, narrowband",
        20..=23 => "CELT, wideband",
        24..=27 => "CELT, super-wideband",
        _ => "CELT, fullband",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_that_the_library_sorts_have_the_names_of_their_sort() {
        for codec in [NalCodec::H264, NalCodec::H265, NalCodec::H266] {
            for nal_type in 0..64 {
                let name = nal_unit_type(codec, nal_type);
                if codec.is_access_unit_delimiter(nal_type) {
                    assert_eq!(name, "access unit delimiter");
                }
                if name.ends_with("SPS") || name.ends_with("PPS") || name == "VPS" {
                    assert!(codec.is_parameter_set(nal_type), "{codec:?} {nal_type}");
                }
                if name.starts_with("IDR") || name == "CRA" {
                    assert!(codec.is_random_access(nal_type), "{codec:?} {nal_type}");
                }
            }
        }
    }

    #[test]
    fn packets_are_known_by_their_first_octets() {
        assert_eq!(packet_type(NalCodec::H264, &[0x7c, 0x85]), "FU-A");
        assert_eq!(packet_type(NalCodec::H264, &[0x65]), "single");
        assert_eq!(packet_type(NalCodec::H265, &[0x62, 1]), "FU");
        assert_eq!(packet_type(NalCodec::H266, &[0, 0xe1]), "AP");
        assert_eq!(packet_type(NalCodec::H266, &[0]), "too short");
    }
}
