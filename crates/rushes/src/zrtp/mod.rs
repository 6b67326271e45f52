//! Keys agreed on between the ends themselves, on the media's own ports (ZRTP, RFC 6189).
//!
//! The first stream of a session agrees on a key, the others derive theirs from it. What both ends
//! then see, the short authentication string, must be compared by people: read it to each other.
//! If it is the same, nobody is in between, now or in later sessions that continue this one.
//!
//! ```
//! use rushes::zrtp::ZrtpConfig;
//! use rushes::{Codec, Context, Security};
//! use std::thread;
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), rushes::Error> {
//! let stream = |session: &rushes::Session| {
//!     session.stream(Codec::Generic).security(Security::Zrtp(ZrtpConfig::default()))
//! };
//! // The camera's end, which waits for whoever speaks to it.
//! let bob = Context::new().session("127.0.0.1")?;
//! let mut opening = stream(&bob).begin()?;
//! let port = opening.local_address().port();
//! let receiver = thread::spawn(move || opening.wait(Duration::from_secs(10)));
//!
//! let alice = Context::new().session("127.0.0.1")?;
//! let mut sender = stream(&alice).remote_port(port).open()?;
//! let mut receiver = receiver.join().expect("no panic")?.expect("alice is there");
//!
//! // Both read out the same.
//! let (a, b) = (alice.sas().expect("secure"), bob.sas().expect("secure"));
//! assert_eq!(a.sas.to_string(), b.sas.to_string());
//! alice.verify_sas(true);
//! bob.verify_sas(true);
//!
//! sender.push_frame(b"for bob only", None)?;
//! assert_eq!(receiver.pull_frame(Duration::from_secs(1))?.expect("a frame")[..], *b"for bob only");
//! # Ok(())
//! # }
//! ```

mod agreement;
mod error;
mod file_store;
mod hello;
mod hex;
mod opening;

use std::path::PathBuf;
use std::time::Duration;

pub use rushes_proto::zrtp::*;
use zeroize::Zeroizing;

pub(crate) use agreement::{Agreement, Channel};
pub use error::ZrtpError;
pub use file_store::{FileStore, FileStoreError};
pub(crate) use hello::ChainStart;
pub use opening::Opening;

/// How long [`open`](crate::StreamBuilder::open) waits for the peer: more than ZRTP's own schedules
/// take (RFC 6189 section 6).
const TIMEOUT: Duration = Duration::from_secs(30);

/// How a session's streams agree on keys by ZRTP. `Debug` prints no secret.
#[derive(Clone)]
#[non_exhaustive]
pub struct ZrtpConfig {
    /// The algorithms offered, in the order of preference.
    pub algorithms: Algorithms,
    /// A file for this end's name and what is kept of earlier sessions (see [`FileStore`]); without
    /// one, each context begins as a stranger.
    pub cache: Option<PathBuf>,
    /// How long [`open`](crate::StreamBuilder::open) waits for the peer; 30 seconds by default.
    pub timeout: Duration,
    /// Whether this end never begins an agreement.
    pub is_passive: bool,
    /// Whether a secret of an earlier session may stand for an agreement (Preshared mode).
    pub allows_preshared: bool,
    /// A secret that both ends got by other means.
    pub aux_secret: Option<Zeroizing<Vec<u8>>>,
    /// The peers to agree on keys with. `None`, the default, stands for [`PeerPolicy::RefuseChanged`]
    /// with a [`cache`](Self::cache), and for [`PeerPolicy::Allow`] without.
    pub policy: Option<PeerPolicy>,
    /// What becomes of a stream whose peer does not answer Hellos; by default it is refused.
    pub without_zrtp: WithoutZrtp,
    /// The hash that the peer's Hello must have, from its `a=zrtp-hash` (RFC 6189 section 8.1).
    pub peer_hello_hash: Option<[u8; 32]>,
}

/// What becomes of a stream whose peer does not speak ZRTP.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum WithoutZrtp {
    /// It is not opened.
    #[default]
    Refuse,
    /// It is opened in the clear, after 3.75 seconds of Hellos. Whoever can hold back datagrams can
    /// bring that about: only for media that might as well have been sent in the clear.
    Clear,
}

impl ZrtpConfig {
    /// The policy, or the default one.
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
