//! The Commit message in its four forms (RFC 6189 section 5.4, draft section "Commit Message").

use super::algorithm::{Algorithm, AuthTag, Cipher, Hash, SasType};
use super::key_agreement::KeyAgreement;
use super::layout::{Fields, MessageError, write_message, write_padded};

/// The algorithms that the initiator has selected, and its commitment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit<'a> {
    /// Hash image H2 (section 9).
    pub h2: [u8; 32],
    /// The initiator's ZID, as in its Hello.
    pub zid: [u8; 12],
    /// Hash algorithm.
    pub hash: Hash,
    /// Cipher algorithm.
    pub cipher: Cipher,
    /// Authentication tag of SRTP.
    pub auth_tag: AuthTag,
    /// Key agreement type, which determines the form of [`CommitKey`].
    pub key_agreement: KeyAgreement,
    /// Rendering of the SAS.
    pub sas_type: SasType,
    /// The part of the message that depends on the key agreement type.
    pub key: CommitKey<'a>,
    /// MAC over everything before it, keyed by H1; zeros until [`set_mac`](super::set_mac) sets it.
    pub mac: [u8; 8],
}

/// The part of a Commit that depends on the key agreement type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitKey<'a> {
    /// Diffie-Hellman (RFC 6189 figure 5).
    Dh {
        /// Hash of the initiator's `DHPart2` and the responder's Hello.
        hvi: [u8; 32],
    },
    /// Multistream (RFC 6189 figure 6).
    Multistream {
        /// The nonce, which must never have been used before.
        nonce: [u8; 16],
    },
    /// Preshared (RFC 6189 figure 7).
    Preshared {
        /// The nonce, which must never have been used before.
        nonce: [u8; 16],
        /// The ID of the preshared key (section 4.4.2.1).
        key_id: [u8; 8],
    },
    /// Key encapsulation (draft, KEM Commit).
    Kem {
        /// Hash of the initiator's `KEMPart2` and the responder's Hello.
        hvi: [u8; 32],
        /// The initiator's public key, [`KeyAgreement::initiator_len`] octets.
        pvi: &'a [u8],
    },
}

impl<'a> Commit<'a> {
    pub(super) const KIND: [u8; 8] = *b"Commit  ";

    pub(super) fn parse(mut fields: Fields<'a>) -> Result<Self, MessageError> {
        let commit = Self {
            h2: fields.array()?,
            zid: fields.array()?,
            hash: algorithm(&mut fields)?,
            cipher: algorithm(&mut fields)?,
            auth_tag: algorithm(&mut fields)?,
            key_agreement: algorithm(&mut fields)?,
            sas_type: algorithm(&mut fields)?,
            key: CommitKey::Multistream { nonce: [0; 16] },
            mac: [0; 8],
        };
        let key = match commit.key_agreement {
            KeyAgreement::Mult => CommitKey::Multistream { nonce: fields.array()? },
            KeyAgreement::Prsh => {
                CommitKey::Preshared { nonce: fields.array()?, key_id: fields.array()? }
            }
            KeyAgreement::Kem(kem) => {
                let hvi = fields.array()?;
                CommitKey::Kem { hvi, pvi: fields.padded(kem.public_key_len())? }
            }
            _ => CommitKey::Dh { hvi: fields.array()? },
        };
        let mac = fields.array()?;
        fields.end()?;
        Ok(Self { key, mac, ..commit })
    }

    /// Appends the message to `out`. The field `key` must be of the form that `key_agreement`
    /// requires.
    pub fn write(&self, out: &mut Vec<u8>) {
        write_message(out, Self::KIND, |out| {
            out.extend_from_slice(&self.h2);
            out.extend_from_slice(&self.zid);
            out.extend_from_slice(&self.hash.code());
            out.extend_from_slice(&self.cipher.code());
            out.extend_from_slice(&self.auth_tag.code());
            out.extend_from_slice(&self.key_agreement.code());
            out.extend_from_slice(&self.sas_type.code());
            match self.key {
                CommitKey::Dh { hvi } => out.extend_from_slice(&hvi),
                CommitKey::Multistream { nonce } => out.extend_from_slice(&nonce),
                CommitKey::Preshared { nonce, key_id } => {
                    out.extend_from_slice(&nonce);
                    out.extend_from_slice(&key_id);
                }
                CommitKey::Kem { hvi, pvi } => {
                    out.extend_from_slice(&hvi);
                    write_padded(out, pvi);
                }
            }
            out.extend_from_slice(&self.mac);
        });
    }
}

/// Reads the next type block, which must be known, as only offered algorithms may be selected.
fn algorithm<T: Algorithm>(fields: &mut Fields<'_>) -> Result<T, MessageError> {
    let code = fields.array()?;
    T::from_code(code).ok_or(MessageError::UnknownAlgorithm { code, error: T::UNSUPPORTED })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{ErrorCode, Kem, KemComponent, Message};

    fn plain(key_agreement: KeyAgreement, key: CommitKey<'_>) -> Commit<'_> {
        Commit {
            h2: [2; 32],
            zid: [4; 12],
            hash: Hash::S384,
            cipher: Cipher::Aes3,
            auth_tag: AuthTag::Hs80,
            key_agreement,
            sas_type: SasType::B256,
            key,
            mac: [0; 8],
        }
    }

    fn written(commit: &Commit<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        commit.write(&mut out);
        out
    }

    #[test]
    fn the_lengths_are_those_of_figures_5_to_7() {
        let dh = plain(KeyAgreement::X255, CommitKey::Dh { hvi: [1; 32] });
        assert_eq!(written(&dh).len(), 29 * 4);
        let nonce = [1; 16];
        let multistream = plain(KeyAgreement::Mult, CommitKey::Multistream { nonce });
        assert_eq!(written(&multistream).len(), 25 * 4);
        let key = CommitKey::Preshared { nonce, key_id: [2; 8] };
        assert_eq!(written(&plain(KeyAgreement::Prsh, key)).len(), 27 * 4);
    }

    #[test]
    fn a_key_that_ends_inside_a_word_is_padded() {
        let pvi = [7; 699];
        let kem = Kem::single(KemComponent::Ntru509).unwrap();
        let key = CommitKey::Kem { hvi: [1; 32], pvi: &pvi };
        let commit = plain(KeyAgreement::Kem(kem), key);
        let octets = written(&commit);
        assert_eq!(octets.len(), 29 * 4 + 700);
        assert_eq!(Message::parse(&octets), Ok(Message::Commit(commit)));
    }

    #[test]
    fn an_unknown_algorithm_has_the_error_to_answer_with() {
        let commit = plain(KeyAgreement::X255, CommitKey::Dh { hvi: [1; 32] });
        let codes = [
            ErrorCode::HashType,
            ErrorCode::CipherType,
            ErrorCode::AuthTag,
            ErrorCode::KeyExchange,
            ErrorCode::SasScheme,
        ];
        for (at, code) in codes.into_iter().enumerate() {
            let mut octets = written(&commit);
            octets[56 + at * 4] = b'?';
            assert_eq!(Message::parse(&octets).map_err(MessageError::code), Err(code));
        }
    }

    #[test]
    fn a_form_that_does_not_fit_the_type_is_refused() {
        let commit = plain(KeyAgreement::Mult, CommitKey::Dh { hvi: [1; 32] });
        let error = MessageError::Size { actual: 116, at: 100 };
        assert_eq!(Message::parse(&written(&commit)), Err(error));
    }

    proptest! {
        #[test]
        fn a_commit_survives_writing(
            form in 0..4, h2: [u8; 32], zid: [u8; 12], hvi: [u8; 32], nonce: [u8; 16],
            key_id: [u8; 8], mac: [u8; 8], fill: u8,
        ) {
            let pvi = [fill; 1216];
            let (key_agreement, key) = match form {
                0 => (KeyAgreement::Dh3k, CommitKey::Dh { hvi }),
                1 => (KeyAgreement::Mult, CommitKey::Multistream { nonce }),
                2 => (KeyAgreement::Prsh, CommitKey::Preshared { nonce, key_id }),
                _ => {
                    let agreement = KeyAgreement::Kem(Kem::X25519_ML_KEM_768);
                    (agreement, CommitKey::Kem { hvi, pvi: &pvi })
                }
            };
            let commit = Commit { h2, zid, mac, ..plain(key_agreement, key) };
            let octets = written(&commit);
            prop_assert_eq!(Message::parse(&octets), Ok(Message::Commit(commit)));
        }
    }
}
