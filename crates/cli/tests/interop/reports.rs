//! RTCP with GStreamer's `rtpbin`: how each side reads the other's reports and requests.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::gstreamer::{caps, depayload, launch};
use crate::media::{H264, H265, Kind, assert_same};
use crate::rig::{have, ports, receive, received, send};

/// Environment variables that make `rtpbin` log the RTCP that it reads.
pub(crate) const RTCP_LOGGING: [(&str, &str); 2] =
    [("GST_DEBUG", "rtpsession:6,rtpsource:6"), ("GST_DEBUG_NO_COLOR", "1")];

/// Returns only the lines of a log about RTCP, because each RTP packet adds one or more.
pub(crate) fn rtcp_lines(log: &str) -> String {
    let lines = log.lines().filter(|line| !line.contains("update_receiver_stats"));
    let lines = lines.filter(|line| !line.contains("calculate_jitter"));
    lines.filter(|line| !line.contains("push_packet")).collect::<Vec<_>>().join("\n")
}

/// Time to send the files, even on a busy machine. A sending pipeline may wait for reports after
/// its end.
const SENDING: Duration = Duration::from_secs(8);

/// Returns a pipeline that receives on `port` and reports to `back`.
fn receiving(kind: Kind, port: u16, back: u16, bin: &str, caps_more: &str, then: &str) -> String {
    let caps = caps(kind);
    format!(
        "rtpbin name=b {bin} \
         udpsrc address=127.0.0.1 port={port} caps={caps}{caps_more} ! {then} \
         udpsrc address=127.0.0.1 port={} caps=application/x-rtcp ! b.recv_rtcp_sink_0 \
         b.send_rtcp_src_0 ! udpsink host=127.0.0.1 port={back} sync=false async=false",
        port + 1
    )
}

fn assert_plausible(report: &Value) {
    let peer = &report["rtcp"]["peers"][0];
    let round_trip = peer["round_trip_ms"].as_f64().unwrap_or_else(|| panic!("{report}"));
    assert!((0.0..1000.0).contains(&round_trip), "{report}");
    assert!(peer["cname"].as_str().unwrap().starts_with("user"), "{report}");
    assert_eq!(peer["fraction_lost"], 0.0, "{report}");
    assert_eq!(report["rtcp"]["malformed"], 0, "{report}");
}

#[test]
fn rtpbin_reads_our_sender_reports_and_answers_them() {
    if !have(&["gst-launch-1.0", "ffmpeg"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = &H265.files(folder.path())[0];
    let (port, local) = (ports(), ports());
    let copy = folder.path().join("copy.265");
    let then = format!("b.recv_rtp_sink_0 b. ! {}", depayload(H265, &copy));
    let process =
        launch(&receiving(H265, port, local + 1, "", "", &then), &RTCP_LOGGING).listening(port);
    // GStreamer sends its first report after 2.5 to 7.5 seconds.
    let report = send(file, port, &["--local-port", &local.to_string(), "--loop", "6"]);
    let (_, log) = process.stop_at("got BYE packet");
    let ssrc = report["ssrc"].as_str().unwrap();
    assert!(log.contains(&format!("got SR packet: SSRC {ssrc}")), "{}", rtcp_lines(&log));
    assert!(log.contains("got SDES packet with 1 items"), "{}", rtcp_lines(&log));
    assert!(log.contains("got BYE packet"), "{}", rtcp_lines(&log));
    assert_plausible(&report);
}

/// Copies `file` into a container with timestamps, which GStreamer follows.
fn timed(file: &Path, folder: &Path) -> String {
    let timed = folder.join("timed.mp4");
    let status = Command::new("ffmpeg")
        .args(["-v", "error", "-nostdin", "-y", "-fflags", "+genpts", "-r", "30"])
        .args(["-i", file.to_str().unwrap(), "-c", "copy", timed.to_str().unwrap()])
        .status()
        .unwrap();
    assert!(status.success());
    timed.display().to_string()
}

/// Returns a pipeline that sends `file` in real time. It sends media to the first of `ports` and
/// reports to the second, and receives reports at the third.
fn sending(file: &str, ports: [u16; 3], between: &str, losing: &str) -> String {
    let [port, control, back] = ports;
    format!(
        "rtpbin name=b rtp-profile=avpf \
         filesrc location={file} ! qtdemux ! h265parse ! \
         video/x-h265,stream-format=byte-stream,alignment=au ! identity sync=true ! \
         rtph265pay pt=97 mtu=300 config-interval=0 {between} ! b.send_rtp_sink_0 \
         b.send_rtp_src_0 {losing} ! udpsink host=127.0.0.1 port={port} sync=false \
         b.send_rtcp_src_0 ! udpsink host=127.0.0.1 port={control} sync=false async=false \
         udpsrc address=127.0.0.1 port={back} caps=application/x-rtcp ! b.recv_rtcp_sink_0"
    )
}

#[test]
fn rtpbin_reads_our_receiver_reports_and_we_read_its_sender_reports() {
    if !have(&["gst-launch-1.0", "ffmpeg"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = &H265.files(folder.path())[0];
    for mux in [false, true] {
        let (port, back) = (ports(), ports());
        let copy = folder.path().join("copy.265");
        let to = back.to_string();
        let mut more = vec!["--rtcp-port", &to, "--feedback"];
        more.extend(mux.then_some("--rtcp-mux"));
        let process = receive(&copy, port, &more);
        let control = if mux { port } else { port + 1 };
        let timed = timed(file, folder.path());
        let (_, log) = launch(&sending(&timed, [port, control, back], "", ""), &RTCP_LOGGING)
            .stop_after(SENDING);
        let report = received(process);
        assert_same(file, &copy);
        assert!(log.contains("got RR packet"), "{}", rtcp_lines(&log));
        let peer = &report["rtcp"]["peers"][0];
        assert_eq!(peer["packets_sent"], report["received"]["packets"], "{report}");
        assert!(peer["wall_clock"].as_f64().unwrap() > 1.7e9, "{report}");
        assert!(peer["cname"].as_str().unwrap().starts_with("user"), "{report}");
    }
}

#[test]
fn rtpbin_retransmits_packets_that_we_request() {
    if !have(&["gst-launch-1.0", "ffmpeg"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = &H265.files(folder.path())[1];
    let (port, back) = (ports(), ports());
    let copy = folder.path().join("copy.265");
    let to = back.to_string();
    let more = ["--rtcp-port", &to, "--recovery", "verbatim", "--reorder-time", "1s"];
    let process = receive(&copy, port, &more);
    let queue = "! rtprtxqueue max-size-time=3000 max-size-packets=0";
    let losing = "! identity drop-probability=0.03";
    let ports = [port, port + 1, back];
    let pipeline = sending(&timed(file, folder.path()), ports, queue, losing);
    launch(&pipeline, &[]).stop_after(SENDING);
    let report = received(process);
    assert!(report["received"]["recovered"].as_u64().unwrap() > 0, "{report}");
    // Losses at the very end are not requested in time, because no packet follows them.
    assert!(report["received"]["packets_lost"].as_u64().unwrap() < 3, "{report}");
    assert_eq!(report["rtcp"]["malformed"], 0, "{report}");
}

#[test]
fn we_retransmit_packets_that_rtpbin_requests() {
    if !have(&["gst-launch-1.0", "ffmpeg"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = &H265.files(folder.path())[1];
    let (port, local) = (ports(), ports());
    let copy = folder.path().join("copy.265");
    let bin = "latency=500 do-retransmission=true rtp-profile=avpf";
    let then = format!(
        "identity drop-probability=0.05 ! b.recv_rtp_sink_0 b. ! {}",
        depayload(H265, &copy)
    );
    let nack = ",rtcp-fb-nack=(boolean)true";
    let process = launch(&receiving(H265, port, local + 1, bin, nack, &then), &[]).listening(port);
    let local = local.to_string();
    let more = ["--local-port", &local, "--recovery", "verbatim", "--mtu", "300"];
    let report = send(file, port, &more);
    process.stop_after(Duration::from_secs(1));
    assert!(report["rtcp"]["packets_requested"].as_u64().unwrap() > 0, "{report}");
    assert!(report["sent"]["retransmitted"].as_u64().unwrap() > 0, "{report}");
}

#[test]
fn key_frame_requests_of_rtpbin_reach_the_application() {
    if !have(&["gst-launch-1.0", "ffmpeg"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = &H264.files(folder.path())[1];
    let (port, local) = (ports(), ports());
    let bin = "latency=50 rtp-profile=avpf";
    let then = "identity drop-probability=0.05 ! b.recv_rtp_sink_0 \
                b. ! rtph264depay request-keyframe=true wait-for-keyframe=true ! fakesink";
    let pli = ",rtcp-fb-nack-pli=(boolean)true";
    let process = launch(&receiving(H264, port, local + 1, bin, pli, then), &[]).listening(port);
    let local = local.to_string();
    let report = send(file, port, &["--local-port", &local, "--fps", "30", "--loop", "2"]);
    process.stop_after(Duration::from_millis(200));
    assert!(report["rtcp"]["key_frames_requested"].as_u64().unwrap() > 0, "{report}");
}
