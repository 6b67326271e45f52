//! Congestion control of media: how fast a sender may send, by `SCReAM` version 2
//! (draft-ietf-ccwg-rfc8298bis-screamv2-01).
//!
//! [`RateController`] is informed of every sent packet and of the receiver's reports on them. It
//! estimates the delay in the queue of the path, notes lost and marked packets, and decides a
//! target bit rate for the encoder and a pacing rate for the packets. It knows no report format:
//! [`PacketFeedback`] carries the contents of a report of RFC 8888, or of transport-wide feedback
//! ([`WideClock`]).
//!
//! It neither sends packets nor changes media.
//!
//! Names and constants are those of the draft, in whose order each file follows it. Of the draft's
//! optional parts, the compensations for competing flows, for clock drift and for an undershoot of
//! the window are implemented; the filter of jitter, the detection of policers and of losses of the
//! link layer are not. Other
//! differences:
//!
//! - The first round-trip time sets the reference window to that of the start rate.
//! - A packet counts as lost only if a report lists it as missing, so that a lost report is not
//!   mistaken for congestion. Without any report, the rate is halved again and again.
//!
//! The draft's authors work for Ericsson. Its text names no patents; disclosures to the IETF are
//! listed at <https://datatracker.ietf.org/ipr/>.
#![allow(clippy::cast_sign_loss, reason = "rates and times are not negative")]

mod acknowledged;
mod controller;
mod delay;
mod feedback;
mod marks;
mod media;
mod sent;
mod settings;
mod window;

pub use controller::RateController;
pub use feedback::{PacketFeedback, ReceiverTime, WideClock};
pub use settings::{RateSettings, RateSettingsError};

/// Maximum segment size in octets: by as much the reference window grows in a round trip.
const MSS: f64 = 1200.0;

/// The shortest time in which congestion is reacted to again, in seconds, so that flows with
/// shorter round trips get equal shares.
const VIRTUAL_RTT: f64 = 0.025;
