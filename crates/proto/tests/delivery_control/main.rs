//! The control connection of texture video, in virtual time: every message, both sides together,
//! and hostile peers.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, reason = "any epoch will do")]

#[path = "../world/mod.rs"]
mod world;

mod ends;
mod messages;
mod pair;
mod refusals;
#[cfg(feature = "srtp")]
mod sealed;
#[cfg(feature = "srtp")]
mod sealed_later;
