//! GStreamer at the other end.

use std::path::Path;
use std::time::Duration;

use crate::media::{
    H264, H265, Kind, OPUS, VP8, VP9, assert_same, assert_same_behind_parameter_sets,
    assert_same_but_delimiters, units,
};
use crate::rig::{Process, describe, have, have_elements, ports, receive, received, send};

/// Returns the caps of the stream of `rushes send`.
pub(crate) fn caps(kind: Kind) -> String {
    let (media, rate) = if kind == OPUS { ("audio", 48_000) } else { ("video", 90_000) };
    format!(
        "application/x-rtp,media=(string){media},clock-rate=(int){rate},\
         encoding-name=(string){},payload=(int){}",
        kind.encoding, kind.payload_type
    )
}

/// Returns the elements from packets to a file.
pub(crate) fn depayload(kind: Kind, file: &Path) -> String {
    let name = kind.name();
    let elements = match kind.extension {
        "opus" => "rtpopusdepay ! opusparse ! oggmux".to_owned(),
        _ => format!("rtp{name}depay ! video/x-{name},stream-format=byte-stream,alignment=nal"),
    };
    format!("{elements} ! filesink buffer-mode=unbuffered location={}", file.display())
}

/// Returns the elements from a file to packets, in real time if the file has timestamps.
pub(crate) fn payload(kind: Kind, file: &Path, properties: &str) -> String {
    let (name, pt) = (kind.name(), kind.payload_type);
    let parse = match kind.extension {
        "opus" => "oggdemux ! rtpopuspay".to_owned(),
        "ivf" => format!("ivfparse ! rtp{name}pay"),
        _ => format!(
            "{name}parse ! video/x-{name},stream-format=byte-stream,alignment=au ! rtp{name}pay"
        ),
    };
    format!("filesrc location={} ! {parse} pt={pt} {properties}", file.display())
}

/// Starts `gst-launch-1.0` with a pipeline, no part of which may contain a space.
pub(crate) fn launch(pipeline: &str, variables: &[(&str, &str)]) -> Process {
    let mut arguments = vec!["-q", "-e"];
    arguments.extend(pipeline.split_whitespace());
    Process::start_with("gst-launch-1.0", &arguments, variables)
}

fn to_gstreamer(kind: Kind, more: &[&str]) {
    if !have(&["gst-launch-1.0", "ffmpeg"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (n, file) in kind.files(folder.path()).iter().enumerate() {
        let port = ports();
        let copy = folder.path().join(format!("copy{n}.{}", kind.extension));
        let process = launch(
            &format!(
                "udpsrc address=127.0.0.1 port={port} buffer-size=8000000 caps={} ! {}",
                caps(kind),
                depayload(kind, &copy)
            ),
            &[],
        )
        .listening(port);
        send(file, port, more);
        process.having_read(&[port]).stop_after(Duration::from_millis(500));
        assert_same(file, &copy);
    }
}

#[test]
fn gstreamer_receives_h264() {
    to_gstreamer(H264, &[]);
}

#[test]
fn gstreamer_receives_h265() {
    to_gstreamer(H265, &["--mtu", "700"]);
}

/// GStreamer has no writer of IVF: each frame becomes a file of its own.
fn frames_to_gstreamer(kind: Kind) {
    if !have(&["gst-launch-1.0", "ffmpeg"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (n, file) in kind.files(folder.path()).iter().enumerate() {
        let port = ports();
        let name = |frame: &str| folder.path().join(format!("frame{n}-{frame}"));
        let process = launch(
            &format!(
                "udpsrc address=127.0.0.1 port={port} buffer-size=8000000 caps={} ! rtp{}depay ! \
                 multifilesink location={}",
                caps(kind),
                kind.name(),
                name("%d").display()
            ),
            &[],
        )
        .listening(port);
        send(file, port, &[]);
        process.having_read(&[port]).stop_after(Duration::from_millis(500));
        let sent = units(file, kind.codec);
        for (at, frame) in sent.iter().enumerate() {
            let received = std::fs::read(name(&at.to_string()));
            assert!(received.is_ok_and(|it| it == *frame), "frame {at} of {}", sent.len());
        }
        assert!(!name(&sent.len().to_string()).exists(), "more frames than were sent");
    }
}

#[test]
fn gstreamer_receives_vp8() {
    frames_to_gstreamer(VP8);
}

#[test]
fn gstreamer_receives_vp9() {
    frames_to_gstreamer(VP9);
}

#[test]
fn gstreamer_receives_opus() {
    to_gstreamer(OPUS, &[]);
}

#[test]
fn gstreamer_sets_itself_up_from_our_description() {
    if !have(&["gst-launch-1.0", "ffmpeg"]) {
        return;
    }
    // The other descriptions offer retransmissions, which GStreamer may ignore.
    let sources = ["--recovery", "rtx", "--ssrc", "7", "--rtx-ssrc", "8"];
    let offers = [(H264, &[][..]), (H265, &["--recovery", "rtx"]), (H265, &sources)];
    for (kind, more) in offers {
        let folder = tempfile::tempdir().unwrap();
        let file = &kind.files(folder.path())[1];
        let port = ports();
        let sdp = describe(file, port, folder.path(), more);
        let copy = folder.path().join(format!("copy.{}", kind.extension));
        let process = launch(
            &format!("filesrc location={} ! sdpdemux ! {}", sdp.display(), depayload(kind, &copy)),
            &[],
        )
        .listening(port);
        send(file, port, more);
        process.having_read(&[port]).stop_after(Duration::from_secs(1));
        assert_same_behind_parameter_sets(file, &copy);
    }
}

fn from_gstreamer(kind: Kind, properties: &str) {
    if !have(&["gst-launch-1.0", "ffmpeg"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (n, file) in kind.files(folder.path()).iter().enumerate() {
        let port = ports();
        let copy = folder.path().join(format!("copy{n}.{}", kind.extension));
        let process = receive(&copy, port, &["--idle-timeout", "1s", "--codec", kind.name()]);
        let elements = payload(kind, file, properties);
        let sink = format!("udpsink host=127.0.0.1 port={port} sync=false max-bitrate=20000000");
        launch(&format!("{elements} ! {sink}"), &[]).finish();
        let report = received(process);
        if kind == H264 {
            assert_same_but_delimiters(file, &copy);
        } else {
            assert_same(file, &copy);
        }
        assert_eq!(report["complete"], true, "{report}");
    }
}

#[test]
fn gstreamer_sends_h264_nal_unit_by_nal_unit() {
    from_gstreamer(H264, "aggregate-mode=none");
}

#[test]
fn gstreamer_sends_h264_aggregated_without_latency() {
    from_gstreamer(H264, "aggregate-mode=zero-latency mtu=1200");
}

#[test]
fn gstreamer_sends_h264_aggregated_as_far_as_it_can() {
    from_gstreamer(H264, "aggregate-mode=max-stap");
}

#[test]
fn gstreamer_sends_h265_nal_unit_by_nal_unit() {
    from_gstreamer(H265, "aggregate-mode=none");
}

#[test]
fn gstreamer_sends_h265_aggregated_without_latency() {
    from_gstreamer(H265, "aggregate-mode=zero-latency mtu=1200");
}

#[test]
fn gstreamer_sends_h265_aggregated_as_far_as_it_can() {
    from_gstreamer(H265, "aggregate-mode=max");
}

#[test]
fn gstreamer_sends_vp8() {
    from_gstreamer(VP8, "picture-id-mode=15-bit");
    from_gstreamer(VP8, "picture-id-mode=none mtu=700");
}

#[test]
fn gstreamer_sends_vp9() {
    from_gstreamer(VP9, "picture-id-mode=7-bit");
}

#[test]
fn gstreamer_sends_opus() {
    from_gstreamer(OPUS, "");
}

#[test]
fn gstreamer_reads_the_capture_time_and_writes_it_again() {
    if !have(&["gst-launch-1.0", "ffmpeg"]) || !have_elements(&["rtphdrextntp64"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let uri = "urn:ietf:params:rtp-hdrext:ntp-64";
    let file = &H265.files(folder.path())[1];
    let (from, to) = (ports(), ports());
    let copy = folder.path().join("copy.265");
    let process = receive(&copy, to, &["--idle-timeout", "2s", "--capture-time=ntp-64:3"]);
    let gstreamer = launch(
        &format!(
            "udpsrc address=127.0.0.1 port={from} buffer-size=8000000 \
             caps={},extmap-1=(string){uri} ! rtph265depay ! \
             video/x-h265,stream-format=byte-stream,alignment=au ! \
             rtph265pay pt={} ! application/x-rtp,extmap-3=(string){uri} ! \
             udpsink host=127.0.0.1 port={to} sync=false",
            caps(H265),
            H265.payload_type
        ),
        &[],
    )
    .listening(from);
    send(file, from, &["--capture-time=ntp-64"]);
    gstreamer.having_read(&[from]).stop_after(Duration::from_millis(500));
    let report = received(process);
    let latency = &report["capture_to_delivery"];
    // GStreamer sends no reports, so the time comes from the extension alone, unchanged: at both ends
    // there is the same clock.
    let carried = latency["frames_with_capture_time"].as_u64().unwrap();
    assert!(carried > 0 && Some(carried) == report["frames_received"].as_u64(), "{report}");
    assert!(latency["most_ms"].as_f64().is_some_and(|most| most < 60_000.0), "{report}");
}
