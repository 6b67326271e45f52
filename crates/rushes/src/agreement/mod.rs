//! Key agreement by ZRTP (RFC 6189): its settings, the exchange of a session, and its cache.

mod chain;
mod exchange;
mod file_store;

use std::path::PathBuf;
use std::time::Duration;

pub use rushes_zrtp::*;
use zeroize::Zeroizing;

pub(crate) use chain::ChainStart;
pub(crate) use exchange::{Agreement, Channel};
pub use file_store::FileStore;

/// The default time for which [`open`](crate::StreamBuilder::open) waits for the peer.
///
/// It exceeds ZRTP's own retransmission schedules (RFC 6189 section 6).
const TIMEOUT: Duration = Duration::from_secs(30);

/// Options of the key agreement of a session's streams by ZRTP. `Debug` prints no secret.
#[derive(Clone)]
#[non_exhaustive]
pub struct ZrtpConfig {
    /// The algorithms offered, in the order of preference.
    pub algorithms: Algorithms,
    /// A file for this end's ZID and the secrets of earlier sessions (see [`FileStore`]).
    ///
    /// Without one, each session begins with a new ZID and no secrets.
    pub cache: Option<PathBuf>,
    /// The time for which [`open`](crate::StreamBuilder::open) waits for the peer; 30 seconds by
    /// default.
    pub timeout: Duration,
    /// Whether this end never initiates an agreement.
    pub is_passive: bool,
    /// Whether a secret of an earlier session may replace an agreement (Preshared mode).
    pub allows_preshared: bool,
    /// A secret that both ends obtained by other means.
    pub aux_secret: Option<Zeroizing<Vec<u8>>>,
    /// The peers that are accepted. The default, `None`, means [`PeerPolicy::RefuseChanged`] with a
    /// [`cache`](Self::cache) and [`PeerPolicy::Allow`] without one.
    pub policy: Option<PeerPolicy>,
    /// The treatment of a stream whose peer does not answer Hellos; by default it is refused.
    pub without_zrtp: WithoutZrtp,
    /// The hash that the peer's Hello must have, from its `a=zrtp-hash` (RFC 6189 section 8.1).
    pub peer_hello_hash: Option<[u8; 32]>,
}

/// The treatment of a stream whose peer does not support ZRTP.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum WithoutZrtp {
    /// The stream is not opened.
    #[default]
    Refuse,
    /// The stream is opened unencrypted, after 3.75 seconds of Hellos. An attacker who can suppress
    /// datagrams can cause this: use it only for media that may be sent in the clear.
    Clear,
}

impl ZrtpConfig {
    /// Returns the policy that was set, or the default one.
    pub(crate) fn peer_policy(&self) -> PeerPolicy {
        let default = || {
            let remembers = self.cache.is_some();
            if remembers { PeerPolicy::RefuseChanged } else { PeerPolicy::Allow }
        };
        self.policy.unwrap_or_else(default)
    }
}

impl Default for ZrtpConfig {
    fn default() -> Self {
        Self {
            algorithms: Algorithms::default(),
            cache: None,
            timeout: TIMEOUT,
            is_passive: false,
            allows_preshared: false,
            aux_secret: None,
            policy: None,
            without_zrtp: WithoutZrtp::default(),
            peer_hello_hash: None,
        }
    }
}

impl std::fmt::Debug for ZrtpConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ZrtpConfig")
            .field("algorithms", &self.algorithms)
            .field("cache", &self.cache)
            .field("timeout", &self.timeout)
            .field("aux_secret", &self.aux_secret.is_some())
            .finish_non_exhaustive()
    }
}
