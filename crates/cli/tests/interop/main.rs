//! Software of other projects at the other end: FFmpeg, GStreamer, pion, str0m, Janus,
//! Prometheus.
//!
//! With `RUSHES_INTEROP=require`, which `.ci/run` sets, a missing program is a failure; otherwise
//! its tests are skipped with a message. All traffic stays on 127.0.0.1.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod browser;
mod browser_video;
mod containers;
mod destinations;
mod fec;
mod ffmpeg;
mod films;
mod frames;
mod gstreamer;
mod header_extensions;
mod janus;
mod media;
mod metrics;
mod pion;
#[path = "../shared/ports.rs"]
mod ports;
#[path = "../shared/program.rs"]
mod program;
mod relay;
mod reports;
mod rig;
mod samples;
mod sampling;
mod secured;
#[path = "../../../../interop/skipped.rs"]
mod skipped;
mod slices;
mod str0m;
mod uncompressed;
mod webrtc;
mod webrtcbin;
