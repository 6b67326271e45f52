//! The cases of RFC 8867 (section 5) in virtual time, for any congestion controller: flows of media
//! with the traffic model of RFC 8593 section 5, and of TCP, over a path with a bottleneck.
//!
//! [`cases`] are the cases. [`Case::run`] runs one with a [`Controller`] for each flow of media, and
//! [`Case::run_fixed`] with flows of a fixed rate instead. Results are those of each [`Flow`], and
//! [`Summary`] those of a case. Equal cases give equal results.
//!
//! The cases have no jitter and no audio of 20 kbit/s, and 5.5 ends after 200 s rather than 300 s.
#![allow(clippy::cast_sign_loss, reason = "sizes, rates and times are not negative")]

mod case;
mod encoder;
mod flow;
mod media;
mod summary;
mod tcp;
mod world;

pub use case::{Case, cases};
pub use flow::Flow;
pub use media::{Controller, Report};
pub use summary::{Summary, fairness};

use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

/// Octets of a packet's payload.
const PACKET: usize = 1200;

/// Minimum, start and maximum of a controlled flow in bits per second (RFC 8867 section 4.3).
pub const RATES: [u64; 3] = [150_000, 150_000, 1_500_000];
