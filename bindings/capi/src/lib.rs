//! The C interface of Rushes: what `include/rushes.h` declares, and `include/rushes.hpp` wraps.
//!
//! Every function is thin: it takes its arguments from C by `pointer.rs` and `handle.rs`, calls the
//! library, and gives the outcome back by `guard.rs`, past which no panic goes.
//!
//! **Invariant:** a handle is a number, never an address: nothing that C passes as one is followed.
//!
//! **Invariant:** what follows addresses that C gave is in `pointer.rs`, and memory that both sides
//! see in `texture/block.rs`; no other file contains unsafe code but the names of its functions.
//!
//! **Invariant:** no function can be called from Rust, where it would be safe and follow any address
//! it is given: the modules are private. (There is an `rlib` because cargo builds the archive for the
//! tests only with one.)
//!
//! ```compile_fail,E0603
//! rushes_capi::stream::rushes_stream_close(std::ptr::null_mut());
//! ```
//!
//! ```compile_fail,E0425
//! rushes_capi::rushes_stream_close(std::ptr::null_mut());
//! ```
#![allow(
    unsafe_code,
    reason = "symbols with names, and the two files above; crates/rushes/tests/house.rs looks"
)]
#![allow(unreachable_pub, reason = "C reaches them")]
#![allow(clippy::doc_markdown, reason = "most docs are C's, where backticks are noise")]

mod context;
mod control;
mod control_event;
mod error;
mod event;
mod frame;
mod guard;
mod handle;
mod hook;
mod options;
mod options_control;
mod options_security;
mod options_socket;
mod pointer;
mod session;
mod statistics;
mod stream;
mod texture;
mod turn;
mod zrtp;

// Numbers that C passes as such: what is no variant must not become an enum here.
pub use options::Codec;
pub use options_control::{RecoveryMode, SdesItem};
pub use options_security::{SrtpSuite, ZrtpPolicy};
pub use texture::TextureTiming;
