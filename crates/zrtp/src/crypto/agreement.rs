//! Key agreement by Diffie-Hellman, over finite fields and curves (RFC 6189 section 5.1.5,
//! RFC 7748).

use core::fmt;

#[cfg(feature = "x448")]
use super::curve448::Curve448Key;
use super::modp::{Exponent, Group};
use rushes_crypto::Refused;
use rushes_crypto::{AgreementError, Entropy, Secret};
use rushes_crypto::{Curve, CurveKey};

/// A method of key agreement.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Agreement {
    /// Finite field, 2048 bits (RFC 3526 section 3).
    Dh2k,
    /// Finite field, 3072 bits (RFC 3526 section 4).
    Dh3k,
    /// The curve P-256.
    Ec25,
    /// The curve P-384.
    Ec38,
    /// The curve P-521, which RFC 6189 section 5.1.5 advises against.
    Ec52,
    /// X25519 (RFC 7748 section 6.1).
    X25519,
    /// X448 (RFC 7748 section 6.2).
    #[cfg(feature = "x448")]
    X448,
}

/// The implementation of an `Agreement`.
enum Method {
    Modp(Group),
    Curve(Curve),
    #[cfg(feature = "x448")]
    Curve448,
}

impl Agreement {
    /// All agreements.
    pub const ALL: &[Self] = &[
        Self::Dh2k,
        Self::Dh3k,
        Self::Ec25,
        Self::Ec38,
        Self::Ec52,
        Self::X25519,
        #[cfg(feature = "x448")]
        Self::X448,
    ];

    /// Returns the octets in a public value.
    #[must_use]
    pub const fn public_len(self) -> usize {
        match self {
            Self::Dh2k => 256,
            Self::Dh3k => 384,
            Self::Ec25 => 64,
            Self::Ec38 => 96,
            Self::Ec52 => 132,
            Self::X25519 => 32,
            #[cfg(feature = "x448")]
            Self::X448 => 56,
        }
    }

    /// Returns the octets in the shared secret, which is a field element: one coordinate if the
    /// public value has two.
    #[must_use]
    pub const fn secret_len(self) -> usize {
        match self {
            Self::Ec25 | Self::Ec38 | Self::Ec52 => self.public_len() / 2,
            _ => self.public_len(),
        }
    }

    const fn method(self) -> Method {
        match self {
            Self::Dh2k => Method::Modp(Group::Modp2048),
            Self::Dh3k => Method::Modp(Group::Modp3072),
            Self::Ec25 => Method::Curve(Curve::P256),
            Self::Ec38 => Method::Curve(Curve::P384),
            Self::Ec52 => Method::Curve(Curve::P521),
            Self::X25519 => Method::Curve(Curve::X25519),
            #[cfg(feature = "x448")]
            Self::X448 => Method::Curve448,
        }
    }
}

/// The key pair of one end; the private part is zeroised on drop.
pub struct KeyPair {
    agreement: Agreement,
    public: Vec<u8>,
    private: Private,
}

enum Private {
    Modp(Group, Exponent),
    Curve(CurveKey),
    #[cfg(feature = "x448")]
    Curve448(Curve448Key),
}

impl KeyPair {
    /// Generates a pair whose private part is taken from `entropy`.
    ///
    /// # Errors
    /// [`Refused`] if `entropy` yields no valid key, because it returns a fixed value that is out
    /// of range, or zeros.
    pub fn generate(agreement: Agreement, entropy: &mut Entropy<'_>) -> Result<Self, Refused> {
        let (private, public) = match agreement.method() {
            Method::Modp(group) => {
                let (exponent, public) = Exponent::generate(group, entropy)?;
                (Private::Modp(group, exponent), public)
            }
            Method::Curve(curve) => {
                let (key, public) = CurveKey::generate(curve, entropy)?;
                (Private::Curve(key), public)
            }
            #[cfg(feature = "x448")]
            Method::Curve448 => {
                let (key, public) = Curve448Key::generate(entropy);
                (Private::Curve448(key), public)
            }
        };
        Ok(Self { agreement, public, private })
    }

    /// Returns the agreement of the pair.
    #[must_use]
    pub const fn agreement(&self) -> Agreement {
        self.agreement
    }

    /// Returns the public value as ZRTP sends it: an integer in network order, as long as the
    /// prime; both coordinates of a point; or the octets of RFC 7748 section 5.
    #[must_use]
    pub fn public(&self) -> &[u8] {
        &self.public
    }

    /// Returns the secret shared with the end whose public value is `peer_public`.
    ///
    /// # Errors
    /// Any [`AgreementError`]; the pair is consumed in any case.
    pub fn agree(self, peer_public: &[u8]) -> Result<Secret, AgreementError> {
        let expected = self.agreement.public_len();
        if peer_public.len() != expected {
            return Err(AgreementError::Length { expected, given: peer_public.len() });
        }
        match self.private {
            Private::Modp(group, exponent) => exponent.agree(group, peer_public),
            Private::Curve(key) => key.agree(peer_public),
            #[cfg(feature = "x448")]
            Private::Curve448(key) => key.agree(peer_public),
        }
    }
}

impl fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyPair").field("agreement", &self.agreement).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::crypto::testing::{counting, random};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        #[test]
        fn both_ends_agree(seed: u64, other_seed: u64) {
            for &agreement in Agreement::ALL {
                let one = KeyPair::generate(agreement, &mut random(seed)).unwrap();
                let other = KeyPair::generate(agreement, &mut random(other_seed)).unwrap();
                let (to_one, to_other) = (other.public().to_vec(), one.public().to_vec());
                prop_assert_eq!(to_one.len(), agreement.public_len());
                let of_one = one.agree(&to_one).unwrap();
                let of_other = other.agree(&to_other).unwrap();
                prop_assert_eq!(of_one.as_slice(), of_other.as_slice());
                prop_assert_eq!(of_one.as_slice().len(), agreement.secret_len());
            }
        }

        #[test]
        fn no_public_value_leads_to_a_panic(seed: u64) {
            for &agreement in Agreement::ALL {
                let mut peer = vec![0; agreement.public_len()];
                random(seed)(&mut peer);
                let pair = KeyPair::generate(agreement, &mut counting(1)).unwrap();
                if let Ok(secret) = pair.agree(&peer) {
                    prop_assert_eq!(secret.as_slice().len(), agreement.secret_len());
                }
            }
        }
    }

    #[test]
    fn a_public_value_of_another_length_is_refused() {
        for &agreement in Agreement::ALL {
            let expected = agreement.public_len();
            for given in [0, 1, expected - 1, expected + 1, 2000] {
                let pair = KeyPair::generate(agreement, &mut counting(1)).unwrap();
                let error = pair.agree(&vec![2; given]).unwrap_err();
                assert_eq!(error, AgreementError::Length { expected, given });
            }
        }
    }

    #[test]
    fn nothing_shows_a_secret() {
        let pair = KeyPair::generate(Agreement::X25519, &mut counting(1)).unwrap();
        assert_eq!(format!("{pair:?}"), "KeyPair { agreement: X25519, .. }");
        let peer = KeyPair::generate(Agreement::X25519, &mut counting(2)).unwrap();
        let secret = pair.agree(peer.public()).unwrap();
        assert_eq!(format!("{secret:?}"), "Secret { len: 32, .. }");
    }
}
