//! The package as who installs it has it: built and linked by others' tools, run beside the program
//! `rushes`, under checkers of memory.
//!
//! What is missing here is skipped, unless `RUSHES_INTEROP=require`.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may")]

mod examples;
mod installed;
mod programs;
mod rig;
