//! AES in counter mode (RFC 3711 section 4.1.1, RFC 6188).

use core::fmt;

use aws_lc_rs::cipher::{
    AES_128, AES_192, AES_256, EncryptingKey, EncryptionContext, UnboundCipherKey,
};
use aws_lc_rs::iv::FixedLength;

use crate::Refused;

/// An expanded key for AES in counter mode; zeroised on drop.
pub struct CounterMode {
    key: EncryptingKey,
}

impl CounterMode {
    /// Creates the cipher under a `key` of 16, 24 or 32 octets.
    ///
    /// # Errors
    /// [`Refused`] if the key has another length.
    pub fn new(key: &[u8]) -> Result<Self, Refused> {
        let algorithm = match key.len() {
            16 => &AES_128,
            24 => &AES_192,
            32 => &AES_256,
            _ => return Err(Refused),
        };
        let key = UnboundCipherKey::new(algorithm, key).map_err(|_| Refused)?;
        Ok(Self { key: EncryptingKey::ctr(key).map_err(|_| Refused)? })
    }

    /// Encrypts or decrypts `data` with the key stream that begins at the counter `start`.
    ///
    /// # Errors
    /// [`Refused`] if the library fails; never because of the length of `data`.
    #[inline]
    pub fn apply(&self, start: [u8; 16], data: &mut [u8]) -> Result<(), Refused> {
        if data.is_empty() {
            return Ok(());
        }
        let context = EncryptionContext::Iv128(FixedLength::from(&start));
        self.key.less_safe_encrypt(data, context).map(|_| ()).map_err(|_| Refused)
    }
}

impl fmt::Debug for CounterMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CounterMode").finish_non_exhaustive()
    }
}
