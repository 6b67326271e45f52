//! The primitives of ZRTP: AES in cipher feedback mode, and key agreement over finite fields, curves
//! and lattices. The implementations are those of maintained libraries.

mod agreement;
mod cfb;
#[cfg(feature = "x448")]
mod curve448;
mod kem;
mod lattice;
mod modp;
#[cfg(test)]
#[path = "../../../crypto/src/testing.rs"]
mod testing;
#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod wycheproof;

pub use agreement::{Agreement, KeyPair};
pub use cfb::CipherFeedback;
pub use kem::{Kem, KemKeyPair};
pub use lattice::Lattice;
pub use rushes_crypto::{
    AgreementError, Digest, Entropy, HashAlgorithm, Refused, Secret, hash, hmac, on_erased_stack,
    tags_are_equal,
};
