//! ULPFEC within RED with GStreamer, over a path that loses packets of media.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use rushes_netsim::{Passing, Relay, RelayOptions, Way};

use crate::gstreamer::{caps, depayload, launch, payload};
use crate::media::{H264, assert_same, assert_same_but_delimiters};
use crate::rig::{have, have_elements, ports, receive, received, send};

const ELEMENTS: [&str; 5] =
    ["rtpulpfecenc", "rtpulpfecdec", "rtpredenc", "rtpreddec", "rtpstorage"];

/// The default payload types of repair packets and of RED for H.264.
const ULPFEC: u8 = 100;
const RED: u8 = 104;

/// Creates a relay to `port` that loses one of 17 packets of media, never the first ones; returns
/// the number of lost packets, too. A repair packet that is lost leaves a gap that nothing fills.
fn losing(port: u16) -> (RelayOptions, Arc<AtomicU64>) {
    let (mut media, lost) = (0, Arc::new(AtomicU64::new(0)));
    let count = lost.clone();
    let lose = move |passing: Passing<'_>| {
        let is_there = passing.way == Way::There && passing.port == 0;
        // Behind the fixed header, RED names the payload type of its block.
        let is_media = passing.datagram[1] & 0x7f == RED
            && passing.datagram.get(12) == Some(&H264.payload_type);
        if !is_there || !is_media {
            return true;
        }
        media += 1;
        let is_lost = media % 17 == 9;
        count.fetch_add(is_lost.into(), Relaxed);
        !is_lost
    };
    (Relay::to((Ipv4Addr::LOCALHOST, port).into()).with_control().tap(lose), lost)
}

#[test]
fn gstreamer_recovers_what_we_protect() {
    if !have(&["gst-launch-1.0"]) || !have_elements(&ELEMENTS) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (file, copy, port) = (H264.own(), folder.path().join("copy.264"), ports());
    let pipeline = format!(
        "udpsrc address=127.0.0.1 port={port} buffer-size=8000000 caps={} ! rtpreddec pt={RED} \
         ! rtpstorage size-time=3000000000 ! rtpssrcdemux \
         ! rtpjitterbuffer do-lost=true latency=1000 ! rtpulpfecdec pt={ULPFEC} ! {}",
        caps(H264),
        depayload(H264, &copy)
    );
    let process = launch(&pipeline, &[]).listening(port);
    let (relay, lost) = losing(port);
    let relay = relay.start().unwrap();
    let more = ["--mtu", "500", "--fec", "20", "--fec-format", "ulpfec"];
    let report = send(&file, relay.address().port(), &more);
    process.stop_after(Duration::from_millis(2500));
    assert!(lost.load(Relaxed) > 10, "{report}");
    assert_same(&file, &copy);
}

#[test]
fn we_recover_what_gstreamer_protects() {
    if !have(&["gst-launch-1.0"]) || !have_elements(&ELEMENTS) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (file, copy, port) = (H264.own(), folder.path().join("copy.264"), ports());
    let more = ["--idle-timeout", "3s", "--reorder-time", "2s", "--fec", "--fec-format", "ulpfec"];
    let process = receive(&copy, port, &more);
    let (relay, lost) = losing(port);
    let relay = relay.start().unwrap();
    let pipeline = format!(
        "{} ! rtpulpfecenc pt={ULPFEC} multipacket=true percentage=50 percentage-important=50 \
         ! rtpredenc pt={RED} allow-no-red-blocks=true \
         ! udpsink host=127.0.0.1 port={} sync=false max-bitrate=10000000",
        payload(H264, &file, "mtu=500 aggregate-mode=none"),
        relay.address().port()
    );
    launch(&pipeline, &[]).finish();
    let report = received(process);
    let lost = lost.load(Relaxed);
    assert!(lost > 10, "{report}");
    assert_eq!(report["received"]["repaired"], lost, "{report}");
    assert_same_but_delimiters(&file, &copy);
}
