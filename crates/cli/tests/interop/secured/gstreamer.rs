//! SRTP with GStreamer at the other end.

use std::time::Duration;

use serde_json::json;

use super::{
    AES_128_32, AES_128_80, AES_256_80, GCM_128, GCM_256, Suite, assert_encrypted, came,
    receive_secured, send_secured,
};
use crate::gstreamer::{caps, depayload, launch, payload};
use crate::media::{H264, H265, assert_same, assert_same_but_delimiters};
use crate::relay::Relay;
use crate::rig::{have, have_elements, ports, received, wait_for};

fn have_gstreamer() -> bool {
    have(&["gst-launch-1.0"]) && have_elements(&["srtpenc", "srtpdec", "h265parse"])
}

fn from_gstreamer(suite: Suite) {
    if !have_gstreamer() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (n, kind) in [H264, H265].into_iter().enumerate() {
        let (port, file) = (ports(), kind.own());
        let came = came(folder.path(), n, kind);
        let process = receive_secured(&came, port, suite, "1s");
        let relay = Relay::to(port);
        let pipeline = format!(
            "{} ! {} ! udpsink host=127.0.0.1 port={} sync=false max-bitrate=2000000",
            payload(kind, &file, "mtu=1200 aggregate-mode=zero-latency"),
            suite.encrypting(),
            relay.port
        );
        launch(&pipeline, &[]).finish();
        let report = received(process);
        assert_encrypted(relay, &file, false);
        if kind == H264 {
            assert_same_but_delimiters(&file, &came);
        } else {
            assert_same(&file, &came);
        }
        assert_eq!(report["complete"], true, "{report}");
        assert_eq!(report["received"]["discards"], json!({}), "{report}");
    }
}

#[test]
fn gstreamer_sends_with_aes_128_in_counter_mode() {
    from_gstreamer(AES_128_80);
}

#[test]
fn gstreamer_sends_with_short_tags() {
    from_gstreamer(AES_128_32);
}

#[test]
fn gstreamer_sends_with_aes_256_in_counter_mode() {
    from_gstreamer(AES_256_80);
}

#[test]
fn gstreamer_sends_with_aes_128_gcm() {
    from_gstreamer(GCM_128);
}

#[test]
fn gstreamer_sends_with_aes_256_gcm() {
    from_gstreamer(GCM_256);
}

fn to_gstreamer(suite: Suite) {
    if !have_gstreamer() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (n, kind) in [H264, H265].into_iter().enumerate() {
        let (port, file) = (ports(), kind.own());
        let came = came(folder.path(), n, kind);
        let caps = caps(kind).replacen("x-rtp", "x-srtp", 1);
        let pipeline = format!(
            "udpsrc address=127.0.0.1 port={port} buffer-size=8000000 caps={caps}{} ! srtpdec ! {}",
            suite.caps(),
            depayload(kind, &came)
        );
        let process = launch(&pipeline, &[]);
        wait_for(port);
        let relay = Relay::to(port);
        send_secured(&file, relay.port, suite);
        process.stop_after(Duration::from_millis(500));
        assert_encrypted(relay, &file, true);
        assert_same(&file, &came);
    }
}

#[test]
fn gstreamer_receives_with_aes_128_in_counter_mode() {
    to_gstreamer(AES_128_80);
}

#[test]
fn gstreamer_receives_with_short_tags() {
    to_gstreamer(AES_128_32);
}

#[test]
fn gstreamer_receives_with_aes_256_in_counter_mode() {
    to_gstreamer(AES_256_80);
}

#[test]
fn gstreamer_receives_with_aes_128_gcm() {
    to_gstreamer(GCM_128);
}

#[test]
fn gstreamer_receives_with_aes_256_gcm() {
    to_gstreamer(GCM_256);
}
