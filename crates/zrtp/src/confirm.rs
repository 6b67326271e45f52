//! The encrypted messages: `Confirm1`, `Confirm2` (RFC 6189 section 5.7) and `SASrelay` (section
//! 5.13).

use super::algorithm::{Algorithm, SasType};
use super::layout::{Fields, MessageError, write_message, write_padded};

/// Maximum number of words in a signature and its type block: their length field has nine bits.
const SIGNATURE_WORDS_MAX: usize = 511;

/// `Confirm1` or `Confirm2`; its body is still encrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confirm<'a> {
    /// `confirm_mac`: the MAC over `encrypted` (section 4.6).
    pub mac: [u8; 8],
    /// The initialisation vector of CFB.
    pub iv: [u8; 16],
    /// A [`ConfirmPlain`] in AES-CFB: whole words, at least ten.
    pub encrypted: &'a [u8],
}

impl<'a> Confirm<'a> {
    pub(super) const CONFIRM1: [u8; 8] = *b"Confirm1";
    pub(super) const CONFIRM2: [u8; 8] = *b"Confirm2";

    pub(super) fn parse(mut fields: Fields<'a>) -> Result<Self, MessageError> {
        let (mac, iv) = (fields.array()?, fields.array()?);
        Ok(Self { mac, iv, encrypted: encrypted(fields)? })
    }

    pub(super) fn write(&self, kind: [u8; 8], out: &mut Vec<u8>) {
        write_message(out, kind, |out| {
            out.extend_from_slice(&self.mac);
            out.extend_from_slice(&self.iv);
            out.extend_from_slice(self.encrypted);
        });
    }
}

/// `SASrelay`; its body is still encrypted. This end receives it but never sends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SasRelay<'a> {
    /// The MAC over `encrypted`, keyed as in Confirm.
    pub mac: [u8; 8],
    /// The initialisation vector of CFB.
    pub iv: [u8; 16],
    /// A [`SasRelayPlain`] in AES-CFB: whole words, at least ten.
    pub encrypted: &'a [u8],
}

impl<'a> SasRelay<'a> {
    pub(super) const KIND: [u8; 8] = *b"SASrelay";

    pub(super) fn parse(mut fields: Fields<'a>) -> Result<Self, MessageError> {
        let (mac, iv) = (fields.array()?, fields.array()?);
        Ok(Self { mac, iv, encrypted: encrypted(fields)? })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        Confirm { mac: self.mac, iv: self.iv, encrypted: self.encrypted }.write(Self::KIND, out);
    }
}

/// Returns the rest of a message, if its length is that of a possible plain text.
fn encrypted(mut fields: Fields<'_>) -> Result<&[u8], MessageError> {
    let len = fields.len();
    let fits = (ConfirmPlain::LEN_MIN..=ConfirmPlain::LEN_MAX).contains(&len);
    if fits { fields.octets(len) } else { Err(fields.size_error()) }
}

/// The flags of Confirm and `SASrelay`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "four flags on the wire")]
pub struct Flags {
    /// E: enrolment with a PBX (section 7.3.1); not used in `SASrelay`.
    pub enrolment: bool,
    /// V: the user has verified the SAS (section 7.1).
    pub verified: bool,
    /// A: `GoClear` is allowed (section 4.7.2).
    pub allow_clear: bool,
    /// D: the call is disclosed to third parties (section 11).
    pub disclosure: bool,
}

impl From<u8> for Flags {
    fn from(octet: u8) -> Self {
        Self {
            enrolment: octet & 8 != 0,
            verified: octet & 4 != 0,
            allow_clear: octet & 2 != 0,
            disclosure: octet & 1 != 0,
        }
    }
}

impl From<Flags> for u8 {
    fn from(flags: Flags) -> Self {
        let Flags { enrolment, verified, allow_clear, disclosure } = flags;
        u8::from(enrolment) << 3
            | u8::from(verified) << 2
            | u8::from(allow_clear) << 1
            | u8::from(disclosure)
    }
}

/// A signature of the SAS (section 7.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature<'a> {
    kind: [u8; 4],
    block: &'a [u8],
}

impl<'a> Signature<'a> {
    /// Creates a signature of type `kind` ("PGP " or "X509", section 5.1.7); `None` if `block` is
    /// empty or longer than 2 040 octets. The block is padded with zeros to a whole word.
    pub fn new(kind: [u8; 4], block: &'a [u8]) -> Option<Self> {
        let words = 1 + block.len().div_ceil(4);
        (words > 1 && words <= SIGNATURE_WORDS_MAX).then_some(Self { kind, block })
    }

    /// Returns the signature type block.
    pub fn kind(&self) -> [u8; 4] {
        self.kind
    }

    /// Returns the signature block; in a parsed message, it consists of whole words.
    pub fn block(&self) -> &'a [u8] {
        self.block
    }

    fn parse(fields: &mut Fields<'a>, words: usize) -> Result<Option<Self>, MessageError> {
        if words == 0 {
            return Ok(None);
        }
        let error = fields.size_error();
        let kind = fields.array()?;
        let block = fields.octets((words - 1) * 4)?;
        Self::new(kind, block).map(Some).ok_or(error)
    }

    fn words(signature: Option<Self>) -> usize {
        signature.map_or(0, |signature| 1 + signature.block.len().div_ceil(4))
    }

    fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.kind);
        write_padded(out, self.block);
    }
}

/// Splits a word into the signature length and the flags (section 5.7).
fn signature_and_flags(word: u32) -> (usize, Flags) {
    let [_, high, low, flags] = word.to_be_bytes();
    (usize::from(u16::from_be_bytes([high & 1, low])), Flags::from(flags))
}

/// The decrypted body of a Confirm message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfirmPlain<'a> {
    /// Hash preimage H0 (section 9).
    pub h0: [u8; 32],
    /// Flags.
    pub flags: Flags,
    /// Seconds for which the shared secret stays in the cache; `u32::MAX` means for ever, 0 not at
    /// all (section 4.9).
    pub cache_expiration: u32,
    /// Signature of the SAS, if any.
    pub signature: Option<Signature<'a>>,
}

impl<'a> ConfirmPlain<'a> {
    /// Octets of a body without a signature.
    const LEN_MIN: usize = 40;

    /// Octets of a body with the longest signature.
    const LEN_MAX: usize = Self::LEN_MIN + SIGNATURE_WORDS_MAX * 4;

    /// Reads the decrypted octets. It ignores the fifteen unused bits and the undefined flags.
    pub fn parse(octets: &'a [u8]) -> Result<Self, MessageError> {
        let mut fields = Fields::plain(octets);
        let h0 = fields.array()?;
        let (words, flags) = signature_and_flags(fields.word()?);
        let cache_expiration = fields.word()?;
        let signature = Signature::parse(&mut fields, words)?;
        fields.end()?;
        Ok(Self { h0, flags, cache_expiration, signature })
    }

    /// Appends the octets to encrypt.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.h0);
        let words = Signature::words(self.signature) as u32;
        let word = words << 8 | u32::from(u8::from(self.flags));
        out.extend_from_slice(&word.to_be_bytes());
        out.extend_from_slice(&self.cache_expiration.to_be_bytes());
        if let Some(signature) = self.signature {
            signature.write(out);
        }
    }
}

/// The decrypted body of a `SASrelay`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SasRelayPlain<'a> {
    /// Flags set by the other party.
    pub flags: Flags,
    /// The rendering of the relayed SAS; `None` if it is unknown.
    pub sas_type: Option<SasType>,
    /// The relayed sashash, whose first four octets are the sasvalue; zeros for a client that does
    /// not trust the sender.
    pub sas_hash: [u8; 32],
    /// Signature of the SAS, if any.
    pub signature: Option<Signature<'a>>,
}

impl<'a> SasRelayPlain<'a> {
    /// Reads the decrypted octets. It ignores the unused bits and the undefined flags.
    pub fn parse(octets: &'a [u8]) -> Result<Self, MessageError> {
        let mut fields = Fields::plain(octets);
        let (words, flags) = signature_and_flags(fields.word()?);
        let sas_type = SasType::from_code(fields.array()?);
        let sas_hash = fields.array()?;
        let signature = Signature::parse(&mut fields, words)?;
        fields.end()?;
        Ok(Self { flags: Flags { enrolment: false, ..flags }, sas_type, sas_hash, signature })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Message;

    fn plain() -> ConfirmPlain<'static> {
        let flags = Flags { verified: true, ..Flags::default() };
        ConfirmPlain { h0: [1; 32], flags, cache_expiration: 0x0102_0304, signature: None }
    }

    fn written(plain: &ConfirmPlain<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        plain.write(&mut out);
        out
    }

    #[test]
    fn without_a_signature_a_confirm_has_19_words() {
        let encrypted = written(&plain());
        assert_eq!(encrypted[32..], [0, 0, 0, 4, 1, 2, 3, 4]);
        let confirm = Confirm { mac: [0; 8], iv: [0; 16], encrypted: &encrypted };
        let mut out = Vec::new();
        Message::Confirm1(confirm).write(&mut out);
        assert_eq!(out.len(), 19 * 4);
    }

    #[test]
    fn the_longest_signature_takes_all_nine_bits() {
        let block = [7; 2040];
        assert_eq!(Signature::new(*b"X509", &[7; 2041]), None);
        let signature = Signature::new(*b"X509", &block);
        let octets = written(&ConfirmPlain { signature, ..plain() });
        assert_eq!(octets[32..36], [0, 1, 0xff, 4]);
        assert_eq!(ConfirmPlain::parse(&octets).unwrap().signature, signature);
    }

    #[test]
    fn a_signature_of_a_type_and_nothing_else_is_refused() {
        let mut octets = written(&plain());
        octets[34] = 1;
        octets.extend_from_slice(b"PGP ");
        assert!(ConfirmPlain::parse(&octets).is_err());
    }

    #[test]
    fn unused_bits_are_ignored() {
        let mut octets = written(&plain());
        octets[32] = 0xff;
        octets[33] = 0xfe;
        octets[35] |= 0xf0;
        assert_eq!(ConfirmPlain::parse(&octets), Ok(plain()));
    }

    #[test]
    fn every_truncation_of_a_plain_text_is_an_error() {
        let signature = Signature::new(*b"PGP ", &[7; 40]);
        let octets = written(&ConfirmPlain { signature, ..plain() });
        for len in 0..octets.len() {
            assert!(ConfirmPlain::parse(&octets[..len]).is_err(), "{len} octets");
        }
    }

    #[test]
    fn an_encrypted_part_of_no_possible_length_is_refused() {
        for len in [0, 36, 40 + 512 * 4] {
            let mut out = Vec::new();
            let encrypted = &vec![0; len];
            Confirm { mac: [0; 8], iv: [0; 16], encrypted }.write(Confirm::CONFIRM2, &mut out);
            assert!(matches!(Message::parse(&out), Err(MessageError::Size { .. })), "{len}");
        }
    }

    #[test]
    fn a_relayed_sas_is_read() {
        let mut octets = vec![0, 0, 2, 0x0f];
        octets.extend_from_slice(b"B256");
        octets.extend_from_slice(&[9; 32]);
        octets.extend_from_slice(b"PGP sign");
        let relayed = SasRelayPlain::parse(&octets).unwrap();
        let flags = Flags { enrolment: false, verified: true, allow_clear: true, disclosure: true };
        assert_eq!((relayed.flags, relayed.sas_type), (flags, Some(SasType::B256)));
        assert_eq!(relayed.signature, Signature::new(*b"PGP ", b"sign"));
        for len in 0..octets.len() {
            assert!(SasRelayPlain::parse(&octets[..len]).is_err());
        }
    }

    proptest! {
        #[test]
        fn a_plain_text_survives_writing(
            h0: [u8; 32], flags in 0_u8..16, cache_expiration: u32, kind: [u8; 4],
            words in 0_usize..=510, fill: u8,
        ) {
            let block = vec![fill; words * 4];
            let signature = Signature::new(kind, &block);
            let plain = ConfirmPlain { h0, flags: flags.into(), cache_expiration, signature };
            let octets = written(&plain);
            prop_assert_eq!(ConfirmPlain::parse(&octets), Ok(plain));
        }

        #[test]
        fn encrypted_messages_survive_writing(
            kind in 0..3, mac: [u8; 8], iv: [u8; 16], words in 10_usize..=521, fill: u8,
        ) {
            let encrypted = &vec![fill; words * 4];
            let message = match kind {
                0 => Message::Confirm1(Confirm { mac, iv, encrypted }),
                1 => Message::Confirm2(Confirm { mac, iv, encrypted }),
                _ => Message::SasRelay(SasRelay { mac, iv, encrypted }),
            };
            let mut out = Vec::new();
            message.write(&mut out);
            prop_assert_eq!(Message::parse(&out), Ok(message));
        }
    }
}
