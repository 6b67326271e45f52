//! ZRTP: keys for SRTP that are negotiated on the media path itself (RFC 6189, with the key
//! encapsulation and the fragments of `draft-zrtp-pq`).
//!
//! **Scope.** [`Session`] is a state machine: its inputs are datagrams and times, its outputs
//! datagrams, times and [`Event`]s. Its first stream agrees on a key with the peer, by
//! Diffie-Hellman, by key encapsulation or by a secret of an earlier session; the other streams
//! derive theirs from it. The users at both ends compare a [`Sas`], which differs if an attacker is
//! in the middle.
//!
//! **Not in scope.** Sockets, files, clocks and the encryption of media: the result is the master
//! keys for SRTP. Signatures of the string are reported, not verified. No man in the middle is
//! trusted.
//!
//! ```
//! use std::net::SocketAddr;
//! use std::time::Instant;
//! use rushes_zrtp::{Config, Event, MemoryStore, Session};
//!
//! # #[allow(clippy::disallowed_methods)]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # fn entropy(seed: u8) -> Box<dyn FnMut(&mut [u8]) + Send> {
//! #     let mut state = u64::from(seed);
//! #     Box::new(move |octets| octets.iter_mut().for_each(|octet| {
//! #         state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
//! #         *octet = (state >> 33) as u8;
//! #     }))
//! # }
//! let end = |zid| Session::new(Config::new([zid; 12]), entropy(zid), Box::new(MemoryStore::new()));
//! let (mut alice, mut bob) = (end(1)?, end(2)?);
//! let now = Instant::now();
//! let [alices, bobs] = [1, 2].map(|host| SocketAddr::from(([192, 0, 2, host], 5004)));
//! // Alice knows the address of Bob; Bob accepts a Hello from any address.
//! let a = alice.add_stream(1, Some(bobs), now).unwrap();
//! let b = bob.add_stream(2, None, now).unwrap();
//! // A network without losses.
//! let mut secure = 0;
//! while secure < 2 {
//!     while let Some((_, _, datagram)) = alice.poll_datagram() {
//!         bob.handle_datagram(now, b, alices, &datagram);
//!     }
//!     while let Some((_, _, datagram)) = bob.poll_datagram() {
//!         alice.handle_datagram(now, a, bobs, &datagram);
//!     }
//!     for end in [&mut alice, &mut bob] {
//!         while let Some((_, event)) = end.poll_event() {
//!             secure += u32::from(matches!(event, Event::Secure));
//!         }
//!     }
//! }
//! assert_eq!(alice.sas().unwrap().sas, bob.sas().unwrap().sas);
//! # Ok(())
//! # }
//! ```
//!
//! Invariant: a message is used only after its hash image has been verified to be the peer's.
#![forbid(unsafe_code)]

mod agree;
mod algorithm;
mod chain;
mod commit;
mod conclude;
mod config;
mod confirm;
mod confirmation;
mod crc;
mod credit;
pub mod crypto;
mod dh_part;
mod discover;
mod end;
mod error_code;
mod event;
mod exchange;
mod fragment;
mod hello;
mod initiate;
mod kdf;
mod key_agreement;
mod layout;
mod link;
mod message;
mod negotiate;
mod packet;
mod peer_policy;
mod ping;
mod proof;
mod reassembler;
mod respond;
mod retained;
mod sas;
mod sas_words;
mod schedule;
mod secrets;
mod session;
mod session_state;
mod stream;
#[cfg(test)]
mod vectors;

pub use algorithm::{Algorithm, AlgorithmList, AuthTag, Cipher, Hash, LIST_LEN_MAX, SasType};
pub use commit::{Commit, CommitKey};
pub use config::{Algorithms, Config, ConfigError};
pub use confirm::{Confirm, ConfirmPlain, Flags, SasRelay, SasRelayPlain, Signature};
pub use dh_part::{DhPart, KemPart2, SecretIds};
pub use error_code::ErrorCode;
pub use event::{Event, ExportedKey, SasStatus, StreamKeys, Warning};
pub use fragment::{Fragment, FragmentError, Fragments};
pub use hello::Hello;
pub use kdf::Role;
pub use key_agreement::{Kem, KemComponent, KeyAgreement};
pub use layout::{MESSAGE_LEN_MAX, MessageError, set_mac, without_mac};
pub use message::Message;
pub use negotiate::Choice;
pub use packet::{Content, Packet, PacketError, is_zrtp, write_fragment, write_packet};
pub use peer_policy::{PeerPolicy, PeerRefusal};
pub use ping::{Ping, PingAck};
pub use reassembler::Reassembler;
pub use retained::{MemoryStore, Retained, RetainedSecret, SecretStore, Zid};
pub use sas::Sas;
pub use session::{Session, StreamId};

/// The protocol version of RFC 6189, as sent in Hello, Ping and `PingACK`.
pub const VERSION: [u8; 4] = *b"1.10";
