//! Sending a slab at a time: each payload is encrypted from its frame into its datagram, and the
//! tags of many packets are computed together.

use super::error::ProtectError;
use super::index::roll_over_counter;
use super::layout::{FIXED_LEN, Layout};
use super::protect::Protector;
use super::transform::{Body, Protocol, Sealed};
use crate::ssrc::Ssrc;
use rushes_crypto::{Aead, BLOCK_LEN, LANES_MAX, MAC_LEN, Message, NONCE_LEN, TAG_LEN};

/// A packet in the slab that is encrypted and still lacks its tag.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    /// Its offset in the slab.
    at: usize,
    /// Octets before the master key identifier and the tag.
    len: usize,
    roc: u32,
}

impl Protector {
    /// Protects a packet in place, at offset `at` of the slab.
    ///
    /// `place` is [`overhead`](Self::overhead) octets longer than the packet. Its first `written`
    /// octets hold a header of 12 octets and the beginning of the payload; `source` is the rest.
    /// The packet may lack its tag until [`finish`](Self::finish).
    #[inline]
    pub(crate) fn protect_in_place(
        &mut self,
        at: usize,
        place: &mut [u8],
        written: usize,
        source: &[u8],
    ) -> Result<(), ProtectError> {
        if let Some(outcome) = self.protect_expected(place, written, source) {
            return outcome;
        }
        let head = place.first_chunk::<FIXED_LEN>().ok_or(ProtectError::Malformed)?;
        let ssrc = Ssrc(u32::from_be_bytes([head[8], head[9], head[10], head[11]]));
        let index = self.next_index(ssrc, u16::from_be_bytes([head[2], head[3]]))?;
        let refused = ProtectError::Refused;
        let policy = *self.keys.policy();
        let key = self.keys.current().ok_or(ProtectError::Expired)?;
        let mki_len = key.mki.len();
        let len = written + source.len();
        let transform = key.transform(&policy, Protocol::Rtp, index).ok_or(refused)?;
        match &transform.body {
            Body::Null => place[written..len].copy_from_slice(source),
            Body::CounterMode(cipher, salt) => {
                let start = salt.counter(ssrc, index);
                let payload = &mut place[FIXED_LEN..len];
                let written = written - FIXED_LEN;
                cipher.apply_from(start, payload, written, source).map_err(|_| refused)?;
            }
            Body::Gcm(cipher, salt) => {
                seal(cipher, salt.nonce(ssrc, index), place, written, source)?;
            }
        }
        let roc = roll_over_counter(index);
        let mki_at = if policy.suite.is_aead() { len + TAG_LEN } else { len };
        let mut is_pending = false;
        if let Some(mac) = &transform.mac {
            // With a key derivation rate, session keys may be dropped before the group is complete.
            is_pending = policy.key_derivation_rate.is_none();
            if !is_pending {
                let tag = mac.sign(&place[..len], &roc.to_be_bytes());
                let (tag_at, tag_len) = (mki_at + mki_len, policy.rtp_tag_len());
                place[tag_at..tag_at + tag_len].copy_from_slice(&tag[..tag_len]);
            }
        }
        place[mki_at..mki_at + mki_len].copy_from_slice(&key.mki);
        if is_pending {
            self.pending.push(Pending { at, len, roc });
        }
        self.keys.count(0);
        Ok(())
    }

    /// Returns whether to call [`finish`](Self::finish) before the next packet, while the packets
    /// are still in the cache.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.pending.len() >= LANES_MAX
    }

    /// Decrypts a protected packet in place and returns the length of the RTP packet.
    ///
    /// The packet must be under the key in use and at most 2¹⁵ packets old.
    pub(crate) fn decrypt_own(&mut self, packet: &mut [u8]) -> Option<usize> {
        let layout = Layout::of(packet)?;
        let trailer = self.overhead();
        let Self { keys, sources, scratch, .. } = self;
        let policy = *keys.policy();
        let rtp_len = packet.len().checked_sub(trailer)?;
        let end = if policy.suite.is_aead() { rtp_len + TAG_LEN } else { rtp_len };
        let index = sources.get(layout.ssrc)?.index(layout.sequence);
        let key = keys.current()?;
        let transform = key.transform(&policy, Protocol::Rtp, index)?;
        let sealed = Sealed { layout: &layout, index, end };
        (layout.payload <= rtp_len).then_some(())?;
        transform.decrypt(&policy, packet, sealed, scratch).ok()
    }

    /// Appends the missing tags to the packets in `slab`.
    #[inline]
    pub(crate) fn finish(&mut self, slab: &mut [u8]) {
        let Self { keys, pending, .. } = self;
        let tag_len = keys.policy().rtp_tag_len();
        let mki_len = keys.mki_len();
        let policy = *keys.policy();
        let mut tags = [[0; MAC_LEN]; LANES_MAX];
        while !pending.is_empty() {
            let count = pending.len().min(LANES_MAX);
            let group = &pending[..count];
            let mut messages = [Message { body: &[], suffix: [0; 4] }; LANES_MAX];
            for (message, packet) in messages.iter_mut().zip(group) {
                let body = &slab[packet.at..packet.at + packet.len];
                *message = Message { body, suffix: packet.roc.to_be_bytes() };
            }
            let key = keys.current();
            let mac = key.and_then(|key| key.transform(&policy, Protocol::Rtp, 0)?.mac.as_ref());
            if let Some(mac) = mac {
                mac.sign_many(&messages[..count], &mut tags);
            }
            for (packet, tag) in group.iter().zip(&tags) {
                let at = packet.at + packet.len + mki_len;
                slab[at..at + tag_len].copy_from_slice(&tag[..tag_len]);
            }
            pending.drain(..count);
        }
    }
}

/// Encrypts a packet in place and appends the tag: `place` holds its first `written` octets,
/// `source` the rest.
#[inline]
pub(super) fn seal(
    cipher: &Aead,
    nonce: [u8; NONCE_LEN],
    place: &mut [u8],
    written: usize,
    source: &[u8],
) -> Result<(), ProtectError> {
    let (header, payload) = place.split_at_mut(FIXED_LEN);
    let written = written - FIXED_LEN;
    // The cipher is slow when it continues in the middle of a block.
    let missing = written.next_multiple_of(BLOCK_LEN) - written;
    let (missing, source) = source.split_at(missing.min(source.len()));
    let (first, rest) = payload.split_at_mut(written + missing.len());
    first[written..].copy_from_slice(missing);
    let out = &mut rest[..source.len() + TAG_LEN];
    cipher.seal(nonce, header, first, source, out).map_err(|_| ProtectError::Refused)
}
