//! AES-GCM (RFC 5116 sections 5.1 and 5.2).

use core::fmt;

use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

use crate::Refused;

/// Octets in a block of the cipher.
pub const BLOCK_LEN: usize = 16;

/// Octets in a nonce.
pub const NONCE_LEN: usize = 12;

/// Octets in a tag.
pub const TAG_LEN: usize = 16;

/// An expanded key for AES-GCM; zeroised on drop.
///
/// The caller must not use a nonce twice.
pub struct Aead {
    key: LessSafeKey,
}

impl Aead {
    /// Creates the cipher under a `key` of 16 or 32 octets.
    ///
    /// # Errors
    /// [`Refused`] if the key has another length.
    pub fn new(key: &[u8]) -> Result<Self, Refused> {
        let algorithm = match key.len() {
            16 => &AES_128_GCM,
            32 => &AES_256_GCM,
            _ => return Err(Refused),
        };
        let key = UnboundKey::new(algorithm, key).map_err(|_| Refused)?;
        Ok(Self { key: LessSafeKey::new(key) })
    }

    /// Encrypts `head` in place and `source` into `out`, followed by the tag; `out` must be
    /// [`TAG_LEN`] octets longer than `source`. Both parts are one message, bound to `associated`.
    ///
    /// # Errors
    /// [`Refused`] if `out` has another length.
    #[inline]
    pub fn seal(
        &self,
        nonce: [u8; NONCE_LEN],
        associated: &[u8],
        head: &mut [u8],
        source: &[u8],
        out: &mut [u8],
    ) -> Result<(), Refused> {
        let nonce = Nonce::assume_unique_for_key(nonce);
        let associated = Aad::from(associated);
        self.key.seal_in_place_scatter(nonce, associated, head, source, out).map_err(|_| Refused)
    }

    /// Decrypts `message`, a ciphertext and its tag, in place.
    ///
    /// # Errors
    /// [`Refused`] if the tag does not match; the contents of `message` are then meaningless.
    #[inline]
    pub fn open(
        &self,
        nonce: [u8; NONCE_LEN],
        associated: &[u8],
        message: &mut [u8],
    ) -> Result<(), Refused> {
        let nonce = Nonce::assume_unique_for_key(nonce);
        let (message, tag) = message.split_last_chunk_mut::<TAG_LEN>().ok_or(Refused)?;
        let associated = Aad::from(associated);
        let outcome = self.key.open_in_place_separate_tag(nonce, associated, tag, message);
        outcome.map(|_| ()).map_err(|_| Refused)
    }

    /// Decrypts `message`, a ciphertext and its tag, into `out`, [`TAG_LEN`] octets shorter.
    ///
    /// # Errors
    /// [`Refused`] if the tag does not match; the contents of `out` are then meaningless.
    #[inline]
    pub fn open_into(
        &self,
        nonce: [u8; NONCE_LEN],
        associated: &[u8],
        message: &[u8],
        out: &mut [u8],
    ) -> Result<(), Refused> {
        let nonce = Nonce::assume_unique_for_key(nonce);
        let (message, tag) = message.split_last_chunk::<TAG_LEN>().ok_or(Refused)?;
        let associated = Aad::from(associated);
        self.key.open_separate_gather(nonce, associated, message, tag, out).map_err(|_| Refused)
    }
}

impl fmt::Debug for Aead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Aead").finish_non_exhaustive()
    }
}
