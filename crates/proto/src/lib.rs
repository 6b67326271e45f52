//! RTP, payload formats and stream state machines: the protocols of Rushes, without I/O.
//!
//! **What it is.** Its input is bytes and time, its output bytes and events. A [`stream::Sender`]
//! converts frames to batches of datagrams; a [`stream::Receiver`] converts datagrams to whole
//! frames and reports missing packets. Both run in virtual time as well as in real time.
//!
//! **What it is not.** It opens no socket, starts no thread, reads no clock and draws no random
//! number: each of these is an argument. For a library that does all that, see the crate `rushes`.
//!
//! # Modules
//!
//! | module | contents |
//! |---|---|
//! | [`SequenceNumber`], [`RtpTimestamp`], [`Ssrc`], [`Batch`] … | basic types, no dependencies |
//! | [`rtp`] | RTP packets: views and a writer (RFC 3550, RFC 8285) |
//! | [`rtcp`] | RTCP packets: views and a writer (RFC 3550, 4585, 5104, 3611, 8888) |
//! | [`payload`] | frames to payloads and back, codec by codec |
//! | [`repair`] | missing packets: requests, history, retransmission (RFC 4588) |
//! | [`control`] | one participant's reports, feedback and collisions (RFC 3550 sections 6 and 8) |
//! | [`rate`] | how fast media may be sent: congestion control (SCReAM version 2) |
//! | [`sdp`] | session descriptions (RFC 8866) |
//! | `srtp` | secured packets (RFC 3711), with the feature `srtp` |
//! | [`stream`] | the paths of sent and received packets, sources, reordering, statistics |
//! | [`timer`] | when RTCP may be sent, and the members of the session (RFC 3550, RFC 4585) |
#![forbid(unsafe_code)]

mod batch;
pub mod control;
mod ecn;
pub mod payload;
pub mod rate;
pub mod repair;
pub mod rtcp;
pub mod rtp;
pub mod sdp;
mod seq;
#[cfg(feature = "srtp")]
pub mod srtp;
#[cfg(not(feature = "srtp"))]
#[path = "srtp/absent.rs"]
mod srtp;
mod ssrc;
pub mod stream;
mod time;
pub mod timer;

pub use batch::{Batch, SLAB_LEN};
pub use ecn::Ecn;
pub use seq::{ExtendedSequence, SequenceNumber};
pub use ssrc::{PayloadType, PayloadTypeError, Ssrc};
pub use time::{ClockRate, FrameRate, NtpTime, RtpTimestamp};
