//! A master key with its salt, identifier and lifetime (RFC 3711 section 3.2.1).

use core::fmt;

use zeroize::Zeroizing;

use super::error::KeyError;
use super::keys::{RTCP_LIFETIME_MAX, RTP_LIFETIME_MAX};
use super::suite::Suite;

/// Maximum octets of a master key identifier (RFC 4568 section 6.1).
pub const MKI_LEN_MAX: usize = 128;

/// A master key and its salt, zeroised on drop. `Debug` prints neither.
#[derive(Clone)]
pub struct MasterKey {
    octets: Zeroizing<Vec<u8>>,
    key_len: usize,
    mki: Vec<u8>,
    rtp_lifetime: u64,
    rtcp_lifetime: u64,
}

impl MasterKey {
    /// Creates a key from `key_and_salt`: first the key, then the salt.
    ///
    /// # Errors
    /// [`KeyError::Len`] if `suite` needs another number of octets.
    pub fn new(suite: Suite, key_and_salt: &[u8]) -> Result<Self, KeyError> {
        let (need, have) = (suite.key_and_salt_len(), key_and_salt.len());
        if need != have {
            return Err(KeyError::Len { need, have });
        }
        Ok(Self {
            octets: Zeroizing::new(key_and_salt.to_vec()),
            key_len: suite.key_len(),
            mki: Vec::new(),
            rtp_lifetime: RTP_LIFETIME_MAX,
            rtcp_lifetime: RTCP_LIFETIME_MAX,
        })
    }

    /// Sets an identifier that every packet under the key carries; none by default.
    ///
    /// # Errors
    /// [`KeyError::Mki`] if it has more than [`MKI_LEN_MAX`] octets.
    pub fn with_mki(mut self, mki: &[u8]) -> Result<Self, KeyError> {
        if mki.len() > MKI_LEN_MAX {
            return Err(KeyError::Mki { have: mki.len() });
        }
        mki.clone_into(&mut self.mki);
        Ok(self)
    }

    /// Sets the number of SRTP and SRTCP packets that the key may protect; by default 2⁴⁸ and 2³¹.
    ///
    /// # Errors
    /// [`KeyError::Lifetime`] if a number is zero or exceeds its default.
    pub fn with_lifetime(mut self, rtp: u64, rtcp: u64) -> Result<Self, KeyError> {
        let in_range = |packets, max| (1..=max).contains(&packets);
        if !in_range(rtp, RTP_LIFETIME_MAX) || !in_range(rtcp, RTCP_LIFETIME_MAX) {
            return Err(KeyError::Lifetime);
        }
        (self.rtp_lifetime, self.rtcp_lifetime) = (rtp, rtcp);
        Ok(self)
    }

    /// Returns its identifier; empty if it has none.
    pub fn mki(&self) -> &[u8] {
        &self.mki
    }

    /// Returns the master key and its salt, as passed to [`new`](Self::new). Erase any copy.
    pub fn key_and_salt(&self) -> &[u8] {
        &self.octets
    }

    /// Returns the number of SRTP packets that it may protect.
    pub fn rtp_lifetime(&self) -> u64 {
        self.rtp_lifetime
    }

    /// Returns the number of SRTCP packets that it may protect.
    pub fn rtcp_lifetime(&self) -> u64 {
        self.rtcp_lifetime
    }

    pub(super) fn fits(&self, suite: Suite) -> bool {
        self.key_len == suite.key_len() && self.octets.len() == suite.key_and_salt_len()
    }

    pub(super) fn key(&self) -> &[u8] {
        &self.octets[..self.key_len]
    }

    /// Returns the salt; two zeros are appended to that of an AEAD suite (RFC 7714 section 11).
    pub(super) fn salt(&self) -> Zeroizing<[u8; 14]> {
        let mut salt = Zeroizing::new([0; 14]);
        let octets = &self.octets[self.key_len..];
        salt[..octets.len()].copy_from_slice(octets);
        salt
    }
}

impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MasterKey").field("mki", &self.mki).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_prints_no_secret() {
        let key = MasterKey::new(Suite::AesCm128HmacSha1_80, &[0xab; 30]).unwrap();
        let text = format!("{key:?}");
        assert!(!text.contains("171") && !text.contains("ab"), "{text}");
    }

    #[test]
    fn a_key_of_another_length_is_refused() {
        let error = MasterKey::new(Suite::AeadAes128Gcm, &[0; 30]).unwrap_err();
        assert_eq!(error, KeyError::Len { need: 28, have: 30 });
    }

    #[test]
    fn lifetimes_and_identifiers_have_bounds() {
        let key = || MasterKey::new(Suite::AeadAes128Gcm, &[0; 28]).unwrap();
        assert_eq!(key().with_lifetime(0, 1).unwrap_err(), KeyError::Lifetime);
        assert_eq!(key().with_lifetime(1, (1 << 31) + 1).unwrap_err(), KeyError::Lifetime);
        assert!(key().with_lifetime(1 << 48, 1 << 31).is_ok());
        assert_eq!(key().with_mki(&[0; 129]).unwrap_err(), KeyError::Mki { have: 129 });
    }
}
