//! Video and audio between machines in real time.
//!
//! **What it is.** Media frames over RTP: H.264, H.265, H.266, Opus, and formats of your own. A
//! frame is split into packets, copied once, passed to the kernel in batches, and delivered at the
//! other end complete or not at all.
//!
//! **What it is not.** It does not encode or decode media, and it does not discover peers: the
//! application supplies addresses and ports.
//!
//! ```
//! use rushes::{Codec, Context};
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), rushes::Error> {
//! let session = Context::new().session("127.0.0.1")?;
//! let mut monitor = session.stream(Codec::H265).open()?;
//! let port = monitor.local_address().port();
//! let mut camera = session.stream(Codec::H265).remote_port(port).open()?;
//!
//! // An access unit, here of two short NAL units.
//! let access_unit = b"\0\0\0\x01\x46\x01\x50\0\0\0\x01\x26\x01slice";
//! camera.push_frame(access_unit, None)?;
//! camera.push_frame(access_unit, None)?;
//! let frame = monitor.pull_frame(Duration::from_secs(1))?.expect("a frame");
//! assert_eq!(frame.data(), access_unit);
//! # Ok(())
//! # }
//! ```
//!
//! # Map
//!
//! | module | contents |
//! |---|---|
//! | [`Context`] → [`Session`] → [`StreamBuilder`] → [`MediaStream`] | the interface that most programs use |
//! | [`StreamSender`], [`StreamReceiver`], [`Hook`], [`StreamHandle`] | the halves of a stream, for several threads |
//! | [`Poller`], [`FramePusher`] | many streams: one thread that receives from all, few system calls to send to all |
//! | [`payload`] | frames, and the traits of an application's own payload format |
//! | [`format`](mod@format) | the table of formats, and how to add one |
//! | [`sdp`](mod@sdp) | descriptions of streams, written and read |
//! | `peer` | browsers and their servers, by offer and answer, with the feature `webrtc` |
//! | `texture` | texture video, with the feature `texture` |
//! | [`file`](mod@file) | media files as sequences of frames |
//! | [`proto`], [`net`] | the underlying crates: protocols without I/O, sockets without protocols |
#![forbid(unsafe_code)]

/// The README's example, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// The programs of the guide's page for Rust, compiled and run.
#[cfg(all(doctest, feature = "webrtc"))]
#[doc = include_str!("../../../docs/from-rust.md")]
struct FromRust;

/// The program of the guide's page for many streams, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/many-streams.md")]
struct ManyStreams;

#[cfg(feature = "zrtp")]
mod agreement;
#[cfg(feature = "webrtc")]
pub mod dtls;
mod error;
pub mod format;
#[cfg(feature = "zrtp")]
mod hex;
mod lock;
mod media;
mod pace;
mod poll;
mod port;
mod rate;
mod reports;
#[cfg(feature = "srtp")]
mod security;
#[cfg(not(feature = "srtp"))]
mod security {
    /// Has no variants, because a build without SRTP secures no stream.
    #[derive(Clone, Debug)]
    pub(crate) enum Security {}
}
#[cfg(feature = "webrtc")]
pub mod peer;
pub mod sdp;
mod setup;
mod stats;
#[cfg(feature = "texture")]
pub mod texture;
#[cfg(feature = "zrtp")]
pub mod zrtp;

#[cfg(feature = "srtp")]
pub use error::SdesError;
pub use error::{DestinationsError, Error};
pub use format::{Codec, file};
pub use media::{
    FramePush, FramePusher, Hook, MediaStream, Poller, PollerWaker, StreamHandle, StreamReceiver,
    StreamSender,
};
pub use pace::{Burst, Pacing, sleep_until};
pub use reports::Rtcp;
#[cfg(feature = "srtp")]
pub use security::Security;
#[cfg(any(feature = "webrtc", feature = "zrtp"))]
pub use setup::Opening;
pub use setup::{Context, Fec, Recovery, Session, StreamBuilder};
pub use stats::{DestinationStatistics, Histogram, RateStatistics, Statistics};

#[cfg(feature = "texture")]
pub use rushes_delivery as delivery;
pub use rushes_net as net;
pub use rushes_net::{MulticastOptions, ReceivePath, SendPath};
pub use rushes_proto as proto;
pub use rushes_proto::FrameRate;
pub use rushes_proto::control::{
    AppData, CircuitBreaker, ClockMapping, ControlEvent, KeyFrameRequest, LipSync,
};
pub use rushes_proto::payload::{Delivery, Frame, Framing};
pub use rushes_proto::rate::{RateSettings, RateSettingsError};
pub use rushes_proto::repair::fec::FecFormat;
pub use rushes_proto::rtp::{
    AbsSendTime, AudioLevel, CaptureTime, Element, ElementError, ExtensionKind, ExtensionMap,
    ExtensionMapError,
};
#[cfg(feature = "srtp")]
pub use rushes_proto::srtp::{self, MasterKey, Policy, Suite};
pub use rushes_proto::stream::{Discard, Event, FrameElements, Placement};
pub use rushes_proto::{
    ClockRate, NtpTime, PayloadType, PayloadTypeError, RtpTimestamp, SequenceNumber, Ssrc, payload,
};
