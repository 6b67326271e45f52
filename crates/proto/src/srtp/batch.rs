//! Receiving many packets at a time: their tags are computed together.

use super::error::UnprotectError;
use super::index::{INDEX_END, roll_over_counter};
use super::transform::Protocol;
use super::unprotect::{Parts, Unprotector};
use rushes_crypto::{LANES_MAX, MAC_LEN, Mac, Message, tags_are_equal};

/// Number of packets that [`Unprotector::unprotect_batch`] processes together.
pub const BATCH_MAX: usize = LANES_MAX;

impl Unprotector {
    /// Unprotects `packets` in order, as [`unprotect`](Self::unprotect) does, and writes the
    /// results to `outcomes`. This is faster if consecutive packets use one key.
    pub fn unprotect_batch(
        &mut self,
        packets: &mut [&mut [u8]],
        outcomes: &mut [Result<usize, UnprotectError>],
    ) {
        let groups = packets.chunks_mut(BATCH_MAX).zip(outcomes.chunks_mut(BATCH_MAX));
        for (packets, outcomes) in groups {
            if self.hashes_together(packets.len()) {
                self.unprotect_group(packets, outcomes);
            } else {
                for (packet, outcome) in packets.iter_mut().zip(outcomes) {
                    *outcome = self.unprotect(packet);
                }
            }
        }
    }

    /// Returns the number of packets to pass at a time; above one only if that is faster.
    pub(crate) fn group_len(&self) -> usize {
        if self.keys.policy().suite.is_aead() { 1 } else { BATCH_MAX }
    }

    fn hashes_together(&mut self, packets: usize) -> bool {
        let policy = *self.keys.policy();
        if policy.key_derivation_rate.is_some() {
            return false;
        }
        let key = self.keys.current().filter(|key| !key.is_expired());
        let transform = key.and_then(|key| key.transform(&policy, Protocol::Rtp, 0));
        let mac = transform.and_then(|transform| transform.mac.as_ref());
        mac.and_then(Mac::worthwhile).is_some_and(|least| packets >= least)
    }

    fn unprotect_group(
        &mut self,
        packets: &mut [&mut [u8]],
        outcomes: &mut [Result<usize, UnprotectError>],
    ) {
        let mut likely_index = [const { None }; BATCH_MAX];
        for (packet, likely_index) in packets.iter().zip(&mut likely_index) {
            *likely_index = self.likely_index(packet);
        }
        let generation = self.keys.generation();
        let is_valid = self.verify(packets, &likely_index);
        for (n, (packet, outcome)) in packets.iter_mut().zip(outcomes).enumerate() {
            *outcome = match &likely_index[n] {
                // A duplicate or a change of the key earlier in the group invalidates the result.
                Some((index, parts))
                    if is_valid[n]
                        && generation == self.keys.generation()
                        && self.is_next(*index, parts) =>
                {
                    self.decrypt(0, *index, packet, parts)
                        .and_then(|len| self.accept(0, *index, parts, len))
                }
                // The packet is forged, uses another key, or is the first of its source.
                _ => self.unprotect(packet),
            };
        }
    }

    /// Returns the most likely index of a packet that seems to use the key in use; `None` if only
    /// [`unprotect`](Self::unprotect) can decide.
    fn likely_index(&mut self, packet: &[u8]) -> Option<(u64, Parts)> {
        let parts = self.parts(packet)?;
        if !parts.mki.is_empty() && self.keys.find(&packet[parts.mki.clone()]) != Some(0) {
            return None;
        }
        let source = self.sources.find(parts.layout.ssrc)?;
        let index = source.index(parts.layout.sequence);
        let is_new = index < INDEX_END && source.window.check(index).is_ok();
        is_new.then_some((index, parts))
    }

    /// Repeats the checks of [`likely_index`](Self::likely_index) whose result earlier packets of
    /// the group may have changed.
    fn is_next(&mut self, index: u64, parts: &Parts) -> bool {
        let expired = self.keys.current().is_none_or(|key| key.is_expired());
        let source = self.sources.find(parts.layout.ssrc);
        !expired && source.is_some_and(|source| source.window.check(index).is_ok())
    }

    /// Returns which packets have a valid tag under the key in use.
    fn verify(
        &mut self,
        packets: &[&mut [u8]],
        likely_index: &[Option<(u64, Parts)>; BATCH_MAX],
    ) -> [bool; BATCH_MAX] {
        let mut is_valid = [false; BATCH_MAX];
        let mut messages = [Message { body: &[], suffix: [0; 4] }; BATCH_MAX];
        let mut positions = [0; BATCH_MAX];
        let mut count = 0;
        for (n, (packet, likely_index)) in packets.iter().zip(likely_index).enumerate() {
            if let Some((index, parts)) = likely_index {
                let suffix = roll_over_counter(*index).to_be_bytes();
                messages[count] = Message { body: &packet[..parts.end], suffix };
                positions[count] = n;
                count += 1;
            }
        }
        let policy = *self.keys.policy();
        let transform =
            self.keys.current().and_then(|key| key.transform(&policy, Protocol::Rtp, 0));
        let Some(mac) = transform.and_then(|transform| transform.mac.as_ref()) else {
            return is_valid;
        };
        let mut tags = [[0; MAC_LEN]; BATCH_MAX];
        mac.sign_many(&messages[..count], &mut tags);
        for (&n, tag) in positions[..count].iter().zip(&tags) {
            if let Some((_, parts)) = &likely_index[n] {
                let own = &packets[n][parts.tag.clone()];
                is_valid[n] = tags_are_equal(&tag[..own.len()], own);
            }
        }
        is_valid
    }
}
