//! Why two ends did not come to an agreement.

use rushes_proto::zrtp::ConfigError;
use rushes_proto::zrtp::ErrorCode;
use rushes_proto::zrtp::PeerRefusal;
use thiserror::Error;

use super::file_store::FileStoreError;

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
