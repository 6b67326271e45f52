//! Securing a stream that is set up.

use rushes_proto::SequenceNumber;
use rushes_proto::control::Participant;
#[cfg(feature = "srtp")]
use rushes_proto::srtp::{Policy, Protector, SrtcpProtector, SrtcpUnprotector};
use rushes_proto::stream::{Receiver, Sender};

use super::builder::StreamBuilder;
use crate::error::Error;
#[cfg(feature = "srtp")]
use crate::security::Given;
#[cfg(any(feature = "srtp", feature = "texture"))]
use crate::security::Security;

#[cfg_attr(
    not(feature = "srtp"),
    allow(
        clippy::unused_self,
        clippy::unnecessary_wraps,
        reason = "a build without SRTP has no keys"
    )
)]
impl StreamBuilder {
    /// Secures the stream, if `security` is given.
    #[cfg(feature = "texture")]
    pub(crate) fn secured_if(mut self, security: Option<&Security>) -> Self {
        #[cfg(feature = "srtp")]
        if let Some(security) = security {
            return self.security(security.clone());
        }
        self.security = security.cloned();
        self
    }

    /// Secures the stream: nothing leaves it in the clear, media or reports, and nothing clear or
    /// forged is taken. Both ends must agree.
    ///
    /// A secured stream begins at a sequence number below 2¹⁵, so that a receiver that misses its
    /// first packets does not misjudge it (RFC 3711 section 3.3.1).
    #[cfg(feature = "srtp")]
    #[cfg_attr(not(feature = "zrtp"), allow(unused_mut, reason = "changed for ZRTP"))]
    pub fn security(mut self, mut security: Security) -> Self {
        // What a description announced of the peer still holds.
        #[cfg(feature = "zrtp")]
        if let (Some(Security::Zrtp(before)), Security::Zrtp(config)) =
            (&self.security, &mut security)
            && config.peer_hello_hash.is_none()
        {
            config.peer_hello_hash = before.peer_hello_hash;
        }
        self.security = Some(security);
        self
    }

    /// Whether the stream agrees on its keys with the peer, so that opening it takes a while.
    #[cfg(feature = "zrtp")]
    pub fn agrees_on_keys(&self) -> bool {
        self.awaits_keys()
    }

    #[cfg(feature = "srtp")]
    fn given_keys(&self) -> Option<Given<'_>> {
        self.security.as_ref()?.given()
    }

    pub(crate) fn secure_sender(&self, sender: Sender) -> Result<Sender, Error> {
        #[cfg(feature = "srtp")]
        if let Some(Given { policy, send, .. }) = self.given_keys() {
            return Ok(sender.secured(Protector::new(policy, send)?)?);
        }
        Ok(sender)
    }

    pub(crate) fn secure_receiver(&self, receiver: Receiver) -> Result<Receiver, Error> {
        #[cfg(feature = "srtp")]
        if let Some(given) = self.given_keys() {
            // Packets that are still waited for must not be too old for the replay window.
            let window = given.policy.window.max(receiver.config().reorder_packets_max);
            let policy = Policy { window, ..*given.policy };
            return Ok(receiver.secured(given.unprotector(&policy)?));
        }
        Ok(receiver)
    }

    pub(crate) fn secure_participant(
        &self,
        participant: Participant,
    ) -> Result<Participant, Error> {
        #[cfg(feature = "srtp")]
        if let Some(Given { policy, send, receive, further }) = self.given_keys() {
            let protector = SrtcpProtector::new(policy, send)?;
            let mut unprotector = SrtcpUnprotector::new(policy, receive)?;
            further.iter().try_for_each(|key| unprotector.add_master_key(key))?;
            return Ok(participant.secured(protector, unprotector));
        }
        Ok(participant)
    }

    /// Whether keys must be agreed on before anything is sent.
    pub(crate) fn awaits_keys(&self) -> bool {
        #[cfg(feature = "srtp")]
        return self.security.is_some() && self.given_keys().is_none();
        #[cfg(not(feature = "srtp"))]
        return self.security.is_some();
    }

    /// A first sequence number, where `random` decides.
    pub(crate) fn first_sequence(&self, random: u32) -> SequenceNumber {
        let highest = if self.security.is_some() { 0x7fff } else { 0xffff };
        SequenceNumber((random & highest) as u16)
    }
}
