//! Format parameters from the parameter sets of real streams.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../../../interop/skipped.rs"]
mod skipped;

use std::path::PathBuf;

use rushes_proto::payload::Framing;
use rushes_proto::payload::nal::find_units;
use rushes_proto::sdp::{
    Description, Encoding, Format, H264Parameters, H265Parameters, H266Parameters, Media,
    MediaKind, Origin, ParameterSetError,
};
use rushes_proto::{PayloadType, Ssrc};

/// Returns the NAL units of a media file of the project, or of one beside it.
fn units(name: &str) -> Option<Vec<Vec<u8>>> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let own = root.join("vectors/media").join(name);
    let path = if own.exists() { own } else { root.join("../shared/media").join(name) };
    let Ok(octets) = std::fs::read(&path) else {
        skipped::not_here(format!("{name} is not beside the repository"));
        return None;
    };
    let mut units = Vec::new();
    find_units(&octets, Framing::AnnexB, &mut units).unwrap();
    Some(units.into_iter().map(|unit| octets[unit].to_vec()).collect())
}

/// Returns the first of `units` for which `decode` returns `value`, if any.
fn first(units: &[Vec<u8>], value: u8, decode: fn(&[u8]) -> u8) -> Vec<&[u8]> {
    units.iter().find(|unit| decode(unit) == value).map(Vec::as_slice).into_iter().collect()
}

#[test]
fn h264_has_the_profile_and_level_that_ffmpeg_reads() {
    for (name, expected) in [
        ("avc_cif_60f_baseline.264", [66, 0xc0, 13]),
        ("avc_640x360_30f_high422_10bit.264", [122, 0, 30]),
    ] {
        let Some(units) = units(name) else { continue };
        let of_type = |value| first(&units, value, |unit| unit[0] & 0x1f);
        let parameters = H264Parameters::from_parameter_sets(&of_type(7), &of_type(8)).unwrap();
        assert_eq!(parameters.profile_level_id, Some(expected), "{name}");
        assert_eq!(parameters.packetization_mode, 1);
        assert_eq!(parameters.parameter_sets.len(), 2);
    }
}

#[test]
fn h265_has_the_profile_and_level_that_ffmpeg_reads() {
    for (name, profile_id, compatibility, level_id) in [
        ("hevc_192x128_90f_tiny_nals.265", 1, 0x6000_0000, 60),
        ("hevc_416x240_30f_main10_hdrsei.265", 2, 0x2000_0000, 60),
        ("hevc_1080p_30f_b3.265", 1, 0x6000_0000, 120),
    ] {
        let Some(units) = units(name) else { continue };
        let of_type = |value| first(&units, value, |unit| unit[0] >> 1);
        let sets = [of_type(32), of_type(33), of_type(34)];
        let parameters = H265Parameters::from_parameter_sets(&sets[0], &sets[1], &sets[2]).unwrap();
        assert_eq!(parameters.profile_space, Some(0), "{name}");
        assert_eq!(parameters.profile_id, Some(profile_id), "{name}");
        assert_eq!(parameters.profile_compatibility, Some(compatibility), "{name}");
        assert_eq!(parameters.tier_flag, Some(false), "{name}");
        assert_eq!(parameters.level_id, Some(level_id), "{name}");
        assert_eq!(parameters.interop_constraints, Some([0x90, 0, 0, 0, 0, 0]), "{name}");
    }
}

#[test]
fn h266_has_the_profile_and_level_that_its_pictures_need() {
    for (name, level_id) in
        [("vvc_192x128_64f_vvenc_tiny_nals.266", 32), ("vvc_1080p_10f_vvenc.266", 64)]
    {
        let Some(units) = units(name) else { continue };
        let of_type = |value| first(&units, value, |unit| unit[1] >> 3);
        let parameters =
            H266Parameters::from_parameter_sets(&of_type(14), &of_type(15), &of_type(16)).unwrap();
        assert_eq!(parameters.profile_id, Some(1), "{name}: Main 10");
        assert_eq!(parameters.tier_flag, Some(false), "{name}");
        assert_eq!(parameters.level_id, Some(level_id), "{name}");
        assert_eq!(parameters.interop_constraints, Some(vec![0x80]), "{name}");
        assert!(parameters.vps.is_empty() && parameters.sps.len() == 1);
    }
}

#[test]
fn general_constraints_of_h266_are_not_guessed() {
    let sps = [0, 0x79, 0, 0xab, 0x02, 0x40, 0xa0, 0, 0];
    let parameters = H266Parameters::from_parameter_sets(&[], &[&sps], &[]).unwrap();
    assert_eq!((parameters.level_id, parameters.interop_constraints), (Some(64), None));
    let without = [0, 0x79, 0, 0xaa, 0x02, 0x40, 0x80];
    let parameters = H266Parameters::from_parameter_sets(&[], &[&without], &[]).unwrap();
    assert_eq!((parameters.profile_id, parameters.level_id), (None, None));
}

#[test]
fn the_high_tier_is_read() {
    let mut sps = [0x42, 1, 1, 0x21, 0x60, 0, 0, 3, 0, 0xb0, 0, 0, 3, 0, 0, 3, 0, 123];
    let parameters = H265Parameters::from_parameter_sets(&[], &[&sps], &[]).unwrap();
    assert_eq!((parameters.tier_flag, parameters.profile_id), (Some(true), Some(1)));
    assert_eq!(parameters.interop_constraints, Some([0xb0, 0, 0, 0, 0, 0]));
    assert_eq!(parameters.level_id, Some(123));
    sps[0] = 0x44;
    let error = H265Parameters::from_parameter_sets(&[], &[&sps], &[]).unwrap_err();
    assert!(matches!(error, ParameterSetError::NalType { found: 34, .. }), "{error}");
}

#[test]
fn a_missing_or_short_parameter_set_is_an_error() {
    assert!(matches!(
        H264Parameters::from_parameter_sets(&[], &[]),
        Err(ParameterSetError::Truncated("H.264 sequence parameter set"))
    ));
    assert!(matches!(
        H264Parameters::from_parameter_sets(&[&[0x68, 1, 2, 3]], &[]),
        Err(ParameterSetError::NalType { found: 8, .. })
    ));
    assert!(H265Parameters::from_parameter_sets(&[], &[&[0x42, 1, 1]], &[]).is_err());
    assert!(H266Parameters::from_parameter_sets(&[], &[&[0, 0x79, 0]], &[]).is_err());
}

#[test]
fn a_description_of_our_own_reads_as_it_was_made() {
    let sps: &[u8] = &[0x67, 0x42, 0xc0, 0x0d, 0xda];
    let parameters = H264Parameters::from_parameter_sets(&[sps], &[&[0x68, 0xce]]).unwrap();
    let address: std::net::IpAddr = "192.0.2.7".parse().unwrap();
    let mut media = Media::new(MediaKind::Video, 5004);
    media.address = Some(address.into());
    media.formats.push(Format::new(PayloadType::H264, Encoding::H264(parameters)));
    media.ssrcs.push(rushes_proto::sdp::Source { ssrc: Ssrc(7), cname: Some("a@b".into()) });
    let mut description = Description::new(Origin::new(1, address), "rushes");
    description.media.push(media);
    let written = description.write();
    assert_eq!(
        written,
        "v=0\r\no=- 1 0 IN IP4 192.0.2.7\r\ns=rushes\r\nc=IN IP4 192.0.2.7\r\nt=0 0\r\n\
         m=video 5004 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n\
         a=fmtp:96 packetization-mode=1; profile-level-id=42C00D; \
         sprop-parameter-sets=Z0LADdo=,aM4=\r\na=ssrc:7 cname:a@b\r\n"
    );
    assert_eq!(Description::parse(written.as_bytes()).unwrap(), description);
}
