//! X448 (RFC 7748 section 6.2).

use x448::{PublicKey, StaticSecret};
use zeroize::Zeroizing;

use rushes_crypto::tags_are_equal;
use rushes_crypto::{AgreementError, Entropy, Secret};

/// Octets in a private key, a public value and a secret.
const LEN: usize = 56;

/// A private key; zeroised on drop.
pub(super) struct Curve448Key {
    key: StaticSecret,
}

impl Curve448Key {
    /// Draws a key from `entropy`; returns it with its public value.
    pub(super) fn generate(entropy: &mut Entropy<'_>) -> (Self, Vec<u8>) {
        let mut octets = Zeroizing::new([0; LEN]);
        entropy(&mut *octets);
        let key = StaticSecret::from(*octets);
        let public = PublicKey::from(&key).as_bytes().to_vec();
        (Self { key }, public)
    }

    /// Returns the shared coordinate; `peer` must have the length of the curve's public values.
    pub(super) fn agree(self, peer: &[u8]) -> Result<Secret, AgreementError> {
        let peer = PublicKey::from_bytes_unchecked(peer).ok_or(AgreementError::OutOfRange)?;
        let shared = self.key.diffie_hellman(&peer);
        // RFC 7748 section 6.2; the comparison takes constant time.
        if tags_are_equal(shared.as_bytes(), &[0; LEN]) {
            return Err(AgreementError::Degenerate);
        }
        Ok(Secret::from_slice(shared.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypto::testing::{counting, fixed, octets};

    const ALICE: &str = "9a8f4925d1519f5775cf46b04b5800d4ee9ee8bae8bc5565d498c28d\
                         d9c9baf574a9419744897391006382a6f127ab1d9ac2d8c0a598726b";
    const OF_ALICE: &str = "9b08f7cc31b7e3e67d22d5aea121074a273bd2b83de09c63faa73d2c\
                            22c5d9bbc836647241d953d40c5b12da88120d53177f80e532c41fa0";
    const BOB: &str = "1c306a7ac2a0e2e0990b294470cba339e6453772b075811d8fad0d1d\
                       6927c120bb5ee8972b0d3e21374c9c921b09d1b0366f10b65173992d";
    const OF_BOB: &str = "3eb7a829b0cd20f5bcfc0b599b6feccf6da4627107bdb0d4f345b430\
                          27d8b972fc3e34fb4232a13ca706dcb57aec3dae07bdc1c67bf33609";
    const SHARED: &str = "07fff4181ac6cc95ec1c16a94a0f74d12da232ce40a77552281d282b\
                          b60c0b56fd2464c335543936521c24403085d59a449a5037514a879d";

    fn agreed(private: &str, peer: &str) -> Vec<u8> {
        let (key, _) = Curve448Key::generate(&mut fixed(octets(private)));
        key.agree(&octets(peer)).unwrap().as_slice().to_vec()
    }

    #[test]
    fn x448_is_that_of_rfc_7748_section_6_2() {
        for (private, public, peer) in [(ALICE, OF_ALICE, OF_BOB), (BOB, OF_BOB, OF_ALICE)] {
            let (key, made) = Curve448Key::generate(&mut fixed(octets(private)));
            assert_eq!(made, octets(public));
            assert_eq!(key.agree(&octets(peer)).unwrap().as_slice(), octets(SHARED));
        }
    }

    #[test]
    fn the_vectors_of_rfc_7748_section_5_2_are_computed() {
        let first = agreed(
            "3d262fddf9ec8e88495266fea19a34d28882acef045104d0d1aae121\
             700a779c984c24f8cdd78fbff44943eba368f54b29259a4f1c600ad3",
            "06fce640fa3487bfda5f6cf2d5263f8aad88334cbd07437f020f08f9\
             814dc031ddbdc38c19c6da2583fa5429db94ada18aa7a7fb4ef8a086",
        );
        let expected = "ce3e4ff95a60dc6697da1db1d85e6afbdf79b50a2412d7546d5f239f\
                        e14fbaadeb445fc66a01b0779d98223961111e21766282f73dd96b6f";
        assert_eq!(first, octets(expected));
        let second = agreed(
            "203d494428b8399352665ddca42f9de8fef600908e0d461cb021f8c5\
             38345dd77c3e4806e25f46d3315c44e0a5b4371282dd2c8d5be3095f",
            "0fbcc2f993cd56d3305b0b7d9e55d4c1a8fb5dbb52f8e9a1e9b6201b\
             165d015894e56c4d3570bee52fe205e28a78b91cdfbde71ce8d157db",
        );
        let expected = "884a02576239ff7a2f2f63b2db6a9ff37047ac13568e1e30fe63c4a7\
                        ad1b3ee3a5700df34321d62077e63633c575c1c954514e99da7c179d";
        assert_eq!(second, octets(expected));
    }

    #[test]
    fn a_coordinate_above_the_prime_is_taken_modulo_the_prime() {
        // RFC 7748 section 5: p + 5 equals 5, the base point. The private key is 01 02 03 …
        let (key, public) = Curve448Key::generate(&mut counting(1));
        let mut above = [0xff; LEN];
        above[..28].fill(0);
        above[0] = 4;
        assert_eq!(key.agree(&above).unwrap().as_slice(), public);
    }

    #[test]
    fn a_value_of_small_order_is_refused() {
        let mut one = [0; LEN];
        one[0] = 1;
        let mut prime = [0xff; LEN];
        prime[28] = 0xfe;
        let mut minus_one = prime;
        minus_one[0] = 0xfe;
        let mut above = [0xff; LEN];
        above[..28].fill(0);
        for value in [[0; LEN], one, minus_one, prime, above] {
            let (key, _) = Curve448Key::generate(&mut counting(1));
            assert_eq!(key.agree(&value).unwrap_err(), AgreementError::Degenerate);
        }
    }
}
