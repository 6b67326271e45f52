//! Receiving: converts SRTP packets to RTP packets.

use core::fmt;
use core::ops::Range;

use super::error::{PolicyError, UnprotectError};
use super::index::{INDEX_END, estimate, roll_over_counter};
use super::keys::{KeyEvent, Keys};
use super::layout::Layout;
use super::master::MasterKey;
use super::policy::Policy;
use super::sources::Sources;
use super::transform::{Protocol, Sealed};
use crate::ssrc::Ssrc;
use rushes_crypto::{TAG_LEN, tags_are_equal};

/// Number of consecutive refused packets of a source after which later rounds are tried, because
/// more than half a round may have been lost.
pub(super) const SEARCH_AFTER: u32 = 64;

/// Number of later rounds tried.
const SEARCH_ROUNDS: u64 = 16;

/// The receiving half of SRTP under one master key, or several during a change of the key.
///
/// Keeps a replay window and a roll-over counter for each source that sent an authentic packet.
pub struct Unprotector {
    pub(super) keys: Keys,
    pub(super) sources: Sources,
    scratch: Vec<u8>,
}

/// Positions of the parts of a protected packet.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    pub(super) layout: Layout,
    /// End of the ciphertext, including the tag of an AEAD cipher.
    pub(super) end: usize,
    pub(super) mki: Range<usize>,
    pub(super) tag: Range<usize>,
}

impl Unprotector {
    /// Creates a receiver under `key`.
    ///
    /// # Errors
    /// [`PolicyError`] if `policy` contradicts itself or `key` is of another suite.
    pub fn new(policy: &Policy, key: &MasterKey) -> Result<Self, PolicyError> {
        Ok(Self {
            keys: Keys::new(policy, Protocol::Rtp, key)?,
            sources: Sources::new(policy.sources_max, policy.window),
            scratch: Vec::new(),
        })
    }

    /// Also accepts packets under `key` from now on.
    ///
    /// Up to three earlier keys stay valid for late packets. The key of a packet is found by its
    /// master key identifier or, without one, by trying all keys. If packets have neither an
    /// identifier nor a tag, no key can be tried, and the new key replaces the old one at once.
    ///
    /// # Errors
    /// [`PolicyError`] if the key is of another suite, or its identifier has another length or is
    /// already known.
    pub fn add_master_key(&mut self, key: &MasterKey) -> Result<(), PolicyError> {
        if self.keys.policy().rtp_tag_len() == 0 && self.keys.mki_len() == 0 {
            return self.keys.replace(key);
        }
        self.keys.add(key)
    }

    /// Sets the round of the next packet of `ssrc`, for a receiver that joins late (RFC 3711
    /// section 3.3.1). Without this call, the first packet must be of the first two rounds.
    ///
    /// # Errors
    /// [`UnprotectError::TooManySources`]; [`UnprotectError::Replayed`] if a packet of that round
    /// or a later one was received, because it could be accepted again.
    pub fn set_roll_over_counter(&mut self, ssrc: Ssrc, roc: u32) -> Result<(), UnprotectError> {
        let source = self.sources.find_or_add(ssrc).map_err(|_| UnprotectError::TooManySources)?;
        if source.start_in_round(roc) { Ok(()) } else { Err(UnprotectError::Replayed) }
    }

    /// Authenticates and decrypts one SRTP packet in place (RFC 3711 section 3.3); returns the
    /// length of the RTP packet.
    ///
    /// # Errors
    /// [`UnprotectError`]; its index is not recorded, and the contents of `packet` are meaningless.
    #[inline]
    pub fn unprotect(&mut self, packet: &mut [u8]) -> Result<usize, UnprotectError> {
        match self.expected(packet) {
            Some(expected) => self.open_expected(expected, packet),
            None => self.unprotect_any(packet),
        }
    }

    fn unprotect_any(&mut self, packet: &mut [u8]) -> Result<usize, UnprotectError> {
        let parts = self.parts(packet).ok_or(UnprotectError::Malformed)?;
        if let Some(index) = self.only_index(&parts) {
            return match self.open(0, index, packet, &parts, false) {
                Ok(len) => self.accept(0, index, &parts, len),
                Err(error) => {
                    self.sources.note_failure(parts.layout.ssrc);
                    Err(error)
                }
            };
        }
        let keys = if parts.mki.is_empty() {
            0..self.keys.len()
        } else {
            let n = self.keys.find(&packet[parts.mki.clone()]);
            let n = n.ok_or(UnprotectError::UnknownKey)?;
            n..n + 1
        };
        let (indices, count) = self.indices(&parts.layout)?;
        let outcome = self.try_all(packet, &parts, keys, &indices[..count]);
        // After a long loss, packets may also seem to be older than the window.
        if matches!(outcome, Err(UnprotectError::Authentication | UnprotectError::Replayed)) {
            self.sources.note_failure(parts.layout.ssrc);
        }
        outcome
    }

    /// Returns the index of a packet under the only key, if no other index is possible.
    #[inline]
    fn only_index(&mut self, parts: &Parts) -> Option<u64> {
        if !parts.mki.is_empty() || self.keys.len() > 1 {
            return None;
        }
        let source = self.sources.find(parts.layout.ssrc)?;
        let index = source.index(parts.layout.sequence);
        let is_usual = source.failures % SEARCH_AFTER != SEARCH_AFTER - 1 && index < INDEX_END;
        let is_new = is_usual && source.window.check(index).is_ok();
        let is_fresh = is_new && self.keys.current().is_some_and(|key| !key.is_expired());
        is_fresh.then_some(index)
    }

    /// Returns whether packets carry tags, so that only holders of the key can send.
    pub fn authenticates(&self) -> bool {
        self.keys.policy().rtp_tag_len() > 0
    }

    /// Returns the next event of the key in use.
    pub fn poll_event(&mut self) -> Option<KeyEvent> {
        self.keys.poll_event()
    }

    /// Returns the positions of the parts of `packet`; `None` if it is malformed.
    #[inline]
    pub(super) fn parts(&self, packet: &[u8]) -> Option<Parts> {
        let layout = Layout::of(packet)?;
        let (policy, mki_len) = (self.keys.policy(), self.keys.mki_len());
        let len = packet.len();
        let (end, mki, tag) = if policy.suite.is_aead() {
            let end = len.checked_sub(mki_len)?;
            (layout.payload.checked_add(TAG_LEN)?, end..len, end..end)
        } else {
            let tag = len.checked_sub(policy.rtp_tag_len())?;
            let mki = tag.checked_sub(mki_len)?;
            (layout.payload, mki..tag, tag..len)
        };
        (end <= mki.start).then_some(Parts { layout, end: mki.start, mki, tag })
    }

    /// Returns the possible indices of a packet, the most likely first.
    fn indices(
        &mut self,
        layout: &Layout,
    ) -> Result<([u64; SEARCH_ROUNDS as usize + 1], usize), UnprotectError> {
        let mut indices = [INDEX_END; SEARCH_ROUNDS as usize + 1];
        let (first, rounds) = if let Some(source) = self.sources.find(layout.ssrc) {
            let lost = source.failures % SEARCH_AFTER == SEARCH_AFTER - 1;
            (source.index(layout.sequence), if lost { SEARCH_ROUNDS } else { 0 })
        } else if self.sources.is_full() {
            return Err(UnprotectError::TooManySources);
        } else if let Some(highest) = self.sources.past_highest(layout.ssrc) {
            (estimate(highest, layout.sequence), 1)
        } else {
            // The receiver may have missed only the end of the source's first round.
            (u64::from(layout.sequence), u64::from(layout.sequence < 0x8000))
        };
        for (round, index) in (0..=rounds).zip(&mut indices) {
            *index = first + (round << 16);
        }
        Ok((indices, rounds as usize + 1))
    }

    fn try_all(
        &mut self,
        packet: &mut [u8],
        parts: &Parts,
        keys: Range<usize>,
        indices: &[u64],
    ) -> Result<usize, UnprotectError> {
        let mut refusal = UnprotectError::Expired;
        let attempts = keys.len() * indices.len();
        for n in keys {
            if self.keys.get(n).is_none_or(|key| key.is_expired()) {
                continue;
            }
            for &index in indices.iter().filter(|index| **index < INDEX_END) {
                if self.sources.check(parts.layout.ssrc, index).is_err() {
                    if refusal == UnprotectError::Expired {
                        refusal = UnprotectError::Replayed;
                    }
                    continue;
                }
                refusal = match self.open(n, index, packet, parts, attempts > 1) {
                    Ok(len) => return self.accept(n, index, parts, len),
                    // The refusal of the most likely index is the one to return.
                    Err(_) if refusal == UnprotectError::Replayed => refusal,
                    Err(refusal) => refusal,
                };
            }
        }
        Err(refusal)
    }

    /// Records an authentic packet.
    #[inline]
    pub(super) fn accept(
        &mut self,
        n: usize,
        index: u64,
        parts: &Parts,
        len: usize,
    ) -> Result<usize, UnprotectError> {
        let source = self.sources.find_or_replace(parts.layout.ssrc);
        let source = source.map_err(|_| UnprotectError::TooManySources)?;
        source.window.note(index);
        source.failures = 0;
        self.keys.accept(n, index);
        Ok(len)
    }

    /// Authenticates and decrypts a packet as if it were under key `n` and had this index.
    fn open(
        &mut self,
        n: usize,
        index: u64,
        packet: &mut [u8],
        parts: &Parts,
        is_attempt: bool,
    ) -> Result<usize, UnprotectError> {
        let failed = UnprotectError::Authentication;
        let (policy, transform) = self.keys.transform(n, index).ok_or(failed)?;
        if let Some(mac) = &transform.mac {
            let roc = roll_over_counter(index).to_be_bytes();
            let tag = mac.sign(&packet[..parts.end], &roc);
            if !tags_are_equal(&tag[..parts.tag.len()], &packet[parts.tag.clone()]) {
                return Err(failed);
            }
        }
        // An AEAD cipher overwrites a packet even if it fails to open it.
        let is_attempt = is_attempt && policy.suite.is_aead();
        if is_attempt {
            self.scratch.clear();
            self.scratch.extend_from_slice(packet);
        }
        let outcome = self.decrypt(n, index, packet, parts);
        if is_attempt && outcome == Err(failed) {
            packet.copy_from_slice(&self.scratch);
        }
        outcome
    }

    /// Decrypts a packet. Its tag must already be verified, unless the cipher verifies it.
    #[inline]
    pub(super) fn decrypt(
        &mut self,
        n: usize,
        index: u64,
        packet: &mut [u8],
        parts: &Parts,
    ) -> Result<usize, UnprotectError> {
        let Self { keys, scratch, .. } = self;
        let (policy, transform) = keys.transform(n, index).ok_or(UnprotectError::Authentication)?;
        let sealed = Sealed { layout: &parts.layout, index, end: parts.end };
        transform.decrypt(policy, packet, sealed, scratch)
    }
}

impl fmt::Debug for Unprotector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unprotector").field("keys", &self.keys).finish_non_exhaustive()
    }
}
