//! Fingerprints of certificates, as in `a=fingerprint` (RFC 8122 section 5).

use std::fmt;
use std::str::FromStr;

use aws_lc_rs::digest;

use super::error::FingerprintError;

/// Hash functions that are too weak, by their names in descriptions.
const WEAK: [&str; 4] = ["md2", "md5", "sha-1", "sha-224"];

/// A hash function of fingerprints. A later one is stronger.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum HashFunction {
    /// SHA-256, which every implementation has.
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
}

impl HashFunction {
    /// All hash functions.
    pub const ALL: [Self; 3] = [Self::Sha256, Self::Sha384, Self::Sha512];

    /// Returns its name in descriptions.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "sha-256",
            Self::Sha384 => "sha-384",
            Self::Sha512 => "sha-512",
        }
    }

    fn algorithm(self) -> &'static digest::Algorithm {
        match self {
            Self::Sha256 => &digest::SHA256,
            Self::Sha384 => &digest::SHA384,
            Self::Sha512 => &digest::SHA512,
        }
    }
}

/// The fingerprint of a certificate. Its text is the value of `a=fingerprint`, `sha-256 AB:CD:…`.
///
/// Parsing accepts small letters too, and refuses hash functions that are weaker than SHA-256.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Fingerprint {
    hash: HashFunction,
    digest: Vec<u8>,
}

impl Fingerprint {
    /// Returns the fingerprint of a certificate in DER.
    pub fn of(hash: HashFunction, certificate: &[u8]) -> Self {
        let digest = digest::digest(hash.algorithm(), certificate).as_ref().to_vec();
        Self { hash, digest }
    }

    /// Returns the hash function.
    pub fn hash(&self) -> HashFunction {
        self.hash
    }

    /// Returns the digest.
    pub fn digest(&self) -> &[u8] {
        &self.digest
    }

    /// Returns whether a certificate in DER has this fingerprint.
    pub fn matches(&self, certificate: &[u8]) -> bool {
        *self == Self::of(self.hash, certificate)
    }

    /// Returns whether a certificate in DER is one that `expected` announce.
    ///
    /// Only the fingerprints by the strongest hash function among them count (RFC 8122 section 5). If
    /// there are none, no certificate is announced.
    pub fn any_matches(expected: &[Self], certificate: &[u8]) -> bool {
        let strongest = expected.iter().map(|one| one.hash).max();
        let mut of_strongest = expected.iter().filter(|one| Some(one.hash) == strongest);
        of_strongest.any(|one| one.matches(certificate))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.hash.name())?;
        for (n, octet) in self.digest.iter().enumerate() {
            write!(f, "{}{octet:02X}", if n == 0 { ' ' } else { ':' })?;
        }
        Ok(())
    }
}

impl FromStr for Fingerprint {
    type Err = FingerprintError;

    fn from_str(text: &str) -> Result<Self, FingerprintError> {
        let (name, digits) = text.trim().split_once(' ').ok_or(FingerprintError::Malformed)?;
        if let Some(weak) = WEAK.iter().find(|weak| weak.eq_ignore_ascii_case(name)) {
            return Err(FingerprintError::Weak(weak));
        }
        let mut known = HashFunction::ALL.into_iter();
        let hash = known
            .find(|hash| hash.name().eq_ignore_ascii_case(name))
            .ok_or(FingerprintError::UnknownHash)?;
        let len = hash.algorithm().output_len();
        let wrong = FingerprintError::Digest { hash: hash.name(), len };
        let digits = digits.trim_start();
        if digits.len() != 3 * len - 1 {
            return Err(wrong);
        }
        let digest: Option<Vec<u8>> = digits.split(':').map(octet).collect();
        digest.filter(|it| it.len() == len).map(|digest| Self { hash, digest }).ok_or(wrong)
    }
}

/// Returns the octet that two hexadecimal digits stand for.
fn octet(pair: &str) -> Option<u8> {
    let is_pair = pair.len() == 2 && pair.bytes().all(|it| it.is_ascii_hexdigit());
    if is_pair { u8::from_str_radix(pair, 16).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all_of(certificate: &[u8]) -> [Fingerprint; 3] {
        HashFunction::ALL.map(|hash| Fingerprint::of(hash, certificate))
    }

    #[test]
    fn a_fingerprint_is_written_as_in_descriptions() {
        // The digest of "abc" is that of FIPS 180-4's example.
        let text = Fingerprint::of(HashFunction::Sha256, b"abc").to_string();
        assert_eq!(
            text,
            "sha-256 BA:78:16:BF:8F:01:CF:EA:41:41:40:DE:5D:AE:22:23:B0:03:61:A3:96:17:7A:9C:\
             B4:10:FF:61:F2:00:15:AD"
        );
        let lower = text.to_lowercase().replace("sha-256", "SHA-256 ");
        assert_eq!(lower.parse(), Ok(Fingerprint::of(HashFunction::Sha256, b"abc")));
    }

    #[test]
    fn weak_unknown_and_malformed_fingerprints_are_refused_with_the_reason() {
        let sha1 = format!("SHA-1 {}", ["AB"; 20].join(":"));
        assert_eq!(sha1.parse::<Fingerprint>(), Err(FingerprintError::Weak("sha-1")));
        let error = FingerprintError::Digest { hash: "sha-256", len: 32 };
        for wrong in [["AB"; 31].join(":"), ["AB"; 33].join(":"), ["+B"; 32].join(":")] {
            assert_eq!(format!("sha-256 {wrong}").parse::<Fingerprint>(), Err(error), "{wrong}");
        }
        assert_eq!("sha-999 AB".parse::<Fingerprint>(), Err(FingerprintError::UnknownHash));
        assert_eq!("sha-256".parse::<Fingerprint>(), Err(FingerprintError::Malformed));
    }

    #[test]
    fn only_the_strongest_announced_fingerprints_count() {
        let [weak, _, strong] = all_of(b"the peer's");
        let [_, _, other] = all_of(b"another's");
        let matches = |expected: &[Fingerprint]| Fingerprint::any_matches(expected, b"the peer's");
        assert!(matches(std::slice::from_ref(&weak)));
        assert!(matches(&[other.clone(), strong]));
        assert!(!matches(&[weak, other]), "the weaker one does not stand in for the stronger");
        assert!(!matches(&[]));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(certificate: Vec<u8>) {
            for fingerprint in all_of(&certificate) {
                prop_assert_eq!(fingerprint.to_string().parse(), Ok(fingerprint));
            }
        }

        #[test]
        fn any_text_is_read_or_refused(hash in "(sha-(1|256|384|512)|[a-z]{0,9})", rest in "[ 0-9A-Fa-f:é]{0,99}") {
            if let Ok(fingerprint) = format!("{hash} {rest}").parse::<Fingerprint>() {
                let again: Fingerprint = fingerprint.to_string().parse().unwrap();
                prop_assert_eq!(again, fingerprint);
            }
        }
    }
}
