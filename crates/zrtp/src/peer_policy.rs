//! The peers with which an endpoint agrees on keys.

use thiserror::Error;

use super::retained::Retained;

/// The peers with which an endpoint agrees on keys.
///
/// A refused peer gets no keys and no media: the exchange ends before this end sends Confirm.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum PeerPolicy {
    /// Any peer. An attacker in the middle is then detected only if people compare the short
    /// authentication strings.
    #[default]
    Allow,
    /// Any peer, except one whose strings were compared in an earlier session and that no longer
    /// has the secret of that session (RFC 6189 section 4.3.2). Such a peer has lost its secrets,
    /// or an attacker is in the middle.
    RefuseChanged,
    /// Only peers whose strings were compared in an earlier session.
    RefuseUnverified,
    /// Only peers that know [`Config::aux_secret`](super::Config::aux_secret). This secret
    /// authenticates both ends, so the strings need not be compared.
    RequireSecret,
}

/// The reason why a peer was refused.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum PeerRefusal {
    /// The peer does not know the secret that both ends must have.
    #[error("the peer does not know the secret")]
    NoSecret,
    /// The strings were compared in an earlier session; the peer does not know its secret.
    #[error(
        "the short authentication strings were compared in an earlier session, and the peer does \
         not know its secret: it lost its retained secrets, or an attacker is in the middle"
    )]
    Changed,
    /// The strings were never compared with those of the peer.
    #[error("the short authentication strings were never compared with those of the peer")]
    Unverified,
}

/// The evidence about the peer in this exchange.
pub(super) struct PeerProof<'a> {
    pub(super) retained: &'a Retained,
    /// Whether the peer knows the secret of an earlier session.
    pub(super) continues: bool,
    pub(super) has_aux_secret: bool,
}

impl PeerPolicy {
    pub(super) fn check(self, proof: &PeerProof<'_>) -> Result<(), PeerRefusal> {
        let was_verified = proof.retained.is_verified;
        let has_changed = was_verified && !proof.continues;
        match self {
            Self::RefuseChanged | Self::RefuseUnverified if has_changed => {
                Err(PeerRefusal::Changed)
            }
            Self::RefuseUnverified if !was_verified => Err(PeerRefusal::Unverified),
            Self::RequireSecret if !proof.has_aux_secret => Err(PeerRefusal::NoSecret),
            _ => Ok(()),
        }
    }
}
