//! Frames over UDP and RTP on a simulated network with delay, jitter, bursts of loss, packets
//! hundreds of places late and duplicates: every frame is delivered, concealed or lost exactly
//! once, and has no octet of another frame.
#![cfg(feature = "texture")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "texture_world/route.rs"]
mod route;
mod texture_world;

use std::sync::Arc;
use std::time::Duration;

use rushes::Pacing;
use rushes::texture::{
    ClientOptions, Format, Layout, ServerOptions, TextureClient, TextureServer, Timing, Transport,
};
use rushes_netsim::{Loss, Path, Straying};

use route::Route;
use texture_world::noise::Noise;
use texture_world::witness::{Pictures, Witness};

/// Time after which a stream counts as hung.
const HANGS: Duration = Duration::from_secs(60);

const FRAMES: u64 = 40;
const MS: Duration = Duration::from_millis(1);

/// A long path with much loss and reordering.
fn path() -> Path {
    Path {
        delay: 50 * MS,
        jitter: 20 * MS,
        jitter_reorders: true,
        loss: Loss::bursts(0.02, 5.0, 20),
        reordering: Straying::places(0.01, 100..=500),
        duplication: Straying::places(0.02, 0..=500),
        ..Path::default()
    }
}

/// Streams frames of 123 packets, waiting for missing packets until `deadline`.
fn stream(transport: Transport, seed: u64, deadline: Duration) {
    let what = format!("{transport}, seed {seed}, deadline {deadline:?}");
    let layout = Layout::new(Format::Rgb24, 320, 180).unwrap();
    let mut options = ServerOptions::default();
    (options.units, options.transport) = (2, transport);
    (options.timing, options.pacing) = (Timing::EveryFrame, Pacing::Rate(200_000_000));
    let noise = Noise::new(layout, 50, FRAMES);
    let server = TextureServer::serve("127.0.0.1:0".parse().unwrap(), noise, options).unwrap();
    let route = Route::new(server.local_address(), path(), seed);
    let witness = Arc::new(Witness::new(Pictures::Numbered(FRAMES)));
    let mut options = ClientOptions::default();
    (options.deadline_min, options.deadline_max, options.slots) = (deadline, deadline, 8);
    let client = TextureClient::connect(route.address(), witness.clone(), options).unwrap();
    let packets = u64::from(client.shape().unwrap().plan().packets());
    let end = client.wait(HANGS).unwrap_or_else(|| panic!("{what}: no end"));
    assert!(end.text.contains("source has ended"), "{what}: {end}");
    let statistics = client.stop();
    let seen = witness.seen();
    let what = format!("{what}: {statistics:?} over {:?}", route.statistics());
    assert_eq!(seen.faults, [""; 0], "{what}");
    let (whole, damaged) = (statistics.frames_whole, statistics.frames_damaged);
    assert_eq!((whole + damaged, damaged), (seen.frames, seen.damaged), "{what}");
    assert_eq!(whole + damaged + statistics.frames_lost, FRAMES, "{what}");
    assert_eq!(statistics.packets_lost, seen.packets_missing, "{what}");
    assert_eq!(statistics.packets + statistics.packets_lost, seen.frames * packets, "{what}");
    // The network lost packets as configured.
    let lost: u64 = route.statistics().iter().map(|unit| unit.lost).sum();
    assert!(lost > 0 && seen.frames > 0, "{what}");
}

/// Runs streams in parallel, with short and long deadlines.
fn streams(transport: Transport, seeds: std::ops::Range<u64>) {
    std::thread::scope(|scope| {
        for seed in seeds {
            scope.spawn(move || stream(transport, seed, MS * [80, 300, 1_000][seed as usize % 3]));
        }
    });
}

#[test]
fn every_frame_by_udp_over_a_bad_path_is_delivered_concealed_or_lost_once() {
    streams(Transport::Udp, 0..6);
}

#[test]
fn every_frame_by_rtp_over_a_bad_path_is_delivered_concealed_or_lost_once() {
    streams(Transport::Rtp, 0..6);
}
