//! Diffie-Hellman in the MODP groups 14 and 15 (RFC 3526), with 2 as the generator.

use crypto_bigint::modular::{ConstMontyForm, ConstMontyParams};
use crypto_bigint::{U512, U2048, U3072, Uint, const_monty_params};
use zeroize::Zeroizing;

use rushes_crypto::Refused;
use rushes_crypto::{AgreementError, Entropy, Secret};

const_monty_params!(
    Prime2048,
    U2048,
    "FFFFFFFFFFFFFFFFC90FDAA22168C234C4C6628B80DC1CD129024E088A67CC74020BBEA63B139B22\
     514A08798E3404DDEF9519B3CD3A431B302B0A6DF25F14374FE1356D6D51C245E485B576625E7EC6\
     F44C42E9A637ED6B0BFF5CB6F406B7EDEE386BFB5A899FA5AE9F24117C4B1FE649286651ECE45B3D\
     C2007CB8A163BF0598DA48361C55D39A69163FA8FD24CF5F83655D23DCA3AD961C62F356208552BB\
     9ED529077096966D670C354E4ABC9804F1746C08CA18217C32905E462E36CE3BE39E772C180E8603\
     9B2783A2EC07A28FB5C55DF06F4C52C9DE2BCBF6955817183995497CEA956AE515D2261898FA0510\
     15728E5A8AACAA68FFFFFFFFFFFFFFFF",
    "The prime of group 14 (RFC 3526 section 3)."
);

const_monty_params!(
    Prime3072,
    U3072,
    "FFFFFFFFFFFFFFFFC90FDAA22168C234C4C6628B80DC1CD129024E088A67CC74020BBEA63B139B22\
     514A08798E3404DDEF9519B3CD3A431B302B0A6DF25F14374FE1356D6D51C245E485B576625E7EC6\
     F44C42E9A637ED6B0BFF5CB6F406B7EDEE386BFB5A899FA5AE9F24117C4B1FE649286651ECE45B3D\
     C2007CB8A163BF0598DA48361C55D39A69163FA8FD24CF5F83655D23DCA3AD961C62F356208552BB\
     9ED529077096966D670C354E4ABC9804F1746C08CA18217C32905E462E36CE3BE39E772C180E8603\
     9B2783A2EC07A28FB5C55DF06F4C52C9DE2BCBF6955817183995497CEA956AE515D2261898FA0510\
     15728E5A8AAAC42DAD33170D04507A33A85521ABDF1CBA64ECFB850458DBEF0A8AEA71575D060C7D\
     B3970F85A6E1E4C7ABF5AE8CDB0933D71E8C94E04A25619DCEE3D2261AD2EE6BF12FFA06D98A0864\
     D87602733EC86A64521F2B18177B200CBBE117577A615D6C770988C0BAD946E208E24FA074E5AB31\
     43DB5BFCE0FD108E4B82D120A93AD2CAFFFFFFFFFFFFFFFF",
    "The prime of group 15 (RFC 3526 section 4)."
);

/// Octets of a secret exponent: the length that RFC 6189 section 5.1.5 requires with AES-256, which
/// is more than it requires with shorter keys.
const EXPONENT_LEN: usize = 64;

/// A group.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Group {
    /// Group 14, of 2048 bits.
    Modp2048,
    /// Group 15, of 3072 bits.
    Modp3072,
}

/// A secret exponent; zeroised on drop.
pub(super) struct Exponent {
    exponent: Zeroizing<U512>,
}

impl Exponent {
    /// Draws an exponent from `entropy`; returns it with its public value.
    pub(super) fn generate(
        group: Group,
        entropy: &mut Entropy<'_>,
    ) -> Result<(Self, Vec<u8>), Refused> {
        let mut octets = Zeroizing::new([0; EXPONENT_LEN]);
        entropy(&mut *octets);
        let exponent = Zeroizing::new(U512::from_be_slice(&*octets));
        // 0 and 1 show that the source of entropy is broken; drawing again would not help.
        if *exponent <= U512::ONE {
            return Err(Refused);
        }
        let public = match group {
            Group::Modp2048 => power::<Prime2048, _>(&U2048::from_u8(2), &exponent),
            Group::Modp3072 => power::<Prime3072, _>(&U3072::from_u8(2), &exponent),
        };
        Ok((Self { exponent }, public.to_vec()))
    }

    /// Returns the peer's value to the power of the exponent, in the number of octets of the prime.
    pub(super) fn agree(self, group: Group, peer: &[u8]) -> Result<Secret, AgreementError> {
        let octets = match group {
            Group::Modp2048 => {
                power::<Prime2048, _>(&checked::<Prime2048, _>(peer)?, &self.exponent)
            }
            Group::Modp3072 => {
                power::<Prime3072, _>(&checked::<Prime3072, _>(peer)?, &self.exponent)
            }
        };
        Ok(Secret::new(octets))
    }
}

/// Returns `base` to the power of `exponent`, in a time that is independent of both values.
fn power<P: ConstMontyParams<LIMBS>, const LIMBS: usize>(
    base: &Uint<LIMBS>,
    exponent: &U512,
) -> Zeroizing<Vec<u8>> {
    let power = Zeroizing::new(ConstMontyForm::<P, LIMBS>::new(base).pow(exponent));
    let integer = Zeroizing::new(power.retrieve());
    Zeroizing::new(integer.to_be_bytes().as_ref().to_vec())
}

/// Checks that a peer's value has the right length and that its powers are not publicly known.
fn checked<P: ConstMontyParams<LIMBS>, const LIMBS: usize>(
    peer: &[u8],
) -> Result<Uint<LIMBS>, AgreementError> {
    let value = Uint::<LIMBS>::from_be_slice(peer);
    let prime = P::PARAMS.modulus().get();
    if value >= prime {
        return Err(AgreementError::OutOfRange);
    }
    if value <= Uint::ONE || value == prime.wrapping_sub(&Uint::ONE) {
        return Err(AgreementError::Degenerate);
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypto::testing::{counting, octets};
    use crate::crypto::{HashAlgorithm, hash};

    /// The SHA-256 digests of the public values of the exponents 01 02 03 … and 65 66 67 …, and of
    /// their shared secret, computed with Python's `pow`.
    const KNOWN: [(Group, &str, &str, &str); 2] = [
        (
            Group::Modp2048,
            "5141ed60d422816c251a9a61f4dc090fc6161ec870357a0af29fb84a0bb34e5e",
            "2e14f83fdfa073abd34d2d4a7e924fbb12b2a5d3bfdfa94db91b6c4465752f02",
            "2653ad553ee4f0365eb3fcf8d54978fa2f6f1e7cdfed5b9bee3750cb25c7ca24",
        ),
        (
            Group::Modp3072,
            "077dffd743a6dda7e2400cb20075f1619d72d9eb8c6fb5d0c2af92940f79bddc",
            "9f32476ead085f121fb31c4909e294105580fe01199ccfbde777f947f7eee80e",
            "488623bd89ce088ecc04f5dfc646b7b5103cca698d3d51ef4974c5a038483729",
        ),
    ];

    fn digest(octets: &[u8]) -> Vec<u8> {
        hash(HashAlgorithm::Sha256, &[octets]).as_slice().to_vec()
    }

    #[test]
    fn powers_are_those_of_python() {
        for (group, first, second, shared) in KNOWN {
            let (one, public_one) = Exponent::generate(group, &mut counting(1)).unwrap();
            let (other, public_other) = Exponent::generate(group, &mut counting(101)).unwrap();
            assert_eq!(digest(&public_one), octets(first));
            assert_eq!(digest(&public_other), octets(second));
            let from_one = one.agree(group, &public_other).unwrap();
            let from_other = other.agree(group, &public_one).unwrap();
            assert_eq!(digest(from_one.as_slice()), octets(shared));
            assert_eq!(digest(from_other.as_slice()), octets(shared));
        }
    }

    #[test]
    fn a_small_result_is_padded_to_the_length_of_the_prime() {
        // The exponent is 2: the public value is 4, and the secret for a peer's value of 4 is 16.
        let mut entropy = |out: &mut [u8]| {
            out.fill(0);
            out[63] = 2;
        };
        for (group, len) in [(Group::Modp2048, 256), (Group::Modp3072, 384)] {
            let (exponent, public) = Exponent::generate(group, &mut entropy).unwrap();
            let mut expected = vec![0; len];
            expected[len - 1] = 4;
            assert_eq!(public, expected);
            let secret = exponent.agree(group, &public).unwrap();
            expected[len - 1] = 16;
            assert_eq!(secret.as_slice(), expected);
        }
    }

    /// Returns the prime plus `add`, which is negative or 0.
    fn near_the_prime(group: Group, add: i8) -> Vec<u8> {
        let mut octets = match group {
            Group::Modp2048 => Prime2048::PARAMS.modulus().to_be_bytes().as_ref().to_vec(),
            Group::Modp3072 => Prime3072::PARAMS.modulus().to_be_bytes().as_ref().to_vec(),
        };
        // Both primes end in 64 ones, so that the subtraction affects only the last octet.
        *octets.last_mut().unwrap() = 0xff_u8.wrapping_add_signed(add);
        octets
    }

    #[test]
    fn zero_one_and_one_less_than_the_prime_are_refused() {
        for (group, len) in [(Group::Modp2048, 256), (Group::Modp3072, 384)] {
            let zero = vec![0; len];
            let mut one = zero.clone();
            one[len - 1] = 1;
            for value in [zero, one, near_the_prime(group, -1)] {
                let (exponent, _) = Exponent::generate(group, &mut counting(1)).unwrap();
                let error = exponent.agree(group, &value).unwrap_err();
                assert_eq!(error, AgreementError::Degenerate);
            }
        }
    }

    #[test]
    fn the_prime_and_larger_values_are_refused() {
        for (group, len) in [(Group::Modp2048, 256), (Group::Modp3072, 384)] {
            let prime = near_the_prime(group, 0);
            let mut above = prime.clone();
            above[len - 9] += 1;
            for value in [prime, above, vec![0xff; len]] {
                let (exponent, _) = Exponent::generate(group, &mut counting(1)).unwrap();
                let error = exponent.agree(group, &value).unwrap_err();
                assert_eq!(error, AgreementError::OutOfRange);
            }
        }
    }

    #[test]
    fn two_and_two_less_than_the_prime_are_taken() {
        for (group, len) in [(Group::Modp2048, 256), (Group::Modp3072, 384)] {
            let mut two = vec![0; len];
            two[len - 1] = 2;
            for value in [two, near_the_prime(group, -2)] {
                let (exponent, _) = Exponent::generate(group, &mut counting(1)).unwrap();
                assert!(exponent.agree(group, &value).is_ok());
            }
        }
    }

    #[test]
    fn entropy_of_zeros_gives_no_exponent() {
        let mut zeros = |out: &mut [u8]| out.fill(0);
        let made = Exponent::generate(Group::Modp2048, &mut zeros);
        assert_eq!(made.err(), Some(Refused));
    }
}
