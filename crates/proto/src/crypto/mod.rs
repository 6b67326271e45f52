//! The primitives that secured packets are made of: what the rooms above need of them, and no more.
//!
//! **What it is.** AES in counter mode, AES-GCM, HMAC-SHA1, and the comparison of tags, each from
//! a well-kept library, with keys and nonces in the types that SRTP gives them.
//!
//! **What it is not.** A cryptographic library: nothing here knows what a packet is, and nothing
//! but the lanes of `rushes-sha1` was written for Rushes.

mod aead;
mod counter_mode;
mod mac;

pub use aead::{Aead, NONCE_LEN, TAG_LEN};
pub use counter_mode::CounterMode;
pub use mac::{LANES_MAX, MAC_LEN, Mac};

pub use rushes_sha1::Message;
use thiserror::Error;

/// A primitive refused its input: a key of a length that it has not, or a tag that does not match.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("the cryptographic primitive refused its input")]
pub struct Refused;

/// Whether two tags are equal, in a time that depends on their lengths only.
#[must_use]
pub fn tags_are_equal(a: &[u8], b: &[u8]) -> bool {
    aws_lc_rs::constant_time::verify_slices_are_equal(a, b).is_ok()
}
