//! Errors of key agreement by DTLS.

use rushes_webrtc::dtls::{CertificateError, DtlsError, FingerprintError, SetupError};
use thiserror::Error;

/// The error of a stream whose keys are to be agreed on by DTLS. Nothing was sent in the clear.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum DtlsSetupError {
    /// The handshake failed.
    #[error(transparent)]
    Handshake(#[from] DtlsError),
    /// The certificate cannot be made.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// A fingerprint in a description cannot be used.
    #[error("a=fingerprint: {0}")]
    Fingerprint(#[from] FingerprintError),
    /// The role in a description cannot be used.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// RTCP has a port of its own, for which there would be no keys.
    #[error(
        "DTLS agrees on the keys of one port: let RTCP share it (rtcp_mux), or turn RTCP off (rtcp)"
    )]
    RtcpPort,
    /// This end is to begin, but does not know the peer.
    #[error(
        "the end that begins the DTLS handshake needs the peer's address and port: \
         set them, or let the peer begin (a=setup:passive)"
    )]
    NoPeer,
    /// The destination is a multicast group.
    #[error("DTLS agrees on keys with one peer: a multicast group needs a key from elsewhere")]
    Group,
    /// Another stream on the same port already agrees on keys.
    #[error("only one stream per port can agree on keys by DTLS")]
    PortTaken,
    /// The media is carried over TCP.
    #[error("DTLS over TCP is not supported: describe the media with UDP/TLS/RTP/SAVPF")]
    Tcp,
    /// Texture video was to agree on its keys by DTLS.
    #[error("texture video does not agree on keys by DTLS: give it keys, or use ZRTP")]
    Texture,
}
