//! The certificate of this end, and its private key.

use std::fmt;

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, EcdsaKeyPair, KeyPair,
};
use dimpl::DtlsCertificate;
use zeroize::Zeroizing;

use super::error::CertificateError;
use super::fingerprint::{Fingerprint, HashFunction};

/// Octets of the longest certificate. A self-signed one has some 400.
const LEN_MAX: usize = 4096;

/// A certificate and its private key, by which this end proves who it is. `Debug` prints no key.
///
/// The peer knows the certificate by its fingerprint alone, so it may be self-signed, and its names
/// and dates mean nothing (RFC 8122 section 5).
#[derive(Clone)]
pub struct Certificate {
    der: Vec<u8>,
    key: Zeroizing<Vec<u8>>,
}

impl Certificate {
    /// Makes a key of ECDSA on P-256 and a self-signed certificate of it.
    ///
    /// A certificate that is used for one session only does not let others recognise this end (RFC
    /// 8827 section 6.5). Random numbers and the date come from the operating system.
    ///
    /// # Errors
    /// [`CertificateError::Generation`] if there are no random numbers.
    pub fn generate() -> Result<Self, CertificateError> {
        let made = dimpl::certificate::generate_self_signed_certificate();
        let made = made.map_err(|_| CertificateError::Generation)?;
        Ok(Self { der: made.certificate, key: Zeroizing::new(made.private_key) })
    }

    /// Uses a certificate in DER and its private key of ECDSA, on P-256 or P-384, in PKCS #8 DER.
    ///
    /// # Errors
    /// [`CertificateError::Key`] for another key, [`CertificateError::Mismatch`] if the certificate is
    /// not that of the key, [`CertificateError::Len`] if it is longer than 4096 octets.
    pub fn new(certificate: &[u8], private_key: &[u8]) -> Result<Self, CertificateError> {
        let len = certificate.len();
        if len > LEN_MAX {
            return Err(CertificateError::Len { len, limit: LEN_MAX });
        }
        let curves = [&ECDSA_P256_SHA256_ASN1_SIGNING, &ECDSA_P384_SHA384_ASN1_SIGNING];
        let mut pairs = curves.iter().flat_map(|it| EcdsaKeyPair::from_pkcs8(it, private_key));
        let pair = pairs.next().ok_or(CertificateError::Key)?;
        // A certificate contains its public key as it is.
        let public = pair.public_key().as_ref();
        if !certificate.windows(public.len()).any(|part| part == public) {
            return Err(CertificateError::Mismatch);
        }
        Ok(Self { der: certificate.to_vec(), key: Zeroizing::new(private_key.to_vec()) })
    }

    /// Returns the certificate in DER.
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// Returns the fingerprint by SHA-256, for a description.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(HashFunction::Sha256, &self.der)
    }

    pub(super) fn to_engine(&self) -> DtlsCertificate {
        DtlsCertificate { certificate: self.der.clone(), private_key: self.key.to_vec() }
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Certificate({})", self.fingerprint())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_needs_its_own_key() {
        let [a, b] = [(); 2].map(|()| Certificate::generate().unwrap());
        let same = Certificate::new(a.der(), &a.key).unwrap();
        assert_eq!(same.fingerprint(), a.fingerprint());
        let error = |der: &[u8], key: &[u8]| Certificate::new(der, key).unwrap_err();
        assert_eq!(error(a.der(), &b.key), CertificateError::Mismatch);
        assert_eq!(error(a.der(), b"no key"), CertificateError::Key);
        assert_eq!(error(&[], &a.key), CertificateError::Mismatch);
        let limit = LEN_MAX;
        let long = vec![0; limit + 1];
        assert_eq!(error(&long, &a.key), CertificateError::Len { len: limit + 1, limit });
    }

    #[test]
    fn no_key_is_printed() {
        let certificate = Certificate::generate().unwrap();
        let printed = format!("{certificate:?}");
        assert_eq!(printed, format!("Certificate({})", certificate.fingerprint()));
    }
}
