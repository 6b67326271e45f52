//! Captures of FFmpeg and GStreamer as senders, with known contents.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::{Bench, inspect, units};

/// Shared test media; absent in a plain checkout.
fn shared(name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/media").join(name);
    if !path.exists() {
        eprintln!("skipped: no {}", path.display());
        return None;
    }
    Some(path)
}

/// Without the zeros that FFmpeg's HEVC sender moves from the next start code to the unit before.
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
    for (capture, ssrc_count, source) in [
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
        assert_eq!(stream["packets"], ssrc_count, "{capture}");
        assert_eq!((&stream["lost"], &stream["reordered"]), (&json!(0), &json!(0)), "{capture}");
        assert_eq!(stream["discards"], json!({}), "{capture}");
        let bench = Bench::new();
        let copy = bench.path(source.file_name().unwrap().to_str().unwrap());
        let ssrc = stream["ssrc"].as_str().unwrap();
        inspect(&path, &["--extract", ssrc, "-o", copy.to_str().unwrap()]);
        assert!(trimmed(&copy) == trimmed(&source), "{capture}");
    }
}

#[test]
fn encrypted_streams_are_not_taken_for_a_codec() {
    for (capture, packets) in [
        ("ff_srtp_aescm128_80_avc", 77),
        ("gst_srtp_aes-256-icm_hevc", 69),
        ("gst_srtp_aes-128-gcm_hevc", 69),
    ] {
        let Some(path) = shared(&format!("captures/{capture}.pcap")) else { return };
        let (report, code) = inspect(&path, &[]);
        assert_eq!(code, 0, "{capture}");
        let stream = &report["streams"][0];
        assert_eq!(stream["codec_known"], "unknown", "{capture}");
        assert_eq!((&stream["packets"], &stream["lost"]), (&json!(packets), &json!(0)));
    }
}
