//! Derivation of keys from secrets (RFC 6189 sections 4.4 and 4.5).

use core::fmt;

use zeroize::Zeroizing;

use super::algorithm::{AuthTag, Cipher, Hash};
use super::retained::{RetainedSecret, Zid};
use crate::crypto::{Digest, HashAlgorithm, hash, hmac};

/// Octets derived for a master salt (section 4.5.3).
const SALT_LEN: usize = 14;

impl Hash {
    pub(super) fn algorithm(self) -> HashAlgorithm {
        match self {
            Self::S256 => HashAlgorithm::Sha256,
            Self::S384 => HashAlgorithm::Sha384,
        }
    }
}

/// Derives a key by the function of section 4.5.1: the first `len` octets of HMAC(`key`, …), at
/// most the length of a hash value.
pub(super) fn kdf(
    algorithm: Hash,
    key: &[u8],
    label: &str,
    context: &[u8],
    len: usize,
) -> Zeroizing<Vec<u8>> {
    let bits = (8 * len as u32).to_be_bytes();
    let counter = 1_u32.to_be_bytes();
    let parts = [&counter[..], label.as_bytes(), &[0], context, &bits];
    let output = hmac(algorithm.algorithm(), key, &parts);
    let octets = output.as_slice();
    Zeroizing::new(octets[..len.min(octets.len())].to_vec())
}

/// Returns `KDF_Context`: both ZIDs and the hash of the messages so far (section 4.4.1.4).
pub(super) fn context(
    initiator: &Zid,
    responder: &Zid,
    algorithm: Hash,
    messages: &[&[u8]],
) -> Vec<u8> {
    let total = hash(algorithm.algorithm(), messages);
    [&initiator[..], responder, total.as_slice()].concat()
}

/// The secrets that both ends share (section 4.3).
#[derive(Default)]
pub(super) struct Shared {
    pub(super) s1: Option<Zeroizing<Vec<u8>>>,
    pub(super) s2: Option<Zeroizing<Vec<u8>>>,
    pub(super) s3: Option<Zeroizing<Vec<u8>>>,
}

/// Derives s0 from the result of a key agreement (section 4.4.1.4).
pub(super) fn agreed_s0(
    algorithm: Hash,
    result: &[u8],
    context: &[u8],
    shared: &Shared,
) -> Zeroizing<Vec<u8>> {
    let mut parts: Vec<&[u8]> = vec![&[0, 0, 0, 1], result, b"ZRTP-HMAC-KDF", context];
    let secrets = [&shared.s1, &shared.s2, &shared.s3];
    let lens = secrets.map(|secret| len_of(secret.as_ref().map(|secret| secret.as_slice())));
    for (secret, len) in secrets.iter().zip(&lens) {
        parts.push(len);
        parts.extend(secret.as_ref().map(|secret| secret.as_slice()));
    }
    Zeroizing::new(hash(algorithm.algorithm(), &parts).as_slice().to_vec())
}

/// Derives `preshared_key` (section 4.4.2.2).
pub(super) fn preshared_key(
    algorithm: Hash,
    rs1: &[u8],
    aux: Option<&[u8]>,
    pbx: Option<&[u8]>,
) -> Digest {
    let secrets = [Some(rs1), aux, pbx];
    let lens = secrets.map(len_of);
    let mut parts: Vec<&[u8]> = Vec::new();
    for (secret, len) in secrets.iter().zip(&lens) {
        parts.push(len);
        parts.extend(secret);
    }
    hash(algorithm.algorithm(), &parts)
}

fn len_of(secret: Option<&[u8]>) -> [u8; 4] {
    (secret.map_or(0, <[u8]>::len) as u32).to_be_bytes()
}

/// Returns the name of the SRTP suite with this cipher and tag; `None` for tags of Skein.
pub(super) fn suite(cipher: Cipher, auth_tag: AuthTag) -> Option<&'static str> {
    Some(match (cipher, auth_tag) {
        (Cipher::Aes1, AuthTag::Hs80) => "AES_CM_128_HMAC_SHA1_80",
        (Cipher::Aes1, AuthTag::Hs32) => "AES_CM_128_HMAC_SHA1_32",
        (Cipher::Aes2, AuthTag::Hs80) => "AES_192_CM_HMAC_SHA1_80",
        (Cipher::Aes2, AuthTag::Hs32) => "AES_192_CM_HMAC_SHA1_32",
        (Cipher::Aes3, AuthTag::Hs80) => "AES_256_CM_HMAC_SHA1_80",
        (Cipher::Aes3, AuthTag::Hs32) => "AES_256_CM_HMAC_SHA1_32",
        _ => return None,
    })
}

/// The role of an end in an exchange.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Role {
    /// The end that sent the Commit.
    Initiator,
    /// The end that answered the Commit.
    Responder,
}

impl Role {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Initiator => "Initiator",
            Self::Responder => "Responder",
        }
    }

    pub(super) fn other(self) -> Self {
        match self {
            Self::Initiator => Self::Responder,
            Self::Responder => Self::Initiator,
        }
    }
}

/// Derives keys from the s0 of one stream. `Debug` prints no key.
pub(super) struct Derived {
    algorithm: Hash,
    s0: Zeroizing<Vec<u8>>,
    context: Vec<u8>,
}

impl Derived {
    pub(super) fn new(algorithm: Hash, s0: Zeroizing<Vec<u8>>, context: Vec<u8>) -> Self {
        Self { algorithm, s0, context }
    }

    fn kdf(&self, label: &str, len: usize) -> Zeroizing<Vec<u8>> {
        kdf(self.algorithm, &self.s0, label, &self.context, len)
    }

    /// Derives `ZRTPSess` (section 4.5.2).
    pub(super) fn session_key(&self) -> Zeroizing<Vec<u8>> {
        self.kdf("ZRTP Session Key", self.algorithm.len())
    }

    /// Derives sashash, whose first 32 bits are the sasvalue.
    pub(super) fn sas_hash(&self) -> [u8; 32] {
        let mut sas_hash = [0; 32];
        sas_hash.copy_from_slice(&self.kdf("SAS", 32));
        sas_hash
    }

    /// Derives the key for other purposes of the application.
    pub(super) fn exported_key(&self) -> Zeroizing<Vec<u8>> {
        self.kdf("Exported key", self.algorithm.len())
    }

    /// Derives the new rs1 (section 4.6.1).
    #[allow(clippy::unnecessary_box_returns, reason = "moving a box leaves no copy of the secret")]
    pub(super) fn retained_secret(&self) -> RetainedSecret {
        let mut secret = Box::new(Zeroizing::new([0; 32]));
        secret.copy_from_slice(&self.kdf("retained secret", 32));
        secret
    }

    /// Derives the mackey of one end (section 4.5.3).
    pub(super) fn mac_key(&self, role: Role) -> Zeroizing<Vec<u8>> {
        self.kdf(&format!("{} HMAC key", role.name()), self.algorithm.len())
    }

    /// Derives the zrtpkey of one end.
    pub(super) fn zrtp_key(&self, role: Role, cipher: Cipher) -> Zeroizing<Vec<u8>> {
        self.kdf(&format!("{} ZRTP key", role.name()), cipher.key_len())
    }

    /// Derives the master key and salt for packets that one end sends.
    pub(super) fn master_key(&self, role: Role, cipher: Cipher) -> Zeroizing<Vec<u8>> {
        let key = self.kdf(&format!("{} SRTP master key", role.name()), cipher.key_len());
        let salt = self.kdf(&format!("{} SRTP master salt", role.name()), SALT_LEN);
        Zeroizing::new([&key[..], &salt].concat())
    }
}

impl fmt::Debug for Derived {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Derived").field("algorithm", &self.algorithm).finish_non_exhaustive()
    }
}
