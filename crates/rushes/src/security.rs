//! How a stream is secured: which keys, under which policy.

use rushes_proto::SequenceNumber;
use rushes_proto::Ssrc;
use rushes_proto::control::Participant;
use rushes_proto::srtp::KeyError;
use rushes_proto::srtp::MasterKey;
use rushes_proto::srtp::Policy;
use rushes_proto::srtp::PolicyError;
use rushes_proto::srtp::Protector;
use rushes_proto::srtp::SrtcpProtector;
use rushes_proto::srtp::SrtcpUnprotector;
use rushes_proto::srtp::Suite;
use rushes_proto::srtp::UnprotectError;
use rushes_proto::stream::Receiver;
use rushes_proto::stream::Sender;
use zeroize::Zeroizing;

use crate::builder::StreamBuilder;
use crate::error::Error;
use crate::stream::MediaStream;
use crate::stream::StreamHandle;

/// Where a secured stream's keys come from. `Debug` prints none.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Security {
    /// The application has them: both ends got them in some safe way.
    Keys {
        /// What both ends agree on besides the keys.
        policy: Policy,
        /// The master key of what this end sends.
        send: MasterKey,
        /// The master key of what this end receives; it may be the same.
        receive: MasterKey,
        /// Other master keys that what this end receives may be under, told apart by their
        /// identifiers; at most [`KEYS_MAX`](rushes_proto::srtp::KEYS_MAX) with `receive`.
        further: Vec<MasterKey>,
    },
    /// The ends agree on them, on the media's own ports (ZRTP, RFC 6189); see
    /// [`zrtp`](crate::zrtp). Media is neither sent nor taken before.
    #[cfg(feature = "zrtp")]
    Zrtp(crate::zrtp::ZrtpConfig),
}

/// Keys that are there.
#[derive(Clone, Copy)]
pub(crate) struct Given<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) send: &'a MasterKey,
    pub(crate) receive: &'a MasterKey,
    pub(crate) further: &'a [MasterKey],
}

impl Security {
    /// The keys, if they need not be agreed on first.
    #[cfg_attr(not(feature = "zrtp"), allow(clippy::unnecessary_wraps, reason = "for ZRTP"))]
    pub(crate) fn given(&self) -> Option<Given<'_>> {
        match self {
            Self::Keys { policy, send, receive, further } => {
                Some(Given { policy, send, receive, further })
            }
            #[cfg(feature = "zrtp")]
            Self::Zrtp(_) => None,
        }
    }

    /// The same master key both ways, for streams whose media goes one way and whose reports come
    /// back. Where both ends send media, use [`separate`](Self::separate): under one key two streams
    /// that happen on the same SSRC would undo each other's encryption (RFC 3711 section 9.1, RFC
    /// 7714 section 8.4). For the same reason a key must not be used for a second stream whose SSRC
    /// was set by hand.
    ///
    /// `key_and_salt` holds the key and its salt: 30 octets for
    /// [`Suite::AesCm128HmacSha1_80`], 28 for [`Suite::AeadAes128Gcm`].
    ///
    /// # Errors
    /// [`KeyError::Len`] if the suite needs another number of octets.
    ///
    /// ```
    /// use rushes::{Codec, Context, Security, Suite};
    /// # fn main() -> Result<(), rushes::Error> {
    /// let key = [0x5a; 28]; // from a random number generator, in the life of a key
    /// let stream = Context::new()
    ///     .session("127.0.0.1")?
    ///     .stream(Codec::H264)
    ///     .security(Security::shared(Suite::AeadAes128Gcm, &key)?)
    ///     .open()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn shared(suite: Suite, key_and_salt: &[u8]) -> Result<Self, KeyError> {
        let key = MasterKey::new(suite, key_and_salt)?;
        let policy = Policy::new(suite);
        Ok(Self::Keys { policy, send: key.clone(), receive: key, further: Vec::new() })
    }

    /// A master key that nobody has had before, the same both ways; the peer must be told it in
    /// some safe way, such as a description over an encrypted channel
    /// ([`StreamBuilder::description`]).
    ///
    /// # Errors
    /// [`Error::Random`] if the operating system gives no random numbers.
    pub fn random(suite: Suite) -> Result<Self, Error> {
        let mut octets = Zeroizing::new(vec![0; suite.key_and_salt_len()]);
        getrandom::fill(&mut octets).map_err(|error| Error::Random(error.to_string()))?;
        Ok(Self::shared(suite, &octets)?)
    }

    /// Master keys of their own for what is sent and for what is received.
    ///
    /// # Errors
    /// As [`shared`](Self::shared).
    pub fn separate(suite: Suite, send: &[u8], receive: &[u8]) -> Result<Self, KeyError> {
        let (send, receive) = (MasterKey::new(suite, send)?, MasterKey::new(suite, receive)?);
        Ok(Self::Keys { policy: Policy::new(suite), send, receive, further: Vec::new() })
    }
}

impl StreamBuilder {
    /// As [`security`](Self::security), if there is any.
    #[cfg(feature = "texture")]
    pub(crate) fn secured_if(self, security: Option<&Security>) -> Self {
        match security {
            Some(security) => self.security(security.clone()),
            None => self,
        }
    }

    /// Secures the stream: nothing leaves it in the clear, media or reports, and nothing clear or
    /// forged is taken. Both ends must agree.
    ///
    /// A secured stream begins at a sequence number below 2¹⁵, so that a receiver that misses its
    /// first packets does not misjudge it (RFC 3711 section 3.3.1).
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

    fn given_keys(&self) -> Option<Given<'_>> {
        self.security.as_ref()?.given()
    }

    pub(crate) fn secure_sender(&self, sender: Sender) -> Result<Sender, Error> {
        let Some(Given { policy, send, .. }) = self.given_keys() else { return Ok(sender) };
        Ok(sender.secured(Protector::new(policy, send)?)?)
    }

    pub(crate) fn secure_receiver(&self, receiver: Receiver) -> Result<Receiver, Error> {
        let Some(given) = self.given_keys() else { return Ok(receiver) };
        // What is still waited for must not be too old to be believed.
        let window = given.policy.window.max(receiver.config().reorder_packets_max);
        let policy = Policy { window, ..*given.policy };
        Ok(receiver.secured(given.unprotector(&policy)?))
    }

    pub(crate) fn secure_participant(
        &self,
        participant: Participant,
    ) -> Result<Participant, Error> {
        let Some(Given { policy, send, receive, further }) = self.given_keys() else {
            return Ok(participant);
        };
        let protector = SrtcpProtector::new(policy, send)?;
        let mut unprotector = SrtcpUnprotector::new(policy, receive)?;
        further.iter().try_for_each(|key| unprotector.add_master_key(key))?;
        Ok(participant.secured(protector, unprotector))
    }

    /// Whether keys must be agreed on before anything is sent.
    pub(crate) fn awaits_keys(&self) -> bool {
        self.security.is_some() && self.given_keys().is_none()
    }

    /// A first sequence number, where `random` decides.
    pub(crate) fn first_sequence(&self, random: u32) -> SequenceNumber {
        let highest = if self.security.is_some() { 0x7fff } else { 0xffff };
        SequenceNumber((random & highest) as u16)
    }
}

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
        self.shared.sending.lock().sender.set_master_key(key)?;
        let outcome = self.shared.reporting.reporter.with(|participant| {
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
        let mut receiver = self.shared.inbox.lock();
        let unprotector = receiver.unprotector().ok_or(PolicyError::KeyOfAnotherSuite)?;
        unprotector.add_master_key(key)?;
        drop(receiver);
        let outcome = self.shared.reporting.reporter.with(|participant| {
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
        let mut receiver = self.shared.inbox.lock();
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
        let mut core = self.shared.sending.lock();
        let protector = core.sender.protector();
        protector.and_then(|protector| protector.roll_over_counter(ssrc)).unwrap_or(0)
    }
}
