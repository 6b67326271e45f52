//! SHA-256 and SHA-384, and HMAC (RFC 2104) and HKDF (RFC 5869) with them.

use core::fmt;

use aws_lc_rs::{digest, hkdf as expansion, hmac as code};
use zeroize::Zeroizing;

use crate::Refused;

/// Octets in the longest digest.
pub const DIGEST_LEN_MAX: usize = 48;

/// A hash function for key agreements.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum HashAlgorithm {
    /// SHA-256: 32 octets.
    Sha256,
    /// SHA-384: 48 octets.
    Sha384,
}

impl HashAlgorithm {
    /// Returns the octets in a digest: 32 or 48.
    #[must_use]
    pub const fn digest_len(self) -> usize {
        match self {
            Self::Sha256 => 32,
            Self::Sha384 => 48,
        }
    }
}

/// The result of a hash or an HMAC; zeroised on drop, because it may be a key.
///
/// It has no `==`: [`tags_are_equal`](super::tags_are_equal) compares secrets.
#[derive(Clone)]
pub struct Digest {
    octets: Zeroizing<[u8; DIGEST_LEN_MAX]>,
    len: usize,
}

impl Digest {
    fn from_slice(digest: &[u8]) -> Self {
        let mut octets = Zeroizing::new([0; DIGEST_LEN_MAX]);
        let len = digest.len().min(DIGEST_LEN_MAX);
        octets[..len].copy_from_slice(&digest[..len]);
        Self { octets, len }
    }

    /// Returns the octets, [`HashAlgorithm::digest_len`] of them.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        &self.octets[..self.len]
    }
}

impl AsRef<[u8]> for Digest {
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Digest").field("len", &self.len).finish_non_exhaustive()
    }
}

/// Returns the hash of the concatenated `parts`.
#[must_use]
pub fn hash(algorithm: HashAlgorithm, parts: &[&[u8]]) -> Digest {
    let mut context = digest::Context::new(match algorithm {
        HashAlgorithm::Sha256 => &digest::SHA256,
        HashAlgorithm::Sha384 => &digest::SHA384,
    });
    for part in parts {
        context.update(part);
    }
    Digest::from_slice(context.finish().as_ref())
}

/// Returns the HMAC of the concatenated `parts` under `key`, which may have any length.
#[must_use]
pub fn hmac(algorithm: HashAlgorithm, key: &[u8], parts: &[&[u8]]) -> Digest {
    let algorithm = match algorithm {
        HashAlgorithm::Sha256 => code::HMAC_SHA256,
        HashAlgorithm::Sha384 => code::HMAC_SHA384,
    };
    let mut context = code::Context::with_key(&code::Key::new(algorithm, key));
    for part in parts {
        context.update(part);
    }
    Digest::from_slice(context.sign().as_ref())
}

/// The output length of HKDF, in octets.
#[derive(Clone, Copy)]
struct Length(usize);

impl expansion::KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// Fills `out` by HKDF (RFC 5869) from the keying material `ikm`; the parts of `info` are
/// concatenated.
///
/// # Errors
/// [`Refused`] if `out` is longer than 255 digests (RFC 5869 section 2.3).
pub fn hkdf(
    algorithm: HashAlgorithm,
    salt: &[u8],
    ikm: &[u8],
    info: &[&[u8]],
    out: &mut [u8],
) -> Result<(), Refused> {
    let algorithm = match algorithm {
        HashAlgorithm::Sha256 => expansion::HKDF_SHA256,
        HashAlgorithm::Sha384 => expansion::HKDF_SHA384,
    };
    let extracted = expansion::Salt::new(algorithm, salt).extract(ikm);
    let expanded = extracted.expand(info, Length(out.len())).map_err(|_| Refused)?;
    expanded.fill(out).map_err(|_| Refused)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::octets;

    #[test]
    fn the_digests_of_abc_are_those_of_fips_180() {
        let sha_256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let sha_384 = "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed\
                       8086072ba1e7cc2358baeca134c825a7";
        assert_eq!(hash(HashAlgorithm::Sha256, &[b"a", b"", b"bc"]).as_slice(), octets(sha_256));
        assert_eq!(hash(HashAlgorithm::Sha384, &[b"abc"]).as_slice(), octets(sha_384));
    }

    #[test]
    fn the_codes_are_those_of_rfc_4231() {
        // Sections 4.2, 4.3 and 4.7: a short key, a shorter one, and one longer than a block.
        let cases: [(&[u8], &[u8], &str, &str); 3] = [
            (
                &[0x0b; 20],
                b"Hi There",
                "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
                "afd03944d84895626b0825f4ab46907f15f9dadbe4101ec682aa034c7cebc59c\
                 faea9ea9076ede7f4af152e8b2fa9cb6",
            ),
            (
                b"Jefe",
                b"what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
                "af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e\
                 8e2240ca5e69e2c78b3239ecfab21649",
            ),
            (
                &[0xaa; 131],
                b"Test Using Larger Than Block-Size Key - Hash Key First",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
                "4ece084485813e9088d2c63a041bc5b44f9ef1012a2b588f3cd11f05033ac4c6\
                 0c2ef6ab4030fe8296248df163f44952",
            ),
        ];
        for (key, data, sha_256, sha_384) in cases {
            let (head, tail) = data.split_at(3);
            let code = hmac(HashAlgorithm::Sha256, key, &[head, tail]);
            assert_eq!(code.as_slice(), octets(sha_256));
            assert_eq!(hmac(HashAlgorithm::Sha384, key, &[data]).as_slice(), octets(sha_384));
        }
    }

    #[test]
    fn keys_are_derived_as_in_rfc_5869() {
        // Appendix A.1, and A.3, which has neither salt nor info.
        let (salt, info) = (octets("000102030405060708090a0b0c"), octets("f0f1f2f3f4f5f6f7f8f9"));
        let mut out = [0; 42];
        let parts: [&[u8]; 2] = [&info[..4], &info[4..]];
        hkdf(HashAlgorithm::Sha256, &salt, &[0x0b; 22], &parts, &mut out).unwrap();
        let first = "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf\
                     34007208d5b887185865";
        assert_eq!(out[..], octets(first));
        hkdf(HashAlgorithm::Sha256, &[], &[0x0b; 22], &[], &mut out).unwrap();
        let third = "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d\
                     9d201395faa4b61a96c8";
        assert_eq!(out[..], octets(third));
    }

    #[test]
    fn derivation_by_sha_384_is_the_two_steps_of_rfc_5869() {
        let algorithm = HashAlgorithm::Sha384;
        let mut out = [0; 60];
        hkdf(algorithm, b"salt", b"material", &[b"in", b"fo"], &mut out).unwrap();
        let extracted = hmac(algorithm, b"salt", &[b"material"]);
        let first = hmac(algorithm, extracted.as_slice(), &[b"info", &[1]]);
        let second = hmac(algorithm, extracted.as_slice(), &[first.as_slice(), b"info", &[2]]);
        assert_eq!(out[..48], *first.as_slice());
        assert_eq!(out[48..], second.as_slice()[..12]);
    }

    #[test]
    fn more_than_255_digests_are_refused() {
        let mut out = vec![0; 255 * 32 + 1];
        assert_eq!(hkdf(HashAlgorithm::Sha256, &[], &[], &[], &mut out), Err(Refused));
        out.pop();
        assert_eq!(hkdf(HashAlgorithm::Sha256, &[], &[], &[], &mut out), Ok(()));
    }

    #[test]
    fn a_digest_does_not_show_itself() {
        let digest = hash(HashAlgorithm::Sha256, &[]);
        assert_eq!(format!("{digest:?}"), "Digest { len: 32, .. }");
    }
}
