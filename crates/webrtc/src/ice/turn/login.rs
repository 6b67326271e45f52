//! A TURN server and how it is entered: long-term credentials (RFC 8489 section 9.2).

use std::fmt;
use std::net::SocketAddr;

use aws_lc_rs::hmac;
use md5::{Digest, Md5};
use zeroize::Zeroizing;

use super::super::error::AgentError;
use super::super::stun::{Message, USERNAME};
use super::message::{NONCE, REALM, Writer};

/// Maximum octets of a user name (RFC 8489 section 14.3).
const USERNAME_MAX: usize = 508;

/// Maximum octets of a realm and of a nonce that are taken from a server. RFC 8489 sections 14.9 and 14.10 allow
/// 127 characters.
const TEXT_MAX: usize = 255;

/// A TURN server, and our user name and password there.
///
/// `Debug` does not show the password.
#[derive(Clone)]
pub struct TurnServer {
    pub(super) address: SocketAddr,
    pub(super) username: String,
    pub(super) password: Zeroizing<String>,
}

impl TurnServer {
    /// Takes the address of a server, which is used over UDP, and long-term credentials. Text beyond ASCII should be
    /// prepared (RFC 8265) by the caller.
    ///
    /// # Errors
    /// [`AgentError::TurnLogin`] if the user name is empty or has more than 508 octets.
    pub fn new(address: SocketAddr, username: &str, password: &str) -> Result<Self, AgentError> {
        if username.is_empty() || username.len() > USERNAME_MAX {
            return Err(AgentError::TurnLogin { length: username.len(), limit: USERNAME_MAX });
        }
        let password = Zeroizing::new(password.to_owned());
        Ok(Self { address, username: username.to_owned(), password })
    }

    /// The address of the server.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl fmt::Debug for TurnServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("TurnServer");
        shown.field("address", &self.address).field("username", &self.username);
        shown.finish_non_exhaustive()
    }
}

/// Why there is no address at a TURN server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TurnError {
    /// The server does not answer, for 39.5 seconds (RFC 8489 section 6.2.1).
    #[error("the TURN server does not answer: check its address, and that it takes UDP")]
    NoAnswer,
    /// It knows no such user, or the password is another one (401, 441).
    #[error("the TURN server refuses the user name or the password")]
    Credentials,
    /// The user has as many allocations as it may (486).
    #[error("the TURN server's quota of this user is used up (error 486)")]
    Quota,
    /// The server has no address left (508).
    #[error("the TURN server has no address left (error 508)")]
    Capacity,
    /// The server has forgotten the allocation, or has one of another user for this port (437).
    #[error("the TURN server knows another allocation of this port, or none (error 437)")]
    Mismatch,
    /// Another error of the server.
    #[error("the TURN server refuses with error {0}")]
    Refused(u16),
    /// The response has no usable address, or the request for a password no realm and nonce.
    #[error("the TURN server's response is malformed")]
    Malformed,
}

impl TurnError {
    pub(super) fn of(code: u16) -> Self {
        match code {
            401 | 441 => Self::Credentials,
            437 => Self::Mismatch,
            486 => Self::Quota,
            508 => Self::Capacity,
            other => Self::Refused(other),
        }
    }
}

/// What requests are authenticated with, once the server has asked for it.
pub(super) struct Login {
    username: String,
    realm: Vec<u8>,
    nonce: Vec<u8>,
    pub(super) key: hmac::Key,
}

impl Login {
    /// Reads realm and nonce of an error 401 or 438. One without a realm leaves that of `before`.
    pub(super) fn read(
        server: &TurnServer,
        error: &Message<'_>,
        before: Option<&Self>,
    ) -> Option<Self> {
        let short = |kind| error.find(kind).filter(|value| value.len() <= TEXT_MAX);
        let realm = short(REALM).or_else(|| before.map(|before| &*before.realm))?;
        let nonce = short(NONCE)?.to_vec();
        let mut key = Md5::new();
        // RFC 8489 section 9.2.2.
        for part in [server.username.as_bytes(), b":", realm, b":", server.password.as_bytes()] {
            key.update(part);
        }
        let key = Zeroizing::new(<[u8; 16]>::from(key.finalize()));
        let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &*key);
        Some(Self { username: server.username.clone(), realm: realm.to_vec(), nonce, key })
    }

    /// Adds the attributes that authenticate a request; MESSAGE-INTEGRITY is added last.
    pub(super) fn write(&self, writer: &mut Writer) {
        writer.attribute(USERNAME, self.username.as_bytes());
        writer.attribute(REALM, &self.realm);
        writer.attribute(NONCE, &self.nonce);
    }
}

/// Without the key.
impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("username", &self.username).finish_non_exhaustive()
    }
}
