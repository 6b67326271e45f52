//! What the application provides: sessions of media.

use std::net::SocketAddr;

use crate::Kind;

/// Opens and closes sessions on behalf of a [`crate::Server`].
///
/// Calls come from several threads at once and may block for a few seconds; those for one session
/// come one after the other.
pub trait Endpoint: Send + Sync + 'static {
    /// Answers an offer, which starts the session [`OpenRequest::id`]. Returns the answer.
    ///
    /// # Errors
    /// A [`Refusal`], which becomes the response; there is no session then.
    fn open(&self, request: &OpenRequest<'_>) -> Result<String, Refusal>;

    /// Takes ICE candidates, or new credentials with candidates for a restart of ICE.
    ///
    /// `fragment` is SDP as in RFC 8840 section 9, unchecked. Returns `None` if only candidates
    /// were added, or after a restart the fragment with the endpoint's own credentials and
    /// candidates (RFC 9725 sections 4.3.2 and 4.3.3). The server has compared the entity-tag.
    ///
    /// # Errors
    /// A [`Refusal`]; the session goes on as before.
    fn patch(&self, id: &str, fragment: &str) -> Result<Option<String>, Refusal>;

    /// Ends a session, because the client deleted it or the server ends.
    ///
    /// It may have ended by itself before.
    fn close(&self, id: &str);

    /// Returns whether a session still exists.
    ///
    /// A session ends without a request if its client has left; the server asks before each new
    /// one, so that such sessions do not count. It holds a lock: this must return immediately.
    fn is_open(&self, id: &str) -> bool;
}

/// A client's request for a session.
#[derive(Clone, Copy, Debug)]
pub struct OpenRequest<'a> {
    /// The name of the new session: 32 hexadecimal digits of 128 random bits.
    pub id: &'a str,
    /// The direction of media.
    pub kind: Kind,
    /// The client's offer, unchecked except that it is UTF-8 and within the limit.
    pub offer: &'a str,
    /// The client's address, or that of a proxy.
    pub peer: SocketAddr,
    /// The address of this machine at which the request arrived, thus one that reaches it.
    pub local: SocketAddr,
}

/// Why a request is not granted.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{detail}")]
pub struct Refusal {
    /// What kind of reason, which decides the status.
    pub reason: Reason,
    /// A sentence for the user of the client: what was wrong and what to do.
    pub detail: String,
}

impl Refusal {
    /// A refusal with its sentence.
    pub fn new(reason: Reason, detail: impl Into<String>) -> Self {
        Self { reason, detail: detail.into() }
    }
}

/// Kinds of reasons for a [`Refusal`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Reason {
    /// The offer or fragment cannot be parsed (400).
    Malformed,
    /// The client may not do this (403).
    Forbidden,
    /// There is no such session (404).
    NotFound,
    /// Nothing in the offer can be accepted, for example no codec (406).
    NotAcceptable,
    /// Another client publishes already, or there is nothing to play yet (409); `Retry-After` is
    /// a few seconds.
    Conflict,
    /// The offer or fragment is well-formed but not supported (422).
    Unprocessable,
    /// The client asks too often (429); `Retry-After` is a few seconds.
    TooMany,
    /// The endpoint cannot take more sessions now (503); `Retry-After` is a few seconds.
    Busy,
    /// Something failed that is not the client's mistake (500).
    Internal,
}
