//! Captures of FFmpeg and GStreamer as senders, with known contents.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::{Bench, Sending, capture_of, inspect, rtp_packets, units};

/// Returns a file of the shared test media, which are absent in a plain checkout.
fn shared(name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/media").join(name);
    if !path.exists() {
        crate::skipped::not_here(format!("{name} is not beside the repository"));
        return None;
    }
    Some(path)
}

/// Returns the units without the zeros that FFmpeg's HEVC sender moves from the next start code to
/// the previous unit.
fn trimmed(path: &Path) -> Vec<Vec<u8>> {
    let mut units = units(path);
    for unit in &mut units {
        while unit.last() == Some(&0) {
            unit.pop();
        }
    }
    units
}

#[test]
fn streams_of_other_senders_become_their_files_again() {
    for (capture, packets, source) in [
        ("ff_avc_640x360_pkt1200", 277, "avc_640x360_60f_s4_b3_aud_sei.264"),
        ("ff_avc_tiny_stapa", 78, "avc_320x180_60f_tiny_nals.264"),
        ("ff_hevc_tiny_ap", 105, "hevc_192x128_90f_tiny_nals.265"),
        ("ff_opus_20ms", 250, "opus_speech_mono_20ms_5s.opus"),
        ("gst_avc_aggr_max_640x360", 277, "avc_640x360_60f_s4_b3_aud_sei.264"),
        ("gst_hevc_aggr_max_640x360", 280, "hevc_640x360_60f_s4_b4_aud_sei.265"),
        ("gst_opus_mixed", 105, "opus_speech_mono_mixed_durations.opus"),
    ] {
        let Some(path) = shared(&format!("captures/{capture}.pcap")) else { return };
        let Some(source) = shared(source) else { return };
        let (report, code) = inspect(&path, &[]);
        assert_eq!(code, 0, "{capture}");
        let stream = &report["streams"][0];
        assert_eq!(stream["packets"], packets, "{capture}");
        assert_eq!((&stream["lost"], &stream["reordered"]), (&json!(0), &json!(0)), "{capture}");
        assert_eq!(stream["discards"], json!({}), "{capture}");
        let bench = Bench::new();
        let copy = bench.path(source.file_name().unwrap().to_str().unwrap());
        let ssrc = stream["ssrc"].as_str().unwrap();
        inspect(&path, &["--extract", ssrc, "-o", copy.to_str().unwrap()]);
        assert!(trimmed(&copy) == trimmed(&source), "{capture}");
    }
}

/// Returns a little-endian capture of raw IPv4 packets (header of 20 octets) with `payload_type`
/// set in its RTP packets.
fn retyped(capture: &Path, payload_type: u8) -> Vec<u8> {
    let mut octets = std::fs::read(capture).unwrap();
    let mut at = 24;
    while let Some(len) = octets.get(at + 8..at + 12) {
        let len = u32::from_le_bytes(len.try_into().unwrap()) as usize;
        let rtp = at + 16 + 20 + 8;
        // RTCP keeps its type.
        if octets[rtp + 1] & 0x7f == 96 || octets[rtp + 1] & 0x7f == 97 {
            octets[rtp + 1] = octets[rtp + 1] & 0x80 | payload_type;
        }
        at += 16 + len;
    }
    octets
}

#[test]
fn streams_of_other_senders_are_known_by_their_packets() {
    for (capture, packets, codec) in [
        ("ff_avc_640x360_pkt1200", 277, "H.264"),
        ("ff_avc_tiny_stapa", 78, "H.264"),
        ("ff_hevc_tiny_ap", 105, "H.265"),
        ("ff_opus_20ms", 250, "Opus"),
        ("gst_avc_aggr_max_640x360", 277, "H.264"),
        ("gst_hevc_aggr_max_640x360", 280, "H.265"),
        ("gst_opus_mixed", 105, "Opus"),
        ("ff_srtp_aescm128_80_avc", 77, "unknown"),
        ("gst_srtp_aes-256-icm_hevc", 69, "unknown"),
        ("gst_srtp_aes-128-gcm_hevc", 69, "unknown"),
    ] {
        let Some(path) = shared(&format!("captures/{capture}.pcap")) else { return };
        for payload_type in [96, 97, 98, 101, 111] {
            let bench = Bench::new();
            let (report, code) = inspect(&bench.capture(&retyped(&path, payload_type)), &[]);
            assert_eq!(code, 0, "{capture}");
            let stream = &report["streams"][0];
            assert_eq!(stream["codec"], codec, "{capture} {payload_type}");
            assert_eq!((&stream["packets"], &stream["lost"]), (&json!(packets), &json!(0)));
            let random = codec == "unknown";
            assert_eq!(stream["look"]["random"].as_bool().unwrap_or_default(), random, "{capture}");
        }
    }
}

#[test]
fn every_media_file_is_known_by_its_packets() {
    let Some(folder) = shared(".") else { return };
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let codec = match path.extension().and_then(|extension| extension.to_str()) {
            Some("264") => "H.264",
            Some("265") => "H.265",
            Some("266") => "H.266",
            Some("opus") => "Opus",
            _ => continue,
        };
        files += 1;
        for (payload_type, packet_len) in [(96, 1400), (98, 300), (101, 1400)] {
            let packets = rtp_packets(&path, Sending { payload_type, ssrc: 9, packet_len });
            let bench = Bench::new();
            let (report, _) = inspect(&bench.capture(&capture_of(&packets).octets), &[]);
            let found = &report["streams"][0]["codec"];
            assert_eq!(found, codec, "{} {payload_type} {packet_len}", path.display());
        }
    }
    assert!(files > 20, "{files}");
}
