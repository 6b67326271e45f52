//! Real bitstreams through the NAL layer: units and access units as the files' makers counted.
//!
//! The project's own few files are always read; the larger set only where it lies beside the
//! project.
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::path::PathBuf;

use rushes_proto::payload::Framing;
use rushes_proto::payload::nal::{AccessUnitReader, NalCodec, find_units};

/// File, NAL units, access units (pictures; files whose pictures have parameter sets of higher
/// layers or fields are not among them).
const FILES: [(&str, usize, usize); 28] = [
    ("avc_cif_60f_baseline.264", 63, 60),
    ("hevc_192x128_90f_tiny_nals.265", 648, 90),
    ("vvc_192x128_64f_vvenc_tiny_nals.266", 202, 64),
    ("avc_1080p_30f_b2.264", 35, 30),
    ("avc_1080p_4f_intra_large_single_slice.264", 17, 4),
    ("avc_320x180_60f_tiny_nals.264", 545, 60),
    ("avc_416x240_60f_intra_refresh_recovery_sei.264", 66, 60),
    ("avc_640x360_30f_high422_10bit.264", 66, 30),
    ("avc_640x360_30f_oh264_s4.264", 124, 30),
    ("avc_640x360_60f_s4_b3_aud_sei.264", 367, 60),
    ("hevc_1080p_30f_b3.265", 38, 30),
    ("hevc_1080p_4f_intra_large_single_slice.265", 24, 4),
    ("hevc_416x240_30f_main10_hdrsei.265", 42, 30),
    ("hevc_640x360_30f_kvz_tiles_slices_gop8.265", 157, 30),
    ("hevc_640x360_60f_s4_b4_aud_sei.265", 372, 60),
    ("var_avc_cif_all_3byte_sc.264", 63, 60),
    ("var_avc_cif_all_4byte_sc.264", 63, 60),
    ("var_avc_cif_leading_trailing_zeros.264", 63, 60),
    ("var_hevc_192x128_all_3byte_sc.265", 648, 90),
    ("var_hevc_192x128_leading_trailing_zeros.265", 648, 90),
    ("vvc_1080p_10f_vvenc.266", 14, 10),
    ("vvc_1080p_3f_vvenc_intra_large_single_slice.266", 11, 3),
    ("vvc_416x240_48f_libvvenc_cra.266", 113, 48),
    ("vvc_416x240_4f_vtm_intra_raster_slices.266", 36, 4),
    ("vvc_416x240_6f_vtm_ldp_4slices_highrate.266", 39, 6),
    ("vvc_640x360_30f_uvg266_lowdelay_wpp.266", 63, 30),
    ("vvc_640x360_32f_vvenc_rc_hrdsei.266", 105, 32),
    ("vvc_640x360_60f_vvenc_tiles2x2_aud_hash.266", 195, 60),
];

fn read(name: &str) -> Option<Vec<u8>> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    [root.join("vectors/media").join(name), root.join("../shared/media").join(name)]
        .iter()
        .find_map(|path| std::fs::read(path).ok())
}

fn codec(name: &str) -> NalCodec {
    match name.rsplit('.').next() {
        Some("264") => NalCodec::H264,
        Some("265") => NalCodec::H265,
        _ => NalCodec::H266,
    }
}

/// The access units of `octets`, fed in pieces of `piece` octets.
fn access_units(name: &str, octets: &[u8], piece: usize) -> Vec<Vec<u8>> {
    let mut reader = AccessUnitReader::new(codec(name), Framing::AnnexB);
    let mut access_units = Vec::new();
    for piece in octets.chunks(piece) {
        reader.feed(piece);
        while let Some(access_unit) = reader.next_access_unit().unwrap() {
            access_units.push(access_unit.to_vec());
        }
    }
    reader.finish();
    while let Some(access_unit) = reader.next_access_unit().unwrap() {
        access_units.push(access_unit.to_vec());
    }
    access_units
}

fn units(octets: &[u8]) -> Vec<Vec<u8>> {
    let mut units = Vec::new();
    find_units(octets, Framing::AnnexB, &mut units).unwrap();
    units.into_iter().map(|unit| octets[unit].to_vec()).collect()
}

#[test]
fn units_and_access_units_are_those_of_the_files() {
    let mut present = 0;
    for (name, unit_count, picture_count) in FILES {
        let Some(octets) = read(name) else { continue };
        present += 1;
        let whole = units(&octets);
        assert_eq!(whole.len(), unit_count, "{name}: NAL units");
        for piece in [octets.len(), 4096, 7] {
            let access_units = access_units(name, &octets, piece);
            assert_eq!(access_units.len(), picture_count, "{name}: access units");
            let again: Vec<Vec<u8>> =
                access_units.iter().flat_map(|access_unit| units(access_unit)).collect();
            assert!(again == whole, "{name}: units differ when fed {piece} octets at a time");
        }
    }
    assert!(present >= 4, "the project's own files are missing");
    if present < FILES.len() {
        eprintln!(
            "{} of {} files are not here and were skipped",
            FILES.len() - present,
            FILES.len()
        );
    }
}
