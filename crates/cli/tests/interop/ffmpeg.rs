//! FFmpeg at the other end.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::media::{H264, H265, Kind, OPUS, VP8, VP9, assert_same};
use crate::rig::{Process, describe, have, ports, receive, received, send};

/// How long FFmpeg has until Ctrl-C ends it. The goodbye ends it before, once it has decoded the frames
/// that it received, which takes long on a busy machine.
pub(crate) const GOODBYE: Duration = Duration::from_secs(30);

/// Starts FFmpeg, which receives the stream that `sdp` describes; `output` is its last arguments.
pub(crate) fn ffmpeg_receives(sdp: &Path, port: u16, output: &[&str]) -> Process {
    let mut arguments = vec!["-nostdin", "-v", "warning"];
    arguments.extend(["-protocol_whitelist", "file,udp,rtp,srtp,crypto"]);
    // Without these options it waits for seconds of media before it opens its output.
    arguments.extend(["-probesize", "32", "-analyzeduration", "0", "-fpsprobesize", "0"]);
    arguments.extend(["-reorder_queue_size", "500", "-buffer_size", "8000000"]);
    arguments.extend(["-i", sdp.to_str().unwrap()]);
    arguments.extend(output);
    Process::start("ffmpeg", &arguments).listening(port)
}

pub(crate) fn format(kind: Kind) -> &'static str {
    match kind.extension {
        "264" => "h264",
        "265" => "hevc",
        "ivf" => "ivf",
        _ => "ogg",
    }
}

fn to_ffmpeg(kind: Kind, more: &[&str]) {
    if !have(&["ffmpeg"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (n, file) in kind.files(folder.path()).iter().enumerate() {
        let port = ports();
        let sdp = describe(file, port, folder.path(), more);
        let copy = folder.path().join(format!("copy{n}.{}", kind.extension));
        // It does not know which frames of VP8 and VP9 are key frames, and would wait for one.
        let output = ["-c", "copy", "-copyinkf", "-f", format(kind), "-y", copy.to_str().unwrap()];
        let process = ffmpeg_receives(&sdp, port, &output);
        send(file, port, more);
        process.stop_after(GOODBYE);
        assert_same(file, &copy);
    }
}

#[test]
fn ffmpeg_receives_h264() {
    to_ffmpeg(H264, &[]);
}

#[test]
fn ffmpeg_receives_h265() {
    to_ffmpeg(H265, &["--mtu", "700"]);
}

#[test]
fn ffmpeg_receives_h265_with_retransmissions_on_offer() {
    to_ffmpeg(H265, &["--recovery", "rtx"]);
    to_ffmpeg(H265, &["--recovery", "rtx", "--ssrc", "7", "--rtx-ssrc", "8"]);
}

#[test]
fn ffmpeg_receives_vp8() {
    to_ffmpeg(VP8, &[]);
}

#[test]
fn ffmpeg_receives_vp9() {
    to_ffmpeg(VP9, &["--mtu", "700"]);
}

#[test]
fn ffmpeg_receives_opus() {
    to_ffmpeg(OPUS, &[]);
}

/// Makes FFmpeg send `file` to `port` with its default packet size, 1 472 octets.
fn ffmpeg_sends(file: &Path, port: u16, kind: Kind, more: &[&str], url: &str) {
    ffmpeg_sends_to(&format!("rtp://127.0.0.1:{port}{url}"), file, kind, more);
}

/// Makes FFmpeg send `file` to a URL.
pub(crate) fn ffmpeg_sends_to(url: &str, file: &Path, kind: Kind, more: &[&str]) {
    let payload_type = kind.payload_type.to_string();
    let mut arguments = vec!["-nostdin", "-v", "error", "-re"];
    if kind.codec.has_nal_units() {
        arguments.extend(["-framerate", "60"]);
    }
    arguments.extend(["-i", file.to_str().unwrap(), "-c", "copy", "-f", "rtp"]);
    arguments.extend(["-payload_type", &payload_type, "-rtpflags", "send_bye"]);
    arguments.extend(more);
    arguments.push(url);
    let (_, err) = Process::start("ffmpeg", &arguments).finish();
    eprint!("{err}");
}

fn from_ffmpeg(kind: Kind, more: &[&str]) {
    if !have(&["ffmpeg"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (n, file) in kind.files(folder.path()).iter().enumerate() {
        let port = ports();
        let copy = folder.path().join(format!("copy{n}.{}", kind.extension));
        let process = receive(&copy, port, &["--codec", kind.name()]);
        ffmpeg_sends(file, port, kind, more, "");
        let report = received(process);
        assert_same(file, &copy);
        // Its sender report counted the packets sent, and its goodbye ended the reception.
        let peer = &report["rtcp"]["peers"][0];
        assert_eq!(peer["packets_sent"], report["received"]["packets"], "{report}");
        assert_eq!(report["rtcp"]["goodbyes"].as_array().unwrap().len(), 1, "{report}");
    }
}

#[test]
fn ffmpeg_sends_h264() {
    from_ffmpeg(H264, &[]);
}

#[test]
fn ffmpeg_sends_h264_in_single_nal_unit_mode() {
    if !have(&["ffmpeg"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = &H264.files(folder.path())[0];
    let (port, copy) = (ports(), folder.path().join("copy.264"));
    let process = receive(&copy, port, &[]);
    let flags = ["-rtpflags", "h264_mode0+send_bye"];
    ffmpeg_sends(file, port, H264, &flags, "?pkt_size=60000");
    received(process);
    assert_same(file, &copy);
}

#[test]
fn ffmpeg_sends_h265() {
    from_ffmpeg(H265, &[]);
}

#[test]
fn ffmpeg_sends_vp8() {
    from_ffmpeg(VP8, &[]);
}

#[test]
fn ffmpeg_sends_vp9() {
    from_ffmpeg(VP9, &["-strict", "experimental"]);
}

#[test]
fn ffmpeg_sends_opus() {
    from_ffmpeg(OPUS, &[]);
}

#[test]
fn ffmpeg_muxes_rtcp_on_the_port_of_its_media() {
    if !have(&["ffmpeg"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = &H265.files(folder.path())[0];
    let (port, copy) = (ports(), folder.path().join("copy.265"));
    let process = receive(&copy, port, &["--rtcp-mux"]);
    ffmpeg_sends(file, port, H265, &[], &format!("?rtcpport={port}"));
    let report = received(process);
    assert_same(file, &copy);
    let peer = &report["rtcp"]["peers"][0];
    assert_eq!(peer["packets_sent"], report["received"]["packets"], "{report}");
}

#[test]
fn rushes_receives_what_ffmpeg_describes() {
    if !have(&["ffmpeg"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (kind, more) in [(H264, &["-ssrc", "77"][..]), (H265, &[]), (OPUS, &[])] {
        let file = &kind.files(folder.path())[1];
        let port = ports();
        let sdp = folder.path().join(format!("{}.sdp", kind.name()));
        let copy = folder.path().join(format!("copy.{}", kind.extension));
        // FFmpeg writes the description before a receiver listens.
        let mut describing = vec!["-sdp_file", sdp.to_str().unwrap(), "-t", "0.02"];
        describing.extend(more);
        ffmpeg_sends(file, port, kind, &describing, "");
        let process = crate::rig::receive_described(&copy, &sdp, port, &[]);
        ffmpeg_sends(file, port, kind, more, "");
        received(process);
        assert_same(file, &copy);
    }
}

/// Returns the hash of each decoded frame.
fn hashes(text: &str) -> Vec<String> {
    let frames = text.lines().filter(|line| !line.starts_with('#'));
    frames.map(|line| line.rsplit(',').next().unwrap().trim().to_owned()).collect()
}

#[test]
fn ffmpeg_decodes_the_stream_and_the_file_equally() {
    if !have(&["ffmpeg"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for kind in [H264, H265] {
        let file = &kind.files(folder.path())[1];
        let decoded = Command::new("ffmpeg")
            .args(["-nostdin", "-v", "error", "-i", file.to_str().unwrap()])
            .args(["-f", "framemd5", "-"])
            .output()
            .unwrap();
        let expected = hashes(&String::from_utf8_lossy(&decoded.stdout));
        let port = ports();
        let sdp = describe(file, port, folder.path(), &[]);
        let copy = folder.path().join("copy.md5");
        let output = ["-fps_mode", "passthrough", "-f", "framemd5", "-y", copy.to_str().unwrap()];
        let process = ffmpeg_receives(&sdp, port, &output);
        send(file, port, &[]);
        process.stop_after(GOODBYE);
        let hashes = hashes(&fs::read_to_string(&copy).unwrap());
        assert_eq!(hashes.len(), 45, "{}", kind.name());
        assert!(hashes == expected, "{}: other pictures", kind.name());
    }
}
