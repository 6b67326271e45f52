//! Server and client of WHIP and WHEP, with each other, with curl, and with hostile clients.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod client;
mod curl;
mod fake;
mod hostile;
mod page;
mod requests;
mod server;
#[path = "../../../../interop/skipped.rs"]
mod skipped;
mod tls;
