//! HMAC-SHA1 of many packets at once, each in a lane of the processor's vectors.
//!
//! **What it is.** SRTP's mandatory profile authenticates every packet with HMAC-SHA1 (RFC 3711
//! section 5.2), and SHA-1 of one packet is a single chain of dependent operations. The packets of
//! a frame are independent of each other, so [`HmacLanes::tags`] hashes them side by side, sixteen,
//! eight or two at a time (AVX-512, AVX2, SHA instructions). A lane that has finished its packet
//! takes the next one.
//!
//! **What it is not.** It is not for single messages, which a crypto library hashes, and it
//! verifies no tags. It is available only where it is faster; elsewhere [`HmacLanes::new`] returns
//! `None`.
//!
//! ```
//! use rushes_sha1::{HmacLanes, Message};
//!
//! let key = [0x0b; 20]; // RFC 2202 section 3, test case 1
//! let messages = [Message { body: b"Hi T", suffix: *b"here" }; 3];
//! let mut tags = [[0; 20]; 3];
//! // None: this processor has no lanes, and the tags are made one after the other elsewhere.
//! if let Some(lanes) = HmacLanes::new(&key) {
//!     lanes.tags(&messages, &mut tags);
//!     assert_eq!(tags[2][..4], [0xb6, 0x17, 0x31, 0x86]);
//! }
//! ```
//!
//! # Map
//!
//! | file | contents |
//! |---|---|
//! | `hmac.rs` | keys and messages: the public interface |
//! | `schedule.rs` | the assignment of messages to lanes |
//! | `dispatch.rs` | detection of the processor's features: the only unsafe code |
//! | `rounds.rs` | the rounds of SHA-1, once for all vector lengths |
//! | `avx512.rs`, `avx2.rs` | the operations and the transposition of each vector length |
//! | `shani.rs` | interleaved streams of the SHA instructions |
//! | `scalar.rs` | SHA-1 of one message, for keys; padding |
//! | `elsewhere.rs` | other architectures: no lanes |
#![deny(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "calls code for detected processor features, and loads vectors")]
mod dispatch;
#[cfg(not(target_arch = "x86_64"))]
#[path = "elsewhere.rs"]
mod dispatch;
mod hmac;
#[cfg(target_arch = "x86_64")]
mod rounds;
mod scalar;
#[cfg(target_arch = "x86_64")]
mod schedule;
#[cfg(target_arch = "x86_64")]
mod shani;

pub use hmac::{HmacLanes, Message};

/// The instruction sets that compute tags side by side, the fastest first.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstructionSet {
    /// Sixteen lanes in vectors of 512 bits.
    Avx512,
    /// Eight lanes in vectors of 256 bits.
    Avx2,
    /// Interleaved streams of the SHA instructions.
    ShaNi,
}

impl InstructionSet {
    /// All instruction sets, the fastest first.
    pub const ALL: [Self; 3] = [Self::Avx512, Self::Avx2, Self::ShaNi];
}
