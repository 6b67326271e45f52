//! ZRTP: keys for SRTP, agreed on the media path itself (RFC 6189, with the key encapsulation and
//! the fragments of `draft-zrtp-pq`).
//!
//! The formats: [`Packet`] is the frame with its checksum, [`Fragments`] and [`Reassembler`] carry
//! messages longer than a datagram, [`Message`] is what the packets say, and [`Sas`] is what two
//! people read to each other. No cipher, hash or key is known here.
//!
//! ```
//! use rushes_proto::Ssrc;
//! use rushes_proto::zrtp::{Content, Message, Packet, write_packet};
//!
//! let mut message = Vec::new();
//! Message::HelloAck.write(&mut message);
//! let mut datagram = Vec::new();
//! write_packet(1, Ssrc(7), &message, &mut datagram);
//!
//! let packet = Packet::parse(&datagram).unwrap();
//! let Content::Message(octets) = packet.content else { panic!() };
//! assert_eq!(Message::parse(octets), Ok(Message::HelloAck));
//! ```

mod agree;
mod algorithm;
mod chain;
mod commit;
mod common;
mod config;
mod confirm;
mod confirmation;
mod crc;
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
mod ping;
mod reassembler;
mod respond;
mod retained;
mod sas;
mod sas_words;
mod schedule;
mod secrets;
mod session;
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
pub use ping::{Ping, PingAck};
pub use reassembler::Reassembler;
pub use retained::{MemoryStore, Retained, SecretStore, Zid};
pub use sas::Sas;
pub use session::{Session, StreamId};

/// The protocol version of RFC 6189, as Hello, Ping and `PingACK` carry it.
pub const VERSION: [u8; 4] = *b"1.10";
