//! The keys of an open stream: changed and joined late.

use rushes_proto::Ssrc;
use rushes_proto::srtp::{MasterKey, PolicyError, SrtcpUnprotector, UnprotectError};

use super::stream::{MediaStream, StreamHandle};
use crate::error::Error;

impl MediaStream {
    /// See [`StreamHandle::set_send_key`].
    ///
    /// # Errors
    /// As [`StreamHandle::set_send_key`].
    pub fn set_send_key(&self, key: &MasterKey) -> Result<(), Error> {
        self.handle().set_send_key(key)
    }

    /// See [`StreamHandle::add_receive_key`].
    ///
    /// # Errors
    /// As [`StreamHandle::set_send_key`].
    pub fn add_receive_key(&self, key: &MasterKey) -> Result<(), Error> {
        self.handle().add_receive_key(key)
    }

    /// See [`StreamHandle::set_roll_over_counter`].
    ///
    /// # Errors
    /// As [`StreamHandle::set_roll_over_counter`].
    pub fn set_roll_over_counter(&self, source: Ssrc, roc: u32) -> Result<(), Error> {
        self.handle().set_roll_over_counter(source, roc)
    }

    /// See [`StreamHandle::roll_over_counter`].
    pub fn roll_over_counter(&self) -> u32 {
        self.handle().roll_over_counter()
    }
}

impl StreamHandle {
    /// Sends under another master key from the next packet and the next report on. The peer should
    /// have been told before, so that it accepts the key already.
    ///
    /// Packets sent before can no longer be sent again in a stream of their own
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

    /// Accepts packets and reports under another master key too, from now on. Those before stay
    /// good for what is late, so that nothing is lost while keys change.
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

    /// Expects the next packet of `source` to be in the round `roc` (RFC 3711 section 3.3.1):
    /// needed to join a stream that has run for more than 2¹⁶ packets, whose sender tells it. Where
    /// packets of that round or a later one came already nothing changes.
    ///
    /// # Errors
    /// [`Error::Policy`] if the stream is not secured or follows as many sources as it may.
    pub fn set_roll_over_counter(&self, source: Ssrc, roc: u32) -> Result<(), Error> {
        let mut receiver = self.attached.inbox().lock();
        let unprotector = receiver.unprotector().ok_or(PolicyError::KeyOfAnotherSuite)?;
        match unprotector.set_roll_over_counter(source, roc) {
            Ok(()) | Err(UnprotectError::Replayed) => Ok(()),
            Err(_) => Err(PolicyError::NoSources.into()),
        }
    }

    /// The roll-over counter of what this end sends, for those who join late; 0 before the first
    /// packet and if the stream is not secured.
    pub fn roll_over_counter(&self) -> u32 {
        let ssrc = self.ssrc();
        let mut state = self.attached.outbox().lock();
        let protector = state.sender.protector();
        protector.and_then(|protector| protector.roll_over_counter(ssrc)).unwrap_or(0)
    }
}
