//! Secrets kept from one session to the next (RFC 6189 section 4.9), and their stores.

use core::fmt;
use std::collections::VecDeque;

use zeroize::Zeroizing;

/// The ID of one endpoint in all its sessions: random, generated once (section 4.9).
pub type Zid = [u8; 12];

/// Maximum number of peers in a [`MemoryStore`].
const PEERS_MAX: usize = 1024;

/// A retained secret, boxed so that moving it leaves no copy.
pub type RetainedSecret = Box<Zeroizing<[u8; 32]>>;

/// The secrets that two endpoints keep from their last session. `Debug` prints no secret.
#[derive(Clone, Default, Eq, PartialEq)]
pub struct Retained {
    /// rs1, the newest retained secret.
    pub rs1: Option<RetainedSecret>,
    /// rs2, the retained secret before rs1.
    pub rs2: Option<RetainedSecret>,
    /// The secret shared with a trusted man in the middle (section 7.3.1).
    pub pbx: Option<RetainedSecret>,
    /// Whether the users have compared the short authentication string, in this session or in one
    /// that it continues (section 7.1).
    pub is_verified: bool,
    /// Seconds after saving until the peer may drop the secrets; `u32::MAX` means never.
    pub expiration_interval: u32,
}

impl fmt::Debug for Retained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retained")
            .field("rs1", &self.rs1.is_some())
            .field("rs2", &self.rs2.is_some())
            .field("pbx", &self.pbx.is_some())
            .field("is_verified", &self.is_verified)
            .finish_non_exhaustive()
    }
}

/// A store of retained secrets, found by the ZID of the peer.
///
/// It may drop expired secrets; [`load`](Self::load) must not return dropped secrets.
pub trait SecretStore {
    /// Returns the secrets kept for `peer`; the default if `peer` is unknown.
    fn load(&mut self, peer: &Zid) -> Retained;

    /// Replaces the secrets kept for `peer` by `retained`.
    fn save(&mut self, peer: &Zid, retained: &Retained);

    /// Returns whether saved secrets are available in the next session. If not, the peer is asked
    /// not to keep them, either.
    fn keeps(&self) -> bool {
        true
    }
}

/// A store that lives as long as the program. It ignores expiry intervals. With more than 1 024
/// peers, it drops those that were saved longest ago.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    peers: VecDeque<(Zid, Retained)>,
}

impl MemoryStore {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }
}

impl SecretStore for MemoryStore {
    fn load(&mut self, peer: &Zid) -> Retained {
        let known = self.peers.iter().find(|(zid, _)| zid == peer);
        known.map(|(_, retained)| retained.clone()).unwrap_or_default()
    }

    fn save(&mut self, peer: &Zid, retained: &Retained) {
        self.peers.retain(|(zid, _)| zid != peer);
        if self.peers.len() >= PEERS_MAX {
            self.peers.pop_front();
        }
        self.peers.push_back((*peer, retained.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_known_again_and_no_secret_is_shown() {
        let mut store = MemoryStore::new();
        assert_eq!(store.load(&[1; 12]), Retained::default());
        let rs1 = Some(Box::new(Zeroizing::new([0xab; 32])));
        let retained = Retained { rs1, is_verified: true, ..Retained::default() };
        store.save(&[1; 12], &retained);
        assert_eq!(store.load(&[1; 12]), retained);
        assert_eq!(store.load(&[2; 12]), Retained::default());
        let shown = format!("{store:?}");
        assert!(!shown.contains("171") && !shown.contains("ab"), "{shown}");
    }

    #[test]
    fn strangers_do_not_fill_the_memory() {
        let mut store = MemoryStore::new();
        for n in 0..2000_u32 {
            let mut zid = [0; 12];
            zid[..4].copy_from_slice(&n.to_be_bytes());
            store.save(&zid, &Retained::default());
        }
        assert_eq!(store.peers.len(), PEERS_MAX);
    }
}
