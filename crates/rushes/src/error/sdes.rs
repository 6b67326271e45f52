//! Errors of keys in session descriptions.

use rushes_proto::sdp::CryptoError;
use rushes_proto::srtp::{KeyError, PolicyError};
use thiserror::Error;

/// Why keys cannot be taken from a description, or put into one. No error holds key material.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum SdesError {
    /// The description asks for secured media and has no keys for it.
    #[error("the description requires encrypted media (SRTP), but has no a=crypto line with a key")]
    Missing,
    /// A line is not valid.
    #[error("a=crypto:{tag}: {reason}")]
    Crypto {
        /// Which line.
        tag: u32,
        /// What is wrong with it.
        reason: CryptoError,
    },
    /// A line asks for a suite that Rushes does not have.
    #[error("a=crypto:{tag}: unknown suite {suite}")]
    Suite {
        /// Which line.
        tag: u32,
        /// The suite.
        suite: String,
    },
    /// A line asks for what Rushes does not do: forward error correction with keys of its own, or
    /// more keys than a stream holds.
    #[error("a=crypto:{tag}: not supported: {what}")]
    Unsupported {
        /// Which line.
        tag: u32,
        /// What cannot be had.
        what: &'static str,
    },
    /// A key does not fit the suite.
    #[error("a=crypto:{tag}: {reason}")]
    Key {
        /// Which line.
        tag: u32,
        /// What is wrong with the key.
        reason: KeyError,
    },
    /// Suite, session parameters and keys contradict each other.
    #[error("a=crypto:{tag}: {reason}")]
    Policy {
        /// Which line.
        tag: u32,
        /// What is wrong.
        reason: PolicyError,
    },
    /// The stream is secured in a way that RFC 4568 cannot express.
    #[error("not expressible in a description: {0}")]
    Undescribable(&'static str),
}
