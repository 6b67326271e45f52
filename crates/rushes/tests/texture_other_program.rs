//! A receiver of texture video by multicast that was written from the documentation alone (`interop/texture_group.py`)
//! gets the octets that were sent.
#![cfg(all(feature = "texture", target_os = "linux"))]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../../../interop/skipped.rs"]
mod skipped;
mod texture_world;

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use rushes::texture::{Format, Layout, MulticastGroup, ServerOptions, TextureServer, Timing};
use serde_json::Value;

use texture_world::noise::{Noise, picture};

const FRAMES: u64 = 20;

/// Returns a group that no other test of this machine uses at the same time.
fn group(format: Format) -> SocketAddr {
    let [a, b, c, _] = std::process::id().to_le_bytes();
    let port = 20_000 + u16::from(a) * 40 + u16::from(format.number()) * 4;
    SocketAddr::from(([239, 252, b, c], port))
}

/// Serves noise to the other program; returns its report and what it has written.
fn receive(layout: &Layout, units: usize) -> (Value, Vec<u8>) {
    let format = layout.format();
    let mut options = ServerOptions::default();
    (options.units, options.timing) = (units, Timing::EveryFrame);
    options.multicast = Some(MulticastGroup::new(group(format)));
    let noise = Noise::new(*layout, 20, FRAMES);
    let server = TextureServer::serve("127.0.0.1:0".parse().unwrap(), noise, options).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let film = folder.path().join("film");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop/texture_group.py");
    let mut program = Command::new("python3");
    program.arg(script).args(["127.0.0.1", &server.local_address().port().to_string()]);
    let output = program.arg(format.name()).arg(&film).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let report = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
    (report, std::fs::read(film).unwrap())
}

#[test]
fn a_program_written_from_the_documentation_receives_the_octets_that_were_sent() {
    if !skipped::have(&["python3"]) {
        return;
    }
    // Sides and units that leave rests, and planes of different sizes.
    for (format, width, height, units) in
        [(Format::Rgb24, 161, 91, 3), (Format::Yuv420, 161, 91, 5), (Format::Bc1, 322, 182, 4)]
    {
        let layout = Layout::new(format, width, height).unwrap();
        let (report, film) = receive(&layout, units);
        assert!(report["end"].as_str().unwrap().contains("source has ended"), "{report}");
        assert_eq!(
            (&report["octets"], &report["first_frame"]),
            (&layout.bytes().into(), &0.into())
        );
        let numbers = report["frames"].as_array().unwrap();
        let numbers: Vec<_> = numbers.iter().map(|number| number.as_u64().unwrap()).collect();
        // All, unless the machine was too busy.
        assert!(numbers.len() as u64 * 4 >= FRAMES * 3, "{report}");
        assert_eq!(film.len(), numbers.len() * layout.bytes());
        for (number, octets) in numbers.iter().zip(film.chunks(layout.bytes())) {
            assert!(*number < FRAMES && octets == picture(layout.bytes(), *number), "{number}");
        }
    }
}
