//! The key agreements of ZRTP: one interface for Diffie-Hellman and key encapsulation.

use super::algorithm::Hash;
use super::key_agreement::{Kem, KemComponent, KeyAgreement};
use crate::crypto;
use crate::crypto::{
    Agreement, AgreementError, Entropy, KemKeyPair, KeyPair, Lattice, Refused, Secret,
};

/// The initiator's half of a key agreement.
pub(super) enum InitiatorKey {
    Dh(KeyPair),
    Kem(Box<KemKeyPair>),
}

/// The responder's half of a key agreement.
pub(super) enum ResponderKey {
    Dh(KeyPair),
    /// The secret, which follows from the initiator's public key alone, and the ciphertext.
    Kem(Secret, Vec<u8>),
}

fn agreement(key_agreement: KeyAgreement) -> Option<Agreement> {
    Some(match key_agreement {
        KeyAgreement::Dh2k => Agreement::Dh2k,
        KeyAgreement::Dh3k => Agreement::Dh3k,
        KeyAgreement::Ec25 => Agreement::Ec25,
        KeyAgreement::Ec38 => Agreement::Ec38,
        KeyAgreement::Ec52 => Agreement::Ec52,
        KeyAgreement::X255 => Agreement::X25519,
        #[cfg(feature = "x448")]
        KeyAgreement::X448 => Agreement::X448,
        _ => return None,
    })
}

fn lattice(component: KemComponent) -> Option<Lattice> {
    Some(match component {
        KemComponent::MlKem512 => Lattice::MlKem512,
        KemComponent::MlKem768 => Lattice::MlKem768,
        KemComponent::MlKem1024 => Lattice::MlKem1024,
        KemComponent::Kyber512 => Lattice::Kyber512,
        KemComponent::Kyber768 => Lattice::Kyber768,
        KemComponent::Kyber1024 => Lattice::Kyber1024,
        _ => return None,
    })
}

fn mechanism(kem: Kem) -> Option<crypto::Kem> {
    let mut components = kem.components();
    let parts = (components.next()?, components.next(), components.next());
    Some(match parts {
        (alone, None, None) => crypto::Kem::Alone(lattice(alone)?),
        (KemComponent::X25519, Some(second), None) => crypto::Kem::X25519(lattice(second)?),
        #[cfg(feature = "x448")]
        (KemComponent::X448, Some(second), None) => crypto::Kem::X448(lattice(second)?),
        _ => return None,
    })
}

/// Returns whether `key_agreement` is implemented.
pub(super) fn is_supported(key_agreement: KeyAgreement) -> bool {
    match key_agreement {
        KeyAgreement::Kem(kem) => mechanism(kem).is_some(),
        KeyAgreement::Prsh | KeyAgreement::Mult => true,
        _ => agreement(key_agreement).is_some(),
    }
}

impl InitiatorKey {
    pub(super) fn generate(
        key_agreement: KeyAgreement,
        entropy: &mut Entropy<'_>,
    ) -> Result<Self, Refused> {
        if let KeyAgreement::Kem(kem) = key_agreement {
            let kem = mechanism(kem).ok_or(Refused)?;
            return Ok(Self::Kem(Box::new(KemKeyPair::generate(kem, entropy)?)));
        }
        let agreement = agreement(key_agreement).ok_or(Refused)?;
        Ok(Self::Dh(KeyPair::generate(agreement, entropy)?))
    }

    /// Returns the public value pvi.
    pub(super) fn public(&self) -> &[u8] {
        match self {
            Self::Dh(pair) => pair.public(),
            Self::Kem(pair) => pair.public(),
        }
    }

    pub(super) fn agree(self, hash: Hash, pvr: &[u8]) -> Result<Secret, AgreementError> {
        match self {
            Self::Dh(pair) => pair.agree(pvr),
            Self::Kem(pair) => pair.decapsulate(hash.algorithm(), pvr),
        }
    }
}

impl ResponderKey {
    /// Generates the half for a Commit. `pvi` is the initiator's public key, if it is a KEM's.
    pub(super) fn generate(
        key_agreement: KeyAgreement,
        hash: Hash,
        pvi: Option<&[u8]>,
        entropy: &mut Entropy<'_>,
    ) -> Result<Self, AgreementError> {
        if let (KeyAgreement::Kem(kem), Some(pvi)) = (key_agreement, pvi) {
            let kem = mechanism(kem).ok_or(Refused)?;
            let (secret, text) = kem.encapsulate(hash.algorithm(), pvi, entropy)?;
            return Ok(Self::Kem(secret, text));
        }
        let agreement = agreement(key_agreement).ok_or(Refused)?;
        Ok(Self::Dh(KeyPair::generate(agreement, entropy)?))
    }

    /// Returns the public value pvr.
    pub(super) fn public(&self) -> &[u8] {
        match self {
            Self::Dh(pair) => pair.public(),
            Self::Kem(_, text) => text,
        }
    }

    /// Returns the shared secret. `pvi` is the initiator's public value, unused with a KEM.
    pub(super) fn agree(self, pvi: &[u8]) -> Result<Secret, AgreementError> {
        match self {
            Self::Dh(pair) => pair.agree(pvi),
            Self::Kem(secret, _) => Ok(secret),
        }
    }
}
