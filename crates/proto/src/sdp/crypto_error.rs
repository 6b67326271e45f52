//! Errors in the keys and the session parameters of an `a=crypto` line.

use thiserror::Error;

/// The reason why an `a=crypto` line is not valid for SRTP (RFC 4568 section 6).
///
/// Keys and session parameters count from 1. No error contains key material.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum CryptoError {
    /// The tag has more than nine digits (section 9.1).
    #[error("the tag {0} has more than nine digits")]
    Tag(u32),
    /// The suite is empty, or has characters other than letters, digits and `_` (section 9.1).
    #[error("the suite is not a name of letters, digits and _")]
    Suite,
    /// A key of the key parameters is invalid.
    #[error("key {key}: {reason}")]
    Key {
        /// The number of the key.
        key: usize,
        /// The error in it.
        reason: KeyError,
    },
    /// A key of the session parameter `FEC_KEY` is invalid.
    #[error("key {key} of FEC_KEY: {reason}")]
    FecKey {
        /// The number of the key.
        key: usize,
        /// The error in it.
        reason: KeyError,
    },
    /// The value of a known session parameter is invalid.
    #[error("session parameter {parameter}: {name} must be {expected}")]
    Parameter {
        /// The number of the session parameter.
        parameter: usize,
        /// Its name.
        name: &'static str,
        /// The valid values.
        expected: &'static str,
    },
    /// A session parameter occurs twice.
    #[error("session parameter {parameter} repeats an earlier one")]
    RepeatedParameter {
        /// The number of the session parameter.
        parameter: usize,
    },
    /// A session parameter is unknown and must not be ignored (section 6.3.7).
    #[error("session parameter {parameter}, {name}, is not known and not optional")]
    UnknownParameter {
        /// The number of the session parameter.
        parameter: usize,
        /// Its name; `(no name)` if it does not look like a name and could therefore be a key.
        name: String,
    },
}

/// An error in one master key of an `a=crypto` line (RFC 4568 section 6.1).
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum KeyError {
    /// There is no key.
    #[error("it is missing")]
    Missing,
    /// There are more than [`CRYPTO_KEYS_MAX`](super::CRYPTO_KEYS_MAX) keys.
    #[error("it is one too many")]
    TooMany,
    /// The key method is not `inline`, the only one defined for SRTP.
    #[error("its method is not inline")]
    Method,
    /// Key and salt are not in base64.
    #[error("its key and salt are not in base64")]
    Base64,
    /// Key and salt are empty, or longer than
    /// [`KEY_AND_SALT_LEN_MAX`](super::KEY_AND_SALT_LEN_MAX).
    #[error("its key and salt are empty or too long")]
    Length,
    /// The lifetime is not a number of packets, or 2^ and a number, from 1 to
    /// [`LIFETIME_MAX`](super::LIFETIME_MAX), without leading zeroes.
    #[error("its lifetime is not a number from 1 to 2^48")]
    Lifetime,
    /// The MKI is not a positive decimal number without leading zeroes that fits its length.
    #[error("its MKI is not a positive number that fits the length of the MKI")]
    MkiValue,
    /// The length of the MKI is not a number from 1 to [`MKI_LEN_MAX`](super::MKI_LEN_MAX)
    /// without leading zeroes.
    #[error("the length of its MKI is not a number from 1 to 128")]
    MkiLength,
    /// A field other than lifetime and MKI follows, or these two are in the wrong order.
    #[error("something follows it that is neither its lifetime nor its MKI")]
    Fields,
    /// There are several keys, and this one has no MKI.
    #[error("it has no MKI, which each of several keys needs")]
    NoMki,
    /// Its MKI differs in length from that of the first key.
    #[error("its MKI has another length than that of the first key")]
    OtherMkiLength,
    /// An earlier key has the same MKI.
    #[error("its MKI is that of an earlier key")]
    RepeatedMki,
    /// An earlier key of the line has the same key and salt.
    #[error("it is the same as an earlier key")]
    RepeatedKey,
}
