//! Fast path for ordinary AES-GCM packets, both directions: the same source as the last packet, a
//! known round, a header of 12 octets, and a single key without an identifier.
//!
//! It does the same as `unprotect.rs` and `slab.rs`, but checks each condition only once.

use super::error::{ProtectError, UnprotectError};
use super::index::INDEX_END;
use super::layout::FIXED_LEN;
use super::protect::Protector;
use super::slab::seal;
use super::unprotect::{SEARCH_AFTER, Unprotector};
use crate::ssrc::Ssrc;
use rushes_crypto::TAG_LEN;

/// The index of an ordinary packet, not yet authenticated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    ssrc: Ssrc,
    index: u64,
    payload_len: usize,
}

impl Expected {
    /// Returns the length of its decrypted payload in octets.
    #[inline]
    pub(crate) fn payload_len(self) -> usize {
        self.payload_len
    }
}

impl Unprotector {
    /// Returns the likely index of `packet`, before it is authenticated; `None` if it is not
    /// ordinary.
    #[inline]
    pub(crate) fn expected(&mut self, packet: &[u8]) -> Option<Expected> {
        let head = packet.first_chunk::<FIXED_LEN>()?;
        // The packet is of version 2, without extension and contributing sources; it may be padded.
        if head[0] & 0xdf != 0x80 {
            return None;
        }
        let payload_len = packet.len().checked_sub(FIXED_LEN + TAG_LEN)?;
        let ssrc = Ssrc(u32::from_be_bytes([head[8], head[9], head[10], head[11]]));
        let source = self.sources.recent(ssrc)?;
        source.window.highest()?;
        let index = source.index(u16::from_be_bytes([head[2], head[3]]));
        let is_usual = source.failures % SEARCH_AFTER != SEARCH_AFTER - 1 && index < INDEX_END;
        let is_new = is_usual && source.window.check(index).is_ok();
        (is_new && self.keys.only_gcm().is_some()).then_some(Expected { ssrc, index, payload_len })
    }

    /// Authenticates and decrypts an expected packet in place; returns the RTP packet's length.
    #[inline]
    pub(super) fn open_expected(
        &mut self,
        expected: Expected,
        packet: &mut [u8],
    ) -> Result<usize, UnprotectError> {
        let Expected { ssrc, index, .. } = expected;
        let failed = UnprotectError::Authentication;
        let (cipher, salt) = self.keys.only_gcm().ok_or(failed)?;
        let (header, message) = packet.split_at_mut_checked(FIXED_LEN).ok_or(failed)?;
        let is_authentic = cipher.open(salt.nonce(ssrc, index), header, message).is_ok();
        self.note(expected, is_authentic)?;
        Ok(packet.len() - TAG_LEN)
    }

    /// Authenticates an expected packet and decrypts its payload into `place`, which must have the
    /// length of the payload.
    ///
    /// # Errors
    /// [`UnprotectError::Authentication`]; the contents of `place` are then meaningless.
    #[inline]
    pub(crate) fn open_expected_into(
        &mut self,
        expected: Expected,
        packet: &[u8],
        place: &mut [u8],
    ) -> Result<(), UnprotectError> {
        let Expected { ssrc, index, .. } = expected;
        let failed = UnprotectError::Authentication;
        let (cipher, salt) = self.keys.only_gcm().ok_or(failed)?;
        let (header, message) = packet.split_at_checked(FIXED_LEN).ok_or(failed)?;
        let is_authentic =
            cipher.open_into(salt.nonce(ssrc, index), header, message, place).is_ok();
        self.note(expected, is_authentic)
    }

    #[inline]
    fn note(&mut self, expected: Expected, is_authentic: bool) -> Result<(), UnprotectError> {
        if !is_authentic {
            self.sources.note_failure(expected.ssrc);
            return Err(UnprotectError::Authentication);
        }
        self.sources.note_recent(expected.index);
        self.keys.count(0);
        Ok(())
    }
}

impl Protector {
    /// Protects an ordinary packet in place, as `protect_in_place` does; returns `None` and changes
    /// nothing for any other packet.
    #[inline]
    pub(super) fn protect_expected(
        &mut self,
        place: &mut [u8],
        written: usize,
        source: &[u8],
    ) -> Option<Result<(), ProtectError>> {
        let head = place.first_chunk::<FIXED_LEN>()?;
        let ssrc = Ssrc(u32::from_be_bytes([head[8], head[9], head[10], head[11]]));
        let (cipher, salt) = self.keys.only_gcm()?;
        let known = self.sources.recent(ssrc)?;
        known.window.highest()?;
        let index = known.index(u16::from_be_bytes([head[2], head[3]]));
        if index >= INDEX_END || known.window.check(index).is_err() {
            return None;
        }
        // The index counts as used even if sealing fails.
        self.sources.note_recent(index);
        let outcome = seal(cipher, salt.nonce(ssrc, index), place, written, source);
        if outcome.is_ok() {
            self.keys.count(0);
        }
        Some(outcome)
    }
}
