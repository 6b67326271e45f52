//! What browsers and their servers add to RTP, without I/O: bytes and time in, bytes and events out.
//!
//! | module | contents |
//! |---|---|
//! | [`demux`] | which protocol a datagram is of (RFC 7983) |
//! | [`dtls`] | keys for SRTP from a DTLS handshake (RFC 5763, RFC 5764) |
//! | [`ice`] | which addresses reach the peer (RFC 8445) |
//! | [`negotiation`] | offer and answer (RFC 3264, RFC 9429) |
//!
//! **Not in scope.** Sockets, threads, media: the results are keys for SRTP, addresses, and what both ends
//! agree to send.
#![forbid(unsafe_code)]

pub mod demux;
pub mod dtls;
pub mod ice;
pub mod negotiation;
