//! Repair: requests for missing packets, and a record of sent packets to answer them.
//!
//! [`Missing`] decides when to request a missing packet, [`History`] finds a packet that was sent,
//! and [`rtx`] is the payload format in which it is retransmitted (RFC 4588). [`fec`] repairs
//! without requests, by parity packets. The module `timer` decides when a request may be sent, and
//! `rtcp` has its format.

pub mod fec;
mod history;
mod missing;
mod round_trip;
pub mod rtx;

pub use history::{History, Refusal};
pub use missing::{Missing, RepairCounts, RequestTiming};
