//! Counters of texture video, as Python sees them.

use std::time::Duration;

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rushes::texture::ClientStatistics as LibraryClient;
use rushes::texture::SentFrame as LibrarySentFrame;
use rushes::texture::ServerCounts as LibraryServer;

use crate::stats::{mirror, plain};

mirror! {
    /// What a texture client has seen since its beginning.
    TextureClientStatistics of LibraryClient {
        /// Frames of which every packet came.
        frames_whole: u64 = |s: &LibraryClient| s.frames_whole,
        /// Frames handed over of which something was concealed.
        frames_damaged: u64 = |s: &LibraryClient| s.frames_damaged,
        /// Frames of which nothing came in time, or before the end.
        frames_lost: u64 = |s: &LibraryClient| s.frames_lost,
        /// Pictures that the server did not encode, because it could not keep up.
        frames_dropped: u64 = |s: &LibraryClient| s.frames_dropped,
        /// Tiles in which something was concealed.
        tiles_concealed: u64 = |s: &LibraryClient| s.tiles_concealed,
        /// Packets put in place.
        packets: u64 = |s: &LibraryClient| s.packets,
        /// Packets that did not come in time.
        packets_lost: u64 = |s: &LibraryClient| s.packets_lost,
        /// Packets that came twice.
        packets_duplicate: u64 = |s: &LibraryClient| s.packets_duplicate,
        /// Packets that came after their frame was given up.
        packets_late: u64 = |s: &LibraryClient| s.packets_late,
        /// Packets that no frame has.
        packets_invalid: u64 = |s: &LibraryClient| s.packets_invalid,
        /// Octets received, headers of packets included.
        octets: u64 = |s: &LibraryClient| s.octets,
        /// From the picture being there, by the server's clock, until the frame was in place: the
        /// median of the latest 1 024, in seconds.
        latency_p50: Option<f64> = |s: &LibraryClient| s.latency_p50.as_ref().map(Duration::as_secs_f64),
        /// The same: the 99th percentile, in seconds.
        latency_p99: Option<f64> = |s: &LibraryClient| s.latency_p99.as_ref().map(Duration::as_secs_f64),
        /// How far the latencies may be off: half a round trip, and the clocks' drift, in seconds.
        latency_error: Option<f64> = |s: &LibraryClient| s.latency_error.as_ref().map(Duration::as_secs_f64),
    }
}

mirror! {
    /// What a texture server has done for all clients together.
    TextureServerCounts of LibraryServer {
        /// Sessions there are.
        clients: usize = |s: &LibraryServer| s.clients,
        /// Frames sent, counted for each client.
        frames: u64 = |s: &LibraryServer| s.frames,
        /// Octets of tiles sent.
        octets: u64 = |s: &LibraryServer| s.octets,
        /// Pictures that were not encoded, because the one before was not yet sent.
        dropped: u64 = |s: &LibraryServer| s.dropped,
    }
}

mirror! {
    /// How long one frame took on the server's side.
    SentTextureFrame of LibrarySentFrame {
        /// The frame's number.
        frame: u64 = |s: &LibrarySentFrame| s.frame,
        /// From the picture being there until the first unit began, in seconds.
        waited: f64 = |s: &LibrarySentFrame| s.waited.as_secs_f64(),
        /// From then until the last unit had sent its last octet, in seconds.
        took: f64 = |s: &LibrarySentFrame| s.took.as_secs_f64(),
        /// How long a unit was at work (encoding and sending): the mean, and the longest, in
        /// seconds.
        unit_mean: f64 = |s: &LibrarySentFrame| s.unit_mean.as_secs_f64(),
        /// The longest, in seconds.
        unit_max: f64 = |s: &LibrarySentFrame| s.unit_max.as_secs_f64(),
        /// Pictures dropped so far.
        dropped: u64 = |s: &LibrarySentFrame| s.dropped,
    }
}
