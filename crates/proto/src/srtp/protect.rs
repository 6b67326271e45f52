//! Sending: converts RTP packets to SRTP packets.

use core::fmt;

use super::cryptex;
use super::error::{PolicyError, ProtectError};
use super::index::{INDEX_END, roll_over_counter};
use super::keys::{KeyEvent, Keys};
use super::layout::Layout;
use super::master::MasterKey;
use super::policy::Policy;
use super::slab::Pending;
use super::sources::{Source, Sources};
use super::transform::{Body, Protocol};
use crate::ssrc::Ssrc;
use rushes_crypto::TAG_LEN;

/// The sending half of SRTP under one master key at a time.
///
/// Each source has its own packet index. The key may change between any two packets.
pub struct Protector {
    pub(super) keys: Keys,
    pub(super) sources: Sources,
    /// Packets in the slab that lack their tags.
    pub(super) pending: Vec<Pending>,
    pub(super) scratch: Vec<u8>,
}

impl Protector {
    /// Creates a sender under `key`.
    ///
    /// # Errors
    /// [`PolicyError`] if `policy` contradicts itself or `key` is of another suite.
    pub fn new(policy: &Policy, key: &MasterKey) -> Result<Self, PolicyError> {
        Ok(Self {
            keys: Keys::new(policy, Protocol::Rtp, key)?,
            sources: Sources::new(policy.sources_max, policy.window),
            pending: Vec::new(),
            scratch: Vec::new(),
        })
    }

    /// Returns the number of octets by which each packet grows.
    pub fn overhead(&self) -> usize {
        self.keys.policy().overhead(self.keys.mki_len())
    }

    /// Switches to another master key; packet indices continue.
    ///
    /// # Errors
    /// [`PolicyError`] if the key is of another suite, or its identifier of another length.
    pub fn set_master_key(&mut self, key: &MasterKey) -> Result<(), PolicyError> {
        self.keys.replace(key)?;
        self.sources.note_key_change();
        Ok(())
    }

    /// Returns whether packets of `ssrc` can be protected: it is known, or there is room for it.
    pub fn has_room(&self, ssrc: Ssrc) -> bool {
        self.sources.get(ssrc).is_some() || !self.sources.is_at_max()
    }

    /// Sets the round of the first packet of `ssrc` (default: 0).
    ///
    /// # Errors
    /// [`ProtectError::TooManySources`]; [`ProtectError::Repeated`] if a packet of that round or a
    /// later one has been protected, because the key stream could repeat.
    pub fn set_roll_over_counter(&mut self, ssrc: Ssrc, roc: u32) -> Result<(), ProtectError> {
        let source = self.sources.find_or_add(ssrc).map_err(|_| ProtectError::TooManySources)?;
        if source.start_in_round(roc) { Ok(()) } else { Err(ProtectError::Repeated) }
    }

    /// Returns the roll-over counter of the newest packet of `ssrc`, needed by late receivers.
    pub fn roll_over_counter(&self, ssrc: Ssrc) -> Option<u32> {
        self.sources.get(ssrc)?.window.highest().map(roll_over_counter)
    }

    /// Turns the RTP packet `packet` into an SRTP packet, longer by [`overhead`](Self::overhead)
    /// (RFC 3711 section 3.3).
    ///
    /// # Errors
    /// [`ProtectError`]; the contents of `packet` must then not be sent.
    pub fn protect(&mut self, packet: &mut Vec<u8>) -> Result<(), ProtectError> {
        let layout = Layout::of(packet).ok_or(ProtectError::Malformed)?;
        // A receiver would decrypt the extension, although it was never encrypted.
        if cryptex::is_encrypted(&layout) {
            return Err(ProtectError::Malformed);
        }
        let (_, index) = self.unused_index(layout.ssrc, layout.sequence)?;
        let Self { keys, scratch, sources, .. } = self;
        let policy = *keys.policy();
        let key = keys.current().ok_or(ProtectError::Expired)?;
        let refused = ProtectError::Refused;
        let transform = key.transform(&policy, Protocol::Rtp, index).ok_or(refused)?;
        let hidden = policy.cryptex
            && !matches!(transform.body, Body::Null)
            && cryptex::mark(packet, &layout);
        let from = if hidden {
            cryptex::rearrange(packet, layout.sources_end);
            cryptex::ENCRYPTED_FROM
        } else {
            if let Some((profile, data)) = &layout.extension {
                let data = (*profile, &mut packet[data.clone()]);
                if !transform.apply_to_header(&policy, layout.ssrc, index, data, scratch) {
                    return Err(ProtectError::Malformed);
                }
            }
            layout.payload
        };
        // The number is used up only here, so that a malformed packet does not use it.
        let source = sources.find_or_add(layout.ssrc).map_err(|_| ProtectError::TooManySources)?;
        source.window.note(index);
        let len = packet.len();
        match &transform.body {
            Body::Null => {}
            Body::CounterMode(cipher, salt) => {
                let start = salt.counter(layout.ssrc, index);
                cipher.apply(start, &mut packet[from..]).map_err(|_| refused)?;
            }
            Body::Gcm(cipher, salt) => {
                packet.resize(len + TAG_LEN, 0);
                let (associated, rest) = packet.split_at_mut(from);
                let (payload, tag) = rest.split_at_mut(len - from);
                let nonce = salt.nonce(layout.ssrc, index);
                cipher.seal(nonce, associated, payload, &[], tag).map_err(|_| refused)?;
            }
        }
        if hidden {
            cryptex::restore(packet, layout.sources_end);
        }
        let tag = transform
            .mac
            .as_ref()
            .map(|mac| mac.sign(packet, &roll_over_counter(index).to_be_bytes()));
        packet.extend_from_slice(&key.mki);
        if let Some(tag) = tag {
            packet.extend_from_slice(&tag[..policy.rtp_tag_len()]);
        }
        keys.count(0);
        Ok(())
    }

    /// Returns the next event of the key in use.
    pub fn poll_event(&mut self) -> Option<KeyEvent> {
        self.keys.poll_event()
    }

    /// Returns whether the lifetime of the key in use is used up.
    pub fn is_expired(&mut self) -> bool {
        self.keys.current().is_none_or(|key| key.is_expired())
    }

    /// Returns the index of the packet to be sent and marks it as used.
    #[inline]
    pub(super) fn next_index(&mut self, ssrc: Ssrc, sequence: u16) -> Result<u64, ProtectError> {
        let (source, index) = self.unused_index(ssrc, sequence)?;
        source.window.note(index);
        Ok(index)
    }

    /// Returns the index of the packet to be sent, and its source.
    #[inline]
    fn unused_index(
        &mut self,
        ssrc: Ssrc,
        sequence: u16,
    ) -> Result<(&mut Source, u64), ProtectError> {
        if self.is_expired() {
            return Err(ProtectError::Expired);
        }
        let source = self.sources.find_or_add(ssrc).map_err(|_| ProtectError::TooManySources)?;
        let index = source.index(sequence);
        if index >= INDEX_END {
            return Err(ProtectError::Expired);
        }
        source.window.check(index).map_err(|_| ProtectError::Repeated)?;
        Ok((source, index))
    }
}

impl fmt::Debug for Protector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Protector").field("keys", &self.keys).finish_non_exhaustive()
    }
}
