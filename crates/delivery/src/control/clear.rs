//! The unencrypted start of a connection that is sealed as soon as both ends share a key.
//!
//! The handshake authenticates all octets exchanged before it, so a change made on the path makes
//! the handshake fail. In the clear, only messages that lead to a key are accepted.

use super::channel::ChannelError;
use super::message::{ACCEPT, CHANGE, Message, OFFER, STOP};
use super::opening::{self, Opening};
use super::{BODY_LEN_MAX, HEADER_LEN};

/// Maximum octets from the peer in the clear: twice as many as the longest messages have.
const CLEAR_MAX: usize = 2 * (Opening::LEN_MAX + HEADER_LEN + BODY_LEN_MAX);

/// The octets that one end has sent and received.
#[derive(Default)]
pub(super) struct Clear {
    is_client: bool,
    sent: Vec<u8>,
    received: Vec<u8>,
}

/// The decision on received octets.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Verdict {
    /// The message needs this many more octets.
    Missing(usize),
    /// A message, or octets that the state machine will refuse, to be passed on.
    Pass,
    /// The beginning of the handshake.
    Handshake,
}

impl Clear {
    pub(super) fn new(is_client: bool) -> Self {
        Self { is_client, ..Self::default() }
    }

    pub(super) fn is_client(&self) -> bool {
        self.is_client
    }

    /// Classifies `unread`, the beginning of a message.
    pub(super) fn classify(&self, unread: &[u8]) -> Result<Verdict, ChannelError> {
        if !self.is_client && self.received.is_empty() {
            return Ok(match Opening::parse(unread) {
                Ok(None) => Verdict::Missing(1),
                Ok(Some(_)) | Err(_) => Verdict::Pass,
            });
        }
        let Some(&[kind, high, middle, low]) = unread.first_chunk::<HEADER_LEN>() else {
            return Ok(Verdict::Missing(HEADER_LEN - unread.len()));
        };
        if !self.is_client && [kind, high, middle, low] == opening::MAGIC {
            return Ok(Verdict::Handshake);
        }
        let len = u32::from_be_bytes([0, high, middle, low]) as usize;
        let missing = (HEADER_LEN + len.min(BODY_LEN_MAX)).saturating_sub(unread.len());
        match Message::parse(unread) {
            Ok(None) => Ok(Verdict::Missing(missing.max(1))),
            Ok(Some((Message::Refuse { reason, text } | Message::Stop { reason, text }, _)))
                if self.is_client =>
            {
                Err(ChannelError::Refused { reason, text })
            }
            Ok(Some((message, _))) => {
                let allowed: &[u8] =
                    if self.is_client { &[OFFER] } else { &[ACCEPT, CHANGE, STOP] };
                if allowed.contains(&kind) {
                    Ok(Verdict::Pass)
                } else {
                    Err(ChannelError::Clear(message.name()))
                }
            }
            Err(_) => Ok(Verdict::Pass),
        }
    }

    pub(super) fn note_received(&mut self, octets: &[u8]) -> Result<(), ChannelError> {
        if self.received.len() + octets.len() > CLEAR_MAX {
            return Err(ChannelError::Clear("too many octets"));
        }
        self.received.extend_from_slice(octets);
        Ok(())
    }

    pub(super) fn note_sent(&mut self, octets: &[u8]) {
        self.sent.extend_from_slice(octets);
    }

    /// Returns all octets exchanged, the client's first. They are the same at both ends, unless
    /// they were changed on the path.
    pub(super) fn transcript(&self) -> Vec<u8> {
        let (client, server) = if self.is_client {
            (&self.sent, &self.received)
        } else {
            (&self.received, &self.sent)
        };
        [&(client.len() as u32).to_be_bytes()[..], client, server].concat()
    }
}
