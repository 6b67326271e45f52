//! The crypto suites, each of which is a cipher and a tag.

use core::fmt;
use core::str::FromStr;

/// A crypto suite, by its name in RFC 4568 section 6.2, RFC 6188 and RFC 7714 section 14.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Suite {
    /// AES-128 in counter mode, tags of 80 bits: the mandatory suite.
    AesCm128HmacSha1_80,
    /// AES-128 in counter mode, tags of 32 bits on media.
    AesCm128HmacSha1_32,
    /// AES-192 in counter mode, tags of 80 bits (RFC 6188).
    AesCm192HmacSha1_80,
    /// AES-192 in counter mode, tags of 32 bits on media.
    AesCm192HmacSha1_32,
    /// AES-256 in counter mode, tags of 80 bits (RFC 6188).
    AesCm256HmacSha1_80,
    /// AES-256 in counter mode, tags of 32 bits on media.
    AesCm256HmacSha1_32,
    /// AES-128 in Galois/counter mode, tags of 128 bits (RFC 7714). The fastest suite.
    AeadAes128Gcm,
    /// AES-256 in Galois/counter mode, tags of 128 bits (RFC 7714).
    AeadAes256Gcm,
    /// No encryption, tags of 80 bits.
    NullHmacSha1_80,
    /// AES-128 in counter mode and no tag on media: an attacker on the path can change packets.
    AesCm128NullAuth,
}

/// The cipher of a suite.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Cipher {
    Null,
    CounterMode,
    Gcm,
}

impl Suite {
    /// All suites, the most widely supported first.
    pub const ALL: [Self; 10] = [
        Self::AesCm128HmacSha1_80,
        Self::AesCm128HmacSha1_32,
        Self::AesCm192HmacSha1_80,
        Self::AesCm192HmacSha1_32,
        Self::AesCm256HmacSha1_80,
        Self::AesCm256HmacSha1_32,
        Self::AeadAes128Gcm,
        Self::AeadAes256Gcm,
        Self::NullHmacSha1_80,
        Self::AesCm128NullAuth,
    ];

    /// Returns its name in session descriptions; the last two have none there, so theirs is
    /// libsrtp's.
    pub fn name(self) -> &'static str {
        match self {
            Self::AesCm128HmacSha1_80 => "AES_CM_128_HMAC_SHA1_80",
            Self::AesCm128HmacSha1_32 => "AES_CM_128_HMAC_SHA1_32",
            Self::AesCm192HmacSha1_80 => "AES_192_CM_HMAC_SHA1_80",
            Self::AesCm192HmacSha1_32 => "AES_192_CM_HMAC_SHA1_32",
            Self::AesCm256HmacSha1_80 => "AES_256_CM_HMAC_SHA1_80",
            Self::AesCm256HmacSha1_32 => "AES_256_CM_HMAC_SHA1_32",
            Self::AeadAes128Gcm => "AEAD_AES_128_GCM",
            Self::AeadAes256Gcm => "AEAD_AES_256_GCM",
            Self::NullHmacSha1_80 => "NULL_HMAC_SHA1_80",
            Self::AesCm128NullAuth => "AES_CM_128_NULL_AUTH",
        }
    }

    /// Returns the octets in a master key.
    pub fn key_len(self) -> usize {
        match self {
            Self::AesCm192HmacSha1_80 | Self::AesCm192HmacSha1_32 => 24,
            Self::AesCm256HmacSha1_80 | Self::AesCm256HmacSha1_32 | Self::AeadAes256Gcm => 32,
            _ => 16,
        }
    }

    /// Returns the octets in a master salt.
    pub fn salt_len(self) -> usize {
        if self.is_aead() { 12 } else { 14 }
    }

    /// Returns the octets in a master key and its salt together, as in a session description.
    pub fn key_and_salt_len(self) -> usize {
        self.key_len() + self.salt_len()
    }

    /// Returns the octets in the tag of an SRTP packet.
    pub fn rtp_tag_len(self) -> usize {
        match self {
            Self::AesCm128HmacSha1_32 | Self::AesCm192HmacSha1_32 | Self::AesCm256HmacSha1_32 => 4,
            Self::AesCm128NullAuth => 0,
            _ => self.rtcp_tag_len(),
        }
    }

    /// Returns the octets in the tag of SRTCP packets, which always have one (RFC 3711 section
    /// 3.4).
    pub fn rtcp_tag_len(self) -> usize {
        if self.is_aead() { 16 } else { 10 }
    }

    /// Returns whether one primitive encrypts and authenticates (RFC 7714).
    pub fn is_aead(self) -> bool {
        self.cipher() == Cipher::Gcm
    }

    pub(super) fn cipher(self) -> Cipher {
        match self {
            Self::AeadAes128Gcm | Self::AeadAes256Gcm => Cipher::Gcm,
            Self::NullHmacSha1_80 => Cipher::Null,
            _ => Cipher::CounterMode,
        }
    }
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An unknown name of a crypto suite.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("unknown crypto suite; an example of a known one is AES_CM_128_HMAC_SHA1_80")]
pub struct UnknownSuite;

impl FromStr for Suite {
    type Err = UnknownSuite;

    /// Returns the suite of that name, ignoring case. The names of DTLS-SRTP (such as
    /// `SRTP_AES128_CM_HMAC_SHA1_80`, RFC 5764 section 4.1.2) are accepted too.
    fn from_str(name: &str) -> Result<Self, UnknownSuite> {
        let name = name.to_ascii_uppercase().replace('-', "_");
        let plain = name.strip_prefix("SRTP_").unwrap_or(&name);
        let found = match plain {
            "AES128_CM_HMAC_SHA1_80" | "AES_128_CM_HMAC_SHA1_80" => Self::AesCm128HmacSha1_80,
            "AES128_CM_HMAC_SHA1_32" | "AES_128_CM_HMAC_SHA1_32" => Self::AesCm128HmacSha1_32,
            _ => {
                let mut all = Self::ALL.into_iter();
                return all.find(|suite| suite.name() == plain).ok_or(UnknownSuite);
            }
        };
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_as_their_suites() {
        for suite in Suite::ALL {
            assert_eq!(suite.name().parse(), Ok(suite));
            assert_eq!(suite.to_string().to_lowercase().parse(), Ok(suite));
        }
        assert_eq!("SRTP_AES128_CM_HMAC_SHA1_80".parse(), Ok(Suite::AesCm128HmacSha1_80));
        assert_eq!("srtp_aead_aes_256_gcm".parse(), Ok(Suite::AeadAes256Gcm));
        assert_eq!("F8_128_HMAC_SHA1_80".parse::<Suite>(), Err(UnknownSuite));
    }

    /// RFC 6188 section 3 and RFC 7714 section 12.
    #[test]
    fn lengths_are_those_of_the_standards() {
        let lengths = |suite: Suite| (suite.key_and_salt_len(), suite.rtp_tag_len());
        assert_eq!(lengths(Suite::AesCm128HmacSha1_80), (30, 10));
        assert_eq!(lengths(Suite::AesCm192HmacSha1_32), (38, 4));
        assert_eq!(lengths(Suite::AesCm256HmacSha1_80), (46, 10));
        assert_eq!(lengths(Suite::AeadAes128Gcm), (28, 16));
        assert_eq!(lengths(Suite::AeadAes256Gcm), (44, 16));
        assert_eq!(Suite::AesCm128NullAuth.rtcp_tag_len(), 10);
    }
}
