//! Cryptographic primitives, limited to the needs of the protocols of Rushes: SRTP, ZRTP and the
//! control connections of texture video.
//!
//! **Scope.** AES in counter mode, AES-GCM, HMAC-SHA1, SHA-2 with HMAC and HKDF, X25519 and the
//! curves of NIST, and the comparison of tags. Each is from a maintained library, with keys and
//! nonces in the types that the protocols use. The caller supplies all random octets. With the feature
//! `ipsec-mb`, the ciphers are computed by Intel's library of that name where it is installed; see
//! [`Backend`].
//!
//! **Not in scope.** Packet formats, and implementations of primitives: only the lanes of
//! `rushes-sha1` were written for Rushes.
#![forbid(unsafe_code)]

mod aead;
mod backend;
mod counter_mode;
mod curve;
mod erase;
mod hash;
mod mac;
mod secret;
#[cfg(test)]
mod testing;
#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod wycheproof;

pub use aead::{Aead, BLOCK_LEN, NONCE_LEN, TAG_LEN};
pub use backend::{Backend, BackendError};
pub use counter_mode::CounterMode;
pub use curve::{Curve, CurveKey};
pub use erase::on_erased_stack;
pub use hash::{DIGEST_LEN_MAX, Digest, HashAlgorithm, hash, hkdf, hmac};
pub use mac::{LANES_MAX, MAC_LEN, Mac};
pub use secret::{AgreementError, Entropy, Secret};

pub use rushes_sha1::Message;
use thiserror::Error;

/// A primitive refused its input: a key of an unsupported length, or a tag that does not match.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("the cryptographic primitive refused its input")]
pub struct Refused;

/// Returns whether two tags are equal, in a time that depends only on their lengths.
#[must_use]
pub fn tags_are_equal(a: &[u8], b: &[u8]) -> bool {
    aws_lc_rs::constant_time::verify_slices_are_equal(a, b).is_ok()
}
