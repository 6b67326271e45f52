//! Changing the keys of an open stream, and joining a stream late.

use rushes_proto::Ssrc;
use rushes_proto::srtp::{MasterKey, PolicyError, SrtcpUnprotector, UnprotectError};

use super::stream::StreamHandle;
use crate::error::Error;

impl StreamHandle {
    /// Sends under another master key from the next packet and the next report on. The peer should
    /// [accept](Self::add_receive_key) the key before.
    ///
    /// Earlier packets can then no longer be retransmitted in a separate stream
    /// ([`Recovery::On`](crate::Recovery::On)).
    ///
    /// # Errors
    /// [`Error::Policy`] if the stream is not secured, the key is of another suite, or its
    /// identifier has another length.
    pub fn set_send_key(&self, key: &MasterKey) -> Result<(), Error> {
        self.attached.outbox().lock().sender.set_master_key(key)?;
        let outcome = self.attached.reporter.with(|participant| {
            participant.protection().map_or(Ok(()), |(protector, _)| protector.set_master_key(key))
        });
        Ok(outcome.unwrap_or(Ok(()))?)
    }

    /// Accepts packets and reports under another master key too, from now on. Earlier keys remain
    /// valid for late packets, so that none is lost while keys change.
    ///
    /// # Errors
    /// As [`set_send_key`](Self::set_send_key).
    pub fn add_receive_key(&self, key: &MasterKey) -> Result<(), Error> {
        let mut receiver = self.attached.inbox().lock();
        let unprotector = receiver.unprotector().ok_or(PolicyError::KeyOfAnotherSuite)?;
        unprotector.add_master_key(key)?;
        drop(receiver);
        let outcome = self.attached.reporter.with(|participant| {
            let add = |unprotector: &mut SrtcpUnprotector| unprotector.add_master_key(key);
            participant.protection().map_or(Ok(()), |(_, unprotector)| add(unprotector))
        });
        Ok(outcome.unwrap_or(Ok(()))?)
    }

    /// Expects the next packet of `source` to be in the round `roc` (RFC 3711 section 3.3.1). This
    /// is needed to join a stream after more than 2¹⁶ packets; the sender's
    /// [`roll_over_counter`](Self::roll_over_counter) returns the value. It has no effect if
    /// packets of that round or a later one have been received.
    ///
    /// # Errors
    /// [`Error::Policy`] if the stream is not secured or follows the maximum number of sources.
    pub fn set_roll_over_counter(&self, source: Ssrc, roc: u32) -> Result<(), Error> {
        let mut receiver = self.attached.inbox().lock();
        let unprotector = receiver.unprotector().ok_or(PolicyError::KeyOfAnotherSuite)?;
        match unprotector.set_roll_over_counter(source, roc) {
            Ok(()) | Err(UnprotectError::Replayed) => Ok(()),
            Err(_) => Err(PolicyError::NoSources.into()),
        }
    }

    /// Returns the roll-over counter of sent packets, for receivers that join late; 0 before the
    /// first packet and if the stream is not secured.
    pub fn roll_over_counter(&self) -> u32 {
        let ssrc = self.ssrc();
        let mut state = self.attached.outbox().lock();
        let protector = state.sender.protector();
        protector.and_then(|protector| protector.roll_over_counter(ssrc)).unwrap_or(0)
    }
}
