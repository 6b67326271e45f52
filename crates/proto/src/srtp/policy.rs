//! The parameters of a secured stream, besides its keys, on which both ends must agree.

use super::error::PolicyError;
use super::extension::ExtensionIds;
use super::suite::Suite;

/// The options of a secured stream, which must be the same at both ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[allow(clippy::struct_excessive_bools, reason = "each is an independent switch")]
pub struct Policy {
    /// The cipher and the tag.
    pub suite: Suite,
    /// Whether media is encrypted (default: yes); clear media is still authenticated
    /// (`UNENCRYPTED_SRTP`, RFC 4568 section 6.3.2).
    pub encrypt_rtp: bool,
    /// Whether RTCP is encrypted (default: yes; `UNENCRYPTED_SRTCP`).
    pub encrypt_rtcp: bool,
    /// Whether media carries a tag (default: yes; `UNAUTHENTICATED_SRTP`).
    pub authenticate_rtp: bool,
    /// The exponent n, 0..=24: session keys are derived anew every 2^n packets (RFC 3711 section
    /// 4.3.1); with `None`, the default, they are derived once.
    pub key_derivation_rate: Option<u8>,
    /// Size of the replay window in packets, 128..=32 768, rounded up to a power of two (default: 1
    /// 024); older packets are refused.
    pub window: usize,
    /// The elements of the header extension that are encrypted (RFC 6904; default: none).
    pub encrypted_extensions: ExtensionIds,
    /// Whether header extension and contributing sources are encrypted (RFC 9335; default: no).
    pub cryptex: bool,
    /// Maximum number of synchronisation sources under one master key, at least 1 (default: 256).
    pub sources_max: usize,
}

impl Policy {
    /// Returns the defaults for `suite`.
    pub fn new(suite: Suite) -> Self {
        Self {
            suite,
            encrypt_rtp: true,
            encrypt_rtcp: true,
            authenticate_rtp: true,
            key_derivation_rate: None,
            window: 1024,
            encrypted_extensions: ExtensionIds::default(),
            cryptex: false,
            sources_max: 256,
        }
    }

    /// Returns by how many octets an SRTP packet is longer than its RTP packet, with a master key
    /// identifier of `mki_len` octets. Cryptex adds four to a packet that has contributing sources
    /// and no header extension.
    pub fn overhead(&self, mki_len: usize) -> usize {
        self.rtp_tag_len() + mki_len
    }

    /// Returns by how many octets an SRTCP packet is longer than its RTCP packet.
    pub fn rtcp_overhead(&self, mki_len: usize) -> usize {
        self.suite.rtcp_tag_len() + super::rtcp::INDEX_LEN + mki_len
    }

    pub(super) fn rtp_tag_len(&self) -> usize {
        if self.authenticate_rtp { self.suite.rtp_tag_len() } else { 0 }
    }

    pub(super) fn check(&self) -> Result<(), PolicyError> {
        if self.suite.is_aead() && !(self.encrypt_rtp && self.authenticate_rtp) {
            return Err(PolicyError::AeadIsWhole);
        }
        if self.key_derivation_rate.is_some_and(|power| power > 24) {
            return Err(PolicyError::DerivationRate);
        }
        if !(128..=32_768).contains(&self.window) {
            return Err(PolicyError::Window { packets: self.window });
        }
        if self.cryptex && !self.encrypted_extensions.is_empty() {
            return Err(PolicyError::TwiceEncrypted);
        }
        if self.sources_max == 0 {
            return Err(PolicyError::NoSources);
        }
        Ok(())
    }
}
