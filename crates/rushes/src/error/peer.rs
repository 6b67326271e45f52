//! Errors of connections that are set up by offer and answer.

use rushes_webrtc::dtls::{CertificateError, DtlsError};
use rushes_webrtc::ice::{AgentError, CredentialsError};
use rushes_webrtc::negotiation::NegotiationError;
use thiserror::Error;

/// The error of a [`Peer`](crate::peer::Peer).
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum PeerError {
    /// This end has closed the connection.
    #[error("the connection is closed")]
    Closed,
    /// The peer has closed the connection.
    #[error("the peer has closed the connection")]
    ClosedByPeer,
    /// The certificate of this end cannot be made.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// The keys cannot be agreed on.
    #[error("DTLS: {0}")]
    Dtls(#[from] DtlsError),
    /// The credentials of ICE in the peer's description cannot be used.
    #[error("the peer's credentials of ICE: {0}")]
    Credentials(#[from] CredentialsError),
    /// The peer cannot be looked for.
    #[error("ICE: {0}")]
    Ice(#[from] AgentError),
    /// A description cannot be read, or offer and answer do not fit.
    #[error("{0}")]
    Negotiation(#[from] NegotiationError),
    /// The peer no longer answers on any path (RFC 7675).
    #[error("the peer no longer answers")]
    Lost,
    /// No pair of addresses reaches the peer.
    #[error(
        "no path to the peer: none of its addresses answers; both ends may be behind address translators \
         or firewalls, which a STUN server can help with"
    )]
    NoPath,
    /// An answer was given although there is no offer that it can belong to, or an offer although there
    /// is one already.
    #[error("{0}")]
    Order(&'static str),
}
