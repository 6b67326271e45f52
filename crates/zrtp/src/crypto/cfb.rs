//! AES in full-block cipher feedback mode (NIST SP 800-38A section 6.3, RFC 6189 section 5.7).

use core::fmt;

use aws_lc_rs::cipher::{
    AES_128, AES_192, AES_256, DecryptingKey, DecryptionContext, EncryptingKey, EncryptionContext,
    UnboundCipherKey,
};
use aws_lc_rs::iv::FixedLength;

use rushes_crypto::Refused;

/// An expanded key for AES in cipher feedback mode; zeroised on drop.
pub struct CipherFeedback {
    encrypting: EncryptingKey,
    decrypting: DecryptingKey,
}

impl CipherFeedback {
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
        let unbound = || UnboundCipherKey::new(algorithm, key).map_err(|_| Refused);
        Ok(Self {
            encrypting: EncryptingKey::cfb128(unbound()?).map_err(|_| Refused)?,
            decrypting: DecryptingKey::cfb128(unbound()?).map_err(|_| Refused)?,
        })
    }

    /// Encrypts `data`, of any length, in place. Each message needs a different vector `start`.
    ///
    /// # Errors
    /// [`Refused`] if the library fails; never because of the length of `data`.
    pub fn encrypt(&self, start: [u8; 16], data: &mut [u8]) -> Result<(), Refused> {
        if data.is_empty() {
            return Ok(());
        }
        let context = EncryptionContext::Iv128(FixedLength::from(&start));
        self.encrypting.less_safe_encrypt(data, context).map(|_| ()).map_err(|_| Refused)
    }

    /// Decrypts `data`, of any length, in place.
    ///
    /// # Errors
    /// [`Refused`] if the library fails; never because of the length of `data`.
    pub fn decrypt(&self, start: [u8; 16], data: &mut [u8]) -> Result<(), Refused> {
        if data.is_empty() {
            return Ok(());
        }
        let context = DecryptionContext::Iv128(FixedLength::from(&start));
        self.decrypting.decrypt(data, context).map(|_| ()).map_err(|_| Refused)
    }
}

impl fmt::Debug for CipherFeedback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CipherFeedback").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypto::testing::octets;

    /// NIST SP 800-38A appendix F.3.13 to F.3.18: the key and the ciphertext.
    const KNOWN: [(&str, &str); 3] = [
        (
            "2b7e151628aed2a6abf7158809cf4f3c",
            "3b3fd92eb72dad20333449f8e83cfb4ac8a64537a0b3a93fcde3cdad9f1ce58b\
             26751f67a3cbb140b1808cf187a4f4dfc04b05357c5d1c0eeac4c66f9ff7f2e6",
        ),
        (
            "8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b",
            "cdc80d6fddf18cab34c25909c99a417467ce7f7f81173621961a2b70171d3d7a\
             2e1e8a1dd59b88b1c8e60fed1efac4c9c05f9f9ca9834fa042ae8fba584b09ff",
        ),
        (
            "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
            "dc7e84bfda79164b7ecd8486985d386039ffed143b28b1c832113c6331e5407b\
             df10132415e54b92a13ed0a8267ae2f975a385741ab9cef82031623d55b1e471",
        ),
    ];
    const PLAIN: &str = "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51\
                         30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710";
    const START: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

    #[test]
    fn the_vectors_of_nist_are_computed_for_each_key_length() {
        for (key, cipher) in KNOWN {
            let feedback = CipherFeedback::new(&octets(key)).unwrap();
            let mut data = octets(PLAIN);
            feedback.encrypt(START, &mut data).unwrap();
            assert_eq!(data, octets(cipher));
            feedback.decrypt(START, &mut data).unwrap();
            assert_eq!(data, octets(PLAIN));
        }
    }

    #[test]
    fn a_message_that_ends_within_a_block_is_the_beginning_of_the_longer_one() {
        let feedback = CipherFeedback::new(&octets(KNOWN[0].0)).unwrap();
        for len in 0..48 {
            let mut data = octets(PLAIN);
            data.truncate(len);
            feedback.encrypt(START, &mut data).unwrap();
            assert_eq!(data, octets(KNOWN[0].1)[..len]);
            feedback.decrypt(START, &mut data).unwrap();
            assert_eq!(data, octets(PLAIN)[..len]);
        }
    }

    #[test]
    fn a_key_of_another_length_is_refused() {
        for len in [0, 15, 17, 31, 33] {
            assert_eq!(CipherFeedback::new(&vec![0; len]).unwrap_err(), Refused);
        }
    }
}
