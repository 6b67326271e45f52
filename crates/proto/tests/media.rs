//! Real bitstreams through the NAL layer, compared with the units and access units that the makers
//! of the files counted.
//!
//! The few files of the project are always read; a larger set only if it is present.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../../../interop/skipped.rs"]
mod skipped;

use std::collections::BTreeMap;
use std::path::PathBuf;

use rushes_proto::payload::Framing;
use rushes_proto::payload::nal::{AccessUnitReader, NalCodec, find_units};

/// File; NAL units by `nal_unit_type`; number of VCL NAL units; number of access units.
const FILES: [(&str, &str, usize, usize); 28] = [
    ("avc_cif_60f_baseline.264", "1:59 5:1 6:1 7:1 8:1", 60, 60),
    (
        "hevc_192x128_90f_tiny_nals.265",
        "0:168 1:172 8:8 20:4 21:8 32:3 33:3 34:3 35:90 39:99 40:90",
        360,
        90,
    ),
    ("vvc_192x128_64f_vvenc_tiny_nals.266", "2:60 7:4 15:4 16:4 17:2 20:64 24:64", 64, 64),
    ("avc_1080p_30f_b2.264", "1:28 5:2 6:1 7:2 8:2", 30, 30),
    ("avc_1080p_4f_intra_large_single_slice.264", "5:4 6:1 7:4 8:4 9:4", 4, 4),
    ("avc_320x180_60f_tiny_nals.264", "1:305 5:110 6:64 7:3 8:3 9:60", 415, 60),
    ("avc_416x240_60f_intra_refresh_recovery_sei.264", "1:59 5:1 6:2 7:2 8:2", 60, 60),
    ("avc_640x360_30f_high422_10bit.264", "1:58 5:2 6:2 7:2 8:2", 60, 30),
    ("avc_640x360_30f_oh264_s4.264", "1:112 5:8 7:2 8:2", 120, 30),
    ("avc_640x360_60f_s4_b3_aud_sei.264", "1:232 5:8 6:63 7:2 8:2 9:60", 240, 60),
    ("hevc_1080p_30f_b3.265", "0:13 1:13 8:1 9:1 20:1 21:1 32:2 33:2 34:2 39:2", 30, 30),
    ("hevc_1080p_4f_intra_large_single_slice.265", "20:4 32:4 33:4 34:4 35:4 39:4", 4, 4),
    (
        "hevc_416x240_30f_main10_hdrsei.265",
        "0:10 1:15 8:2 9:1 20:1 21:1 32:2 33:2 34:2 39:6",
        30,
        30,
    ),
    (
        "hevc_640x360_30f_kvz_tiles_slices_gop8.265",
        "1:84 9:28 19:4 21:4 32:2 33:2 34:2 39:1 40:30",
        120,
        30,
    ),
    (
        "hevc_640x360_60f_s4_b4_aud_sei.265",
        "0:116 1:100 8:12 9:4 20:4 21:4 32:2 33:2 34:2 35:60 39:66",
        240,
        60,
    ),
    ("var_avc_cif_all_3byte_sc.264", "1:59 5:1 6:1 7:1 8:1", 60, 60),
    ("var_avc_cif_all_4byte_sc.264", "1:59 5:1 6:1 7:1 8:1", 60, 60),
    ("var_avc_cif_leading_trailing_zeros.264", "1:59 5:1 6:1 7:1 8:1", 60, 60),
    (
        "var_hevc_192x128_all_3byte_sc.265",
        "0:168 1:172 8:8 20:4 21:8 32:3 33:3 34:3 35:90 39:99 40:90",
        360,
        90,
    ),
    (
        "var_hevc_192x128_leading_trailing_zeros.265",
        "0:168 1:172 8:8 20:4 21:8 32:3 33:3 34:3 35:90 39:99 40:90",
        360,
        90,
    ),
    ("vvc_1080p_10f_vvenc.266", "1:2 2:7 7:1 15:1 16:1 17:2", 10, 10),
    ("vvc_1080p_3f_vvenc_intra_large_single_slice.266", "8:1 9:2 15:3 16:3 17:2", 3, 3),
    ("vvc_416x240_48f_libvvenc_cra.266", "2:15 3:30 7:1 9:2 15:3 16:3 17:11 20:48", 48, 48),
    ("vvc_416x240_4f_vtm_intra_raster_slices.266", "8:3 9:9 15:4 16:4 17:8 19:4 24:4", 12, 4),
    ("vvc_416x240_6f_vtm_ldp_4slices_highrate.266", "0:20 8:4 15:1 16:1 17:1 19:6 24:6", 24, 6),
    ("vvc_640x360_30f_uvg266_lowdelay_wpp.266", "0:28 8:2 15:1 16:1 23:1 24:30", 30, 30),
    ("vvc_640x360_32f_vvenc_rc_hrdsei.266", "1:15 3:15 8:1 9:1 15:2 16:2 17:3 20:32 23:34", 32, 32),
    (
        "vvc_640x360_60f_vvenc_tiles2x2_aud_hash.266",
        "1:12 2:45 7:3 15:3 16:3 17:9 20:60 24:60",
        60,
        60,
    ),
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

/// Returns the access units of `octets`, passed in pieces of `piece` octets.
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

/// Returns how many of `units` have each type, as in `FILES`, and how many are coded video.
fn types(codec: NalCodec, units: &[Vec<u8>]) -> (String, usize) {
    let types: Vec<u8> = units.iter().map(|unit| codec.header(unit).unwrap().nal_type).collect();
    let mut counts = BTreeMap::new();
    for nal_type in &types {
        *counts.entry(nal_type).or_insert(0) += 1;
    }
    let counts: Vec<String> =
        counts.iter().map(|(kind, count)| format!("{kind}:{count}")).collect();
    (counts.join(" "), types.iter().filter(|nal_type| codec.is_vcl(**nal_type)).count())
}

/// Calls `check` for each file that is present : name, octets, types, VCL units, access units.
fn for_each_file(check: fn(&str, &[u8], &str, usize, usize)) {
    let mut present = 0;
    for (name, unit_types, coded, access_units) in FILES {
        let Some(octets) = read(name) else { continue };
        present += 1;
        check(name, &octets, unit_types, coded, access_units);
    }
    assert!(present >= 3, "the project's own files are missing");
    if present < FILES.len() {
        let absent = FILES.len() - present;
        let all = FILES.len();
        skipped::not_here(format!("{absent} of {all} files are not beside the repository"));
    }
}

#[test]
fn units_are_those_of_the_files() {
    for_each_file(|name, octets, unit_types, coded, _| {
        assert_eq!(types(codec(name), &units(octets)), (unit_types.to_owned(), coded), "{name}");
    });
}

#[test]
fn access_units_are_the_pictures_of_the_files_however_they_are_fed() {
    for_each_file(|name, octets, _, _, count| {
        let whole = units(octets);
        for piece in [octets.len(), 4096, 7, 1] {
            let access_units = access_units(name, octets, piece);
            assert_eq!(access_units.len(), count, "{name}: access units");
            let again: Vec<Vec<u8>> =
                access_units.iter().flat_map(|access_unit| units(access_unit)).collect();
            assert!(again == whole, "{name}: units differ when fed {piece} octets at a time");
        }
    });
}

#[test]
fn each_access_unit_has_the_slices_of_one_picture() {
    for_each_file(|name, octets, _, coded, count| {
        let codec = codec(name);
        let slices: Vec<usize> = access_units(name, octets, octets.len())
            .iter()
            .map(|access_unit| types(codec, &units(access_unit)).1)
            .collect();
        assert!(slices.iter().all(|slices| *slices > 0), "{name}: an access unit has no picture");
        assert!(slices.len() == count && slices.iter().sum::<usize>() == coded, "{name}");
    });
}

#[test]
fn length_prefixed_streams_have_the_same_access_units() {
    for_each_file(|name, octets, _, _, _| {
        let mut stream = Vec::new();
        for unit in units(octets) {
            stream.extend_from_slice(&(unit.len() as u32).to_be_bytes());
            stream.extend_from_slice(&unit);
        }
        let mut reader = AccessUnitReader::new(codec(name), Framing::LengthPrefixed);
        let mut ranges = Vec::new();
        for (n, expected) in access_units(name, octets, octets.len()).iter().enumerate() {
            let access_unit = loop {
                if let Some(access_unit) = reader.next_access_unit().unwrap() {
                    break access_unit;
                }
                assert!(!stream.is_empty(), "{name}: access unit {n} is missing");
                reader.feed(&std::mem::take(&mut stream));
                reader.finish();
            };
            find_units(access_unit, Framing::LengthPrefixed, &mut ranges).unwrap();
            let found: Vec<&[u8]> = ranges.iter().map(|unit| &access_unit[unit.clone()]).collect();
            assert!(found == units(expected), "{name}: access unit {n} differs");
        }
        assert_eq!(reader.next_access_unit(), Ok(None), "{name}");
    });
}
