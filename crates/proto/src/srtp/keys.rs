//! The master keys in use: which one protects a packet, and its remaining lifetime.

use core::fmt;
use std::collections::VecDeque;

use super::derive::Derivation;
use super::error::PolicyError;
use super::master::MasterKey;
use super::policy::Policy;
use super::transform::{Body, Protocol, Salt, SessionKeys, Transform};
use rushes_crypto::{Aead, HashAlgorithm, hash, on_erased_stack};

/// Maximum number of SRTP packets under one master key (RFC 3711 section 9.2).
pub const RTP_LIFETIME_MAX: u64 = 1 << 48;

/// Maximum number of SRTCP packets under one master key (RFC 3711 section 9.2).
pub const RTCP_LIFETIME_MAX: u64 = 1 << 31;

/// Maximum number of master keys kept: the one in use, the next, and earlier ones for late packets.
pub const KEYS_MAX: usize = 4;

/// An event of the master key in use.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum KeyEvent {
    /// At most a sixteenth of its lifetime is left: another key should be set.
    Expiring {
        /// Number of packets that it may still protect.
        left: u64,
    },
    /// Its lifetime has ended: no packet is sent or accepted under it any more.
    Expired,
}

/// The first half of the SHA-256 of a master key and its salt.
type Fingerprint = [u8; 16];

/// One master key and the session keys derived from it.
pub(super) struct Key {
    pub(super) mki: Vec<u8>,
    /// Kept only if the policy has a key derivation rate.
    derivation: Option<Box<Derivation>>,
    /// The session keys of the two newest epochs of authentic packets, the newest first.
    epochs: VecDeque<(u64, Transform)>,
    /// The session keys derived last for a packet of another epoch that is not authenticated yet.
    candidate: Option<(u64, Transform)>,
    used: u64,
    lifetime: u64,
    last_event: Option<KeyEvent>,
}

/// The master keys of one direction of SRTP or SRTCP.
pub(super) struct Keys {
    policy: Policy,
    protocol: Protocol,
    /// The master keys; the first is the key in use.
    list: VecDeque<Key>,
    /// Fingerprints of all master keys ever used here, which must not be used again.
    known: Vec<Fingerprint>,
    /// The number of changes of the key in use.
    generation: u64,
    events: VecDeque<KeyEvent>,
}

impl Key {
    fn new(policy: &Policy, protocol: Protocol, master: &MasterKey) -> Result<Self, PolicyError> {
        if !master.fits(policy.suite) {
            return Err(PolicyError::KeyOfAnotherSuite);
        }
        let (derivation, first) = on_erased_stack(|| {
            let derivation = Derivation::new(master)?;
            let first = SessionKeys::derive(policy, protocol, &derivation, 0)?;
            let kept = policy.key_derivation_rate.map(|_| Box::new(derivation));
            Ok::<_, PolicyError>((kept, first))
        })?;
        // Made after the erasure, as unused bytes of the value may contain remains of the stack.
        let first = Transform::new(policy, protocol, &first)?;
        let lifetime = match protocol {
            Protocol::Rtp => master.rtp_lifetime(),
            Protocol::Rtcp => master.rtcp_lifetime(),
        };
        Ok(Self {
            mki: master.mki().to_vec(),
            derivation,
            epochs: VecDeque::from([(0, first)]),
            candidate: None,
            used: 0,
            lifetime,
            last_event: None,
        })
    }

    pub(super) fn is_expired(&self) -> bool {
        self.used >= self.lifetime
    }

    /// Returns the session keys for a packet index; `None` if the library refuses them.
    #[inline]
    pub(super) fn transform(
        &mut self,
        policy: &Policy,
        protocol: Protocol,
        index: u64,
    ) -> Option<&Transform> {
        let Some(power) = policy.key_derivation_rate else {
            return self.epochs.front().map(|(_, transform)| transform);
        };
        let epoch = index >> power;
        if let Some(n) = self.epochs.iter().position(|(known, _)| *known == epoch) {
            return self.epochs.get(n).map(|(_, transform)| transform);
        }
        if self.candidate.as_ref().is_none_or(|(known, _)| *known != epoch) {
            let derivation = self.derivation.as_ref()?;
            let derive = || SessionKeys::derive(policy, protocol, derivation, epoch);
            let keys = on_erased_stack(derive).ok()?;
            let transform = Transform::new(policy, protocol, &keys).ok()?;
            self.candidate = Some((epoch, transform));
        }
        self.candidate.as_ref().map(|(_, transform)| transform)
    }

    /// Keeps the session keys of the epoch that contains `index`, after a packet with this index
    /// was authenticated.
    fn confirm(&mut self, policy: &Policy, index: u64) {
        let Some(power) = policy.key_derivation_rate else { return };
        let epoch = index >> power;
        if let Some(confirmed) = self.candidate.take_if(|(known, _)| *known == epoch) {
            self.epochs.push_front(confirmed);
            // Keeps the keys of the newest epoch, and of the previous one for late packets.
            self.epochs.truncate(2);
        }
    }
}

impl Keys {
    pub(super) fn new(
        policy: &Policy,
        protocol: Protocol,
        master: &MasterKey,
    ) -> Result<Self, PolicyError> {
        policy.check()?;
        Ok(Self {
            policy: *policy,
            protocol,
            list: VecDeque::from([Key::new(policy, protocol, master)?]),
            known: vec![fingerprint(master)],
            generation: 0,
            events: VecDeque::new(),
        })
    }

    pub(super) fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Returns the session keys for a packet index under key `n`.
    #[inline]
    pub(super) fn transform(&mut self, n: usize, index: u64) -> Option<(&Policy, &Transform)> {
        let Self { policy, protocol, list, .. } = self;
        let transform = list.get_mut(n)?.transform(policy, *protocol, index)?;
        Some((policy, transform))
    }

    /// Returns the AES-GCM cipher and its salt, if there is exactly one key, without an identifier
    /// and not expired, and all packets share one set of session keys.
    #[inline]
    pub(super) fn only_gcm(&self) -> Option<(&Aead, &Salt)> {
        if self.list.len() != 1 || self.policy.key_derivation_rate.is_some() {
            return None;
        }
        let key = self.list.front().filter(|key| key.mki.is_empty() && !key.is_expired())?;
        match &key.epochs.front()?.1.body {
            Body::Gcm(cipher, salt) => Some((cipher, salt)),
            Body::Null | Body::CounterMode(..) => None,
        }
    }

    /// Returns whether both directions have ever used the same master key, so that a reflected
    /// packet of our own would be authentic.
    pub(super) fn shares_with(&self, other: &Self) -> bool {
        self.known.iter().any(|key| other.known.contains(key))
    }

    /// Returns how often the key in use has changed.
    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns the octets in the master key identifier of a packet.
    #[inline]
    pub(super) fn mki_len(&self) -> usize {
        self.list.front().map_or(0, |key| key.mki.len())
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// Makes `master` the key in use and drops all others.
    pub(super) fn replace(&mut self, master: &MasterKey) -> Result<(), PolicyError> {
        let key = self.prepare(master)?;
        self.known.push(fingerprint(master));
        self.list.clear();
        self.list.push_front(key);
        self.generation += 1;
        Ok(())
    }

    /// Also accepts packets under `master`. If there are already [`KEYS_MAX`] keys, the least
    /// recently used one is dropped, or the oldest one if none of the others was ever used.
    pub(super) fn add(&mut self, master: &MasterKey) -> Result<(), PolicyError> {
        let key = self.prepare(master)?;
        if self.list.iter().any(|other| other.mki == key.mki) && !key.mki.is_empty() {
            return Err(PolicyError::Mki);
        }
        if self.list.len() >= KEYS_MAX {
            // The used keys follow the key in use, the most recently used first.
            let was_used = |key: &Key| key.used > 0;
            let oldest = self.list.iter().skip(1).rposition(was_used).map_or(1, |n| n + 1);
            self.list.remove(oldest);
        }
        self.known.push(fingerprint(master));
        self.list.push_back(key);
        Ok(())
    }

    /// Checks a new key and derives its session keys. A key used before is refused, because its key
    /// stream would repeat and its lifetime would start again.
    fn prepare(&self, master: &MasterKey) -> Result<Key, PolicyError> {
        if master.mki().len() != self.mki_len() {
            return Err(PolicyError::Mki);
        }
        if self.known.contains(&fingerprint(master)) {
            return Err(PolicyError::SameKey);
        }
        Key::new(&self.policy, self.protocol, master)
    }

    /// Returns the key in use.
    #[inline]
    pub(super) fn current(&mut self) -> Option<&mut Key> {
        self.list.front_mut()
    }

    #[inline]
    pub(super) fn get(&mut self, n: usize) -> Option<&mut Key> {
        self.list.get_mut(n)
    }

    /// Returns the position of the key with the identifier `mki`.
    pub(super) fn find(&self, mki: &[u8]) -> Option<usize> {
        self.list.iter().position(|key| key.mki == mki)
    }

    /// Counts an authentic packet under key `n`, as [`count`](Self::count) does, and keeps the
    /// session keys of its epoch.
    #[inline]
    pub(super) fn accept(&mut self, n: usize, index: u64) {
        let Self { policy, list, .. } = self;
        if let Some(key) = list.get_mut(n) {
            key.confirm(policy, index);
        }
        self.count(n);
    }

    /// Counts a packet under key `n`, which becomes the key in use.
    #[inline]
    pub(super) fn count(&mut self, n: usize) {
        if n > 0
            && let Some(key) = self.list.remove(n)
        {
            self.list.push_front(key);
            self.generation += 1;
        }
        let Some(key) = self.list.front_mut() else { return };
        key.used += 1;
        let left = key.lifetime.saturating_sub(key.used);
        if left > key.lifetime / 16 {
            return;
        }
        let event = if left == 0 { KeyEvent::Expired } else { KeyEvent::Expiring { left } };
        let is_new = match key.last_event {
            None => true,
            Some(KeyEvent::Expiring { .. }) => left == 0,
            Some(KeyEvent::Expired) => false,
        };
        if is_new {
            key.last_event = Some(event);
            // There are at most two events for each key; the application may not be polling.
            self.events.truncate(2 * KEYS_MAX);
            self.events.push_back(event);
        }
    }

    pub(super) fn poll_event(&mut self) -> Option<KeyEvent> {
        self.events.pop_front()
    }

    /// Replaces the session keys derived from the master key.
    #[cfg(test)]
    pub(super) fn set_session_keys(&mut self, transform: Transform) {
        if let Some(key) = self.list.front_mut() {
            key.epochs = VecDeque::from([(0, transform)]);
        }
    }
}

fn fingerprint(master: &MasterKey) -> Fingerprint {
    let digest = on_erased_stack(|| hash(HashAlgorithm::Sha256, &[master.key_and_salt()]));
    digest.as_slice().first_chunk().copied().unwrap_or_default()
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key")
            .field("mki", &self.mki)
            .field("used", &self.used)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys")
            .field("policy", &self.policy)
            .field("list", &self.list)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::srtp::Suite;

    /// Returns the epochs whose session keys are kept.
    fn kept(keys: &Keys) -> Vec<u64> {
        keys.list[0].epochs.iter().map(|(epoch, _)| *epoch).collect()
    }

    #[test]
    fn only_authentic_packets_decide_which_session_keys_are_kept() {
        let policy = Policy { key_derivation_rate: Some(4), ..Policy::new(Suite::AeadAes128Gcm) };
        let master = MasterKey::new(policy.suite, &[7; 28]).unwrap();
        let mut keys = Keys::new(&policy, Protocol::Rtp, &master).unwrap();
        for index in [0, 16, 40] {
            keys.transform(0, index).unwrap();
            keys.accept(0, index);
        }
        assert_eq!(kept(&keys), [2, 1]);
        // These stand for forged packets of any epoch.
        for index in (0..100).map(|n| 1000 * n) {
            keys.transform(0, index).unwrap();
        }
        assert_eq!(kept(&keys), [2, 1]);
        keys.accept(0, 41);
        assert_eq!(kept(&keys), [2, 1]);
    }
}
