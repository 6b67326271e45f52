//! Access units of many slices, whose packets have one length by padding: other programs receive the
//! same octets.

use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rushes::file::{MediaReader, ReadOptions};
use rushes::{Context, Pacing};

use crate::ffmpeg::{GOODBYE, ffmpeg_receives, format};
use crate::gstreamer::{caps, depayload, launch};
use crate::media::{H264, assert_same};
use crate::rig::{describe, have, ports, send};

/// Makes a film of pictures of this number of slices each.
fn film(folder: &Path, slices: u32) -> PathBuf {
    let file = folder.join(format!("slices{slices}.264"));
    let source = "testsrc2=size=1280x1088:rate=60:duration=0.5";
    let options = format!("slices={slices}:bframes=0");
    let mut arguments = vec!["-nostdin", "-v", "error", "-f", "lavfi", "-i", source];
    arguments.extend(["-c:v", "libx264", "-preset", "ultrafast", "-qp", "4"]);
    arguments.extend(["-x264-params", &options, "-y", file.to_str().unwrap()]);
    let status = Command::new("ffmpeg").args(arguments).status().unwrap();
    assert!(status.success(), "ffmpeg cannot make {}", file.display());
    file
}

/// Returns the octets of padding that a sender of `file` adds by default.
fn padding(file: &Path) -> u64 {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let session = Context::new().session("127.0.0.1").unwrap();
    let stream = session.stream(H264.codec).remote_port(port).pacing(Pacing::Off);
    let mut stream = stream.open().unwrap();
    let mut reader = MediaReader::open(file, H264.codec, ReadOptions::default()).unwrap();
    while let Some(frame) = reader.next_frame().unwrap() {
        stream.push_frame(&frame.data, None).unwrap();
    }
    stream.statistics().send.padding_octets
}

#[test]
fn ffmpeg_receives_many_slices() {
    if !have(&["ffmpeg"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for slices in [8, 64] {
        let file = film(folder.path(), slices);
        assert!(padding(&file) > 0, "{slices}");
        let port = ports();
        let sdp = describe(&file, port, folder.path(), &[]);
        let copy = folder.path().join(format!("copy{slices}.264"));
        let output = ["-c", "copy", "-f", format(H264), "-y", copy.to_str().unwrap()];
        let process = ffmpeg_receives(&sdp, port, &output);
        send(&file, port, &[]);
        process.stop_after(GOODBYE);
        assert_same(&file, &copy);
    }
}

#[test]
fn gstreamer_receives_many_slices() {
    if !have(&["gst-launch-1.0", "ffmpeg"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for slices in [8, 64] {
        let file = film(folder.path(), slices);
        let port = ports();
        let copy = folder.path().join(format!("copy{slices}.264"));
        let pipeline = format!(
            "udpsrc address=127.0.0.1 port={port} buffer-size=8000000 caps={} ! {}",
            caps(H264),
            depayload(H264, &copy)
        );
        let process = launch(&pipeline, &[]).listening(port);
        send(&file, port, &[]);
        process.having_read(&[port]).stop_after(Duration::from_millis(500));
        assert_same(&file, &copy);
    }
}
