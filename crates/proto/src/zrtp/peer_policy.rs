//! Which peers an endpoint agrees on keys with.

use thiserror::Error;

use super::retained::Retained;

/// Which peers keys are agreed on with.
///
/// A peer that is refused gets no key and no media: the exchange ends before this end confirms
/// anything.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum PeerPolicy {
    /// Any. Whether somebody is in the middle shows only when people compare the short
    /// authentication strings.
    #[default]
    Allow,
    /// Any but one with whom the strings were compared in an earlier session and that does not know
    /// that session's secret (RFC 6189 section 4.3.2): it lost its secrets, or somebody is in the
    /// middle.
    RefuseChanged,
    /// Only those with whom the strings were compared in an earlier session.
    RefuseUnverified,
    /// Only those that know [`Config::aux_secret`](super::Config::aux_secret). Both ends are
    /// authenticated then, and nothing need be compared.
    RequireSecret,
}

/// Why a peer was refused.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum PeerRefusal {
    /// It does not know the secret that both ends must have.
    #[error("the peer does not know the secret")]
    NoSecret,
    /// The strings were compared in an earlier session, whose secret it does not know.
    #[error(
        "the short authentication strings were compared in an earlier session, and the peer does \
         not know its secret: it lost what it kept, or somebody is in the middle"
    )]
    Changed,
    /// The strings were never compared.
    #[error("the short authentication strings were never compared with those of the peer")]
    Unverified,
}

/// What an exchange has shown of the peer.
pub(super) struct Shown<'a> {
    pub(super) retained: &'a Retained,
    /// Whether it knows the secret of an earlier session.
    pub(super) continues: bool,
    pub(super) has_aux_secret: bool,
}

impl PeerPolicy {
    pub(super) fn check(self, shown: &Shown<'_>) -> Result<(), PeerRefusal> {
        let was_verified = shown.retained.is_verified;
        let has_changed = was_verified && !shown.continues;
        match self {
            Self::RefuseChanged | Self::RefuseUnverified if has_changed => {
                Err(PeerRefusal::Changed)
            }
            Self::RefuseUnverified if !was_verified => Err(PeerRefusal::Unverified),
            Self::RequireSecret if !shown.has_aux_secret => Err(PeerRefusal::NoSecret),
            _ => Ok(()),
        }
    }
}
