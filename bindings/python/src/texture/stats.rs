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
        /// Pictures that the server was too slow to encode.
        frames_dropped: u64 = |s: &LibraryClient| s.frames_dropped,
        /// Tiles of which parts were concealed.
        tiles_concealed: u64 = |s: &LibraryClient| s.tiles_concealed,
        /// Packets stored in their frames.
        packets: u64 = |s: &LibraryClient| s.packets,
        /// Packets that did not arrive in time.
        packets_lost: u64 = |s: &LibraryClient| s.packets_lost,
        /// Packets that arrived twice.
        packets_duplicate: u64 = |s: &LibraryClient| s.packets_duplicate,
        /// Packets that arrived after their frame had ended.
        packets_late: u64 = |s: &LibraryClient| s.packets_late,
        /// Packets that belong to no frame.
        packets_invalid: u64 = |s: &LibraryClient| s.packets_invalid,
        /// Packets that were requested because they did not arrive, each counted once.
        packets_requested: u64 = |s: &LibraryClient| s.packets_requested,
        /// Packets that arrived after they had been requested.
        packets_recovered: u64 = |s: &LibraryClient| s.packets_recovered,
        /// Packets that did not arrive and were computed from repair packets.
        packets_repaired: u64 = |s: &LibraryClient| s.packets_repaired,
        /// Repair packets that arrived, whether or not they were needed.
        repairs: u64 = |s: &LibraryClient| s.repairs,
        /// Octets received, packet headers included.
        octets: u64 = |s: &LibraryClient| s.octets,
        /// Median time from the capture of the picture, by the server's clock, until the frame was
        /// complete, over the latest 1 024 frames, in seconds.
        latency_p50: Option<f64> = |s: &LibraryClient| s.latency_p50.as_ref().map(Duration::as_secs_f64),
        /// The 99th percentile of the same times, in seconds.
        latency_p99: Option<f64> = |s: &LibraryClient| s.latency_p99.as_ref().map(Duration::as_secs_f64),
        /// Uncertainty of the latencies: half a round trip, and the clocks' drift, in seconds.
        latency_error: Option<f64> = |s: &LibraryClient| s.latency_error.as_ref().map(Duration::as_secs_f64),
        /// Stripes that arrived packed.
        stripes_unpacked: u64 = |s: &LibraryClient| s.stripes_unpacked,
        /// Stripes that the server reported as unchanged, and whose octets the client had.
        stripes_unchanged: u64 = |s: &LibraryClient| s.stripes_unchanged,
        /// Stripes that the server reported as unchanged, but whose octets had not arrived before.
        stripes_stale: u64 = |s: &LibraryClient| s.stripes_stale,
    }
}

mirror! {
    /// A texture server's counters for all clients together.
    TextureServerCounts of LibraryServer {
        /// Number of current sessions.
        clients: usize = |s: &LibraryServer| s.clients,
        /// Frames sent, counted for each client.
        frames: u64 = |s: &LibraryServer| s.frames,
        /// Octets of tiles sent.
        octets: u64 = |s: &LibraryServer| s.octets,
        /// Pictures that were not encoded, because the previous one was not yet sent.
        dropped: u64 = |s: &LibraryServer| s.dropped,
        /// Packets that clients requested because they did not arrive.
        packets_requested: u64 = |s: &LibraryServer| s.packets_requested,
        /// Packets among them that were sent again.
        packets_retransmitted: u64 = |s: &LibraryServer| s.packets_retransmitted,
        /// Repair packets sent.
        repairs: u64 = |s: &LibraryServer| s.repairs,
        /// Changes to a smaller format or rate, because a client reported losses.
        steps_down: u64 = |s: &LibraryServer| s.steps_down,
        /// Changes to a larger one, in the absence of losses.
        steps_up: u64 = |s: &LibraryServer| s.steps_up,
    }
}

mirror! {
    /// The server's timing of one frame.
    SentTextureFrame of LibrarySentFrame {
        /// The frame's number.
        frame: u64 = |s: &LibrarySentFrame| s.frame,
        /// Time from the capture of the picture until the first unit began, in seconds.
        waited: f64 = |s: &LibrarySentFrame| s.waited.as_secs_f64(),
        /// Time from the first unit's beginning until the last unit had sent its last octet, in
        /// seconds.
        took: f64 = |s: &LibrarySentFrame| s.took.as_secs_f64(),
        /// The mean time that a unit worked (encoding and sending), in seconds.
        unit_mean: f64 = |s: &LibrarySentFrame| s.unit_mean.as_secs_f64(),
        /// The longest time that a unit worked, in seconds.
        unit_max: f64 = |s: &LibrarySentFrame| s.unit_max.as_secs_f64(),
        /// Pictures dropped so far.
        dropped: u64 = |s: &LibrarySentFrame| s.dropped,
    }
}
