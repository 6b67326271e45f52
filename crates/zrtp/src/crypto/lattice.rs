//! ML-KEM (FIPS 203), and its predecessor, Kyber of round 3.
//!
//! Kyber is built from the steps of ML-KEM. Both use the same key encoding, matrix and encryption;
//! they differ in three places. Kyber hashes the random message first, which a peer cannot
//! distinguish from an unhashed random message. It derives the key from the 32 octets of the seed
//! alone, which a peer cannot notice, either. Finally, it hashes ML-KEM's secret once more, with
//! the ciphertext: only this step is done here. As with Kyber, an invalid ciphertext yields an
//! unpredictable secret, though a different one.

use ml_kem::{Decapsulate, KeyExport};
use shake::{ExtendableOutput, Shake256, Update, XofReader};
use zeroize::Zeroizing;

use rushes_crypto::Refused;
use rushes_crypto::{AgreementError, Entropy, Secret};

/// Octets in a secret.
pub(super) const SECRET_LEN: usize = 32;

/// A key encapsulation mechanism over module lattices.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Lattice {
    /// ML-KEM-512 of FIPS 203.
    MlKem512,
    /// ML-KEM-768 of FIPS 203.
    MlKem768,
    /// ML-KEM-1024 of FIPS 203.
    MlKem1024,
    /// Kyber512 of the third round, before the standard.
    Kyber512,
    /// Kyber768 of the third round, before the standard.
    Kyber768,
    /// Kyber1024 of the third round, before the standard.
    Kyber1024,
}

/// Runs the body with `$module` bound to the parameter set of `$lattice`.
macro_rules! with_parameters {
    ($lattice:expr, $module:ident => $body:block) => {
        match $lattice {
            Lattice::MlKem512 | Lattice::Kyber512 => {
                use ml_kem::ml_kem_512 as $module;
                $body
            }
            Lattice::MlKem768 | Lattice::Kyber768 => {
                use ml_kem::ml_kem_768 as $module;
                $body
            }
            Lattice::MlKem1024 | Lattice::Kyber1024 => {
                use ml_kem::ml_kem_1024 as $module;
                $body
            }
        }
    };
}

impl Lattice {
    /// All mechanisms.
    pub const ALL: [Self; 6] = [
        Self::MlKem512,
        Self::MlKem768,
        Self::MlKem1024,
        Self::Kyber512,
        Self::Kyber768,
        Self::Kyber1024,
    ];

    /// Returns the octets in a public key.
    #[must_use]
    pub const fn public_len(self) -> usize {
        match self {
            Self::MlKem512 | Self::Kyber512 => 800,
            Self::MlKem768 | Self::Kyber768 => 1184,
            Self::MlKem1024 | Self::Kyber1024 => 1568,
        }
    }

    /// Returns the octets in a ciphertext.
    #[must_use]
    pub const fn ciphertext_len(self) -> usize {
        match self {
            Self::MlKem512 | Self::Kyber512 => 768,
            Self::MlKem768 | Self::Kyber768 => 1088,
            Self::MlKem1024 | Self::Kyber1024 => 1568,
        }
    }

    const fn is_kyber(self) -> bool {
        matches!(self, Self::Kyber512 | Self::Kyber768 | Self::Kyber1024)
    }

    /// Encapsulates a secret to the key `public`: appends the ciphertext to `ciphertext` and
    /// returns the secret.
    pub(super) fn encapsulate(
        self,
        public: &[u8],
        entropy: &mut Entropy<'_>,
        ciphertext: &mut Vec<u8>,
    ) -> Result<Secret, AgreementError> {
        let mut message = Zeroizing::new(ml_kem::B32::default());
        entropy(message.as_mut_slice());
        with_parameters!(self, set => {
            let public = public.try_into().map_err(|_| AgreementError::OutOfRange)?;
            let public =
                set::EncapsulationKey::new(public).map_err(|_| AgreementError::OutOfRange)?;
            let (sealed, secret) = public.encapsulate_deterministic(&message);
            let secret = Zeroizing::new(secret);
            ciphertext.extend_from_slice(&sealed);
            Ok(self.finish(&secret, &sealed))
        })
    }

    /// Converts the secret of ML-KEM to that of the mechanism.
    fn finish(self, secret: &[u8], ciphertext: &[u8]) -> Secret {
        if !self.is_kyber() {
            return Secret::from_slice(secret);
        }
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA3_256, ciphertext);
        let mut function = Shake256::default();
        function.update(secret);
        function.update(digest.as_ref());
        let mut octets = Zeroizing::new(vec![0; SECRET_LEN]);
        function.finalize_xof().read(&mut octets);
        Secret::new(octets)
    }
}

/// A private key, stored as its seed (FIPS 203 section 7.1); zeroised on drop.
pub(super) struct LatticeKey {
    lattice: Lattice,
    seed: Zeroizing<ml_kem::Seed>,
}

impl LatticeKey {
    /// Draws a key from `entropy` and appends its public key to `public`.
    pub(super) fn generate(
        lattice: Lattice,
        entropy: &mut Entropy<'_>,
        public: &mut Vec<u8>,
    ) -> Self {
        let mut seed = Zeroizing::new(ml_kem::Seed::default());
        entropy(seed.as_mut_slice());
        with_parameters!(lattice, set => {
            let key = set::DecapsulationKey::from_seed(*seed);
            public.extend_from_slice(&key.encapsulation_key().to_bytes());
        });
        Self { lattice, seed }
    }

    /// Returns the secret in `ciphertext`, or an unpredictable one if `ciphertext` is invalid.
    pub(super) fn decapsulate(self, ciphertext: &[u8]) -> Result<Secret, AgreementError> {
        with_parameters!(self.lattice, set => {
            let key = set::DecapsulationKey::from_seed(*self.seed);
            let sealed: &set::Ciphertext = ciphertext.try_into().map_err(|_| Refused)?;
            let secret = Zeroizing::new(key.decapsulate(sealed));
            Ok(self.lattice.finish(&secret, ciphertext))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypto::testing::{counting, fixed, octets};
    use crate::crypto::{HashAlgorithm, hash};

    /// The SHA-256 digests of the public key of the seed 01 02 03 … and of a ciphertext to it, and
    /// the secret, made with the Python package `kyber-py`. The message is 65 66 67 … for ML-KEM,
    /// and the SHA3-256 digest of that for Kyber.
    const KNOWN: [(Lattice, &str, &str, &str); 6] = [
        (
            Lattice::MlKem512,
            "a3d8b6e73cf3c9b6eb15a1fb509792d8e64e9e5338ee727bbe72fb8b74695d7d",
            "b9c8827051570c5553dd93e4110aae5aa0d1cea1d3795fa6b9c6e08fbf0ca339",
            "03974c3364c896ed864d57c2b3bb7a04e9bca005258fa7ccde1389f8824eec92",
        ),
        (
            Lattice::Kyber512,
            "a3d8b6e73cf3c9b6eb15a1fb509792d8e64e9e5338ee727bbe72fb8b74695d7d",
            "510b0869dc133c339915c21826722aabde738672f077a626e02bca54bb13933d",
            "75677ecba98399a99f2920d8602d3bc43bfe4947ff320aa7cbbb086aca284fec",
        ),
        (
            Lattice::MlKem768,
            "db4782927013b79c13111f87949d9c9d39ca8c25dd52155d98d6e7f2bad55087",
            "4aa605aa62b5e8a55876bdbd0a5d2cce5b55eb97c67ab2e4d2b278eb68ed6315",
            "ff92ccc3c9b9995b1dfaf1e03ccd614f59b23b786bb875b577cd1a00a0abaa42",
        ),
        (
            Lattice::Kyber768,
            "db4782927013b79c13111f87949d9c9d39ca8c25dd52155d98d6e7f2bad55087",
            "6001c6b43656febd0ed733e99c7c03ff1cd7776d2038b198f025043639a57d16",
            "f58477ab3fe28ba262321460da8867d5513126c4b4beb333b095e9dd4f43be6f",
        ),
        (
            Lattice::MlKem1024,
            "3a05c1d65fcaec3bec38e85c46d68bbcebf4070bf604e77024b5c19d7163b627",
            "bde535c5e53d4732a5a15a3de8b644baa299fb0e8b3eb775f4971241c55c0ed1",
            "81db03d209ff0e161708582d9d56c98bcaf8d98df7fa6dbd43fee629cf920d96",
        ),
        (
            Lattice::Kyber1024,
            "3a05c1d65fcaec3bec38e85c46d68bbcebf4070bf604e77024b5c19d7163b627",
            "c9e3d13ae5c297717cff1f99c9817ec69c911670df1ed51d8d62bba4bbddaf18",
            "20d95fcf879d718445446f6b2f2ec798242c9774eac1e0ac4e12ca1b5375d890",
        ),
    ];

    fn digest(octets: &[u8]) -> Vec<u8> {
        hash(HashAlgorithm::Sha256, &[octets]).as_slice().to_vec()
    }

    fn message(lattice: Lattice) -> Vec<u8> {
        let mut message = vec![0; 32];
        counting(101)(&mut message);
        if lattice.is_kyber() {
            message = octets("19a05637e4231d75f13e1a0adfc22fdf2c8b1443b72b638e3a2ac48c404b2e0f");
        }
        message
    }

    #[test]
    fn keys_ciphertexts_and_secrets_are_those_of_another_library() {
        for (lattice, public_digest, ciphertext_digest, secret) in KNOWN {
            let mut public = Vec::new();
            let key = LatticeKey::generate(lattice, &mut counting(1), &mut public);
            assert_eq!(public.len(), lattice.public_len());
            assert_eq!(digest(&public), octets(public_digest), "{lattice:?}");
            let mut ciphertext = Vec::new();
            let mut entropy = fixed(message(lattice));
            let made = lattice.encapsulate(&public, &mut entropy, &mut ciphertext).unwrap();
            assert_eq!(ciphertext.len(), lattice.ciphertext_len());
            assert_eq!(digest(&ciphertext), octets(ciphertext_digest), "{lattice:?}");
            assert_eq!(made.as_slice(), octets(secret), "{lattice:?}");
            let found = key.decapsulate(&ciphertext).unwrap();
            assert_eq!(found.as_slice(), octets(secret), "{lattice:?}");
        }
    }

    #[test]
    fn a_public_key_with_a_coefficient_out_of_range_is_refused() {
        for lattice in Lattice::ALL {
            // The first coefficient is 12 bits of ones: 4095, but the maximum is 3328.
            let mut public = vec![0; lattice.public_len()];
            public[..2].copy_from_slice(&[0xff, 0x0f]);
            let made = lattice.encapsulate(&public, &mut counting(1), &mut Vec::new());
            assert_eq!(made.unwrap_err(), AgreementError::OutOfRange);
        }
    }
}
