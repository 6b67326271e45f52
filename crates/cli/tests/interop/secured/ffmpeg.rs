//! SRTP with FFmpeg at the other end.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::{
    AES_128_32, AES_128_80, NAME, Suite, assert_encrypted, copy_path, receive_secured, send_secured,
};
use crate::ffmpeg::{GOODBYE, ffmpeg_receives, ffmpeg_sends_to, format};
use crate::media::{H264, H265, Kind, assert_same};
use crate::relay::Recorder;
use crate::rig::{describe, have, ports, received};

/// Makes FFmpeg send `file` to `port` with the key of `suite`, under the suite name `name`.
fn ffmpeg_sends(file: &Path, port: u16, kind: Kind, name: &str, suite: Suite) {
    let key = suite.base64();
    let more = ["-srtp_out_suite", name, "-srtp_out_params", &key, "-cname", NAME];
    ffmpeg_sends_to(&format!("srtp://127.0.0.1:{port}"), file, kind, &more);
}

fn from_ffmpeg(suite: Suite, kind: Kind) {
    if !have(&["ffmpeg"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (n, file) in kind.files(folder.path()).iter().enumerate() {
        let port = ports();
        let copy = copy_path(folder.path(), n, kind);
        let process = receive_secured(&copy, port, suite, "2s");
        let relay = Recorder::to(port);
        ffmpeg_sends(file, relay.port, kind, suite.ffmpeg, suite);
        let report = received(process);
        assert_encrypted(relay, file, true);
        assert_same(file, &copy);
        assert_eq!(report["received"]["discards"], json!({}), "{report}");
        // FFmpeg's sender report, its name and its goodbye were read.
        let control = &report["rtcp"];
        let peer = &control["peers"][0];
        assert_eq!(peer["packets_sent"], report["received"]["packets"], "{report}");
        assert_eq!(peer["cname"], NAME, "{report}");
        assert_eq!(control["goodbyes"].as_array().unwrap().len(), 1, "{report}");
        assert_eq!(control["unauthentic"], 0, "{report}");
    }
}

#[test]
fn ffmpeg_sends_h264_with_long_tags() {
    from_ffmpeg(AES_128_80, H264);
}

#[test]
fn ffmpeg_sends_h265_with_long_tags() {
    from_ffmpeg(AES_128_80, H265);
}

#[test]
fn ffmpeg_sends_h264_with_short_tags() {
    from_ffmpeg(AES_128_32, H264);
}

#[test]
fn ffmpeg_sends_h265_with_short_tags() {
    from_ffmpeg(AES_128_32, H265);
}

/// Writes a description of `file` on `port` that contains the key, as FFmpeg itself writes it: with
/// the profile of plain RTP.
fn describe_secured(file: &Path, port: u16, folder: &Path, suite: Suite) -> PathBuf {
    let sdp = describe(file, port, folder, &[]);
    let mut text = fs::read_to_string(&sdp).unwrap();
    let _ = write!(text, "a=crypto:1 {} inline:{}\r\n", suite.ffmpeg, suite.base64());
    fs::write(&sdp, text).unwrap();
    sdp
}

fn to_ffmpeg(suite: Suite, kind: Kind) {
    if !have(&["ffmpeg"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (n, file) in kind.files(folder.path()).iter().enumerate() {
        let port = ports();
        let sdp = describe_secured(file, port, folder.path(), suite);
        let copy = copy_path(folder.path(), n, kind);
        let output = ["-c", "copy", "-f", format(kind), "-y", copy.to_str().unwrap()];
        let process = ffmpeg_receives(&sdp, port, &output);
        let relay = Recorder::to(port);
        send_secured(file, relay.port, suite);
        // The goodbye ends it, or Ctrl-C if the goodbye was lost.
        process.stop_after(GOODBYE);
        assert_encrypted(relay, file, true);
        assert_same(file, &copy);
    }
}

#[test]
fn ffmpeg_receives_h264_with_long_tags() {
    to_ffmpeg(AES_128_80, H264);
}

#[test]
fn ffmpeg_receives_h265_with_long_tags() {
    to_ffmpeg(AES_128_80, H265);
}

#[test]
fn ffmpeg_receives_h264_with_short_tags() {
    to_ffmpeg(AES_128_32, H264);
}

#[test]
fn ffmpeg_receives_h265_with_short_tags() {
    to_ffmpeg(AES_128_32, H265);
}

#[test]
fn media_arrives_although_ffmpeg_shortens_the_tags_of_reports() {
    if !have(&["ffmpeg"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (port, file) = (ports(), H264.own());
    let copy = copy_path(folder.path(), 0, H264);
    let process = receive_secured(&copy, port, AES_128_32, "1s");
    // Under this name, reports have tags of 80 bits by RFC 4568 section 6.2, but of 32 bits in
    // FFmpeg.
    ffmpeg_sends(&file, port, H264, "AES_CM_128_HMAC_SHA1_32", AES_128_32);
    let report = received(process);
    assert_same(&file, &copy);
    assert_eq!(report["rtcp"]["unauthentic"], report["rtcp"]["datagrams_received"], "{report}");
}

#[test]
fn ffmpeg_decrypts_by_the_description_that_rushes_writes() {
    if !have(&["ffmpeg"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for kind in [H264, H265] {
        let (port, file) = (ports(), kind.own());
        let secured = ["--srtp", AES_128_80.name, "--key", &AES_128_80.base64()];
        let sdp = describe(&file, port, folder.path(), &secured);
        assert!(fs::read_to_string(&sdp).unwrap().contains("RTP/SAVP "));
        let copy = copy_path(folder.path(), 0, kind);
        let output = ["-c", "copy", "-f", format(kind), "-y", copy.to_str().unwrap()];
        let process = ffmpeg_receives(&sdp, port, &output);
        send_secured(&file, port, AES_128_80);
        process.stop_after(GOODBYE);
        assert_same(&file, &copy);
    }
}
