//! The security of a stream that is being set up.

use rushes_proto::SequenceNumber;
use rushes_proto::control::Participant;
#[cfg(feature = "srtp")]
use rushes_proto::srtp::{Policy, Protector, SrtcpProtector, SrtcpUnprotector};
use rushes_proto::stream::{Receiver, Sender};

use super::builder::StreamBuilder;
use crate::error::Error;
#[cfg(feature = "srtp")]
use crate::security::KnownKeys;
#[cfg(feature = "srtp")]
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
    pub(crate) fn secured_if(self, security: Option<&Security>) -> Self {
        match security {
            Some(security) => self.security(security.clone()),
            None => self,
        }
    }

    /// Secures the stream: media and reports are never sent unprotected, and unprotected or forged
    /// packets are rejected. Both ends must agree.
    ///
    /// A secured stream begins at a sequence number below 2¹⁵, so that a receiver that misses the
    /// first packets still estimates the packet index correctly (RFC 3711 section 3.3.1).
    #[cfg(feature = "srtp")]
    #[cfg_attr(
        not(any(feature = "webrtc", feature = "zrtp")),
        allow(unused_mut, reason = "modified with key agreement")
    )]
    pub fn security(mut self, mut security: Security) -> Self {
        // A hash of the peer's Hello from a description is kept.
        #[cfg(feature = "zrtp")]
        if let (Some(Security::Zrtp(before)), Security::Zrtp(config)) =
            (&self.security, &mut security)
            && config.peer_hello_hash.is_none()
        {
            config.peer_hello_hash = before.peer_hello_hash;
        }
        // The peer's certificate and role from a description are kept, too.
        #[cfg(feature = "webrtc")]
        if let (Some(Security::Dtls(before)), Security::Dtls(config)) =
            (&mut self.security, &mut security)
            && config.expected.is_empty()
        {
            config.expected.append(&mut before.expected);
            config.setup = before.setup;
        }
        self.security = Some(security);
        self
    }

    /// Returns whether the stream agrees on its keys with the peer, which makes opening it slow.
    #[cfg(any(feature = "webrtc", feature = "zrtp"))]
    pub fn agrees_on_keys(&self) -> bool {
        self.awaits_keys()
    }

    #[cfg(feature = "srtp")]
    fn known_keys(&self) -> Option<KnownKeys<'_>> {
        self.security.as_ref()?.known_keys()
    }

    pub(crate) fn secure_sender(&self, sender: Sender) -> Result<Sender, Error> {
        #[cfg(feature = "srtp")]
        if let Some(KnownKeys { policy, send, .. }) = self.known_keys() {
            return Ok(sender.secured(Protector::new(policy, send)?)?);
        }
        Ok(sender)
    }

    pub(crate) fn secure_receiver(&self, receiver: Receiver) -> Result<Receiver, Error> {
        #[cfg(feature = "srtp")]
        if let Some(keys) = self.known_keys() {
            // The replay window must cover the reorder window, or late packets would be rejected as
            // too old.
            let window = keys.policy.window.max(receiver.config().reorder_packets_max);
            let policy = Policy { window, ..*keys.policy };
            return Ok(receiver.secured(keys.unprotector(&policy)?));
        }
        Ok(receiver)
    }

    pub(crate) fn secure_participant(
        &self,
        participant: Participant,
    ) -> Result<Participant, Error> {
        #[cfg(feature = "srtp")]
        if let Some(KnownKeys { policy, send, receive, further }) = self.known_keys() {
            let protector = SrtcpProtector::new(policy, send)?;
            let mut unprotector = SrtcpUnprotector::new(policy, receive)?;
            further.iter().try_for_each(|key| unprotector.add_master_key(key))?;
            return Ok(participant.secured(protector, unprotector));
        }
        Ok(participant)
    }

    /// Returns whether keys must be agreed on before anything is sent.
    pub(crate) fn awaits_keys(&self) -> bool {
        #[cfg(feature = "srtp")]
        return self.security.is_some() && self.known_keys().is_none();
        #[cfg(not(feature = "srtp"))]
        return self.security.is_some();
    }

    /// Returns a first sequence number derived from `random`.
    pub(crate) fn first_sequence(&self, random: u32) -> SequenceNumber {
        let highest = if self.security.is_some() { 0x7fff } else { 0xffff };
        SequenceNumber((random & highest) as u16)
    }
}
