//! Cryptographic primitives for secured packets, limited to the needs of the protocol modules.
//!
//! **Scope.** AES in counter mode, AES-GCM, HMAC-SHA1, and the comparison of tags, each from a
//! maintained library, with keys and nonces in the types that SRTP uses; SHA-2, HMAC and HKDF over
//! it, and X25519. With the feature `zrtp` also AES in cipher feedback mode, and key agreement over
//! finite fields, other curves and lattices. The caller supplies all random octets.
//!
//! **Not in scope.** Packet formats, and implementations of primitives: only the lanes of
//! `rushes-sha1` were written for Rushes.

mod aead;
#[cfg(feature = "zrtp")]
mod agreement;
#[cfg(feature = "zrtp")]
mod cfb;
mod counter_mode;
mod curve;
#[cfg(feature = "x448")]
mod curve448;
mod erase;
mod hash;
#[cfg(feature = "zrtp")]
mod kem;
#[cfg(feature = "zrtp")]
mod lattice;
mod mac;
#[cfg(feature = "zrtp")]
mod modp;
mod secret;
#[cfg(test)]
mod testing;
#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod wycheproof;

pub use aead::{Aead, BLOCK_LEN, NONCE_LEN, TAG_LEN};
#[cfg(feature = "zrtp")]
pub use agreement::{Agreement, KeyPair};
#[cfg(feature = "zrtp")]
pub use cfb::CipherFeedback;
pub use counter_mode::CounterMode;
pub use erase::on_erased_stack;
pub use hash::{DIGEST_LEN_MAX, Digest, HashAlgorithm, hash, hkdf, hmac};
#[cfg(feature = "zrtp")]
pub use kem::{Kem, KemKeyPair};
#[cfg(feature = "zrtp")]
pub use lattice::Lattice;
pub use mac::{LANES_MAX, MAC_LEN, Mac};
pub use secret::{AgreementError, Entropy, Secret};

pub(crate) use curve::{Curve, CurveKey};

pub use rushes_sha1::Message;
use thiserror::Error;

/// A primitive refused its input: a key of an unsupported length, or a tag that does not match.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("the cryptographic primitive refused its input")]
pub struct Refused;

/// Whether two tags are equal, in a time that depends only on their lengths.
#[must_use]
pub fn tags_are_equal(a: &[u8], b: &[u8]) -> bool {
    aws_lc_rs::constant_time::verify_slices_are_equal(a, b).is_ok()
}
