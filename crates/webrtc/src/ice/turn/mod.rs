//! A client of a TURN server (RFC 8656) over UDP, without I/O: it has an address at the server, and peers reach it
//! there.
//!
//! Each peer gets a channel, so that data costs four octets (section 12). Permissions and Send indications are not
//! needed, because a channel is a permission, too. Data for a peer waits until its channel is bound.
//!
//! **From the server** counts only what has its address, and of responses only those to requests that wait for one,
//! with MESSAGE-INTEGRITY where the request had it (RFC 8489 section 9.2.5). The exceptions are the errors 401
//! and 438, which cannot have it; of these a request takes eight.

mod channels;
mod client;
mod login;
mod message;
mod transactions;

pub(super) use channels::FIRST_CHANNEL;
pub(super) use client::{Client, Happening};
pub use login::{TurnError, TurnServer};
