//! X448 (RFC 7748 section 6.2).

use x448::PublicKey;
use x448::StaticSecret;
use zeroize::Zeroizing;

use super::agreement::AgreementError;
use super::agreement::Entropy;
use super::agreement::Secret;
use super::tags_are_equal;

/// Octets in a private key, a public value and a secret.
const LEN: usize = 56;

/// A private key; zeroised on drop.
pub(super) struct Curve448Key {
    key: StaticSecret,
}

impl Curve448Key {
    /// Takes a key from `entropy`, and gives its public value with it.
    pub(super) fn generate(entropy: &mut Entropy<'_>) -> (Self, Vec<u8>) {
        let mut octets = Zeroizing::new([0; LEN]);
        entropy(&mut *octets);
        let key = StaticSecret::from(*octets);
        let public = PublicKey::from(&key).as_bytes().to_vec();
        (Self { key }, public)
    }

    /// The shared coordinate; `peer` has the curve's length.
    pub(super) fn agree(self, peer: &[u8]) -> Result<Secret, AgreementError> {
        let peer = PublicKey::from_bytes_unchecked(peer).ok_or(AgreementError::OutOfRange)?;
        let shared = self.key.diffie_hellman(&peer);
        // RFC 7748 section 6.2: in a time that does not depend on the secret.
        if tags_are_equal(shared.as_bytes(), &[0; LEN]) {
            return Err(AgreementError::Degenerate);
        }
        Ok(Secret::from_slice(shared.as_bytes()))
    }
}
