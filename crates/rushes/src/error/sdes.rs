//! Errors of keys in session descriptions.

use rushes_proto::sdp::CryptoError;
use rushes_proto::srtp::{KeyError, PolicyError};
use thiserror::Error;

/// The error of reading keys from a description or writing them to one. No error holds key
/// material.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum SdesError {
    /// The description requires secured media but has no keys for it.
    #[error("the description requires encrypted media (SRTP), but has no a=crypto line with a key")]
    Missing,
    /// A line is not valid.
    #[error("a=crypto:{tag}: {reason}")]
    Crypto {
        /// The tag of the line.
        tag: u32,
        /// The error in the line.
        reason: CryptoError,
    },
    /// A line names a suite that Rushes does not support.
    #[error("a=crypto:{tag}: unknown suite {suite}")]
    Suite {
        /// The tag of the line.
        tag: u32,
        /// The suite.
        suite: String,
    },
    /// A line requires an unsupported feature: forward error correction, or more keys than a stream
    /// holds.
    #[error("a=crypto:{tag}: not supported: {what}")]
    Unsupported {
        /// The tag of the line.
        tag: u32,
        /// The unsupported feature.
        what: &'static str,
    },
    /// A key does not fit the suite.
    #[error("a=crypto:{tag}: {reason}")]
    Key {
        /// The tag of the line.
        tag: u32,
        /// The error in the key.
        reason: KeyError,
    },
    /// Suite, session parameters and keys contradict each other.
    #[error("a=crypto:{tag}: {reason}")]
    Policy {
        /// The tag of the line.
        tag: u32,
        /// The contradiction.
        reason: PolicyError,
    },
    /// The stream is secured in a way that RFC 4568 cannot express.
    #[error("not expressible in a description: {0}")]
    Undescribable(&'static str),
}
