//! Chromium at the page of `serve`: it plays, and it publishes.

use std::collections::HashSet;
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

use crate::media::H264;
use crate::rig::{Process, await_tcp, free_tcp_port, rushes};
use crate::skipped;

/// Starts a server; returns it with its URL.
fn serving(arguments: &[&str]) -> (Process, String) {
    let port = free_tcp_port();
    let address = format!("127.0.0.1:{port}");
    let process = rushes(&[&["serve", "--http", &address], arguments].concat());
    await_tcp(port);
    (process, format!("http://{address}"))
}

/// Starts Chromium at `url`, where it does something at once, and is asked after some seconds; `None` if there is none.
fn chromium(url: &str, first: &str, seconds: &str) -> Option<Process> {
    if !skipped::have(&["chromium", "python3"]) {
        return None;
    }
    let driver = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../interop/browser.py");
    let arguments =
        [driver.to_str().unwrap(), "chromium", url, "--first", first, "--seconds", seconds];
    Some(Process::start("python3", &arguments))
}

fn report(process: Process) -> Value {
    let (out, err) = process.finish();
    serde_json::from_str(&out).unwrap_or_else(|_| panic!("chromium: {out}{err}"))
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn chromium_plays_what_is_served() {
    let film = H264.own();
    let (serving, url) = serving(&[text(&film), "--fps", "30"]);
    let Some(browser) = chromium(&url, "window.rushes.play()", "6") else { return };
    let played = &report(browser)["play"];
    let (_, (_, err)) = serving.ended_after(Duration::ZERO);
    assert_eq!(played["state"], "connected", "{played}{err}");
    assert!(played["framesDecoded"].as_u64() > Some(30), "{played}{err}");
    assert_eq!(played["packetsLost"], 0, "{played}{err}");
    assert_eq!(played["videoCodec"], "H264", "{played}");
}

/// Starts a STUN server that sees everyone at 127.0.0.9; returns its address, and those that it was asked from.
fn stun_server() -> (SocketAddr, Arc<Mutex<HashSet<SocketAddr>>>) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (address, sources) = (socket.local_addr().unwrap(), Arc::<Mutex<HashSet<_>>>::default());
    let asked = Arc::clone(&sources);
    std::thread::spawn(move || {
        let mut octets = [0; 1500];
        while let Ok((_, from)) = socket.recv_from(&mut octets) {
            asked.lock().unwrap().insert(from);
            let [high, low] = (from.port() ^ 0x2112).to_be_bytes();
            let mapped = [0, 0x20, 0, 8, 0, 1, high, low, 127 ^ 0x21, 0x12, 0xa4, 9 ^ 0x42];
            let answer = [&[1, 1, 0, 12][..], &octets[4..20], &mapped].concat();
            let _ = socket.send_to(&answer, from);
        }
    });
    (address, sources)
}

#[test]
fn the_page_asks_the_stun_server_that_the_server_recommends() {
    let (film, (stun, sources)) = (H264.own(), stun_server());
    let (serving, url) = serving(&[text(&film), "--fps", "30", "--stun", &stun.to_string()]);
    let Some(browser) = chromium(&url, "window.rushes.play()", "4") else { return };
    let played = &report(browser)["play"];
    let (_, (_, err)) = serving.ended_after(Duration::ZERO);
    assert!(played["framesDecoded"].as_u64() > Some(10), "{played}{err}");
    // Once from the port of the session, and once from the browser.
    assert!(sources.lock().unwrap().len() >= 2, "{sources:?}{err}");
}

#[test]
fn chromium_publishes_its_camera() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("camera.264");
    let (serving, url) = serving(&["-v"]);
    let publish = "window.rushes.publish('camera')";
    let Some(browser) = chromium(&url, publish, "15") else { return };
    let whep = format!("{url}/whep");
    // Until the camera is published there is nothing to play.
    let played = (0..40).find_map(|_| {
        let arguments = ["recv", "--whep", &whep, "-o", text(&copy), "--duration", "4s", "--json"];
        let played = rushes(&arguments).finish();
        let is_early = played.1.contains("nobody publishes yet");
        std::thread::sleep(Duration::from_millis(if is_early { 250 } else { 0 }));
        (!is_early).then_some(played)
    });
    let (out, err) = played.expect("the camera was never published");
    let published = &report(browser)["publish"];
    let (_, (_, of_server)) = serving.ended_after(Duration::ZERO);
    let received: Value = serde_json::from_str(&out).unwrap_or_default();
    assert!(received["received"]["frames"].as_u64() > Some(20), "{out}{err}{of_server}");
    assert!(published["framesEncoded"].as_u64() > Some(20), "{published}{of_server}");
}
