//! The control connection of texture video, in virtual time: every message, both sides together,
//! and hostile peers.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]
#![allow(clippy::single_range_in_vec_init, reason = "a list of runs may have one")]
#![allow(clippy::disallowed_methods, reason = "any epoch will do")]

mod ends;
mod messages;
mod pair;
mod refusals;
mod sealed;
mod sealed_later;
mod sizes;
