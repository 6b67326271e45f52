//! Errors of key agreement by ZRTP.

use std::path::PathBuf;

use rushes_proto::zrtp::ConfigError;
use rushes_proto::zrtp::ErrorCode;
use rushes_proto::zrtp::PeerRefusal;
use thiserror::Error;

/// Why a stream has no keys. Nothing was sent in the clear.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ZrtpError {
    /// A setting cannot be had.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The exchange ended.
    #[error("{} ended the key agreement: {error}", if *.by_peer { "the peer" } else { "this end" })]
    Failed {
        /// Why (RFC 6189 section 5.9).
        error: ErrorCode,
        /// Whether it was the peer that ended it.
        by_peer: bool,
    },
    /// The peer is not one that the policy allows.
    #[error(transparent)]
    Peer(#[from] PeerRefusal),
    /// Nobody speaks ZRTP there.
    #[error("nobody there speaks ZRTP, and nothing is sent in the clear")]
    NoPeer,
    /// Another stream of the session on the same port agrees on keys already.
    #[error("only one stream on a port can agree on keys by ZRTP")]
    PortTaken,
    /// Where retained secrets are kept.
    #[error(transparent)]
    Store(#[from] FileStoreError),
    /// It took too long.
    #[error("no agreement on keys within the time given")]
    Timeout,
    /// The session has 256 streams.
    #[error("a session agrees on keys for at most 256 streams")]
    TooManyStreams,
}

/// Why retained secrets cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileStoreError {
    /// The file cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The file is not one of retained secrets, or was damaged. Nothing of it was changed.
    #[error("{}, line {line}: {what}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The operating system gave no random numbers for the name of this end.
    #[error("no random numbers: {0}")]
    Random(String),
}
