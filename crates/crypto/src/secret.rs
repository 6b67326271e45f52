//! The secret that results from a key agreement, and the errors of key agreements.

use core::fmt;

use thiserror::Error;
use zeroize::Zeroizing;

use crate::Refused;

/// A source of random octets, which fills the given slice.
pub type Entropy<'a> = dyn FnMut(&mut [u8]) + 'a;

/// The reason why a peer's value yields no secret.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum AgreementError {
    /// The value has the wrong length for the agreement.
    #[error("the public value has {given} octets instead of {expected}")]
    Length {
        /// Number of octets that it should have.
        expected: usize,
        /// Number of octets that it has.
        given: usize,
    },
    /// The value is not an element of the field, or not an encoding of a key.
    #[error("the public value is out of range")]
    OutOfRange,
    /// The value is 0, 1 or p - 1 (RFC 6189 section 4.4.1.2), or leads to a secret of zeros only
    /// (RFC 7748 section 6): the secret would be publicly known.
    #[error("the public value would make the shared secret predictable")]
    Degenerate,
    /// The value is not a point of the curve.
    #[error("the public value is not a point of the curve")]
    OffCurve,
    /// The primitive or the source of entropy failed.
    #[error("the cryptographic primitive refused its input")]
    Refused,
}

impl From<Refused> for AgreementError {
    fn from(_: Refused) -> Self {
        Self::Refused
    }
}

/// A shared secret; zeroised on drop.
pub struct Secret {
    octets: Zeroizing<Vec<u8>>,
}

impl Secret {
    /// Creates a secret from its octets.
    pub const fn new(octets: Zeroizing<Vec<u8>>) -> Self {
        Self { octets }
    }

    /// Creates a secret by copying its octets.
    pub fn from_slice(octets: &[u8]) -> Self {
        Self::new(Zeroizing::new(octets.to_vec()))
    }

    /// Returns the octets, in the form that the hashes of RFC 6189 section 4.4.1.4 use.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        &self.octets
    }
}

impl AsRef<[u8]> for Secret {
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret").field("len", &self.octets.len()).finish_non_exhaustive()
    }
}
