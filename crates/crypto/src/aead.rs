//! AES-GCM (RFC 5116 sections 5.1 and 5.2).

use core::fmt;

use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

use crate::{Backend, Refused};

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
    key: Key,
}

/// The key, as the library that computes has expanded it.
enum Key {
    AwsLc(LessSafeKey),
    #[cfg(feature = "ipsec-mb")]
    IpsecMb(rushes_ipsec_mb::Gcm),
}

impl Aead {
    /// Creates the cipher under a `key` of 16 or 32 octets.
    ///
    /// # Errors
    /// [`Refused`] if the key has another length.
    pub fn new(key: &[u8]) -> Result<Self, Refused> {
        Self::with(Backend::current(), key)
    }

    /// Creates the cipher in one library, as [`new`](Self::new) does.
    ///
    /// # Errors
    /// [`Refused`], also if the library is not available.
    #[doc(hidden)]
    pub fn with(backend: Backend, key: &[u8]) -> Result<Self, Refused> {
        let algorithm = match key.len() {
            16 => &AES_128_GCM,
            32 => &AES_256_GCM,
            _ => return Err(Refused),
        };
        let key = match backend {
            Backend::AwsLc => {
                let key = UnboundKey::new(algorithm, key).map_err(|_| Refused)?;
                Key::AwsLc(LessSafeKey::new(key))
            }
            #[cfg(feature = "ipsec-mb")]
            Backend::IpsecMb => {
                let library = rushes_ipsec_mb::Library::get().map_err(|_| Refused)?;
                Key::IpsecMb(rushes_ipsec_mb::Gcm::new(library, key).ok_or(Refused)?)
            }
            #[cfg(not(feature = "ipsec-mb"))]
            Backend::IpsecMb => return Err(Refused),
        };
        Ok(Self { key })
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
        match &self.key {
            Key::AwsLc(key) => {
                let nonce = Nonce::assume_unique_for_key(nonce);
                let associated = Aad::from(associated);
                key.seal_in_place_scatter(nonce, associated, head, source, out).map_err(|_| Refused)
            }
            #[cfg(feature = "ipsec-mb")]
            Key::IpsecMb(key) => {
                key.seal(nonce, associated, head, source, out).then_some(()).ok_or(Refused)
            }
        }
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
        let (message, tag) = message.split_last_chunk_mut::<TAG_LEN>().ok_or(Refused)?;
        match &self.key {
            Key::AwsLc(key) => {
                let nonce = Nonce::assume_unique_for_key(nonce);
                let associated = Aad::from(associated);
                let outcome = key.open_in_place_separate_tag(nonce, associated, tag, message);
                outcome.map(|_| ()).map_err(|_| Refused)
            }
            #[cfg(feature = "ipsec-mb")]
            Key::IpsecMb(key) => {
                let expected = key.open(nonce, associated, message);
                accept(expected, tag, message)
            }
        }
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
        let (message, tag) = message.split_last_chunk::<TAG_LEN>().ok_or(Refused)?;
        match &self.key {
            Key::AwsLc(key) => {
                let nonce = Nonce::assume_unique_for_key(nonce);
                let associated = Aad::from(associated);
                key.open_separate_gather(nonce, associated, message, tag, out).map_err(|_| Refused)
            }
            #[cfg(feature = "ipsec-mb")]
            Key::IpsecMb(key) => {
                let expected = key.open_into(nonce, associated, message, out);
                accept(expected, tag, out)
            }
        }
    }
}

/// Compares the tag that a message has with the one that it should have; erases what was decrypted
/// under a wrong one.
#[cfg(feature = "ipsec-mb")]
#[inline]
fn accept(
    expected: Option<[u8; TAG_LEN]>,
    tag: &[u8; TAG_LEN],
    decrypted: &mut [u8],
) -> Result<(), Refused> {
    if expected.is_some_and(|expected| crate::tags_are_equal(&expected, tag)) {
        return Ok(());
    }
    decrypted.fill(0);
    Err(Refused)
}

impl fmt::Debug for Aead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Aead").finish_non_exhaustive()
    }
}
