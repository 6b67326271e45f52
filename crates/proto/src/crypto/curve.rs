//! Diffie-Hellman on the curves P-256, P-384 and P-521, and X25519.

use aws_lc_rs::agreement as library;
use aws_lc_rs::agreement::Algorithm;
use aws_lc_rs::agreement::PrivateKey;
use aws_lc_rs::agreement::UnparsedPublicKey;
use zeroize::Zeroizing;

use super::Refused;
use super::agreement::AgreementError;
use super::agreement::Entropy;
use super::agreement::Secret;

/// Octets in the longest private key.
const PRIVATE_LEN_MAX: usize = 66;

/// Octets in the longest public value, of which the first says that two coordinates follow.
const POINT_LEN_MAX: usize = 1 + 2 * PRIVATE_LEN_MAX;

/// What a point with both coordinates begins with (SEC 1 section 2.3.3), which ZRTP leaves out.
const UNCOMPRESSED: u8 = 4;

/// Private keys that are tried before the entropy is given up: each is in range with odds of one
/// half at the worst.
const ATTEMPTS: usize = 128;

/// A curve.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Curve {
    P256,
    P384,
    P521,
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

    /// Whether a public value is a point with two coordinates.
    const fn has_points(self) -> bool {
        !matches!(self, Self::X25519)
    }
}

/// A private key; zeroised on drop.
pub(super) struct CurveKey {
    curve: Curve,
    key: PrivateKey,
}

impl CurveKey {
    /// Takes a key from `entropy`, as often as it takes for one in range, and gives its public
    /// value with it.
    pub(super) fn generate(
        curve: Curve,
        entropy: &mut Entropy<'_>,
    ) -> Result<(Self, Vec<u8>), Refused> {
        let mut octets = Zeroizing::new([0; PRIVATE_LEN_MAX]);
        let candidate = &mut octets[..curve.private_len()];
        for _ in 0..ATTEMPTS {
            entropy(candidate);
            if curve == Curve::P521 {
                // 521 bits lie in 66 octets: seven would be too many.
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

    /// The X coordinate of the shared point; `peer` has the curve's length.
    pub(super) fn agree(self, peer: &[u8]) -> Result<Secret, AgreementError> {
        let mut point = [UNCOMPRESSED; POINT_LEN_MAX];
        let (peer, error) = if self.curve.has_points() {
            let point = point.get_mut(..=peer.len()).ok_or(AgreementError::OutOfRange)?;
            point[1..].copy_from_slice(peer);
            (&*point, AgreementError::OffCurve)
        } else {
            // Every octet string is a key: what fails is a secret of zeros.
            (peer, AgreementError::Degenerate)
        };
        let peer = UnparsedPublicKey::new(self.curve.algorithm(), peer);
        library::agree(&self.key, peer, error, |octets| Ok(Secret::from_slice(octets)))
    }
}
