//! Key encapsulation for ZRTP: a lattice alone, or with a curve (draft-zrtp-pq, "Hybrid KEM").

use core::fmt;

use zeroize::Zeroizing;

use super::agreement::{Agreement, KeyPair};
use super::lattice::{Lattice, LatticeKey};
use rushes_crypto::Refused;
use rushes_crypto::{AgreementError, Entropy, Secret};
use rushes_crypto::{HashAlgorithm, hkdf, hmac};

use super::lattice;

/// A key encapsulation mechanism.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Kem {
    /// A lattice alone.
    Alone(Lattice),
    /// X25519, then a lattice.
    X25519(Lattice),
    /// X448, then a lattice.
    #[cfg(feature = "x448")]
    X448(Lattice),
}

impl Kem {
    const fn parts(self) -> (Option<Agreement>, Lattice) {
        match self {
            Self::Alone(lattice) => (None, lattice),
            Self::X25519(lattice) => (Some(Agreement::X25519), lattice),
            #[cfg(feature = "x448")]
            Self::X448(lattice) => (Some(Agreement::X448), lattice),
        }
    }

    /// Returns the octets of the curve's part, in public keys and in ciphertexts.
    const fn curve_len(self) -> usize {
        match self.parts().0 {
            Some(curve) => curve.public_len(),
            None => 0,
        }
    }

    /// Returns the octets in a public key.
    #[must_use]
    pub const fn public_len(self) -> usize {
        self.curve_len() + self.parts().1.public_len()
    }

    /// Returns the octets in a ciphertext.
    #[must_use]
    pub const fn ciphertext_len(self) -> usize {
        self.curve_len() + self.parts().1.ciphertext_len()
    }

    /// Returns the octets in the secret: those of a digest, or 32 from a lattice alone.
    #[must_use]
    pub const fn secret_len(self, hash: HashAlgorithm) -> usize {
        match self.parts() {
            (None, _) => lattice::SECRET_LEN,
            (Some(_), _) => hash.digest_len(),
        }
    }

    /// Generates a secret and the ciphertext that encapsulates it to the public key `public`.
    /// `hash` is the negotiated hash.
    ///
    /// # Errors
    /// Any [`AgreementError`].
    pub fn encapsulate(
        self,
        hash: HashAlgorithm,
        public: &[u8],
        entropy: &mut Entropy<'_>,
    ) -> Result<(Secret, Vec<u8>), AgreementError> {
        let (curve_public, lattice_public) = self.split(public, self.public_len())?;
        let mut ciphertext = Vec::with_capacity(self.ciphertext_len());
        let (curve, lattice) = self.parts();
        let curve_secret = match curve {
            Some(curve) => {
                let pair = KeyPair::generate(curve, entropy)?;
                ciphertext.extend_from_slice(pair.public());
                let shared = pair.agree(curve_public)?;
                Some(derive(curve, hash, &shared, [&ciphertext, curve_public])?)
            }
            None => None,
        };
        let secret = lattice.encapsulate(lattice_public, entropy, &mut ciphertext)?;
        Ok((combine(hash, curve_secret, secret, &ciphertext), ciphertext))
    }

    /// Splits `octets`, `expected` in number, into the parts of the curve and the lattice.
    fn split(self, octets: &[u8], expected: usize) -> Result<(&[u8], &[u8]), AgreementError> {
        let error = AgreementError::Length { expected, given: octets.len() };
        if octets.len() != expected {
            return Err(error);
        }
        octets.split_at_checked(self.curve_len()).ok_or(error)
    }
}

/// Derives the key of the ECDH-based KEM; `context` is the ciphertext, then the public key.
fn derive(
    curve: Agreement,
    hash: HashAlgorithm,
    shared: &Secret,
    context: [&[u8]; 2],
) -> Result<Secret, Refused> {
    let id: [u8; 2] = match curve {
        Agreement::X25519 => [0x00, 0x20],
        #[cfg(feature = "x448")]
        Agreement::X448 => [0x00, 0x21],
        _ => return Err(Refused),
    };
    let shared = shared.as_slice();
    // "aea_prk" is the spelling of the draft; RFC 9180 section 4.1 has "eae_prk".
    let material = Zeroizing::new([b"ZRTP", &id[..], b"aea_prk", shared].concat());
    // The length has two octets, as in RFC 9180 section 4; the draft does not specify it.
    let len = (shared.len() as u16).to_be_bytes();
    let info = [&len[..], b"ZRTP", &id, b"shared_secret", context[0], context[1]];
    let mut out = Zeroizing::new(vec![0; shared.len()]);
    hkdf(hash, &[], &material, &info, &mut out)?;
    Ok(Secret::new(out))
}

/// Combines the secrets of a curve and a lattice by the draft's combiner; that of a lattice alone
/// is returned as it is.
fn combine(
    hash: HashAlgorithm,
    curve: Option<Secret>,
    lattice: Secret,
    ciphertext: &[u8],
) -> Secret {
    let Some(curve) = curve else {
        return lattice;
    };
    let first = hmac(hash, &[], &[curve.as_slice()]);
    let second = hmac(hash, first.as_slice(), &[lattice.as_slice()]);
    Secret::from_slice(hmac(hash, second.as_slice(), &[ciphertext]).as_slice())
}

/// The initiator's key pair; the private part is zeroised on drop.
pub struct KemKeyPair {
    kem: Kem,
    public: Vec<u8>,
    curve: Option<KeyPair>,
    lattice: LatticeKey,
}

impl KemKeyPair {
    /// Generates a pair whose private part is taken from `entropy`.
    ///
    /// # Errors
    /// [`Refused`] if `entropy` yields no valid key.
    pub fn generate(kem: Kem, entropy: &mut Entropy<'_>) -> Result<Self, Refused> {
        let (curve, lattice) = kem.parts();
        let mut public = Vec::with_capacity(kem.public_len());
        let curve = match curve {
            Some(curve) => Some(KeyPair::generate(curve, entropy)?),
            None => None,
        };
        if let Some(pair) = &curve {
            public.extend_from_slice(pair.public());
        }
        let lattice = LatticeKey::generate(lattice, entropy, &mut public);
        Ok(Self { kem, public, curve, lattice })
    }

    /// Returns the mechanism of the pair.
    #[must_use]
    pub const fn kem(&self) -> Kem {
        self.kem
    }

    /// Returns the public key: that of the curve, then that of the lattice.
    #[must_use]
    pub fn public(&self) -> &[u8] {
        &self.public
    }

    /// Decapsulates the secret in `ciphertext`. `hash` is the negotiated hash.
    ///
    /// A ciphertext of the right length that was not made for this pair gives a different secret,
    /// not an error (FIPS 203 section 7.3).
    ///
    /// # Errors
    /// [`AgreementError`] if the ciphertext has the wrong length or the curve's part of it is
    /// degenerate; the pair is consumed in any case.
    pub fn decapsulate(
        self,
        hash: HashAlgorithm,
        ciphertext: &[u8],
    ) -> Result<Secret, AgreementError> {
        let (to_curve, to_lattice) = self.kem.split(ciphertext, self.kem.ciphertext_len())?;
        let curve_secret = match self.curve {
            Some(pair) => {
                let curve = pair.agreement();
                let shared = pair.agree(to_curve)?;
                let public = self.public.get(..to_curve.len()).ok_or(Refused)?;
                Some(derive(curve, hash, &shared, [to_curve, public])?)
            }
            None => None,
        };
        let secret = self.lattice.decapsulate(to_lattice)?;
        Ok(combine(hash, curve_secret, secret, ciphertext))
    }
}

impl fmt::Debug for KemKeyPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KemKeyPair").field("kem", &self.kem).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::crypto::hash;
    use crate::crypto::testing::{counting, octets, random};

    const HASHES: [HashAlgorithm; 2] = [HashAlgorithm::Sha256, HashAlgorithm::Sha384];

    /// Returns all mechanisms.
    fn every() -> impl Iterator<Item = Kem> {
        let kinds = [
            Kem::Alone,
            Kem::X25519,
            #[cfg(feature = "x448")]
            Kem::X448,
        ];
        Lattice::ALL.into_iter().flat_map(move |lattice| kinds.map(|kind| kind(lattice)))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8))]

        #[test]
        fn both_ends_agree(seed: u64, other_seed: u64) {
            for (kem, hash) in every().flat_map(|kem| HASHES.map(|hash| (kem, hash))) {
                let pair = KemKeyPair::generate(kem, &mut random(seed)).unwrap();
                prop_assert_eq!(pair.public().len(), kem.public_len());
                let made = kem.encapsulate(hash, pair.public(), &mut random(other_seed));
                let (secret, ciphertext) = made.unwrap();
                prop_assert_eq!(ciphertext.len(), kem.ciphertext_len());
                prop_assert_eq!(secret.as_slice().len(), kem.secret_len(hash));
                let found = pair.decapsulate(hash, &ciphertext).unwrap();
                prop_assert_eq!(found.as_slice(), secret.as_slice());
            }
        }
    }

    #[test]
    fn the_result_is_that_of_an_independent_implementation_of_the_draft() {
        let known = [
            (
                Kem::X25519(Lattice::MlKem768),
                HashAlgorithm::Sha256,
                "738ca51d9b289139e606a674296c903dfb718f4960d1808c8a5670e16e0c4180",
                "4b1640635f1968f99e9324b46c2addc7debb1410dd35ba5a9bce53077bb94db6",
                "b36a449e6c8e3543645f9ab236cf04740befc3df3574e333f4b345eea37463ad",
            ),
            #[cfg(feature = "x448")]
            (
                Kem::X448(Lattice::Kyber1024),
                HashAlgorithm::Sha384,
                "18d6f98e05e1175ab5854694514b733099a8b75ffa182c3a659078ad5e40d1af",
                "b7b7734a884143a1099658f45be1c8aba5a93748181dad32afd90b47d9dbfce3",
                "5e8359dc4ba1b6c97ff2647629266d979822aee98960d6fb8c731f72dc842a44\
                 8a31f01f7967e4b3ba0183c1d67e3ae4",
            ),
        ];
        let digest = |octets: &[u8]| hash(HashAlgorithm::Sha256, &[octets]).as_slice().to_vec();
        for (kem, hash, public_digest, ciphertext_digest, expected) in known {
            let pair = KemKeyPair::generate(kem, &mut counting(1)).unwrap();
            assert_eq!(digest(pair.public()), octets(public_digest));
            let made = kem.encapsulate(hash, pair.public(), &mut counting(101));
            let (secret, ciphertext) = made.unwrap();
            assert_eq!(digest(&ciphertext), octets(ciphertext_digest));
            assert_eq!(secret.as_slice(), octets(expected));
            let found = pair.decapsulate(hash, &ciphertext).unwrap();
            assert_eq!(found.as_slice(), octets(expected));
        }
    }

    #[test]
    fn keys_and_ciphertexts_of_another_length_are_refused() {
        for kem in every() {
            let hash = HashAlgorithm::Sha256;
            let expected = kem.public_len();
            for given in [0, expected - 1, expected + 1] {
                let made = kem.encapsulate(hash, &vec![0; given], &mut counting(1));
                assert_eq!(made.unwrap_err(), AgreementError::Length { expected, given });
            }
            let expected = kem.ciphertext_len();
            for given in [0, expected - 1, expected + 1] {
                let pair = KemKeyPair::generate(kem, &mut counting(1)).unwrap();
                let found = pair.decapsulate(hash, &vec![0; given]);
                assert_eq!(found.unwrap_err(), AgreementError::Length { expected, given });
            }
        }
    }

    #[test]
    fn a_changed_ciphertext_gives_another_secret() {
        let hash = HashAlgorithm::Sha256;
        for kem in every() {
            let pair = KemKeyPair::generate(kem, &mut counting(1)).unwrap();
            let made = kem.encapsulate(hash, pair.public(), &mut counting(101));
            let (secret, mut ciphertext) = made.unwrap();
            *ciphertext.last_mut().unwrap() ^= 1;
            let found = pair.decapsulate(hash, &ciphertext).unwrap();
            assert_eq!(found.as_slice().len(), secret.as_slice().len());
            assert_ne!(found.as_slice(), secret.as_slice());
        }
    }

    #[test]
    fn a_degenerate_value_of_the_curve_is_refused_at_both_ends() {
        let hash = HashAlgorithm::Sha256;
        for kem in every().filter(|kem| kem.curve_len() != 0) {
            let pair = KemKeyPair::generate(kem, &mut counting(1)).unwrap();
            let mut public = pair.public().to_vec();
            public[..kem.curve_len()].fill(0);
            let made = kem.encapsulate(hash, &public, &mut counting(101));
            assert_eq!(made.unwrap_err(), AgreementError::Degenerate);
            let found = pair.decapsulate(hash, &vec![0; kem.ciphertext_len()]);
            assert_eq!(found.unwrap_err(), AgreementError::Degenerate);
        }
    }

    #[test]
    fn a_pair_does_not_show_itself() {
        let pair = KemKeyPair::generate(Kem::X25519(Lattice::MlKem768), &mut counting(1)).unwrap();
        assert_eq!(format!("{pair:?}"), "KemKeyPair { kem: X25519(MlKem768), .. }");
    }
}
