//! pion at the other end of WHIP and WHEP, and as many viewers at once.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use serde_json::Value;

use crate::media::{H264, OPUS, assert_same};
use crate::pion::program;
use crate::rig::{Process, await_tcp, free_tcp_port, received, rushes};

/// Starts pion with what it sends or receives; without Go, prints a message and returns `None`.
fn pion(arguments: &[&str]) -> Option<Process> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    program(&BUILT, "pion-webrtc").map(|pion| Process::start(pion.to_str().unwrap(), arguments))
}

/// Starts it as a server on `port`.
fn server(port: u16, more: &[&str]) -> Option<Process> {
    let address = format!("127.0.0.1:{port}");
    let process = pion(&[&["serve", &address, "-fps", "60"], more].concat())?;
    await_tcp(port);
    Some(process)
}

/// Returns the report that pion printed at its end.
fn report(process: Process) -> Value {
    let (out, err) = process.finish();
    serde_json::from_str(&out).unwrap_or_else(|_| panic!("pion-webrtc: {out}{err}"))
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn pion_receives_what_is_published_by_whip() {
    let folder = tempfile::tempdir().unwrap();
    let [video, audio] = ["copy.264", "copy.opus"].map(|name| folder.path().join(name));
    let port = free_tcp_port();
    let files = ["-video-out", text(&video), "-audio-out", text(&audio), "-token", "secret"];
    let Some(process) = server(port, &files) else { return };
    let (film, speech, to) = (H264.own(), OPUS.own(), format!("http://127.0.0.1:{port}/whip"));
    let arguments = ["send", text(&film), "--audio", text(&speech), "--whip", &to];
    let more = ["--token", "secret", "--fps", "60", "--json"];
    let (out, err) = rushes(&[&arguments[..], &more].concat()).finish();
    assert!(out.contains("\"frames\":60"), "{out}{err}");
    let report = report(process);
    for kind in ["video", "audio"] {
        assert_eq!(report["tracks"][kind]["lost"], 0, "{report}");
    }
    assert_same(&film, &video);
    assert_same(&speech, &audio);
}

/// Receives from pion by WHEP, which drops packets if `more` says so.
fn played(more: &[&str]) -> Option<Value> {
    let folder = tempfile::tempdir().unwrap();
    let (film, copy, port) = (H264.own(), folder.path().join("copy.264"), free_tcp_port());
    let process = server(port, &[&["-video", text(&film)], more].concat())?;
    let from = format!("http://127.0.0.1:{port}/whep");
    let report = received(rushes(&["recv", "--whep", &from, "-o", text(&copy), "--json"]));
    let (out, err) = process.finish();
    assert_same(&film, &copy);
    assert_eq!(report["complete"], true, "{report}{err}");
    Some(serde_json::from_str(&out).unwrap())
}

#[test]
fn pion_plays_by_whep() {
    played(&[]);
}

#[test]
fn what_pion_loses_is_retransmitted() {
    if let Some(report) = played(&["-loss", "10"]) {
        assert_ne!(report["wire"]["dropped"], 0, "{report}");
        assert_ne!(report["wire"]["nacks_received"], 0, "{report}");
    }
}

#[test]
fn many_viewers_watch_one_file() {
    const VIEWERS: &str = "8";
    let port = free_tcp_port();
    let address = format!("127.0.0.1:{port}");
    let film = H264.own();
    let serving = rushes(&["serve", text(&film), "--fps", "60", "--http", &address]);
    await_tcp(port);
    let url = format!("http://{address}/whep");
    let Some(process) = pion(&["viewers", &url, "-count", VIEWERS, "-seconds", "3"]) else {
        return;
    };
    let report = report(process);
    let (_, (_, err)) = serving.ended_after(Duration::ZERO);
    assert_eq!(report["connected"].to_string(), VIEWERS, "{report}{err}");
    for viewer in report["viewers"].as_array().unwrap() {
        // A key frame comes each second.
        assert!(viewer["tracks"]["video"]["packets"].as_u64() > Some(0), "{viewer}{err}");
        assert_eq!(viewer["tracks"]["video"]["lost"], 0, "{viewer}{err}");
    }
}
