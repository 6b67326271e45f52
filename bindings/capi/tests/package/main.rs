//! The package as a user installs it: built and linked with external tools, run against the program
//! `rushes`, and under memory checkers.
//!
//! A test whose tools are missing is skipped, unless `RUSHES_INTEROP=require`.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may")]

#[path = "../../../../interop/display.rs"]
mod display;
mod examples;
mod graphics;
mod installed;
mod pages;
mod programs;
mod rig;
#[path = "../../../../interop/skipped.rs"]
mod skipped;
#[path = "../../../../interop/taken.rs"]
mod taken;
