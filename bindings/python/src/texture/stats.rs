//! Counters of texture video for Python.

use std::time::Duration;

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rushes::texture::{
    ClientStatistics as LibraryClient, SentFrame as LibrarySentFrame, ServerCounts as LibraryServer,
};

use crate::stats::{mirror, to_plain};

mirror! {
    /// A texture client's counters since it was created.
    TextureClientStatistics of LibraryClient {
        /// Frames of which every packet arrived.
        frames_whole: u64 = |s: &LibraryClient| s.frames_whole,
        /// Frames delivered of which parts were concealed.
        frames_damaged: u64 = |s: &LibraryClient| s.frames_damaged,
        /// Frames of which no packet arrived in time, or before the end.
        frames_lost: u64 = |s: &LibraryClient| s.frames_lost,
        /// Pictures that the server did not encode, because it could not keep up.
        frames_dropped: u64 = |s: &LibraryClient| s.frames_dropped,
        /// Tiles of which parts were concealed.
        tiles_concealed: u64 = |s: &LibraryClient| s.tiles_concealed,
        /// Packets put in place.
        packets: u64 = |s: &LibraryClient| s.packets,
        /// Packets that did not arrive in time.
        packets_lost: u64 = |s: &LibraryClient| s.packets_lost,
        /// Packets that arrived twice.
        packets_duplicate: u64 = |s: &LibraryClient| s.packets_duplicate,
        /// Packets that arrived after their frame was abandoned.
        packets_late: u64 = |s: &LibraryClient| s.packets_late,
        /// Packets that belong to no frame.
        packets_invalid: u64 = |s: &LibraryClient| s.packets_invalid,
        /// Octets received, packet headers included.
        octets: u64 = |s: &LibraryClient| s.octets,
        /// From when the picture was available, by the server's clock, until the frame was
        /// complete: the median of the latest 1 024, in seconds.
        latency_p50: Option<f64> = |s: &LibraryClient| s.latency_p50.as_ref().map(Duration::as_secs_f64),
        /// The same: the 99th percentile, in seconds.
        latency_p99: Option<f64> = |s: &LibraryClient| s.latency_p99.as_ref().map(Duration::as_secs_f64),
        /// Uncertainty of the latencies: half a round trip, and the clocks' drift, in seconds.
        latency_error: Option<f64> = |s: &LibraryClient| s.latency_error.as_ref().map(Duration::as_secs_f64),
    }
}

mirror! {
    /// A texture server's counters for all clients together.
    TextureServerCounts of LibraryServer {
        /// Number of sessions now.
        clients: usize = |s: &LibraryServer| s.clients,
        /// Frames sent, counted for each client.
        frames: u64 = |s: &LibraryServer| s.frames,
        /// Octets of tiles sent.
        octets: u64 = |s: &LibraryServer| s.octets,
        /// Pictures that were not encoded, because the previous one was not yet sent.
        dropped: u64 = |s: &LibraryServer| s.dropped,
    }
}

mirror! {
    /// The server's timing of one frame.
    SentTextureFrame of LibrarySentFrame {
        /// The frame's number.
        frame: u64 = |s: &LibrarySentFrame| s.frame,
        /// From when the picture was available until the first unit began, in seconds.
        waited: f64 = |s: &LibrarySentFrame| s.waited.as_secs_f64(),
        /// From then until the last unit had sent its last octet, in seconds.
        took: f64 = |s: &LibrarySentFrame| s.took.as_secs_f64(),
        /// The mean time that a unit worked (encoding and sending), in seconds.
        unit_mean: f64 = |s: &LibrarySentFrame| s.unit_mean.as_secs_f64(),
        /// The longest time that a unit worked, in seconds.
        unit_max: f64 = |s: &LibrarySentFrame| s.unit_max.as_secs_f64(),
        /// Pictures dropped so far.
        dropped: u64 = |s: &LibrarySentFrame| s.dropped,
    }
}
