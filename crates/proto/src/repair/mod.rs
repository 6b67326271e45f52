//! Repair: what a receiver asks for again, and what a sender keeps to answer.
//!
//! [`Missing`] decides when a lost packet is asked for, [`History`] finds a packet that was sent,
//! and [`rtx`] is the payload format in which it travels again (RFC 4588). When a request may be
//! sent is `timer`'s to say, how it looks is `rtcp`'s.

mod history;
mod missing;
mod round_trip;
pub mod rtx;

pub use history::{History, Refusal};
pub use missing::{Missing, RepairCounts, RequestTiming};
