//! SRTP and SRTCP packet protection (RFC 3711, RFC 6188, RFC 7714).
//!
//! **Scope.** Converts RTP and RTCP packets to authenticated, encrypted packets and back. This
//! module holds keys and, per synchronisation source, a roll-over counter and a replay window.
//!
//! **Not in scope.** Sockets, key agreement (see [`sdp`](crate::sdp) for keys in session
//! descriptions) and the formats of payloads.
//!
//! ```
//! use rushes_proto::srtp::{MasterKey, Policy, Protector, Suite, Unprotector};
//!
//! let policy = Policy::new(Suite::AeadAes128Gcm);
//! let key = MasterKey::new(policy.suite, &[7; 28])?;
//! let (mut sender, mut receiver) = (Protector::new(&policy, &key)?, Unprotector::new(&policy, &key)?);
//!
//! let clear = [0x80, 96, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9, b'h', b'i'];
//! let mut packet = clear.to_vec();
//! sender.protect(&mut packet)?;
//! assert_eq!(packet.len(), clear.len() + policy.overhead(0));
//!
//! let len = receiver.unprotect(&mut packet)?;
//! assert_eq!(packet[..len], clear);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Map
//!
//! | file | contents |
//! |---|---|
//! | `suite.rs`, `policy.rs` | parameters on which both ends agree: ciphers, tags, options |
//! | `master.rs`, `derive.rs` | master keys, and the session keys derived from them |
//! | `keys.rs` | the keys in use: which one protects a packet, and its remaining lifetime |
//! | `transform.rs` | encryption and tag of one packet under given session keys |
//! | `protect.rs`, `slab.rs` | sending, packet by packet and a slab at a time |
//! | `unprotect.rs`, `batch.rs` | receiving, one packet and many at a time |
//! | `expected.rs` | fast path for ordinary AES-GCM packets, both directions |
//! | `rtcp.rs` | SRTCP, both directions |
//! | `index.rs`, `replay.rs`, `sources.rs` | packet indices, replay windows, state per source |
//! | `layout.rs`, `extension.rs`, `cryptex.rs` | positions in a packet; RFC 6904; RFC 9335 |
//!
//! Invariant: no packet index is recorded before the packet's tag is verified. Invariant: no
//! `Debug` output contains a key.

mod batch;
mod cryptex;
mod derive;
mod error;
mod expected;
mod extension;
mod index;
mod keys;
mod layout;
mod master;
mod policy;
mod protect;
mod replay;
mod rtcp;
mod slab;
mod sources;
mod suite;
mod transform;
mod unprotect;
#[cfg(test)]
mod vectors;

pub use batch::BATCH_MAX;
pub use error::{KeyError, PolicyError, ProtectError, UnprotectError};
pub use extension::ExtensionIds;
pub use keys::{KEYS_MAX, KeyEvent, RTCP_LIFETIME_MAX, RTP_LIFETIME_MAX};
pub use master::{MKI_LEN_MAX, MasterKey};
pub use policy::Policy;
pub use protect::Protector;
pub use rtcp::{SrtcpProtector, SrtcpUnprotector};
pub use suite::{Suite, UnknownSuite};
pub use unprotect::Unprotector;

pub use rushes_crypto::{Backend, BackendError};
