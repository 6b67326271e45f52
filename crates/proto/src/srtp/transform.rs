//! Encryption and tag of one packet under given session keys.

use zeroize::Zeroizing;

use super::cryptex;
use super::derive::{Derivation, Label};
use super::error::{PolicyError, UnprotectError};
use super::extension;
use super::layout::Layout;
use super::policy::Policy;
use super::suite::Cipher;
use crate::ssrc::Ssrc;
use rushes_crypto::{Aead, CounterMode, Mac, NONCE_LEN, Refused, TAG_LEN};

/// Octets in a session key for authentication (RFC 3711 section 5.2).
const MAC_KEY_LEN: usize = 20;

/// The protocol for which session keys are derived.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Protocol {
    Rtp,
    Rtcp,
}

/// The cipher of the payload, with its session salt.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "one per key; a box would cost a cache miss")]
pub(super) enum Body {
    Null,
    CounterMode(CounterMode, Salt),
    Gcm(Aead, Salt),
}

/// A session salt. That of AES-GCM is two octets shorter and padded with zeros.
pub(super) struct Salt(Zeroizing<[u8; 14]>);

/// A protected packet that is to be decrypted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sealed<'a> {
    pub(super) layout: &'a Layout,
    /// The packet's index.
    pub(super) index: u64,
    /// The end of the encrypted octets, with the tag of AES-GCM.
    pub(super) end: usize,
}

/// The session keys of one epoch.
#[derive(Debug)]
pub(super) struct Transform {
    pub(super) body: Body,
    /// `None` if packets have no tag, or the cipher computes it.
    pub(super) mac: Option<Mac>,
    header: Option<(CounterMode, Salt)>,
}

impl Salt {
    fn new(octets: &[u8]) -> Self {
        let mut salt = Zeroizing::new([0; 14]);
        salt[..octets.len()].copy_from_slice(octets);
        Self(salt)
    }

    /// Returns the counter at which a packet's key stream begins (RFC 3711 section 4.1.1).
    #[inline]
    pub(super) fn counter(&self, ssrc: Ssrc, index: u64) -> [u8; 16] {
        let packet = u128::from(ssrc.0) << 64 | u128::from(index) << 16;
        let mut salt = [0; 16];
        salt[..14].copy_from_slice(&*self.0);
        (u128::from_be_bytes(salt) ^ packet).to_be_bytes()
    }

    /// Returns the initialisation vector of a packet (RFC 7714 sections 8.1 and 9.1).
    #[inline]
    pub(super) fn nonce(&self, ssrc: Ssrc, index: u64) -> [u8; NONCE_LEN] {
        let packet = u128::from(ssrc.0) << 80 | u128::from(index) << 32;
        let mut salt = [0; 16];
        salt[..14].copy_from_slice(&*self.0);
        let [nonce @ .., _, _, _, _] = (u128::from_be_bytes(salt) ^ packet).to_be_bytes();
        nonce
    }
}

impl core::fmt::Debug for Salt {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Salt(secret)")
    }
}

/// The octets of the session keys and salts of one epoch (RFC 3711 section 4.3.1).
pub(super) struct SessionKeys {
    cipher: Zeroizing<Vec<u8>>,
    salt: Zeroizing<Vec<u8>>,
    mac: Option<Zeroizing<Vec<u8>>>,
    /// Key and salt for encrypted header extensions (RFC 6904).
    header: Option<[Zeroizing<Vec<u8>>; 2]>,
}

impl SessionKeys {
    /// Derives the keys for `protocol` and `r`, the packet index divided by the key derivation
    /// rate.
    pub(super) fn derive(
        policy: &Policy,
        protocol: Protocol,
        derivation: &Derivation,
        r: u64,
    ) -> Result<Self, PolicyError> {
        let suite = policy.suite;
        let (cipher, salt, mac, authenticated) = match protocol {
            Protocol::Rtp => (
                Label::RtpCipher,
                Label::RtpSalt,
                Label::RtpAuthentication,
                policy.rtp_tag_len() > 0,
            ),
            Protocol::Rtcp => (Label::RtcpCipher, Label::RtcpSalt, Label::RtcpAuthentication, true),
        };
        let key = |label| derivation.derive(label, r, suite.key_len());
        let salt_of = |label| derivation.derive(label, r, suite.salt_len());
        let has_mac = authenticated && !suite.is_aead();
        let has_header = protocol == Protocol::Rtp
            && !policy.encrypted_extensions.is_empty()
            && suite.cipher() != Cipher::Null;
        let mac = has_mac.then(|| derivation.derive(mac, r, MAC_KEY_LEN)).transpose()?;
        let header = if has_header {
            Some([key(Label::HeaderCipher)?, salt_of(Label::HeaderSalt)?])
        } else {
            None
        };
        Ok(Self { cipher: key(cipher)?, salt: salt_of(salt)?, mac, header })
    }
}

impl Transform {
    /// Prepares the encryption and authentication of packets of `protocol` under these keys.
    pub(super) fn new(
        policy: &Policy,
        protocol: Protocol,
        keys: &SessionKeys,
    ) -> Result<Self, PolicyError> {
        let suite = policy.suite;
        let is_encrypted = match protocol {
            Protocol::Rtp => policy.encrypt_rtp,
            // AES-GCM also makes a tag when it does not encrypt.
            Protocol::Rtcp => policy.encrypt_rtcp || suite.is_aead(),
        };
        let refused = |_: Refused| PolicyError::Refused;
        let body = match suite.cipher() {
            _ if !is_encrypted => Body::Null,
            Cipher::Null => Body::Null,
            Cipher::CounterMode => {
                let cipher = CounterMode::new(&keys.cipher).map_err(refused)?;
                Body::CounterMode(cipher, Salt::new(&keys.salt))
            }
            Cipher::Gcm => {
                Body::Gcm(Aead::new(&keys.cipher).map_err(refused)?, Salt::new(&keys.salt))
            }
        };
        let mac = keys.mac.as_ref().map(|key| Mac::new(key));
        let header = match &keys.header {
            Some([key, salt]) => Some((CounterMode::new(key).map_err(refused)?, Salt::new(salt))),
            None => None,
        };
        Ok(Self { body, mac, header })
    }

    /// Creates AES-GCM under these session keys.
    #[cfg(test)]
    pub(super) fn gcm(key: &[u8], salt: &[u8]) -> Self {
        let cipher = Aead::new(key).expect("16 or 32 octets");
        Self { body: Body::Gcm(cipher, Salt::new(salt)), mac: None, header: None }
    }

    /// Decrypts a packet in place and returns the length of its RTP packet. A tag that the cipher does
    /// not verify must have been verified before. `key_stream` is scratch memory.
    #[inline]
    pub(super) fn decrypt(
        &self,
        policy: &Policy,
        packet: &mut [u8],
        Sealed { layout, index, end }: Sealed<'_>,
        key_stream: &mut Vec<u8>,
    ) -> Result<usize, UnprotectError> {
        let failed = UnprotectError::Authentication;
        let hidden = cryptex::is_encrypted(layout);
        if hidden && !policy.cryptex {
            return Err(UnprotectError::Malformed);
        }
        let hidden = hidden && !matches!(self.body, Body::Null);
        let mut from = layout.payload;
        if hidden {
            cryptex::rearrange(packet, layout.sources_end);
            from = cryptex::ENCRYPTED_FROM;
        }
        let mut len = end;
        match &self.body {
            Body::Null => {}
            Body::CounterMode(cipher, salt) => {
                let start = salt.counter(layout.ssrc, index);
                cipher.apply(start, &mut packet[from..end]).map_err(|_| failed)?;
            }
            Body::Gcm(cipher, salt) => {
                let (associated, message) = packet[..end].split_at_mut(from);
                let nonce = salt.nonce(layout.ssrc, index);
                cipher.open(nonce, associated, message).map_err(|_| failed)?;
                len -= TAG_LEN;
            }
        }
        if hidden {
            cryptex::restore(packet, layout.sources_end);
            cryptex::unmark(packet, layout);
        } else if let Some((profile, data)) = &layout.extension {
            let data = (*profile, &mut packet[data.clone()]);
            if !self.apply_to_header(policy, layout.ssrc, index, data, key_stream) {
                return Err(UnprotectError::Malformed);
            }
        }
        Ok(len)
    }

    /// Encrypts or decrypts the selected elements of a header extension; returns `false` if it is
    /// malformed. `key_stream` is scratch memory.
    pub(super) fn apply_to_header(
        &self,
        policy: &Policy,
        ssrc: Ssrc,
        index: u64,
        (profile, data): (u16, &mut [u8]),
        key_stream: &mut Vec<u8>,
    ) -> bool {
        let Some((cipher, salt)) = &self.header else { return true };
        key_stream.clear();
        key_stream.resize(data.len(), 0);
        cipher.apply(salt.counter(ssrc, index), key_stream).is_ok()
            && extension::apply(profile, data, policy.encrypted_extensions, key_stream).is_ok()
    }
}
