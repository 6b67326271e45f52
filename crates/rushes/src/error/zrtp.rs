//! Errors of key agreement by ZRTP.

use std::path::PathBuf;

use rushes_zrtp::{ConfigError, ErrorCode, PeerRefusal};
use thiserror::Error;

/// The error of a key agreement. Nothing was sent in the clear.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ZrtpError {
    /// A setting is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The exchange failed.
    #[error("{} ended the key agreement: {error}", if *.by_peer { "the peer" } else { "this end" })]
    Failed {
        /// The error code (RFC 6189 section 5.9).
        error: ErrorCode,
        /// Whether the peer ended the exchange.
        by_peer: bool,
    },
    /// The policy does not allow the peer.
    #[error(transparent)]
    Peer(#[from] PeerRefusal),
    /// No ZRTP peer answered.
    #[error("no ZRTP peer answered; nothing was sent unencrypted")]
    NoPeer,
    /// Another stream on the same port already agrees on keys.
    #[error("only one stream per port can agree on keys by ZRTP")]
    PortTaken,
    /// The retained secrets could not be read or written.
    #[error(transparent)]
    Store(#[from] FileStoreError),
    /// The agreement took too long.
    #[error("the two ends did not agree on keys within the time limit")]
    Timeout,
    /// The session has 256 streams.
    #[error("a session can agree on keys for at most 256 streams")]
    TooManyStreams,
}

/// The error of reading or writing a file of retained secrets.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileStoreError {
    /// The file cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// The file does not contain retained secrets, or is damaged. It was not changed.
    #[error("{}, line {line}: {what}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The error in it.
        what: &'static str,
    },
    /// The operating system gave no random numbers for this end's ZID.
    #[error("no random numbers are available: {0}")]
    Random(String),
}
