//! The transport layer of a control connection: clear, or sealed under a shared secret.
//!
//! A [`Channel`] is between the TCP connection and its [`Server`](super::Server) or
//! [`Client`](super::Client). [`receive`](Channel::receive) converts received octets,
//! [`send`](Channel::send) octets to send.

use core::fmt;

use thiserror::Error;

use super::reason::Reason;
use super::sealed::{ControlSecret, Entropy, Sealed};

/// Number of waiting octets at which [`Channel::send`] accepts no more.
const WAITING_MAX: usize = 16 << 10;

/// The reason why a sealed connection failed.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum ChannelError {
    /// The client did not begin a sealed connection.
    #[error("the server accepts only clients that have its key")]
    NoKey,
    /// The peer does not have the secret: its handshake message is not authentic.
    #[error("the two sides have different keys")]
    OtherKey,
    /// The server refused before the handshake was complete. The refusal is not authenticated:
    /// anyone on the path can send it.
    #[error("refused (not authenticated): {text}")]
    Refused {
        /// The reason code.
        reason: Reason,
        /// The reason as text.
        text: String,
    },
    /// The server answered with a message that is not part of the handshake.
    #[error("the server did not answer the handshake")]
    NoAnswer,
    /// The peer sent a message in the clear that is allowed only in a sealed connection.
    #[error("received {0} unencrypted: the peer has not agreed on a key")]
    Clear(&'static str),
    /// A record is not authentic.
    #[error("a record of the connection is not authentic")]
    Forged,
    /// A cryptographic primitive failed at this end.
    #[error("the keys of the connection could not be derived")]
    Primitive,
}

impl ChannelError {
    /// Returns the reason code with which the connection ends.
    pub fn reason(&self) -> Reason {
        match self {
            Self::NoKey | Self::OtherKey | Self::NoAnswer | Self::Clear(_) => Reason::Key,
            Self::Refused { reason, .. } => *reason,
            Self::Forged => Reason::Malformed,
            Self::Primitive => Reason::Unsupported,
        }
    }
}

/// One end of a control connection.
#[derive(Default)]
pub struct Channel {
    outbox: Vec<u8>,
    start: usize,
    /// The state of the sealed connection; `None` if the connection stays clear.
    sealed: Option<Box<Sealed>>,
}

impl Channel {
    /// Creates a channel that passes octets on unchanged.
    pub fn clear() -> Self {
        Self::default()
    }

    /// Creates the client's end of a channel sealed under `secret`. `entropy` fills a slice with
    /// random octets, which must be used for nothing else.
    ///
    /// # Errors
    /// [`ChannelError::Primitive`] if a cryptographic primitive fails.
    pub fn connect(
        secret: &ControlSecret,
        entropy: &mut Entropy<'_>,
    ) -> Result<Self, ChannelError> {
        let mut outbox = Vec::new();
        let sealed = Sealed::connect(secret, entropy, &mut outbox)?;
        Ok(Self { outbox, start: 0, sealed: Some(Box::new(sealed)) })
    }

    /// Creates the server's end of a channel sealed under `secret`; `entropy` is as for
    /// [`connect`](Self::connect).
    pub fn accept(secret: &ControlSecret, entropy: &mut Entropy<'_>) -> Self {
        let sealed = Some(Box::new(Sealed::accept(secret, entropy)));
        Self { sealed, ..Self::default() }
    }

    /// Creates a channel that is clear until both ends know a secret and call [`seal`](Self::seal).
    /// Until then only an opening, `Offer`, `Change`, `Accept`, `Refuse` and `Stop` can be received.
    pub fn clear_at_first(is_client: bool) -> Self {
        Self { sealed: Some(Box::new(Sealed::clear_at_first(is_client))), ..Self::default() }
    }

    /// Returns whether the channel waits for [`seal`](Self::seal).
    pub fn awaits_secret(&self) -> bool {
        self.sealed.as_ref().is_some_and(|sealed| sealed.awaits_secret())
    }

    /// Seals a channel that was clear at first, under a secret on which both ends have agreed. The
    /// handshake fails if either end received anything other than the other had sent. A client
    /// calls this after it has sent its `Accept`. `entropy` is as for [`connect`](Self::connect).
    ///
    /// # Errors
    /// [`ChannelError`] if the handshake fails.
    pub fn seal(
        &mut self,
        secret: &ControlSecret,
        entropy: &mut Entropy<'_>,
    ) -> Result<(), ChannelError> {
        let Some(sealed) = &mut self.sealed else { return Ok(()) };
        sealed.seal_now(secret, entropy, &mut self.outbox)
    }

    /// Returns whether the channel needs no handshake, or has completed it.
    pub fn is_open(&self) -> bool {
        self.sealed.as_ref().is_none_or(|sealed| sealed.is_open())
    }

    /// Handles octets received on the connection, and appends those that they carry to `plain`.
    ///
    /// # Errors
    /// [`ChannelError`] if the connection failed. Send the rest of [`poll_data`](Self::poll_data),
    /// then close the connection. Octets already appended to `plain` are authentic.
    pub fn receive(&mut self, octets: &[u8], plain: &mut Vec<u8>) -> Result<(), ChannelError> {
        if let Some(sealed) = &mut self.sealed {
            return sealed.receive(octets, plain, &mut self.outbox);
        }
        plain.extend_from_slice(octets);
        Ok(())
    }

    /// Accepts octets to send as far as there is room; returns their number, 0 during the
    /// handshake.
    pub fn send(&mut self, plain: &[u8]) -> usize {
        if self.poll_data().len() >= WAITING_MAX {
            return 0;
        }
        let plain = &plain[..plain.len().min(WAITING_MAX)];
        if let Some(sealed) = &mut self.sealed {
            return sealed.seal(plain, &mut self.outbox);
        }
        self.outbox.extend_from_slice(plain);
        plain.len()
    }

    /// Returns the octets to send next; empty if there are none. Report the number sent with
    /// [`data_sent`](Self::data_sent).
    pub fn poll_data(&self) -> &[u8] {
        self.outbox.get(self.start..).unwrap_or_default()
    }

    /// Notes that the first `len` octets of [`poll_data`](Self::poll_data) were sent.
    pub fn data_sent(&mut self, len: usize) {
        self.start = (self.start + len).min(self.outbox.len());
        // At most as many octets are moved as were sent.
        if self.start * 2 >= self.outbox.len() {
            self.outbox.drain(..self.start);
            self.start = 0;
        }
    }

    /// Fills `out` with a key that only the two ends of this connection know. It differs for each
    /// `label` and each connection. Returns `false`, and fills nothing, if the channel is clear or
    /// the handshake is not complete.
    #[must_use]
    pub fn export(&self, label: &[u8], out: &mut [u8]) -> bool {
        self.sealed.as_ref().is_some_and(|sealed| sealed.export(label, out))
    }
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel").field("sealed", &self.sealed).finish_non_exhaustive()
    }
}
