//! The C interface of Rushes: declared in `include/rushes.h`, wrapped by `include/rushes.hpp`.
//!
//! Every function is thin: it converts its C arguments with `pointer.rs` and `handle.rs`, calls the
//! library, and returns the outcome through `guard.rs`, which lets no panic escape.
//!
//! **Invariant:** a handle is a number, never an address, and is never dereferenced.
//!
//! **Invariant:** only `pointer.rs` dereferences addresses passed by C, and only `texture/block.rs`
//! accesses memory shared with C. Elsewhere, `unsafe` occurs in `#[unsafe(no_mangle)]` only.
//!
//! **Invariant:** no function can be called from Rust, because the modules are private: a call
//! would be safe code that dereferences an arbitrary address. (The `rlib` exists only because cargo
//! does not build the archive for the tests without one.)
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
    reason = "exported symbols, and the two files above; crates/rushes/tests/house.rs checks this"
)]
#![allow(unreachable_pub, reason = "called from C")]
#![allow(clippy::doc_markdown, reason = "most comments go into the C header, without backticks")]

mod context;
mod control;
mod control_event;
mod error;
mod event;
mod frame;
mod guard;
mod handle;
mod hook;
mod log;
mod media_reader;
mod options;
mod options_control;
mod options_security;
mod options_socket;
mod peer;
mod peer_connection;
mod pointer;
mod poller;
mod push_many;
mod raw_video;
mod session;
mod source;
mod statistics;
mod stream;
mod texture;
mod turn;
mod zrtp;

// C passes these types as plain integers: a number that matches no variant would be an invalid enum
// in Rust.
pub use log::LogLevel;
pub use options::{Codec, Extension};
pub use options_control::{FecFormat, FecMode, RateMark, RecoveryMode, SdesItem};
pub use options_security::{SrtpSuite, ZrtpPolicy};
pub use peer_connection::Direction;
pub use raw_video::{Sampling, Scan};
pub use texture::{MemoryHandle, TextureAdaptation, TextureTiming};
