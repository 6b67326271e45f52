//! Tests of the program by its command line.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod agreed;
#[cfg(target_os = "linux")]
mod attacker;
mod bench_latency;
mod bench_peers;
mod bench_rate;
mod bench_rates;
mod bench_scaling;
mod bench_slices;
mod bench_streams;
mod bench_texture;
mod described;
#[cfg(all(target_os = "linux", feature = "window"))]
#[path = "../../../../interop/display.rs"]
mod display;
mod endings;
mod erasure;
#[cfg(target_os = "linux")]
mod films;
#[cfg(all(target_os = "linux", feature = "window"))]
mod guide;
#[cfg(unix)]
mod keep;
#[cfg(unix)]
mod key_frames;
mod keygen;
mod keys_differ;
#[cfg(unix)]
mod live;
mod logged;
#[cfg(unix)]
mod metrics;
mod mistakes;
mod network;
#[cfg(unix)]
mod openmetrics;
#[cfg(all(unix, feature = "webrtc"))]
mod other_path;
#[cfg(target_os = "linux")]
mod outage;
mod overwrite;
mod pages;
#[path = "../shared/ports.rs"]
mod ports;
#[path = "../shared/program.rs"]
mod program;
#[cfg(unix)]
mod rate;
#[cfg(target_os = "linux")]
mod refused;
mod rig;
#[cfg(unix)]
#[path = "../../../rushes/tests/texture_world/route.rs"]
#[allow(dead_code, reason = "its counts are not read here")]
mod route;
mod samples;
mod secured;
#[path = "../../../../interop/skipped.rs"]
mod skipped;
mod skips;
mod slow_frames;
mod stopped;
#[path = "../../../rushes/tests/texture_world/stranger.rs"]
#[allow(dead_code, reason = "one server is played, and one client viewed")]
mod stranger;
mod strangers;
#[path = "../../../../interop/taken.rs"]
mod taken;
#[cfg(unix)]
mod texture;
mod texture_colours;
#[cfg(target_os = "linux")]
mod texture_crowds;
mod texture_ends;
mod texture_files;
#[cfg(all(target_os = "linux", feature = "window"))]
mod texture_gpu;
#[cfg(target_os = "linux")]
mod texture_multicast;
mod texture_packed;
#[cfg(unix)]
mod texture_pipes;
#[cfg(unix)]
mod texture_pipes_network;
mod texture_rig;
mod texture_scaled;
#[cfg(unix)]
mod texture_secured;
#[cfg(unix)]
mod texture_sizes;
mod unusable;
#[cfg(all(target_os = "linux", feature = "webrtc"))]
mod viewers;
#[cfg(all(unix, feature = "webrtc"))]
mod webrtc;
#[cfg(all(target_os = "linux", feature = "window"))]
mod window;
#[cfg(all(target_os = "linux", feature = "window"))]
mod window_faults;
#[cfg(all(target_os = "linux", feature = "window"))]
mod window_managed;
#[cfg(all(target_os = "linux", feature = "window"))]
mod window_video;

use std::path::Path;

use serde_json::Value;

use crate::rig::{MEDIA, interrupt, json, listening, media, run, text, units};

#[test]
fn loopback_without_a_file_is_identical() {
    let output = run(&["loopback"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout).lines().last(), Some("identical"));
}

#[test]
fn loopback_of_every_file_size_and_path_is_identical() {
    for name in MEDIA {
        for mtu in ["100", "576", "1500", "9000"] {
            for path in ["gso", "sendmmsg", "single"] {
                let output =
                    run(&["loopback", &media(name), "--json", "--mtu", mtu, "--send-path", path]);
                assert!(output.status.success(), "{name} {mtu} {path}: {}", text(&output.stdout));
                let report = json(&output);
                assert_eq!(report["identical"], true);
                assert_eq!(report["received"]["packets_lost"], 0);
            }
        }
    }
}

#[test]
fn loopback_by_ipv6_and_by_units_is_identical() {
    for name in MEDIA {
        for option in [&["--ipv6"][..], &["--delivery", "nal-unit"], &["--loop", "3"]] {
            let output = run(&[&["loopback", &media(name), "-q"], option].concat());
            assert!(output.status.success(), "{name} {option:?}: {}", text(&output.stderr));
        }
    }
}

#[test]
fn a_file_sent_and_received_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    for name in MEDIA {
        let copy = folder.path().join(name);
        let (receiver, to) = listening(&copy, &[]);
        let sent = run(&["send", &media(name), "--to", &to, "--fps", "1000", "--json"]);
        assert!(sent.status.success(), "{}", text(&sent.stderr));
        let received = receiver.wait_with_output().unwrap();
        assert!(received.status.success(), "{name}: {}", text(&received.stdout));
        let report = json(&received);
        assert_eq!(report["complete"], true);
        assert_eq!(json(&sent)["sent"]["packets"], report["received"]["packets"]);
        assert!(units(&copy) == units(Path::new(&media(name))), "{name} differs");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), MEDIA.len());
}

#[test]
fn what_is_lost_is_counted_to_the_packet() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.265");
    // The receive buffer is for a few packets, but all are sent at once.
    let (receiver, to) = listening(&copy, &["--socket-buffer", "4K", "--delivery", "nal-unit"]);
    let name = media("hevc_192x128_90f_tiny_nals.265");
    let sent = json(&run(&["send", &name, "--to", &to, "--flat-out", "--mtu", "200", "--json"]));
    let received = receiver.wait_with_output().unwrap();
    let report = json(&received);
    let count = |value: &Value| value.as_u64().unwrap();
    let lost = count(&report["packets_lost"]);
    let arrived = count(&report["received"]["packets"]);
    assert_eq!(lost + arrived, count(&sent["sent"]["packets"]), "{report}");
    assert_eq!(received.status.code(), Some(i32::from(lost > 0)));
    let original = units(Path::new(&name));
    assert!(!copy.exists() || units(&copy).iter().all(|unit| original.contains(unit)));
}

#[test]
#[cfg(unix)]
fn nothing_received_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.265");
    let (receiver, _) = listening(&copy, &[]);
    interrupt(&receiver);
    let received = receiver.wait_with_output().unwrap();
    assert_eq!(received.status.code(), Some(1));
    assert_eq!(json(&received)["complete"], false);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
#[cfg(unix)]
fn an_interrupt_finishes_the_file_in_hand() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.264");
    let (receiver, to) = listening(&copy, &["--idle-timeout", "60s"]);
    let sent = run(&["send", &media(MEDIA[0]), "--to", &to, "--fps", "1000", "-q"]);
    assert!(sent.status.success());
    interrupt(&receiver);
    let received = receiver.wait_with_output().unwrap();
    assert_eq!(json(&received)["complete"], true);
    assert!(units(&copy) == units(Path::new(&media(MEDIA[0]))));
}

#[test]
fn goodput_is_measured() {
    let output = run(&[
        "bench",
        "goodput",
        "--runs",
        "1",
        "--amount",
        "20M",
        "--frame-size",
        "100K",
        "--json",
    ]);
    let report = json(&output);
    let rows = report["figures"][0]["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 6, "{}", text(&output.stderr));
    assert!(rows.iter().all(|row| row["Gbit/s"].as_f64().unwrap() > 0.0));
}
