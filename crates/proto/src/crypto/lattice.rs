//! ML-KEM (FIPS 203), and the Kyber of round 3 that it came from.
//!
//! Kyber is had from ML-KEM's own steps. The two share the key's encoding, the matrix and the
//! encryption; they differ in three places. Kyber hashes the random message first, which no peer
//! can tell from a random message that was not hashed. It derives the key from 32 octets of seed
//! alone, which no peer sees either. And it hashes ML-KEM's secret once more, with the ciphertext:
//! that one is done here. A ciphertext that is not genuine gives a secret that nobody knows, as
//! with Kyber, though another one.

use ml_kem::Decapsulate;
use ml_kem::KeyExport;
use shake::ExtendableOutput;
use shake::Shake256;
use shake::Update;
use shake::XofReader;
use zeroize::Zeroizing;

use super::Refused;
use super::agreement::AgreementError;
use super::agreement::Entropy;
use super::agreement::Secret;

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

/// Runs the body with `$module` naming the parameters that `$lattice` has.
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
    /// Every mechanism.
    pub const ALL: [Self; 6] = [
        Self::MlKem512,
        Self::MlKem768,
        Self::MlKem1024,
        Self::Kyber512,
        Self::Kyber768,
        Self::Kyber1024,
    ];

    /// Octets in a public key.
    #[must_use]
    pub const fn public_len(self) -> usize {
        match self {
            Self::MlKem512 | Self::Kyber512 => 800,
            Self::MlKem768 | Self::Kyber768 => 1184,
            Self::MlKem1024 | Self::Kyber1024 => 1568,
        }
    }

    /// Octets in a ciphertext.
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

    /// Encapsulates to the key `public`: appends the ciphertext to `ciphertext`.
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

    /// What the mechanism makes of ML-KEM's secret.
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

/// A private key, kept as the seed that it comes from (FIPS 203 section 7.1); zeroised on drop.
pub(super) struct LatticeKey {
    lattice: Lattice,
    seed: Zeroizing<ml_kem::Seed>,
}

impl LatticeKey {
    /// Takes a key from `entropy`: appends its public key to `public`.
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

    /// The secret in `ciphertext`, or one that nobody knows.
    pub(super) fn decapsulate(self, ciphertext: &[u8]) -> Result<Secret, AgreementError> {
        with_parameters!(self.lattice, set => {
            let key = set::DecapsulationKey::from_seed(*self.seed);
            let sealed: &set::Ciphertext = ciphertext.try_into().map_err(|_| Refused)?;
            let secret = Zeroizing::new(key.decapsulate(sealed));
            Ok(self.lattice.finish(&secret, ciphertext))
        })
    }
}
