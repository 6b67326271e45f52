//! `rushes texture serve` of a pipe on a simulated network, and beside strangers.

use std::io::{PipeWriter, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rushes_netsim::{Loss, Path, Straying};

use crate::rig::{json, rushes, text};
use crate::route::Route;
use crate::texture_pipes::{copied, copied_from, pictures, piped, write};
use crate::texture_rig::frames;

const MS: Duration = Duration::from_millis(1);

/// A path whose packets overtake each other by up to four frames: the smallest unit has three packets in each.
fn path() -> Path {
    Path {
        delay: 50 * MS,
        jitter: 20 * MS,
        jitter_reorders: true,
        reordering: Straying::places(0.01, 5..=12),
        duplication: Straying::places(0.02, 0..=15),
        ..Path::default()
    }
}

/// Writes pictures as a camera does.
fn live(pipe: &mut PipeWriter, pictures: &[Vec<u8>]) {
    for picture in pictures {
        write(pipe, picture);
        thread::sleep(20 * MS);
    }
}

/// Serves 40 pictures of a pipe, 50 a second, over `path`, and returns the client's report with the number of
/// frames in its copy that equal a picture.
fn through(path: Path, transport: &str, seed: u64) -> (serde_json::Value, usize) {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.y4m");
    let pictures = pictures(40);
    let more = ["--every-frame", "--transport", transport, "--json"];
    let (server, mut pipe) = piped(&pictures[0], &more);
    let route = Route::new(server.address.parse().unwrap(), path, seed);
    let rest = pictures[1..].to_vec();
    let writer = thread::spawn(move || live(&mut pipe, &rest));
    let viewed = copied_from(&route.address().to_string(), &copy, &["--transport", transport]);
    writer.join().unwrap();
    let (served, log) = server.finish();
    assert_eq!(served.status.code(), Some(0), "{log}");
    let report = json(&viewed);
    let seen = frames(&copy).1;
    // Whole frames are pictures, in their order; a damaged one equals none.
    let places =
        seen.iter().filter_map(|frame| pictures.iter().position(|picture| picture == frame));
    let places: Vec<_> = places.collect();
    assert!(places.is_sorted_by(|a, b| a < b), "{places:?}");
    let is_whole = report["frames_damaged"] == 0 && report["frames_lost"] == 0;
    let code = i32::from(!is_whole);
    assert_eq!(viewed.status.code(), Some(code), "{report} {}", text(&viewed.stderr));
    (report, places.len())
}

#[test]
fn a_pipe_over_a_network_that_reorders_loses_no_frame() {
    let (report, same) = through(path(), "udp", 3);
    assert_eq!(report["frames"], 40, "{report}");
    assert_eq!((&report["frames_damaged"], same), (&0.into(), 40), "{report}");
}

#[test]
fn a_pipe_over_a_network_that_loses_packets_has_each_frame_once_and_in_order() {
    for transport in ["udp", "rtp"] {
        let loss = Loss::bursts(0.02, 5.0, 20);
        let (report, same) = through(Path { loss, ..path() }, transport, 5);
        let count = |name: &str| report[name].as_u64().unwrap();
        assert_eq!(count("frames") + count("frames_lost"), 40, "{report}");
        let damaged = count("frames_damaged");
        // All that was lost may arrive again in time, over UDP.
        let lost = damaged + count("frames_lost") + count("packets_recovered");
        assert!(lost > 0 && damaged < count("frames"), "{report}");
        assert!(same as u64 >= count("frames") - damaged, "{same} {report}");
    }
}

/// Connects to a server again and again, and sends it noise.
fn noise(address: &str, stop: &AtomicBool) -> u32 {
    let mut connections = 0;
    while !stop.load(Ordering::Acquire) && connections < 2_000 {
        if let Ok(mut stream) = TcpStream::connect(address) {
            connections += 1;
            // The server may close the connection before everything is written.
            let _closed = stream.write_all(&[connections as u8; 3_000]);
        }
        thread::sleep(2 * MS);
    }
    connections
}

#[test]
fn strangers_change_no_frame_of_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.y4m");
    let pictures = pictures(40);
    let (server, mut pipe) = piped(&pictures[0], &["--every-frame"]);
    let stop = AtomicBool::new(false);
    // One stranger says nothing, before the client and until the end.
    let silent = TcpStream::connect(&server.address).unwrap();
    thread::scope(|scope| {
        let strangers = scope.spawn(|| noise(&server.address, &stop));
        let rest = &pictures[1..];
        scope.spawn(move || live(&mut pipe, rest));
        let viewed = copied(&server, &copy);
        assert!(viewed.status.success(), "{}", text(&viewed.stderr));
        stop.store(true, Ordering::Release);
        assert!(strangers.join().unwrap() > 0);
    });
    drop(silent);
    assert!(frames(&copy).1 == pictures);
    let (served, log) = server.finish();
    assert_eq!(served.status.code(), Some(0), "{log}");
}

#[test]
fn a_client_that_stops_reading_does_not_hold_a_live_pipe() {
    let pictures = pictures(400);
    let (server, mut pipe) = piped(&pictures[0], &[]);
    let view = ["texture", "view", &server.address, "-o", "-", "-q", "--transport", "tcp"];
    // Nobody reads its output, of 7 MB.
    let mut stuck = rushes(&view).spawn().unwrap();
    pictures[1..].iter().for_each(|picture| write(&mut pipe, picture));
    drop(pipe);
    drop(stuck.stdout.take());
    stuck.wait().unwrap();
    let (served, log) = server.finish();
    assert_eq!(served.status.code(), Some(0), "{log}");
}
