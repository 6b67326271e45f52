//! Diffie-Hellman on the curves P-256, P-384 and P-521, and X25519.

use aws_lc_rs::agreement as library;
use aws_lc_rs::agreement::{Algorithm, PrivateKey, UnparsedPublicKey};
use zeroize::Zeroizing;

use crate::Refused;
use crate::secret::{AgreementError, Entropy, Secret};

/// Octets of the longest private key.
const PRIVATE_LEN_MAX: usize = 66;

/// Octets of the longest public value, including its first octet, which marks two coordinates.
const POINT_LEN_MAX: usize = 1 + 2 * PRIVATE_LEN_MAX;

/// The first octet of a point with both coordinates (SEC 1 section 2.3.3), which ZRTP omits.
const UNCOMPRESSED: u8 = 4;

/// Maximum number of private keys drawn; each is in range with a probability of at least one half.
const ATTEMPTS: usize = 128;

/// A curve.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Curve {
    /// NIST P-256: public values of 64 octets, both coordinates.
    P256,
    /// NIST P-384: public values of 96 octets.
    P384,
    /// NIST P-521: public values of 132 octets.
    P521,
    /// X25519 (RFC 7748): public values of 32 octets.
    X25519,
}

impl Curve {
    const fn algorithm(self) -> &'static Algorithm {
        match self {
            Self::P256 => &library::ECDH_P256,
            Self::P384 => &library::ECDH_P384,
            Self::P521 => &library::ECDH_P521,
            Self::X25519 => &library::X25519,
        }
    }

    const fn private_len(self) -> usize {
        match self {
            Self::P256 | Self::X25519 => 32,
            Self::P384 => 48,
            Self::P521 => PRIVATE_LEN_MAX,
        }
    }

    /// Returns whether a public value is a point with two coordinates.
    const fn has_points(self) -> bool {
        !matches!(self, Self::X25519)
    }
}

/// A private key; zeroised on drop.
pub struct CurveKey {
    curve: Curve,
    key: PrivateKey,
}

impl CurveKey {
    /// Draws keys from `entropy` until a key is in range; returns it with its public value.
    ///
    /// # Errors
    /// [`Refused`] if no key is in range, which does not happen with random octets.
    pub fn generate(curve: Curve, entropy: &mut Entropy<'_>) -> Result<(Self, Vec<u8>), Refused> {
        let mut octets = Zeroizing::new([0; PRIVATE_LEN_MAX]);
        let candidate = &mut octets[..curve.private_len()];
        for _ in 0..ATTEMPTS {
            entropy(candidate);
            if curve == Curve::P521 {
                // A key has 521 bits in 66 octets, so the seven highest bits are zero.
                candidate[0] &= 1;
            }
            let Ok(key) = PrivateKey::from_private_key(curve.algorithm(), candidate) else {
                continue;
            };
            let public = key.compute_public_key().map_err(|_| Refused)?;
            let public = public.as_ref();
            let public = if curve.has_points() { &public[1..] } else { public };
            return Ok((Self { curve, key }, public.to_vec()));
        }
        Err(Refused)
    }

    /// Returns the X coordinate of the shared point; `peer` must have the length of the curve.
    ///
    /// # Errors
    /// [`AgreementError`] if the peer's value is not valid.
    pub fn agree(self, peer: &[u8]) -> Result<Secret, AgreementError> {
        let mut point = [UNCOMPRESSED; POINT_LEN_MAX];
        let (peer, error) = if self.curve.has_points() {
            let point = point.get_mut(..=peer.len()).ok_or(AgreementError::OutOfRange)?;
            point[1..].copy_from_slice(peer);
            (&*point, AgreementError::OffCurve)
        } else {
            // Every octet string is a valid key; only a secret of zeros is refused.
            (peer, AgreementError::Degenerate)
        };
        let peer = UnparsedPublicKey::new(self.curve.algorithm(), peer);
        library::agree(&self.key, peer, error, |octets| Ok(Secret::from_slice(octets)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{counting, fixed, octets};

    /// The public values of the private keys 01 02 03 … and 65 66 67 …, and their shared secret,
    /// computed by another library.
    const KNOWN: [(Curve, &str, &str, &str); 3] = [
        (
            Curve::P256,
            "515c3d6eb9e396b904d3feca7f54fdcd0cc1e997bf375dca515ad0a6c3b4035f\
             4536be3a50f318fbf9a5475902a221502bef0d57e08c53b2cc0a56f17d9f9354",
            "254ee6d1bad1c74ce2fd28ac529a166af4950a0e3da0bc53d96bf40dce38ebe7\
             df5937f11e869d453729a222f63e709d0740b97544e1416b1e5a401b385fb950",
            "06ffe83794e29d2f01c6bf4366e57da374a099401b7812d3d7ca2f0782a4e96e",
        ),
        (
            Curve::P384,
            "c76f2283dda95cd49b0ed9e733d2904474e37216f124e13d2c9ab4cf01021c49\
             ad9cabb3d0b97499aef2f0ab313fa02826bc1f83451b5c8962a75caff73588d4\
             400a6296436154fb343c393e91048a6c7bcbadc83cd8a5f26feae883156f92a1",
            "63ef7fd80a10d9b162d2ddbd5a3b71c7f6b8c3d33a5f9f1aa51e7ab9b9c9e95b\
             67b1d6a6a3529a085e8019b94f729e3e5027c4f58fb3ca6204e0a826611eb945\
             e20ca52c60ed60f32905e5be6f1828634e4661ebc2250bf124bd6d0fd40acd03",
            "d22cbe48bd212803a37a54e5db277d015b113cc06d4bcf1ca03924e50fd7dfba\
             9d0a8a14b7593b9ff9a8c587a1f6ff82",
        ),
        (
            Curve::P521,
            "000366c8c3b22dfb87d0922163cd4b53cd43a24a29f79292fa4ef1288d69ed13\
             9a7fc0552120ea1bdb4f88ca0da4eb91de9b077018d5885dbff0e91a66639a9b\
             72a500bd5e44e3a526e1051a4371c9bae5c7611ed489582ecdcc1ea277fe2379\
             286a3a1c0c7224c7b1ebb0a8b6e5fbda5cead23f47c300917d4f98f2d2d4dc79\
             d0109826",
            "00459b13bb6e46da9e94a759c671974cde10d5e85a7a79fbc1f71a367a64f818\
             16fd5669eab90f1aabfbf057514603c2b70beb54585c8e536b2b540c77d1c6d6\
             b9060080a99c681f2d3aa9ece11ac29754a53c46477f77eccf31047e550adac1\
             ef671e193194531a71f79823b05251ee4d4237c979ee3eaab9af2878f8fd8e16\
             fdc536d7",
            "009968e8c32fc1606495efe19ada33f44a18f6ce4f41ba76af170377b1b04211\
             ba9a8488a06efa7aa2968155889bd6e0bcd8a24bf0c170024cc65c6d00b10fa3\
             1f5e",
        ),
    ];

    #[test]
    fn values_of_another_library_are_computed_for_each_curve() {
        for (curve, first, second, secret) in KNOWN {
            let (key, public) = CurveKey::generate(curve, &mut counting(1)).unwrap();
            assert_eq!(public, octets(first));
            assert_eq!(key.agree(&octets(second)).unwrap().as_slice(), octets(secret));
            let (key, public) = CurveKey::generate(curve, &mut counting(101)).unwrap();
            assert_eq!(public, octets(second));
            assert_eq!(key.agree(&octets(first)).unwrap().as_slice(), octets(secret));
        }
    }

    #[test]
    fn x25519_is_that_of_rfc_7748_section_6_1() {
        let alice = "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a";
        let bob = "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb";
        let of_alice = "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a";
        let of_bob = "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f";
        let shared = "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742";
        for (private, public, peer) in [(alice, of_alice, of_bob), (bob, of_bob, of_alice)] {
            let mut entropy = fixed(octets(private));
            let (key, made) = CurveKey::generate(Curve::X25519, &mut entropy).unwrap();
            assert_eq!(made, octets(public));
            assert_eq!(key.agree(&octets(peer)).unwrap().as_slice(), octets(shared));
        }
    }

    #[test]
    fn a_private_key_out_of_range_is_drawn_again() {
        for (curve, first, ..) in KNOWN {
            let mut rest = counting(1);
            let mut calls = 0;
            let mut entropy = |out: &mut [u8]| {
                calls += 1;
                match calls {
                    1 => out.fill(0xff),
                    2 => out.fill(0),
                    _ => rest(out),
                }
            };
            let (_, public) = CurveKey::generate(curve, &mut entropy).unwrap();
            assert_eq!(public, octets(first));
            assert_eq!(calls, 3);
        }
    }

    #[test]
    fn entropy_that_never_gives_a_key_is_given_up() {
        let mut zeros = |out: &mut [u8]| out.fill(0);
        for (curve, ..) in KNOWN {
            assert_eq!(CurveKey::generate(curve, &mut zeros).err(), Some(Refused));
        }
    }

    #[test]
    fn a_point_off_the_curve_is_refused() {
        for (curve, _, second, _) in KNOWN {
            let good = octets(second);
            let len = good.len();
            for at in [0, len / 2 - 1, len / 2, len - 1] {
                let mut bad = good.clone();
                bad[at] ^= 1;
                let (key, _) = CurveKey::generate(curve, &mut counting(1)).unwrap();
                assert_eq!(key.agree(&bad).unwrap_err(), AgreementError::OffCurve);
            }
            for octet in [0, 0xff] {
                let (key, _) = CurveKey::generate(curve, &mut counting(1)).unwrap();
                assert_eq!(key.agree(&vec![octet; len]).unwrap_err(), AgreementError::OffCurve);
            }
        }
    }

    #[test]
    fn an_x25519_value_of_small_order_is_refused() {
        let mut one = [0; 32];
        one[0] = 1;
        let mut minus_one = [0xff; 32];
        (minus_one[0], minus_one[31]) = (0xec, 0x7f);
        let mut prime = minus_one;
        prime[0] += 1;
        let order_8 = "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800";
        let mut values = vec![octets(order_8)];
        values.extend([[0; 32], one, minus_one, prime].map(Vec::from));
        for value in values {
            let (key, _) = CurveKey::generate(Curve::X25519, &mut counting(1)).unwrap();
            assert_eq!(key.agree(&value).unwrap_err(), AgreementError::Degenerate);
        }
    }
}
