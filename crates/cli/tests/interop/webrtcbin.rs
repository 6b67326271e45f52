//! GStreamer's webrtcbin at the other end of WHIP and WHEP.

use std::path::Path;
use std::time::Duration;

use rushes::Codec;
use serde_json::Value;

use crate::media::{H264, OPUS, units};
use crate::rig::{Process, await_tcp, free_tcp_port, have_elements, rushes};
use crate::skipped;

const PYTHON: &str = "/usr/bin/python3";
const PEER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../interop/webrtcbin_peer.py");

/// Whether GStreamer can be the peer; otherwise skips the running test.
fn have_peer() -> bool {
    if !have_elements(&["webrtcbin", "nicesrc", "x264enc", "opusenc", "dtlsdec"]) {
        return false;
    }
    let import = "import gi; gi.require_version('GstWebRTC', '1.0'); \
                  from gi.repository import GstWebRTC";
    let output = std::process::Command::new(PYTHON).args(["-c", import]).output();
    let is_there = output.is_ok_and(|output| output.status.success());
    if !is_there {
        skipped::missing("webrtcbin for Python", "python3-gi gir1.2-gst-plugins-bad-1.0");
    }
    // libnice leaves out loopback, by which there would be no way to a peer of this machine.
    let hosts = rushes::net::local_addresses(false).unwrap_or_default();
    let has_network = hosts.iter().any(|host| !host.is_loopback());
    if is_there && !has_network {
        skipped::not_here("webrtcbin needs a network interface besides loopback");
    }
    is_there && has_network
}

/// Runs the peer to its end; returns its report.
fn peer(role: &str, url: &str, file: &Path) -> Value {
    let arguments = [PEER, role, url, "--seconds", "15", "--video-out", file.to_str().unwrap()];
    let (out, err) = Process::start(PYTHON, &arguments).finish();
    serde_json::from_str(&out).unwrap_or_else(|_| panic!("webrtcbin: {out}{err}"))
}

/// Returns the slices of a file.
fn slices(file: &Path) -> Vec<Vec<u8>> {
    let all = units(file, Codec::H264).into_iter();
    all.filter(|unit| matches!(unit[0] & 0x1f, 1 | 5)).collect()
}

/// Starts a server with these arguments; returns it and its URL.
fn serving(arguments: &[&str]) -> (Process, String) {
    let port = free_tcp_port();
    let address = format!("127.0.0.1:{port}");
    let server = rushes(&[&["serve", "--http", &address], arguments].concat());
    await_tcp(port);
    (server, format!("http://{address}"))
}

#[test]
fn what_webrtcbin_publishes_is_recorded_bit_for_bit() {
    if !have_peer() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let [sent, recorded] = ["sent.264", "recorded.mkv"].map(|name| folder.path().join(name));
    let (server, url) = serving(&["-o", recorded.to_str().unwrap()]);
    let report = peer("whip", &format!("{url}/whip"), &sent);
    let (_, err) = server.stop_after(Duration::ZERO);
    let (sent, recorded) = (slices(&sent), slices(&recorded));
    assert!(recorded.len() > 60, "{} slices, {report}{err}", recorded.len());
    let begin = sent.iter().position(|slice| *slice == recorded[0]).unwrap();
    assert!(sent[begin..].starts_with(&recorded), "{report}{err}");
}

#[test]
fn webrtcbin_plays_a_film_bit_for_bit() {
    if !have_peer() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (film, copy) = (H264.own(), folder.path().join("copy.264"));
    // webrtcbin 1.22 refuses an answer with a media that is not sent: it looks for a fingerprint there, too.
    let speech = OPUS.own();
    let [film_name, speech_name] = [&film, &speech].map(|file| file.to_str().unwrap());
    let (server, url) = serving(&[film_name, "--audio", speech_name, "--fps", "30"]);
    let report = peer("whep", &format!("{url}/whep"), &copy);
    let (_, err) = server.stop_after(Duration::ZERO);
    let (film, copy) = (slices(&film), slices(&copy));
    assert!(copy.len() > 60, "{} slices, {report}{err}", copy.len());
    let begin = film.iter().position(|slice| *slice == copy[0]).unwrap();
    assert!(film.iter().cycle().skip(begin).zip(&copy).all(|(one, other)| one == other));
}
