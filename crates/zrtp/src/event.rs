//! Events of an exchange.

use core::fmt;
use core::net::SocketAddr;

use zeroize::Zeroizing;

use super::error_code::ErrorCode;
use super::kdf::Role;
use super::negotiate::Choice;
use super::peer_policy::PeerRefusal;
use super::retained::Zid;
use super::sas::Sas;

/// The keys of one stream. `Debug` prints none.
#[derive(Clone)]
pub struct StreamKeys {
    /// The role of this end.
    pub role: Role,
    /// The negotiated algorithms.
    pub choice: Choice,
    /// The name of the corresponding crypto suite of SRTP and SRTCP (RFC 4568, RFC 6188).
    pub suite: &'static str,
    /// The master key and salt for sending.
    pub send: Zeroizing<Vec<u8>>,
    /// The master key and salt for receiving.
    pub receive: Zeroizing<Vec<u8>>,
}

impl fmt::Debug for StreamKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { role, choice, suite, .. } = self;
        f.debug_struct("StreamKeys")
            .field("role", role)
            .field("choice", choice)
            .field("suite", suite)
            .finish_non_exhaustive()
    }
}

/// The short authentication string of a session, for two people to compare.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SasStatus {
    /// The string to compare.
    pub sas: Sas,
    /// The whole hash, whose beginning is the string; needed for signatures (section 7.2).
    pub sas_hash: [u8; 32],
    /// Whether both ends have compared the string, in this session or in one that it continues.
    pub is_verified: bool,
    /// Whether both ends have the same [`Config::aux_secret`](super::Config::aux_secret), so that
    /// the strings need not be compared. In Preshared mode this is unknown, and `false`.
    pub shares_secret: bool,
}

/// A condition that the user should know but that does not end the exchange.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Warning {
    /// This end has a secret of an earlier session that the peer does not have (section 4.3.2): the
    /// peer lost its secrets, or an attacker is in the middle. Compare the short authentication
    /// string; the retained secrets are unchanged until [`verify_sas`](super::Session::verify_sas).
    CacheMismatch,
    /// Like [`CacheMismatch`](Self::CacheMismatch), and the strings were compared in an earlier
    /// session, so that an attacker in the middle is more likely.
    VerifiedBefore,
    /// The auxiliary secret differs from that of the peer (section 4.3.2).
    AuxMismatch,
    /// The peer discloses the call to third parties (section 11).
    Disclosure,
    /// The peer signed the short authentication string; the signature is not verified here.
    Signature,
    /// A message came from another sender or was changed in transit; it was not used.
    Forged,
    /// A Hello differs from the one announced in the signalling (section 8.1).
    HelloHash,
    /// A `GoClear` is not from the peer.
    ForgedGoClear,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CacheMismatch => {
                "the other side does not have the secret of an earlier session: compare the \
                 strings; if they differ, a third party intercepts the connection"
            }
            Self::VerifiedBefore => {
                "WARNING: the strings were compared in an earlier session, and the other side does \
                 not have its secret: a third party may intercept the connection; compare the \
                 strings again"
            }
            Self::AuxMismatch => "the other side does not have the shared secret",
            Self::Disclosure => "the other side discloses what it receives to others",
            Self::Signature => "the other side signed its string; the signature is not checked",
            Self::HelloHash => "ignored a Hello that does not match the announced one",
            Self::Forged | Self::ForgedGoClear => "ignored a forged ZRTP message",
        })
    }
}

/// An event in the exchange of one stream.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A ZRTP endpoint that may be the peer was found.
    Discovered {
        /// Its address.
        address: SocketAddr,
        /// Its ZID.
        zid: Zid,
        /// Vendor and release of its software.
        client: [u8; 16],
    },
    /// The given address has not answered. A peer may still answer later.
    NoPeer,
    /// The exchange with one address has ended without keys. The stream still waits for its peer.
    CandidateFailed {
        /// The address of the candidate.
        address: SocketAddr,
        /// The reason.
        error: ErrorCode,
        /// Whether the candidate ended the exchange.
        by_peer: bool,
        /// Why the [policy](super::PeerPolicy) refused the candidate, if it did.
        refusal: Option<PeerRefusal>,
    },
    /// The peer's media may arrive under these keys from now on. No media may be sent yet.
    Keys(Box<StreamKeys>),
    /// The exchange is complete, and media may be sent.
    Secure,
    /// The short authentication string of the session is available.
    Sas(SasStatus),
    /// A condition that does not end the exchange.
    Warning(Warning),
    /// The [policy](super::PeerPolicy) does not allow the peer; `Failed` follows.
    Refused(PeerRefusal),
    /// The stream has no keys and will get none, or its keys are void.
    Failed {
        /// The reason.
        error: ErrorCode,
        /// Whether the peer ended the exchange.
        by_peer: bool,
    },
    /// Both ends have returned to clear media (section 4.7.2); the stream's keys are void.
    Clear,
}

/// A key for other purposes of the two applications (section 4.5.2). `Debug` does not print it.
#[derive(Clone)]
pub struct ExportedKey(pub(super) Zeroizing<Vec<u8>>);

impl ExportedKey {
    /// Returns its octets, as many as the hash value has: 32 or 48.
    pub fn as_slice(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for ExportedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ExportedKey(secret)")
    }
}
