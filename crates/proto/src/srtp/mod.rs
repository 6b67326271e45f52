//! SRTP and SRTCP packet protection (RFC 3711, RFC 6188, RFC 7714).
//!
//! **What it is.** RTP and RTCP packets become authenticated, encrypted ones, and back. This room
//! holds keys, roll-over counters and replay windows, one of each per synchronisation source.
//!
//! **What it is not.** It opens no sockets, agrees on no keys (see [`sdp`](crate::sdp) for keys in
//! session descriptions) and does not know what a payload is.
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
//! | file | what is there |
//! |---|---|
//! | `suite.rs`, `policy.rs` | what both ends agree on: ciphers, tags, options |
//! | `master.rs`, `derive.rs` | master keys, and the session keys that follow from them |
//! | `keys.rs` | the keys in use: which one a packet is under, how many packets it has left |
//! | `transform.rs` | one packet's encryption and tag under given session keys |
//! | `protect.rs`, `slab.rs` | the way out, packet by packet and a slab at a time |
//! | `unprotect.rs`, `batch.rs` | the way in, one by one and many at once |
//! | `expected.rs` | both ways of what nearly every packet is |
//! | `rtcp.rs` | both ways for SRTCP |
//! | `index.rs`, `replay.rs`, `sources.rs` | packet indices, replay windows, one of each per source |
//! | `layout.rs`, `extension.rs`, `cryptex.rs` | where a packet's parts are; RFC 6904; RFC 9335 |
//!
//! Invariant: nothing is remembered of a packet before its tag was found right. Invariant: no key
//! is in any `Debug`.

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
