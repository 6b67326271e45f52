//! The configuration of an endpoint, and its errors.

use core::fmt;

use thiserror::Error;
use zeroize::Zeroizing;

use super::VERSION;
use super::algorithm::{AlgorithmList, AuthTag, Cipher, Hash, SasType};
use super::hello::Hello;
use super::key_agreement::{Kem, KeyAgreement};
use super::peer_policy::PeerPolicy;
use super::retained::Zid;

/// Default of the maximum packet length in octets, which fits any path to the Internet.
const PACKET_LEN_MAX: usize = 1200;

/// The algorithms of an endpoint, in the order of preference for each kind.
///
/// The mandatory algorithms (S256, AES1, HS32, HS80, `DH3k`, B32) follow the listed ones.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Algorithms {
    /// Hashes.
    pub hashes: AlgorithmList<Hash>,
    /// Ciphers.
    pub ciphers: AlgorithmList<Cipher>,
    /// Authentication tags of SRTP.
    pub auth_tags: AlgorithmList<AuthTag>,
    /// Key agreements, except Preshared and Multistream.
    pub key_agreements: AlgorithmList<KeyAgreement>,
    /// Renderings of the short authentication string.
    pub sas_types: AlgorithmList<SasType>,
}

impl Default for Algorithms {
    /// Returns X25519 with ML-KEM-768 before X25519, P-256, P-384 and `DH3k`; AES with 128 bits
    /// before 256; tags of 80 bits before 32.
    fn default() -> Self {
        let list = [
            KeyAgreement::Kem(Kem::X25519_ML_KEM_768),
            KeyAgreement::X255,
            KeyAgreement::Ec25,
            KeyAgreement::Ec38,
            KeyAgreement::Dh3k,
        ];
        Self {
            hashes: of(&[Hash::S256, Hash::S384]),
            ciphers: of(&[Cipher::Aes1, Cipher::Aes3]),
            auth_tags: of(&[AuthTag::Hs80, AuthTag::Hs32]),
            key_agreements: of(&list),
            sas_types: of(&[SasType::B256, SasType::B32]),
        }
    }
}

fn of<T: super::algorithm::Algorithm>(items: &[T]) -> AlgorithmList<T> {
    AlgorithmList::new(items).unwrap_or_default()
}

/// Why a [`Config`] cannot be used.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum ConfigError {
    /// More than five key agreements are listed. Hello has seven places, two of which are for
    /// Preshared and Multistream.
    #[error("{0} key agreements exceed the maximum of 5 in a Hello")]
    KeyAgreements(usize),
    /// A listed algorithm is not supported.
    #[error("{0} is not supported")]
    Unsupported(&'static str),
    /// A secret is required but not configured.
    #[error("the policy requires a shared secret, but none is configured")]
    NoSecret,
    /// The maximum packet length is out of range.
    #[error("the maximum packet length of {0} octets is outside 128 to 65507")]
    PacketLen(usize),
}

/// The configuration of an endpoint. `Debug` prints no secret.
#[derive(Clone)]
#[allow(clippy::struct_excessive_bools, reason = "each is an independent permission")]
pub struct Config {
    /// The endpoint's ID: random, generated once, kept with the secrets (RFC 6189 section 4.9).
    pub zid: Zid,
    /// Vendor and release of the software, padded with spaces.
    pub client: [u8; 16],
    /// The algorithms that it offers.
    pub algorithms: Algorithms,
    /// Whether it never sends Commit, as a server might choose (P in Hello; default: no).
    pub is_passive: bool,
    /// Whether secrets of earlier sessions may replace a key agreement (Preshared mode). By default
    /// they may not, because this has less forward secrecy.
    pub allows_preshared: bool,
    /// Whether the peer may return to clear media (`GoClear`; default: no).
    pub allows_clear: bool,
    /// Whether this end discloses the call to third parties (D in Confirm; default: no).
    pub discloses: bool,
    /// A secret that both ends obtained by other means (auxsecret), if any.
    pub aux_secret: Option<Zeroizing<Vec<u8>>>,
    /// The peers with which it agrees on keys; any by default.
    pub policy: PeerPolicy,
    /// Lifetime of retained secrets in seconds; `u32::MAX`, the default, means for ever.
    pub expiration_interval: u32,
    /// Maximum packet length in octets, 1200 by default; longer messages are sent in fragments.
    pub packet_len_max: usize,
}

impl Config {
    /// Returns the defaults for the endpoint `zid`.
    pub fn new(zid: Zid) -> Self {
        Self {
            zid,
            client: *b"Rushes          ",
            algorithms: Algorithms::default(),
            is_passive: false,
            allows_preshared: false,
            allows_clear: false,
            discloses: false,
            aux_secret: None,
            policy: PeerPolicy::Allow,
            expiration_interval: u32::MAX,
            packet_len_max: PACKET_LEN_MAX,
        }
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let agreements = self.algorithms.key_agreements.as_slice();
        if agreements.len() > 5 {
            return Err(ConfigError::KeyAgreements(agreements.len()));
        }
        let non_dh = [KeyAgreement::Prsh, KeyAgreement::Mult];
        if agreements.iter().any(|agreement| non_dh.contains(agreement)) {
            return Err(ConfigError::Unsupported("Prsh or Mult in the list of key agreements"));
        }
        if !cfg!(feature = "x448") && agreements.iter().any(|one| one.has_x448()) {
            return Err(ConfigError::Unsupported("X448 without the build feature x448"));
        }
        if agreements.iter().any(|agreement| !super::agree::is_supported(*agreement)) {
            return Err(ConfigError::Unsupported("a key encapsulation mechanism"));
        }
        let skein = [AuthTag::Sk32, AuthTag::Sk64];
        if self.algorithms.auth_tags.as_slice().iter().any(|tag| skein.contains(tag)) {
            return Err(ConfigError::Unsupported("a Skein authentication tag"));
        }
        if self.policy == PeerPolicy::RequireSecret && self.aux_secret.is_none() {
            return Err(ConfigError::NoSecret);
        }
        let len = self.packet_len_max;
        if (128..=65_507).contains(&len) { Ok(()) } else { Err(ConfigError::PacketLen(len)) }
    }

    /// Returns whether Preshared mode may be used. If the policy requires a secret, it may not,
    /// because only a key agreement shows that the peer has the secret.
    pub(super) fn uses_preshared(&self) -> bool {
        self.allows_preshared && self.policy != PeerPolicy::RequireSecret
    }

    /// Returns the Hello of one stream, with a MAC of zeros.
    pub(super) fn hello(&self, h3: [u8; 32]) -> Hello {
        let mut key_agreements = self.algorithms.key_agreements;
        if self.uses_preshared() {
            key_agreements.push(KeyAgreement::Prsh);
        }
        key_agreements.push(KeyAgreement::Mult);
        Hello {
            version: VERSION,
            client: self.client,
            h3,
            zid: self.zid,
            signature_capable: false,
            mitm: false,
            passive: self.is_passive,
            hashes: self.algorithms.hashes,
            ciphers: self.algorithms.ciphers,
            auth_tags: self.algorithms.auth_tags,
            key_agreements,
            sas_types: self.algorithms.sas_types,
            mac: [0; 8],
        }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("zid", &self.zid)
            .field("algorithms", &self.algorithms)
            .field("aux_secret", &self.aux_secret.is_some())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(feature = "x448")))]
mod tests {
    use super::*;

    #[test]
    fn x448_is_refused_where_it_is_not_built_in() {
        for agreement in [KeyAgreement::X448, KeyAgreement::Kem(Kem::X448_ML_KEM_1024)] {
            let mut config = Config::new([1; 12]);
            config.algorithms.key_agreements = AlgorithmList::new(&[agreement]).unwrap();
            let error = config.check().unwrap_err();
            assert!(error.to_string().contains("feature x448"), "{error}");
        }
    }
}
