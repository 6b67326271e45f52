//! AES in counter mode (RFC 3711 section 4.1.1, RFC 6188).

use core::fmt;

use aws_lc_rs::cipher::{
    AES_128, AES_192, AES_256, EncryptingKey, EncryptionContext, UnboundCipherKey,
};
use aws_lc_rs::iv::FixedLength;

#[cfg(feature = "ipsec-mb")]
use crate::BLOCK_LEN;
use crate::{Backend, Refused};

/// An expanded key for AES in counter mode; zeroised on drop.
pub struct CounterMode {
    key: EncryptingKey,
    /// The faster library; `None` if `key` does everything.
    #[cfg(feature = "ipsec-mb")]
    fast: Option<rushes_ipsec_mb::CounterMode>,
}

impl CounterMode {
    /// Creates the cipher under a `key` of 16, 24 or 32 octets.
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
            16 => &AES_128,
            24 => &AES_192,
            32 => &AES_256,
            _ => return Err(Refused),
        };
        #[cfg(feature = "ipsec-mb")]
        let fast = match backend {
            Backend::AwsLc => None,
            Backend::IpsecMb => {
                let library = rushes_ipsec_mb::Library::get().map_err(|_| Refused)?;
                Some(rushes_ipsec_mb::CounterMode::new(library, key).ok_or(Refused)?)
            }
        };
        #[cfg(not(feature = "ipsec-mb"))]
        if backend == Backend::IpsecMb {
            return Err(Refused);
        }
        let key = UnboundCipherKey::new(algorithm, key).map_err(|_| Refused)?;
        Ok(Self {
            key: EncryptingKey::ctr(key).map_err(|_| Refused)?,
            #[cfg(feature = "ipsec-mb")]
            fast,
        })
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
        #[cfg(feature = "ipsec-mb")]
        if self.fast.as_ref().is_some_and(|fast| fast.apply(start, data)) {
            return Ok(());
        }
        let context = EncryptionContext::Iv128(FixedLength::from(&start));
        self.key.less_safe_encrypt(data, context).map(|_| ()).map_err(|_| Refused)
    }

    /// Encrypts into `place` a message whose first `written` octets are there already, and whose
    /// others are `source`, as [`apply`](Self::apply) does.
    ///
    /// # Errors
    /// [`Refused`] if `place` is not as long as the message, or the library fails.
    #[inline]
    pub fn apply_from(
        &self,
        start: [u8; 16],
        place: &mut [u8],
        written: usize,
        source: &[u8],
    ) -> Result<(), Refused> {
        if place.len().checked_sub(written) != Some(source.len()) {
            return Err(Refused);
        }
        #[cfg(feature = "ipsec-mb")]
        if let Some(fast) = &self.fast {
            // The part in place ends with a block, so that the key stream can continue.
            let missing = (written.next_multiple_of(BLOCK_LEN) - written).min(source.len());
            let (first, rest) = place.split_at_mut(written + missing);
            let (missing, source) = source.split_at(missing);
            first[written..].copy_from_slice(missing);
            let blocks = first.len().div_ceil(BLOCK_LEN) as u128;
            let next = u128::from_be_bytes(start).wrapping_add(blocks).to_be_bytes();
            if fast.apply(start, first) {
                return if fast.apply_into(next, source, rest) {
                    Ok(())
                } else {
                    rest.copy_from_slice(source);
                    self.apply(next, rest)
                };
            }
            rest.copy_from_slice(source);
            return self.apply(start, place);
        }
        // Copying and then encrypting in place is faster than ciphers with separate input and
        // output, because the copied octets are in the first-level cache (bench/README.md).
        place[written..].copy_from_slice(source);
        self.apply(start, place)
    }
}

impl fmt::Debug for CounterMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CounterMode").finish_non_exhaustive()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    /// All libraries that are available here.
    fn ciphers(key: &[u8]) -> Vec<CounterMode> {
        let backends = [Backend::AwsLc, Backend::IpsecMb];
        backends.iter().filter_map(|backend| CounterMode::with(*backend, key).ok()).collect()
    }

    /// NIST SP 800-38A, F.5.1: CTR-AES128.Encrypt.
    #[test]
    fn the_key_stream_is_that_of_the_standard() {
        let octets = crate::testing::octets;
        for cipher in ciphers(&octets("2b7e151628aed2a6abf7158809cf4f3c")) {
            let start = octets("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff")[..].try_into().unwrap();
            let mut data =
                octets("6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51");
            cipher.apply(start, &mut data).unwrap();
            let expected = "874d6191b620e3261bef6864990db6ce9806f66b7970fdff8617187bb9fffdff";
            assert_eq!(data, octets(expected));
        }
    }

    #[test]
    fn a_message_in_two_places_is_encrypted_as_one() {
        for cipher in ciphers(&[3; 16]) {
            // The second counter overflows its last 32 bits in the middle of the message.
            for start in [[1; 16], [0xff; 16]] {
                for (len, written) in
                    [(0, 0), (3, 3), (3, 0), (40, 3), (40, 16), (1400, 3), (1400, 17)]
                {
                    let clear: Vec<u8> = (0..len).map(|n: usize| n as u8).collect();
                    let (mut whole, mut place) = (clear.clone(), clear.clone());
                    place[written..].fill(0);
                    cipher.apply(start, &mut whole).unwrap();
                    cipher.apply_from(start, &mut place, written, &clear[written..]).unwrap();
                    assert_eq!(place, whole, "{len} {written}");
                }
            }
            assert!(cipher.apply_from([0; 16], &mut [0; 5], 3, &[0; 3]).is_err());
            assert!(cipher.apply_from([0; 16], &mut [0; 5], 6, &[]).is_err());
        }
    }
}
