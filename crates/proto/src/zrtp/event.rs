//! What there is to know about an exchange.

use core::fmt;
use core::net::SocketAddr;

use zeroize::Zeroizing;

use super::error_code::ErrorCode;
use super::kdf::Role;
use super::negotiate::Choice;
use super::peer_policy::PeerRefusal;
use super::retained::Zid;
use super::sas::Sas;
use crate::srtp::{MasterKey, Suite};

/// The keys of one stream. `Debug` prints none.
#[derive(Clone, Debug)]
pub struct StreamKeys {
    /// Which end this one was.
    pub role: Role,
    /// The algorithms agreed on.
    pub choice: Choice,
    /// The suite of SRTP and SRTCP that they stand for.
    pub suite: Suite,
    /// The master key of what this end sends.
    pub send: MasterKey,
    /// The master key of what this end receives.
    pub receive: MasterKey,
}

/// The short authentication string of a session, for two people to compare.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SasStatus {
    /// What they read to each other.
    pub sas: Sas,
    /// The whole hash of which it is the beginning: for those who sign it (section 7.2).
    pub sas_hash: [u8; 32],
    /// Whether both ends have compared it, in this session or in one that it continues.
    pub is_verified: bool,
    /// Whether both ends have the same [`Config::aux_secret`](super::Config::aux_secret): nothing
    /// need be compared then. Not known, and false, in Preshared mode.
    pub shares_secret: bool,
}

/// Something that does not end the exchange and should be known.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Warning {
    /// A secret of an earlier session is known here and not to the peer (section 4.3.2): it lost
    /// its secrets, or somebody is in the middle. Compare the short authentication string; until
    /// [`verify_sas`](super::Session::verify_sas) the secrets stay as they were.
    CacheMismatch,
    /// The same, and the strings were compared in an earlier session: it is likelier that somebody
    /// is in the middle now.
    VerifiedBefore,
    /// The secret got by other means is not the peer's (section 4.3.2).
    AuxMismatch,
    /// The peer discloses what it hears to others (section 11).
    Disclosure,
    /// The peer signed the short authentication string, which is not verified here.
    Signature,
    /// A message of somebody else, or a changed one: it was not used.
    Forged,
    /// A Hello that is not the one that the signalling announced (section 8.1).
    HelloHash,
    /// A `GoClear` that does not come from the peer.
    ForgedGoClear,
}

/// Something to know about the exchange of one stream.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// An address speaks ZRTP, and may be the peer's.
    Discovered {
        /// Where it is.
        address: SocketAddr,
        /// Its name.
        zid: Zid,
        /// Its software.
        client: [u8; 16],
    },
    /// Nothing has answered at the address that was given. A peer may still come later.
    NoPeer,
    /// The exchange with one address has ended without keys. The stream still waits for its peer.
    CandidateFailed {
        /// Where the candidate is.
        address: SocketAddr,
        /// Why.
        error: ErrorCode,
        /// Whether it was the candidate that ended it.
        by_peer: bool,
        /// What the [policy](super::PeerPolicy) has against the candidate.
        refusal: Option<PeerRefusal>,
    },
    /// Media of the peer may come under these keys from now on; none may be sent yet.
    Keys(Box<StreamKeys>),
    /// The exchange is complete: media may be sent.
    Secure,
    /// The session has a short authentication string now.
    Sas(SasStatus),
    /// Something is not as it should be.
    Warning(Warning),
    /// The [policy](super::PeerPolicy) does not allow the peer; `Failed` follows.
    Refused(PeerRefusal),
    /// The stream has no keys and waits for no more, or what was agreed on is void.
    Failed {
        /// Why.
        error: ErrorCode,
        /// Whether it was the peer that ended it.
        by_peer: bool,
    },
    /// Both ends have gone back to clear media (section 4.7.2); the stream's keys are void.
    Clear,
}

/// A key for what else two applications secure between them (section 4.5.2). `Debug` does not
/// print it.
#[derive(Clone)]
pub struct ExportedKey(pub(super) Zeroizing<Vec<u8>>);

impl ExportedKey {
    /// Its octets, as many as the hash has: 32 or 48.
    pub fn as_slice(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for ExportedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ExportedKey(secret)")
    }
}
