//! SRTCP: protecting and unprotecting reports (RFC 3711 section 3.4).

use core::fmt;
use core::ops::Range;

use super::error::{PolicyError, ProtectError, UnprotectError};
use super::keys::{KeyEvent, Keys};
use super::master::MasterKey;
use super::policy::Policy;
use super::sources::Sources;
use super::transform::{Body, Protocol};
use crate::ssrc::Ssrc;
use rushes_crypto::{TAG_LEN, tags_are_equal};

/// Octets in the E bit and the SRTCP index.
pub(super) const INDEX_LEN: usize = 4;

/// Octets that stay clear: the header of the first packet and the SSRC of its sender.
const CLEAR_LEN: usize = 8;

/// The E bit: the packet is encrypted.
const ENCRYPTED: u32 = 1 << 31;

/// The sending half of SRTCP under one master key at a time.
pub struct SrtcpProtector {
    keys: Keys,
    /// The next index of each source.
    next: Vec<Next>,
}

/// The next index of one source.
struct Next {
    ssrc: Ssrc,
    index: u32,
    /// Whether the source has sent a packet since the last change of the key.
    is_live: bool,
}

impl SrtcpProtector {
    /// Creates a sender under `key`.
    ///
    /// # Errors
    /// [`PolicyError`] if `policy` contradicts itself or `key` is of another suite.
    pub fn new(policy: &Policy, key: &MasterKey) -> Result<Self, PolicyError> {
        Ok(Self { keys: Keys::new(policy, Protocol::Rtcp, key)?, next: Vec::new() })
    }

    /// Returns the number of octets by which each packet grows.
    pub fn overhead(&self) -> usize {
        self.keys.policy().rtcp_overhead(self.keys.mki_len())
    }

    /// Switches to another master key; indices continue.
    ///
    /// # Errors
    /// [`PolicyError`] if the key is of another suite, or its identifier of another length.
    pub fn set_master_key(&mut self, key: &MasterKey) -> Result<(), PolicyError> {
        self.keys.replace(key)?;
        // Idle sources are dropped: under another key their indices may be used again.
        self.next.retain(|next| next.is_live);
        let room = (self.keys.policy().sources_max / 2).max(1);
        self.next.drain(..self.next.len().saturating_sub(room));
        self.next.iter_mut().for_each(|next| next.is_live = false);
        Ok(())
    }

    /// Sets the index of the next packet of `ssrc`, below 2³¹; otherwise, indices begin at 0.
    ///
    /// # Errors
    /// [`ProtectError::TooManySources`]; [`ProtectError::Repeated`] if the index may have been
    /// used, because the key stream could repeat.
    pub fn set_index(&mut self, ssrc: Ssrc, index: u32) -> Result<(), ProtectError> {
        let next = self.next_index(ssrc)?;
        if index < *next {
            return Err(ProtectError::Repeated);
        }
        *next = index;
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn set_session_keys(&mut self, transform: super::transform::Transform) {
        self.keys.set_session_keys(transform);
    }

    fn next_index(&mut self, ssrc: Ssrc) -> Result<&mut u32, ProtectError> {
        let n = match self.next.iter().position(|next| next.ssrc == ssrc) {
            Some(n) => n,
            None if self.next.len() >= self.keys.policy().sources_max => {
                return Err(ProtectError::TooManySources);
            }
            None => {
                self.next.push(Next { ssrc, index: 0, is_live: true });
                self.next.len() - 1
            }
        };
        let next = self.next.get_mut(n).ok_or(ProtectError::TooManySources)?;
        next.is_live = true;
        Ok(&mut next.index)
    }

    /// Converts the RTCP datagram `packet` to an SRTCP one, longer by [`overhead`](Self::overhead).
    ///
    /// # Errors
    /// [`ProtectError`]; the contents of `packet` must then not be sent.
    pub fn protect(&mut self, packet: &mut Vec<u8>) -> Result<(), ProtectError> {
        let ssrc = sender(packet).ok_or(ProtectError::Malformed)?;
        if packet[0] >> 6 != 2 {
            return Err(ProtectError::Malformed);
        }
        if self.keys.current().is_none_or(|key| key.is_expired()) {
            return Err(ProtectError::Expired);
        }
        let next = self.next_index(ssrc)?;
        let index = *next;
        if index >= ENCRYPTED {
            return Err(ProtectError::Expired);
        }
        *next += 1;
        let policy = *self.keys.policy();
        let key = self.keys.current().ok_or(ProtectError::Expired)?;
        let refused = ProtectError::Refused;
        let packet_index = u64::from(index);
        let transform = key.transform(&policy, Protocol::Rtcp, packet_index).ok_or(refused)?;
        let is_encrypted = policy.encrypt_rtcp && !matches!(transform.body, Body::Null);
        let word = (index | if is_encrypted { ENCRYPTED } else { 0 }).to_be_bytes();
        match &transform.body {
            Body::Null => packet.extend_from_slice(&word),
            Body::CounterMode(cipher, salt) => {
                let start = salt.counter(ssrc, packet_index);
                cipher.apply(start, &mut packet[CLEAR_LEN..]).map_err(|_| refused)?;
                packet.extend_from_slice(&word);
            }
            Body::Gcm(cipher, salt) => {
                let nonce = salt.nonce(ssrc, packet_index);
                let mut tag = [0; TAG_LEN];
                if is_encrypted {
                    let (clear, payload) = packet.split_at_mut(CLEAR_LEN);
                    let associated = associated(clear, word);
                    cipher.seal(nonce, &associated, payload, &[], &mut tag).map_err(|_| refused)?;
                    packet.extend_from_slice(&tag);
                } else {
                    let len = packet.len();
                    packet.extend_from_slice(&word);
                    cipher.seal(nonce, packet, &mut [], &[], &mut tag).map_err(|_| refused)?;
                    packet.truncate(len);
                    packet.extend_from_slice(&tag);
                }
                packet.extend_from_slice(&word);
            }
        }
        let tag = transform.mac.as_ref().map(|mac| mac.sign(packet, &[]));
        packet.extend_from_slice(&key.mki);
        if let Some(tag) = tag {
            packet.extend_from_slice(&tag[..policy.suite.rtcp_tag_len()]);
        }
        self.keys.count(0);
        Ok(())
    }

    /// Returns whether this protector and `receiver` have ever used the same master key, so that a
    /// reflected report of our own would be authentic.
    pub fn shares_key_with(&self, receiver: &SrtcpUnprotector) -> bool {
        self.keys.shares_with(&receiver.keys)
    }

    /// Returns the next event of the key in use.
    pub fn poll_event(&mut self) -> Option<KeyEvent> {
        self.keys.poll_event()
    }
}

/// The receiving half of SRTCP under one master key, or several during a change of the key.
pub struct SrtcpUnprotector {
    keys: Keys,
    sources: Sources,
    scratch: Vec<u8>,
}

/// Positions of the parts of an SRTCP packet.
struct Parts {
    /// End of the RTCP packets or of their ciphertext.
    end: usize,
    tag: Range<usize>,
    word: [u8; INDEX_LEN],
    mki: Range<usize>,
}

impl Parts {
    fn of(packet: &[u8], policy: &Policy, mki_len: usize) -> Option<Self> {
        let tag_len = policy.suite.rtcp_tag_len();
        let len = packet.len();
        let (end, tag, word, mki) = if policy.suite.is_aead() {
            let mki = len.checked_sub(mki_len)?;
            let word = mki.checked_sub(INDEX_LEN)?;
            let tag = word.checked_sub(tag_len)?;
            (tag, tag..word, word, mki..len)
        } else {
            let tag = len.checked_sub(tag_len)?;
            let mki = tag.checked_sub(mki_len)?;
            let word = mki.checked_sub(INDEX_LEN)?;
            (word, tag..len, word, mki..tag)
        };
        let word = *packet.get(word..)?.first_chunk()?;
        (end >= CLEAR_LEN).then_some(Self { end, tag, word, mki })
    }

    fn index(&self) -> u32 {
        u32::from_be_bytes(self.word) & !ENCRYPTED
    }

    fn is_encrypted(&self) -> bool {
        u32::from_be_bytes(self.word) & ENCRYPTED != 0
    }
}

impl SrtcpUnprotector {
    /// Creates a receiver of packets protected under `key`.
    ///
    /// # Errors
    /// [`PolicyError`] if `policy` contradicts itself or `key` is of another suite.
    pub fn new(policy: &Policy, key: &MasterKey) -> Result<Self, PolicyError> {
        Ok(Self {
            keys: Keys::new(policy, Protocol::Rtcp, key)?,
            sources: Sources::new(policy.sources_max, policy.window),
            scratch: Vec::new(),
        })
    }

    /// Also accepts packets under `key` from now on; earlier keys stay valid for late packets.
    ///
    /// # Errors
    /// [`PolicyError`] if the key is of another suite, or its identifier has another length or is
    /// already known.
    pub fn add_master_key(&mut self, key: &MasterKey) -> Result<(), PolicyError> {
        self.keys.add(key)
    }

    /// Authenticates and decrypts one SRTCP packet in place; returns the length of the RTCP
    /// packets.
    ///
    /// # Errors
    /// [`UnprotectError`]; its index is not recorded, and the contents of `packet` are meaningless.
    pub fn unprotect(&mut self, packet: &mut [u8]) -> Result<usize, UnprotectError> {
        let policy = *self.keys.policy();
        let malformed = UnprotectError::Malformed;
        let parts = Parts::of(packet, &policy, self.keys.mki_len()).ok_or(malformed)?;
        let ssrc = sender(packet).ok_or(malformed)?;
        if packet[0] >> 6 != 2 {
            return Err(malformed);
        }
        let keys = if parts.mki.is_empty() {
            0..self.keys.len()
        } else {
            let n = self.keys.find(&packet[parts.mki.clone()]);
            let n = n.ok_or(UnprotectError::UnknownKey)?;
            n..n + 1
        };
        let index = u64::from(parts.index());
        self.sources.check(ssrc, index).map_err(|_| UnprotectError::Replayed)?;
        if self.sources.get(ssrc).is_none() && self.sources.is_full() {
            return Err(UnprotectError::TooManySources);
        }
        let is_attempt = keys.len() > 1 && policy.suite.is_aead();
        let mut refusal = UnprotectError::Expired;
        for n in keys {
            if self.keys.get(n).is_none_or(|key| key.is_expired()) {
                continue;
            }
            if is_attempt {
                self.scratch.clear();
                self.scratch.extend_from_slice(packet);
            }
            match self.open(n, ssrc, packet, &parts) {
                Ok(()) => {
                    let source = self.sources.find_or_replace(ssrc);
                    let source = source.map_err(|_| UnprotectError::TooManySources)?;
                    source.window.note(index);
                    self.keys.accept(n, index);
                    return Ok(parts.end);
                }
                Err(error) => refusal = error,
            }
            if is_attempt {
                packet.copy_from_slice(&self.scratch);
            }
        }
        Err(refusal)
    }

    /// Returns the next event of the key in use.
    pub fn poll_event(&mut self) -> Option<KeyEvent> {
        self.keys.poll_event()
    }

    #[cfg(test)]
    pub(super) fn set_keys(&mut self, keys: Keys) {
        self.keys = keys;
    }

    fn open(
        &mut self,
        n: usize,
        ssrc: Ssrc,
        packet: &mut [u8],
        parts: &Parts,
    ) -> Result<(), UnprotectError> {
        let policy = *self.keys.policy();
        let failed = UnprotectError::Authentication;
        let key = self.keys.get(n).ok_or(failed)?;
        let index = u64::from(parts.index());
        let transform = key.transform(&policy, Protocol::Rtcp, index).ok_or(failed)?;
        if let Some(mac) = &transform.mac {
            let tag = mac.sign(&packet[..parts.end + INDEX_LEN], &[]);
            if !tags_are_equal(&tag[..parts.tag.len()], &packet[parts.tag.clone()]) {
                return Err(failed);
            }
        }
        match &transform.body {
            Body::CounterMode(cipher, salt) if parts.is_encrypted() => {
                let start = salt.counter(ssrc, index);
                cipher.apply(start, &mut packet[CLEAR_LEN..parts.end]).map_err(|_| failed)
            }
            // A clear report is accepted even if our own are encrypted, because it is authentic.
            Body::Null | Body::CounterMode(..) if !parts.is_encrypted() => Ok(()),
            // The report is encrypted, although the suite or the policy excludes encryption.
            Body::Null | Body::CounterMode(..) => Err(UnprotectError::Malformed),
            Body::Gcm(cipher, salt) => {
                let nonce = salt.nonce(ssrc, index);
                if parts.is_encrypted() {
                    let (clear, message) = packet[..parts.tag.end].split_at_mut(CLEAR_LEN);
                    let associated = associated(clear, parts.word);
                    return cipher.open(nonce, &associated, message).map_err(|_| failed);
                }
                let mut tag = [0; TAG_LEN];
                tag.copy_from_slice(&packet[parts.tag.clone()]);
                // The associated data must be contiguous, so the index overwrites the tag.
                packet[parts.tag.start..][..INDEX_LEN].copy_from_slice(&parts.word);
                let associated = &packet[..parts.tag.start + INDEX_LEN];
                cipher.open(nonce, associated, &mut tag).map_err(|_| failed)
            }
        }
    }
}

/// Returns the associated data of an encrypted packet (RFC 7714 section 9.2).
fn associated(clear: &[u8], word: [u8; INDEX_LEN]) -> [u8; CLEAR_LEN + INDEX_LEN] {
    let mut associated = [0; CLEAR_LEN + INDEX_LEN];
    associated[..CLEAR_LEN].copy_from_slice(clear);
    associated[CLEAR_LEN..].copy_from_slice(&word);
    associated
}

/// Returns the source that sent an RTCP datagram.
fn sender(packet: &[u8]) -> Option<Ssrc> {
    let &[_, _, _, _, a, b, c, d] = packet.first_chunk::<CLEAR_LEN>()?;
    Some(Ssrc(u32::from_be_bytes([a, b, c, d])))
}

impl fmt::Debug for SrtcpProtector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SrtcpProtector").field("keys", &self.keys).finish_non_exhaustive()
    }
}

impl fmt::Debug for SrtcpUnprotector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SrtcpUnprotector").field("keys", &self.keys).finish_non_exhaustive()
    }
}
