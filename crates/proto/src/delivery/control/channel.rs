//! The octets of a control connection on their way: clear, or sealed under a secret of both ends.
//!
//! A [`Channel`] lies between a connection and its [`Server`](super::Server) or
//! [`Client`](super::Client): octets that come go through [`receive`](Channel::receive), and those
//! to be sent through [`send`](Channel::send).

use core::fmt;

use thiserror::Error;

use super::reason::Reason;
#[cfg(feature = "srtp")]
use super::sealed::{ControlSecret, Entropy, Sealed};
#[cfg(not(feature = "srtp"))]
use super::sealed_absent::Sealed;

/// Octets that may wait for a peer that does not read, before no more are taken.
const WAITING_MAX: usize = 16 << 10;

/// Why a connection cannot go on: its peer lacks the secret, or somebody changed what it sent.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum ChannelError {
    /// The client's opening is not one of a client with a key.
    #[error("this server takes only clients that have its key")]
    NoKey,
    /// The peer's key is another.
    #[error("the other side has another key")]
    OtherKey,
    /// The server refused before it showed that it has the key: anybody may have written that.
    #[error("refused, by somebody who did not show the key: {text}")]
    Refused {
        /// The reason given.
        reason: Reason,
        /// The same for people.
        text: String,
    },
    /// The server's answer is none to a client with a key.
    #[error("the server's answer shows no key")]
    NoAnswer,
    /// A record is not authentic, or came before.
    #[error("octets of the connection are not the other side's")]
    Forged,
    /// The cryptographic primitive refused its input.
    #[error("the keys of the connection could not be made")]
    Refusal,
}

impl ChannelError {
    /// The code with which the connection ends.
    pub fn reason(&self) -> Reason {
        match self {
            Self::NoKey | Self::OtherKey | Self::NoAnswer => Reason::Key,
            Self::Refused { reason, .. } => *reason,
            Self::Forged => Reason::Malformed,
            Self::Refusal => Reason::Unsupported,
        }
    }
}

/// One end of a connection: between its octets and what they mean.
#[derive(Default)]
pub struct Channel {
    outbox: Vec<u8>,
    start: usize,
    /// `None` if the connection is clear.
    sealed: Option<Box<Sealed>>,
}

impl Channel {
    /// A channel that changes nothing.
    pub fn clear() -> Self {
        Self::default()
    }

    /// The client's end of a channel sealed under `secret`. `entropy` fills what it is given with
    /// random octets that are used nowhere else.
    ///
    /// # Errors
    /// [`ChannelError::Refusal`] if the cryptographic primitive fails.
    #[cfg(feature = "srtp")]
    pub fn connect(
        secret: &ControlSecret,
        entropy: &mut Entropy<'_>,
    ) -> Result<Self, ChannelError> {
        let mut outbox = Vec::new();
        let sealed = Sealed::connect(secret, entropy, &mut outbox)?;
        Ok(Self { outbox, start: 0, sealed: Some(Box::new(sealed)) })
    }

    /// The server's end of a channel sealed under `secret`, as [`connect`](Self::connect).
    #[cfg(feature = "srtp")]
    pub fn accept(secret: &ControlSecret, entropy: &mut Entropy<'_>) -> Self {
        let sealed = Some(Box::new(Sealed::accept(secret, entropy)));
        Self { sealed, ..Self::default() }
    }

    /// Takes octets that came on the connection; what they hold for this side goes behind what is
    /// in `plain`.
    ///
    /// # Errors
    /// [`ChannelError`]: the connection is to be closed once everything was sent. What was written
    /// to `plain` is authentic.
    pub fn receive(&mut self, octets: &[u8], plain: &mut Vec<u8>) -> Result<(), ChannelError> {
        if let Some(sealed) = &mut self.sealed {
            return sealed.receive(octets, plain, &mut self.outbox);
        }
        plain.extend_from_slice(octets);
        Ok(())
    }

    /// Takes octets to be sent, as many as there is room for, and says how many: none while keys
    /// are being agreed on.
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

    /// The octets to send next; empty if there are none. Tell how many went out by
    /// [`data_sent`](Self::data_sent).
    pub fn poll_data(&self) -> &[u8] {
        self.outbox.get(self.start..).unwrap_or_default()
    }

    /// Takes it that the first `len` octets of [`poll_data`](Self::poll_data) were sent.
    pub fn data_sent(&mut self, len: usize) {
        self.start = (self.start + len).min(self.outbox.len());
        // Moving less than what was sent makes each octet move once at most.
        if self.start * 2 >= self.outbox.len() {
            self.outbox.drain(..self.start);
            self.start = 0;
        }
    }

    /// Fills `out` with a key that only the two ends of this connection know, another one for each
    /// `label` and each connection; false, and nothing is filled, if the channel is clear or its
    /// keys are not agreed on yet.
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
